"""Learners with a past, learners that update in batches, and policies that do not learn at all."""

import numpy as np
import pytest

from onlooker import BanditLog, Environment, EpsilonGreedy, LinTS, LinUCB, TrackingObserver, simulate
from onlooker.observers.tracking.assumptions import TS, UCB, Assumption, Lapse, Softmax
from onlooker.observers.tracking.contest import LEAST, Contest
from onlooker.observers.tracking.follower import SPARK, Follower
from onlooker.observers.tracking.proof import Residuals
from onlooker.observers.tracking.tuning import Tuned
from onlooker.observers.tracking.variants import with_past

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")


def assumed(**more):
    return Assumption(**{"exploration": UCB(1.0), "ridge": 1.0, "precision": 0.2, "slip": 0.01} | more)


def fixed_softmax(n_rounds=1500, seed=0):
    """A policy that picks by a softmax and never learns."""
    source = np.random.default_rng(seed)
    rows, theta = source.standard_normal((n_rounds, 8, 4)), source.standard_normal(4)
    return BanditLog.from_dense(rows, np.argmax(3.0 * rows @ theta + source.gumbel(size=(n_rounds, 8)), axis=1))


def test_a_fixed_policy_is_no_learner():
    for seed in range(2):
        observer = TrackingObserver().fit(fixed_softmax(seed=seed))
        assert observer.exploration_ is None
        verdict = observer.summary().verdict
        assert verdict.nearest == "Softmax"
        assert verdict.fixed < 0
        assert "fixed" in verdict.lacking
    assert "a fixed policy, which does not learn, predicts them about as well" in str(observer.summary())


def test_a_learner_that_forgets_discounts_its_matrix():
    log, memory = simulate(Environment(3, 6, seed=2), LinUCB(), 150, seed=2).log, 1 - 1 / 100
    whole, parts = (Follower.start(assumed(memory=memory), 3, ()) for _ in range(2))
    whole.follow(log[:128])
    for part in (log[:40], log[40:64], log[64:128]):
        parts.follow(part)
    np.testing.assert_array_equal(whole.belief.spread, parts.belief.spread)
    picks, kept = log.dense[log.chosen_rows].astype(float), memory**64
    V = kept * (np.eye(3) + picks[:64].T @ picks[:64]) + (1 - kept) * np.eye(3) + picks[64:128].T @ picks[64:128]
    np.testing.assert_allclose(np.linalg.inv(whole.belief.inverse), V, rtol=1e-8)
    assert Assumption.from_dict(whole.assumption.to_dict()) == whole.assumption


def by_gradient(n_rounds=1500, seed=0, rate=0.05):
    """Epsilon-greedy on an estimate that makes gradient steps."""
    source = np.random.default_rng(seed)
    rows, theta, w = source.standard_normal((n_rounds, 10, 5)), source.standard_normal(5), np.zeros(5)
    picks = np.empty(n_rounds, dtype=np.int64)
    for t, offered in enumerate(rows):
        picks[t] = source.integers(10) if source.random() < 0.1 or t == 0 else np.argmax(offered @ w)
        x = offered[picks[t]]
        w += rate / 5 * x * (x @ theta + 0.1 * source.standard_normal() - x @ w)
    return BanditLog.from_dense(rows, picks)


def test_a_learner_by_gradient_steps_has_no_name():
    for seed in range(2):
        observer = TrackingObserver().fit(by_gradient(seed=seed))
        assert observer.exploration_ is None
        verdict = observer.summary().verdict
        assert "gradient" in verdict.lacking
        assert verdict.gradient.total < -10
    assert "gradient steps" in str(observer.summary())
    ridge = simulate(Environment(5, 10, seed=1), EpsilonGreedy(0.1), 1500, seed=1).log
    assert TrackingObserver().fit(ridge).summary().verdict.gradient.total > 10


def test_gradient_steps_move_estimate_and_truth_as_a_linear_model_does():
    rate, log = 0.1, by_gradient(60)
    # Random picks say nothing, so that nothing but steps changes the belief.
    follower = Follower.start(assumed(exploration=Lapse(1.0), rate=rate), 5, ())
    follower.belief.mean[:] = np.arange(10.0)
    spread, mean = follower.belief.spread.copy(), follower.belief.mean.copy()
    follower.follow(log)
    for x in log.dense[log.chosen_rows].astype(float):
        step = np.eye(10)
        step[:5, :5] -= rate * np.outer(x, x)
        step[:5, 5:] += rate * np.outer(x, x)
        noise = np.concatenate([rate * x, np.zeros(5)])
        mean, spread = step @ mean, step @ spread @ step.T + np.outer(noise, noise)
    np.testing.assert_allclose(follower.belief.mean, mean, rtol=1e-8)
    np.testing.assert_allclose(follower.belief.spread, spread, rtol=1e-6, atol=1e-9)


