"""A learner is named only when the picks prove it; otherwise the answers are the model-free observer's."""

import json
import pickle
import warnings

import numpy as np
import pytest

from onlooker import (
    BanditLog,
    Boltzmann,
    DynamicImitation,
    Environment,
    EpsilonGreedy,
    LinTS,
    LinUCB,
    TrackingObserver,
    simulate,
)
from onlooker.observers.summaries import families_of
from onlooker.observers.tracking import contest
from onlooker.observers.tracking.assumptions import FAMILIES
from onlooker.observers.tracking.contest import Contest
from onlooker.observers.tracking.monitor import Monitor
from onlooker.observers.tracking.proof import Residuals, Scores

LEARNERS = {"UCB": LinUCB(), "TS": LinTS(), "Lapse": EpsilonGreedy(0.1), "Softmax": Boltzmann(0.05)}
FAMILY_WORDS = ("Thompson", "optimism", "epsilon-greedy", "softmax", "stable", "It explores")

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")


def unlogged(n_rounds=1500, seed=0):
    """Thompson sampling on a feature that the log lacks."""
    played = simulate(Environment(5, 12, seed=seed), LinTS(), n_rounds, seed=seed)
    lacks = int(np.argmax(np.abs(played.theta_star)))
    log = played.log
    return BanditLog(np.delete(log.features, lacks, axis=1), log.offsets, log.chosen)


@pytest.mark.parametrize("name", LEARNERS)
def test_families_are_named(name):
    log = simulate(Environment(5, 20, seed=1), LEARNERS[name], 2500, seed=1).log
    observer = TrackingObserver().fit(log)
    assert observer.exploration_.name == name
    assert observer.fits_
    verdict = observer.summary().verdict
    assert verdict.name == name
    assert verdict.model_free.errors >= 2
    assert verdict.over.errors >= 2


def test_what_predicted_best_is_followed():
    """Evidence may prefer another family by little: constants are tuned on the rounds that it is of."""
    log = simulate(Environment(4, 10, seed=1), LinTS(), 2100, seed=1).log
    monitor = Monitor(families=list(FAMILIES), ridge=1.0, n_features=4)
    monitor.watch(log)
    by_evidence = max(monitor.tuned, key=lambda one: one.evidence).assumption.exploration.name
    other = next(one for one in monitor.tuned if one.assumption.exploration.name != by_evidence)
    monitor.contest.leader = other.assumption.exploration.name
    assert monitor.best is other
    assert families_of(monitor)[0].name == monitor.contest.leader
    # A state of before keeps no leader.
    monitor.contest.leader = None
    assert monitor.best.assumption.exploration.name == by_evidence


def test_with_many_arms_some_spans_are_looked_at(monkeypatch):
    """The probabilities of all arms take the cube of their number; parts of a log still give what the whole does."""
    log = pinned(simulate(Environment(4, 20, seed=1), LinUCB(), 1500, seed=1).log)
    whole = Contest(ridge=1.0, n_features=4)
    whole.watch(log, None, log)
    monkeypatch.setattr(contest, "WORK", 1600)
    some, parts = Contest(ridge=1.0, n_features=4), Contest(ridge=1.0, n_features=4)
    some.watch(log, None, log)
    done = 0
    for stop in (1100, 1333, 1500):
        parts.watch(log[done:stop], None, log[:stop])
        parts, done = Contest.from_dict(json.loads(json.dumps(parts.to_dict())), 1.0, 4, None), stop
    assert some.thin == parts.thin == 5
    nearest = some.verdict().nearest
    few, all_of_them = (one.rivals[nearest].residuals for one in (some, whole))
    assert all_of_them.n_rounds == 1000
    assert 180 <= few.n_rounds <= 220
    assert few.deviates() == parts.rivals[nearest].residuals.deviates()
    assert some.rivals[nearest].scores.total == whole.rivals[nearest].scores.total
    # Pinned picks are still found.
    assert some.verdict().residual[0] == "position"
    assert some.verdict().residual[1] > contest.OUT


def pinned(log):
    chosen = log.chosen.copy()
    chosen[np.random.default_rng(0).random(len(chosen)) < 0.15] = 0
    return BanditLog(log.features, log.offsets, chosen)


def forgetful(n_rounds=1500, memory=1 - 1 / 200):
    """Epsilon-greedy on a ridge estimate that discounts old rounds."""
    rng = np.random.default_rng(11)
    rows = rng.normal(size=(n_rounds, 12, 6))
    theta, V, total, chosen = rng.normal(size=6) / 3, np.eye(6), np.zeros(6), np.empty(n_rounds, dtype=int)
    for t in range(n_rounds):
        greedy = int(np.argmax(rows[t] @ np.linalg.solve(V, total)))
        chosen[t] = rng.integers(12) if rng.random() < 0.1 else greedy
        x = rows[t, chosen[t]]
        total = memory * total + x * (x @ theta + 0.3 * rng.normal())
        V = memory * V + (1 - memory) * np.eye(6) + np.outer(x, x)
    return BanditLog.from_dense(rows, chosen)


def fixed_epsilon(n_rounds=1500):
    """The best arm of a policy that never changes, and a random one in a tenth of the rounds."""
    rng = np.random.default_rng(12)
    rows = rng.normal(size=(n_rounds, 12, 6))
    best, random = (rows @ rng.normal(size=6)).argmax(axis=1), rng.integers(12, size=n_rounds)
    return BanditLog.from_dense(rows, np.where(rng.random(n_rounds) < 0.1, random, best))


