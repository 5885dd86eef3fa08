"""The share of picks that are not the learner's best guess, of learners whose best guess moves."""

import numpy as np
import pytest

from onlooker import BanditLog, diagnose
from onlooker.observers.dynamic.smoother import best_guesses


def gradient_log(seed, *, decisive=None, random=0.1, n_rounds=3000, n_arms=10, d=8):
    """Normalised gradient steps of constant size; epsilon-greedy, or softmax where `decisive` is given."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rounds, n_arms, d))
    X /= np.linalg.norm(X, axis=2, keepdims=True)
    truth, theta = rng.standard_normal(d), np.zeros(d)
    truth /= np.linalg.norm(truth)
    picks, best = np.empty((2, n_rounds), dtype=np.int64)
    for t in range(n_rounds):
        scores = X[t] @ theta
        best[t] = scores.argmax()
        if decisive is not None:
            pick = int((decisive * scores + rng.gumbel(size=n_arms)).argmax())
        else:
            pick = int(rng.integers(n_arms)) if rng.random() < random else int(best[t])
        row = X[t, pick]
        theta = theta + 0.2 * (row @ truth + 0.2 * rng.standard_normal() - row @ theta) * row
        picks[t] = pick
    return BanditLog.from_dense(X, picks), picks != best


@pytest.mark.parametrize(("seed", "decisive"), [(0, None), (1, None), (2, 10.0)])
def test_the_share_of_a_learner_that_moves(seed, decisive):
    log, missed = gradient_log(seed, decisive=decisive)
    found = diagnose(log)
    assert found.values.state == "moving" or decisive is not None
    share = missed[-len(missed) // 6 :].mean()
    assert found.exploration.low <= share <= found.exploration.high
    assert found.exploration.share == pytest.approx(share, abs=0.05)


def test_a_fixed_policy_overstates_it():
    """What the estimate is for: the misses of one policy are more than the learner's own exploration."""
    log, missed = gradient_log(0)
    late = log[2000:]
    found = best_guesses(log, since=2000)
    followed = float(found.weights @ found.missed.mean(axis=1))
    theta = np.linalg.lstsq(late.dense[late.chosen_rows], np.ones(late.n_rounds), rcond=None)[0]
    scores = (late.dense @ theta).reshape(late.n_rounds, -1)
    fixed = float((scores.argmax(axis=1) != late.chosen).mean())
    assert abs(followed - missed[2000:].mean()) < 0.04 < fixed - missed[2000:].mean()


def test_guesses_are_probabilities_and_weights_shares():
    log, _ = gradient_log(3, n_rounds=600)
    found = best_guesses(log, since=100, most=50)
    assert len(found.rounds) == 50
    assert found.rounds[0] == 100
    assert found.rounds[-1] == 599
    assert (found.missed >= 0).all()
    assert (found.missed <= 1 + 1e-12).all()
    assert (found.log_probabilities <= 1e-12).all()
    assert found.weights.sum() == pytest.approx(1.0)


def test_random_picks_that_become_more():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((2000, 10, 5))
    random = rng.random(2000) < np.where(np.arange(2000) < 1000, 0.02, 0.4)
    picks = np.where(random, rng.integers(10, size=2000), (X @ rng.standard_normal(5)).argmax(axis=1))
    found = diagnose(BanditLog.from_dense(X, picks))
    assert found.values.state == "stable"
    assert found.exploration.trend == "rising"
    assert found.exploration.low <= 0.36 <= found.exploration.high


@pytest.mark.parametrize("seed", range(3))
def test_the_twin_of_the_best_guess_is_one_too(seed):
    # Every arm is offered twice, and either of the best ones is picked; one pick in ten is random.
    rng = np.random.default_rng(seed)
    rows = np.tile(rng.normal(size=(2000, 4, 3)), (1, 2, 1))
    best = (rows[:, :4] @ [3.0, 1.0, -1.0]).argmax(axis=1) + 4 * rng.integers(2, size=2000)
    random = rng.random(2000) < 0.1
    picks = np.where(random, rng.integers(8, size=2000), best)
    found = diagnose(BanditLog.from_dense(rows, picks)).exploration
    assert found.low <= 0.075 <= found.high
    assert found.share < 0.11