def test_a_learner_by_gradient_steps_takes_in_features_that_come_later():
    log, start = by_gradient(400), assumed(exploration=Lapse(0.1), rate=0.01)
    more = BanditLog(np.hstack([log.dense, np.zeros((len(log.dense), 2))]), log.offsets, log.chosen)
    small, large = Follower.start(start, 5, ()), Follower.start(start, 7, ())
    small.follow(log[:200])
    small.grow(2)
    large.follow(more[:200])
    np.testing.assert_allclose(small.belief.mean, large.belief.mean, atol=1e-9)
    np.testing.assert_allclose(small.follow(more[200:]), large.follow(more[200:]), atol=1e-6)
    assert Assumption.from_dict(small.assumption.to_dict()) == small.assumption


def test_two_learners_that_take_turns_are_not_one():
    """UCB and Thompson sampling, each with rewards of its own; half of the rounds show the one, half the other."""
    environment = Environment(20, 20, seed=2)
    logs = [simulate(environment, learner, 3000, seed=2).log for learner in (LinUCB(), LinTS())]
    assert (logs[0].features == logs[1].features).all()
    half = np.random.default_rng(0).random(3000) < 0.5
    both = BanditLog(logs[0].features, logs[0].offsets, np.where(half, logs[0].chosen, logs[1].chosen))
    mixed, alone = (TrackingObserver().fit(log).summary().verdict for log in (both, logs[1]))
    assert "turns" in mixed.lacking
    assert "turns" not in alone.lacking
    assert alone.turns.total > 0 > mixed.turns.total


def test_taking_turns_with_itself_is_the_learner_itself():
    log = simulate(Environment(4, 8, seed=3), LinTS(), 300, seed=3).log
    one, two = (Follower.start(assumed(exploration=TS(4.0), other=other), 4, ()) for other in (None, TS(4.0)))
    np.testing.assert_allclose(one.follow(log), two.follow(log), atol=1e-10)
    np.testing.assert_allclose(one.belief.spread, two.belief.spread, atol=1e-10)
    apart = Follower.start(assumed(exploration=TS(4.0), other=UCB(1.0)), 4, ())
    parts = Follower.start(apart.assumption, 4, ())
    whole = apart.follow(log)
    assert (whole == np.concatenate([parts.follow(log[:77]), parts.follow(log[77:])])).all()
    assert Assumption.from_dict(apart.assumption.to_dict()) == apart.assumption


def test_batches_are_found_with_their_length():
    log = simulate(Environment(6, 10, seed=1), LinTS(batch=50), 2500, seed=1).log
    summary = TrackingObserver().fit(log).summary()
    assert (summary.families[0].name, summary.families[0].batch) == ("TS", 50)
    # With batches, picks of one family are often predicted as well by another.
    assert summary.verdict.lacking[0] == "batches"
    assert "seems to update in batches" in str(summary)
    plain = simulate(Environment(6, 10, seed=1), LinTS(), 2500, seed=1).log
    assert TrackingObserver().fit(plain).summary().families[0].batch == 1


@pytest.mark.parametrize(("name", "learner"), [("UCB", LinUCB()), ("TS", LinTS()), ("Lapse", EpsilonGreedy(0.1))])
def test_a_log_from_the_middle_of_a_life_is_named_rightly_or_not_at_all(name, learner):
    log = simulate(Environment(5, 10, seed=2), learner, 5000, seed=2).log[3000:]
    found = TrackingObserver().fit(log).exploration_
    assert found is None or found.name == name


def test_what_a_learner_knew_before_is_no_longer_unknown():
    follower = Follower.start(assumed(known=50.0), 3, ())
    np.testing.assert_allclose(follower.belief.inverse, np.eye(3) / 51)
    # What picks may show of the estimate, and what the learner does not know, make up the prior.
    np.testing.assert_allclose(follower.covariance, (1 + SPARK) * np.eye(3) / 0.2)


def test_batches_update_at_their_end():
    log = simulate(Environment(3, 5, seed=3), LinTS(batch=20), 50, seed=3).log
    follower = Follower.start(assumed(exploration=TS(3.0), batch=20), 3, ())
    follower.follow(log[:19])
    np.testing.assert_array_equal(follower.belief.inverse, np.eye(3))
    follower.follow(log[19:])
    picks = log.dense[log.chosen_rows][:40].astype(float)
    np.testing.assert_allclose(follower.belief.inverse, np.linalg.inv(np.eye(3) + picks.T @ picks), rtol=1e-9)
    assert follower.pending.shape == (10, 3)
    whole = Follower.start(assumed(exploration=TS(3.0), batch=20), 3, ())
    whole.follow(log)
    assert whole.to_dict() == follower.to_dict() == Follower.from_dict(whole.to_dict(), 3).to_dict()
    damaged = whole.to_dict() | {"pending": []}
    with pytest.raises(ValueError, match="waiting"):
        Follower.from_dict(damaged, 3)


def test_nothing_is_compared_before_something_can_be_proved():
    log = simulate(Environment(3, 5, seed=4), LinTS(), LEAST, seed=4).log
    contest = Contest(1.0, 3)
    contest.watch(log[:-1], None, log[:-1])
    assert contest.verdict() is None
    assert len(contest.early) == 5 * (LEAST - 1)
    contest.watch(log[-1:], None, log)
    assert contest.verdict().nearest == "TS"
    assert not len(contest.early)