def other_learners():
    yield "unlogged", unlogged()
    plain = simulate(Environment(5, 12, seed=2), LinUCB(), 1500, seed=2).log
    yield "pinned", pinned(plain)
    yield "batches of 500", simulate(Environment(5, 12, seed=3), LinTS(batch=500), 2000, seed=3).log
    yield "forgets", forgetful()
    yield "fixed epsilon-greedy", fixed_epsilon()
    theta, rows = np.array([3.0, -2.0, 1.0]), np.random.default_rng(4).normal(size=(2000, 6, 3))
    rule = np.where(np.arange(2000)[:, None] % 2 == 0, rows @ theta, rows[:, :, 1])
    yield "two rules in turn", BanditLog.from_dense(rows, rule.argmax(axis=1))


@pytest.mark.parametrize(("kind", "log"), list(other_learners()), ids=lambda one: one if isinstance(one, str) else "")
def test_other_learners_are_not_named(kind, log):
    observer = TrackingObserver().fit(log)
    assert observer.exploration_ is None, kind
    assert not observer.fits_
    assert observer.settled_round_ is None
    said = str(observer.summary())
    assert not any(word in said for word in FAMILY_WORDS)
    behind = "model-free" in observer.summary().verdict.lacking
    assert ("explains the picks better than a model-free one" in said) == behind
    assert "None of the known learners" in said


def test_it_is_said_what_the_nearest_family_lacks():
    assert "forgets old rounds" in str(TrackingObserver().fit(forgetful()).summary())
    assert "a fixed policy, which does not learn" in str(TrackingObserver().fit(fixed_epsilon()).summary())


def test_without_a_name_the_answers_are_the_model_free_ones(tmp_path):
    log = unlogged()
    observer, free = TrackingObserver().fit(log), DynamicImitation().fit(log)
    np.testing.assert_array_equal(observer.theta_, free.theta_)
    np.testing.assert_array_equal(observer.covariance_, free.covariance_)
    later = unlogged(1600)[1500:]
    np.testing.assert_array_equal(observer.predict_proba(later), free.predict_proba(later))
    np.testing.assert_array_equal(observer.path_.theta[-1], free.theta_)
    observer.save(tmp_path / "state.json")
    for copy in (TrackingObserver.load(tmp_path / "state.json"), pickle.loads(pickle.dumps(observer))):
        assert copy.exploration_ is None
        assert copy.summary() == observer.summary()
        np.testing.assert_array_equal(copy.theta_, observer.theta_)


@pytest.mark.parametrize("cuts", [(60, 120, 130), (125, 500, 1999), (400, 1100, 2000)])
def test_parts_decide_as_the_whole(cuts):
    log = simulate(Environment(4, 8, seed=5), LinTS(), 2200, seed=5).log
    whole, parts = Contest(1.0, 4), Contest(1.0, 4)
    whole.watch(log, None, log)
    for first, last in zip((0, *cuts), (*cuts, 2200), strict=True):
        parts.watch(log[first:last], None, log[:last] if last <= 2000 or first < 2000 else None)
    assert parts.to_dict() == whole.to_dict()
    assert parts.verdict() == whole.verdict()


def test_a_decision_is_revised_as_the_log_grows():
    log = simulate(Environment(5, 20, seed=1), LinTS(), 1500, seed=1).log
    observer = TrackingObserver().fit(log[:600])
    assert observer.exploration_ is None
    observer.partial_fit(log[600:])
    assert observer.exploration_.name == "TS"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        observer.partial_fit(pinned(simulate(Environment(5, 20, seed=7), LinTS(), 1500, seed=7).log))
    assert observer.exploration_ is None


def test_a_lead_has_the_error_of_its_blocks():
    rng, errors, totals = np.random.default_rng(0), [], []
    for _ in range(200):
        one, other = Scores(), Scores()
        steps = rng.normal(size=2000)
        # Neighbouring rounds are correlated, over ten rounds or so.
        noise = np.convolve(steps, np.ones(10) / 10, mode="same") / 10
        one.add(noise)
        other.add(np.zeros(2000))
        lead = one.lead(other)
        totals.append(lead.total)
        errors.append(lead.error)
    assert 0.6 < np.mean(errors) / np.std(totals) < 1.4


def test_residuals_of_the_truth_are_normal():
    rng, found = np.random.default_rng(1), []
    for _ in range(60):
        scores = rng.normal(size=(600, 5))
        shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        chosen = (shares.cumsum(axis=1) < rng.random((600, 1))).sum(axis=1)
        one = Residuals.start(2)
        log = BanditLog.from_dense(rng.normal(size=(600, 5, 2)), np.minimum(chosen, 4))
        one.add(log, shares.ravel(), {"other": np.full(3000, 0.2)})
        found.append(one.deviates())
    for name in found[0]:
        values = np.array([one[name] for one in found])
        assert abs(values).max() < 4.5, name
    whole = np.array([one["probability"] for one in found])
    # One-sided: half of the time it is 0, and it exceeds 1 as often as a normal deviate does.
    assert 0.3 < (whole > 0).mean() < 0.7
    assert 0.05 < (whole > 1).mean() < 0.3


def test_a_family_that_lacks_something_else_is_not_said_to_be_behind_the_model_free_observer():
    observer = TrackingObserver().fit(fixed_epsilon())
    found = observer.summary()
    assert "model-free" not in found.verdict.lacking
    assert found.verdict.model_free.total > 0
    assert "explains the picks better than a model-free one" not in f"{found} {observer.warnings_}"
    assert "None of the known learners is proved to have made the picks: a fixed policy" in str(found)
