"""What a system does beside its learner: found where the picks show it, and not mentioned elsewhere."""

import numpy as np
import pytest

from onlooker import BanditLog, Environment, EpsilonGreedy, LinTS, LinUCB, diagnose, simulate

TWO, PINNED, CAPPED, BEGAN = "two policies at once", "whatever its features", "never picked after", "began before"


def notes_of(log):
    return " ".join(diagnose(log).notes)


def policy_log(seed, *, second=0.0, pinned=0.0, n_rounds=2000):
    """A decisive softmax policy; in some rounds another one picks, or position 2 is picked whatever is there."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rounds, 8, 5))
    one, other = np.linalg.qr(rng.standard_normal((5, 2)))[0].T
    whose = (rng.random(n_rounds) < second)[:, None]
    picks = (6 * np.where(whose, X @ other, X @ one) + rng.gumbel(size=(n_rounds, 8))).argmax(axis=1)
    return BanditLog.from_dense(X, np.where(rng.random(n_rounds) < pinned, 2, picks))


@pytest.mark.parametrize("share", [0.15, 0.3, 0.5])
def test_two_policies_at_once(share):
    said = notes_of(policy_log(1, second=share))
    assert TWO in said
    assert float(said.split("about ")[1].split("%")[0]) / 100 == pytest.approx(share, abs=0.04)


def ranked_log(seed, chances, *, n_rounds=1500, d=4):
    """The best arm of one fixed policy, its second and so on, each with a chance that stays the same."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rounds, len(chances), d))
    order = np.argsort(-(X @ rng.standard_normal(d)), axis=1)
    ranks = rng.choice(len(chances), p=chances, size=n_rounds)
    return BanditLog.from_dense(X, order[np.arange(n_rounds), ranks])


@pytest.mark.parametrize("chances", [[0.7, 0.3], [0.6, 0.2, 0.2], [0.7, 0.3, 0.0], [0.46, *[0.06] * 9]], ids=len)
@pytest.mark.parametrize("seed", range(4))
def test_one_policy_that_is_often_random_is_not_two(seed, chances):
    assert TWO not in notes_of(ranked_log(seed, chances))


def test_two_policies_that_are_sometimes_random():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((1500, 5, 4))
    one, other = np.linalg.qr(rng.standard_normal((4, 2)))[0].T
    picks = np.where((rng.random(1500) < 0.3)[:, None], X @ other, X @ one).argmax(axis=1)
    random = rng.random(1500) < 0.2
    assert TWO in notes_of(BanditLog.from_dense(X, np.where(random, rng.integers(5, size=1500), picks)))


def test_a_pinned_position():
    said = notes_of(policy_log(2, pinned=0.15))
    assert PINNED in said
    assert "at position 2" in said
    assert TWO not in said


def test_an_arm_that_is_capped():
    rng = np.random.default_rng(3)
    contexts = np.column_stack([np.ones(2000), rng.standard_normal((2000, 2))])
    scores = 2 * contexts @ rng.standard_normal((3, 6)) + rng.gumbel(size=(2000, 6))
    top, picks = int(np.bincount(scores.argmax(axis=1)).argmax()), np.empty(2000, dtype=np.int64)
    for t, row in enumerate(scores):
        if (picks[:t] == top).sum() >= 150:
            row[top] = -np.inf
        picks[t] = row.argmax()
    said = notes_of(BanditLog.from_contexts(contexts, picks))
    assert CAPPED in said
    assert f"position {top} was offered" in said


def test_a_log_that_begins_in_mid_life():
    log = simulate(Environment(15, 20), EpsilonGreedy(0.1), n_rounds=3000).log
    assert BEGAN in notes_of(log[1500:])
    assert BEGAN not in notes_of(log)


@pytest.mark.parametrize("learner", [LinUCB(), LinTS(), EpsilonGreedy(0.2)], ids=["ucb", "ts", "epsilon"])
def test_nothing_is_said_of_ordinary_learners(learner):
    said = notes_of(simulate(Environment(8, 10), learner, n_rounds=1500).log)
    for what in (TWO, PINNED, CAPPED):
        assert what not in said


def test_nothing_is_said_where_the_policy_prefers_a_position():
    """Features that stay with the position explain its picks: no rule is claimed."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((1, 5, 3)) + 0.2 * rng.standard_normal((1500, 5, 3))
    picks = (X @ [2.0, -1.0, 1.0] + rng.gumbel(size=(1500, 5))).argmax(axis=1)
    assert PINNED not in notes_of(BanditLog.from_dense(X, picks))