def test_probabilities_of_all_arms_are_those_of_draws():
    """Against draws of the learner's sampled estimate, in the belief after some rounds."""
    log = simulate(Environment(3, 6, seed=5), LinTS(), 60, seed=5).log
    follower = Follower.start(assumed(exploration=TS(3.0), slip=0.0005, precision=1.0), 3, ())
    follower.follow(log[:50])
    mean, spread = follower.belief.mean.copy(), follower.belief.spread + 3.0 * follower.belief.inverse
    found = np.empty(6)
    follower.follow(log[50:51], arms=found)
    draws = np.random.default_rng(0).multivariate_normal(mean, spread, 200_000)
    picks = np.argmax(draws @ log[50:51].dense.T, axis=1)
    np.testing.assert_allclose(found, np.bincount(picks, minlength=6) / len(picks), atol=0.03)
    assert found.sum() == pytest.approx(1)


def test_residuals_are_surpluses_over_what_was_expected():
    source = np.random.default_rng(6)
    rows, p = source.standard_normal((40, 4, 2)), source.dirichlet(np.ones(4), 40)
    other, chosen = source.dirichlet(np.ones(4), 40), source.integers(0, 4, 40)
    log, found = BanditLog.from_dense(rows, chosen), Residuals.start(2)
    found.add(log[:15], p[:15].ravel(), {"other": other[:15].ravel()})
    found.add(log[15:], p[15:].ravel(), {"other": other[15:].ravel()})
    best = np.argmax(p, axis=1)
    top = p.max(axis=1)
    sharp = np.log(np.maximum(p, 1e-3))
    sharp -= (p * sharp).sum(axis=1, keepdims=True)
    surplus = (chosen == best).sum() - top.sum()
    shared = (top * sharp.max(axis=1)).sum()
    assert found.named["best arm"] == pytest.approx((surplus, (top * (1 - top)).sum(), shared))
    ratio = np.clip(other / p, 0, 20)
    mean = (p * ratio).sum(axis=1)
    spread = (p * (ratio - mean[:, None]) ** 2).sum()
    shared = (p * (ratio - mean[:, None]) * sharp).sum()
    assert found.named["other"] == pytest.approx(((ratio[np.arange(40), chosen] - mean).sum(), spread, shared))
    # Beyond the sharpness: what is left of a quantity that is the sharpness is nothing.
    level, variance, _ = found.named["sharpness"]
    assert found.named["sharpness"][1] == pytest.approx((p * sharp**2).sum())
    left = (ratio[np.arange(40), chosen] - mean).sum() - shared / variance * level
    # Freedman's bound: steps of a ratio may be as large as 20.
    assert found.deviates()["other"] == pytest.approx(
        left / np.sqrt(spread - shared**2 / variance + max(left, 0.0) * 20 / 3)
    )
    expected = np.einsum("tk,tkj->tj", p, rows)
    np.testing.assert_allclose(found.features[0], (rows[np.arange(40), chosen] - expected).sum(axis=0))
    assert found.shares.sum() == 40


@pytest.mark.parametrize(("temperature", "off"), [(0.05, 0.75), (1.0, 1.5)])
def test_a_softmax_is_followed_as_the_exact_posterior_is(temperature, off):
    """Weights of a policy that does not learn, integrated over a grid: 80 picks, in log-probability."""
    source = np.random.default_rng(8)
    rows, theta = source.standard_normal((80, 6, 2)), np.array([1.2, -0.7])
    scores = rows @ theta / temperature
    chosen = np.argmax(scores + source.gumbel(size=scores.shape), axis=1)
    one = np.linspace(-4.0, 4.0, 301)
    grid = np.stack(np.meshgrid(one, one), axis=-1).reshape(-1, 2)
    weights, exact = -0.5 * (grid**2).sum(axis=1), []
    for offers, pick in zip(rows, chosen, strict=True):
        values = grid @ offers.T / temperature
        top = values.max(axis=1)
        picks = np.exp(values[:, pick] - top) / np.exp(values - top[:, None]).sum(axis=1)
        shares = np.exp(weights - weights.max())
        exact.append(np.log((1 - 5e-4) * (shares @ picks) / shares.sum() + 5e-4 / 6))
        weights = weights + np.log(np.maximum(picks, 1e-300))
    known = Assumption(exploration=Softmax(temperature), ridge=1.0, precision=1.0, slip=5e-4, known=1e9)
    found = Follower.start(known, 2, ()).follow(BanditLog.from_dense(rows, chosen))
    assert abs(found.sum() - np.sum(exact)) < off


def test_batches_are_taken_only_if_the_picks_say_so_beyond_chance():
    """Of many features little is known early on: the evidence for batches then varies by more than five log units."""
    plain, batched = (simulate(Environment(50, 50, seed=0), LinTS(batch=batch), 500, seed=0).log for batch in (1, 100))
    start = assumed(exploration=TS(100.0), precision=0.24, slip=0.0005)
    found = [
        with_past(log, Tuned(assumption=start, evidence=0.0, range=(100.0, 100.0))).assumption.batch
        for log in (plain, batched)
    ]
    assert found[0] == 1
    assert found[1] > 1
