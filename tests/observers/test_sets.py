"""Observers that follow a learner, a diagnosis and propensities, where picks are known only to a set."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from onlooker import (
    BanditLog,
    DynamicImitation,
    Environment,
    InputError,
    LinTS,
    TrackingObserver,
    diagnose,
    direction_error,
    propensities,
    simulate,
)
from onlooker.base.errors import PicksDrawnWarning
from onlooker.logs.drawn import draw_picks, with_picks
from onlooker.observers.completion import rubin


@pytest.fixture(scope="module")
def simulation():
    return simulate(Environment(4, 9, seed=1), LinTS(), 600, seed=1)


@pytest.fixture(scope="module")
def known(simulation):
    log = simulation.log
    possible = (np.arange(9)[None] // 3 == log.chosen[:, None] // 3).ravel()
    return BanditLog(log.features, log.offsets, None, possible=possible)


def test_draws_lie_in_their_sets_and_follow_the_probabilities():
    log = BanditLog(np.zeros((6000, 1)), np.arange(2001) * 3, None, possible=[True, True, False] * 2000)
    picks = draw_picks(log, np.tile([0.3, 0.1, 0.6], 2000), np.random.default_rng(0))
    assert set(picks.tolist()) == {0, 1}
    assert np.mean(picks == 0) == pytest.approx(0.75, abs=0.03)
    assert with_picks(log, picks).possible is None


def test_draws_where_nothing_in_the_set_is_probable():
    log = BanditLog(np.zeros((300, 1)), np.arange(101) * 3, None, possible=[True, True, False] * 100)
    assert set(draw_picks(log, np.tile([0.0, 0.0, 1.0], 100), np.random.default_rng(0)).tolist()) == {0, 1}


def test_rubins_rules_are_those_of_the_book():
    rng = np.random.default_rng(0)
    estimates, covariances = list(rng.normal(size=(5, 2))), [np.eye(2) * v for v in (1, 2, 3, 4, 5)]
    mean, covariance = rubin(estimates, covariances)
    np.testing.assert_allclose(mean, np.mean(estimates, axis=0))
    # Five draws leave four degrees of freedom: Student's quantile in the place of the normal one.
    wider = (student.ppf(0.975, 4) / norm.ppf(0.975)) ** 2
    np.testing.assert_allclose(covariance, 3 * np.eye(2) + 1.2 * wider * np.cov(np.array(estimates).T))


@pytest.mark.parametrize("kind", [DynamicImitation, TrackingObserver])
def test_observers_follow_sets_nearly_as_well_as_picks(kind, simulation, known):
    with pytest.warns(PicksDrawnWarning, match="in 600 of 600 rounds only a set"):
        observer = kind().fit(known)
    seen = kind().fit(simulation.log)
    theta = simulation.theta_star
    assert direction_error(observer.theta_, theta) < 2.5 * direction_error(seen.theta_, theta) + 0.01
    assert np.isfinite(observer.covariance_).all()
    found = observer.propensities(known, ahead=False)
    np.testing.assert_allclose(np.add.reduceat(found, known.offsets[:-1]), 1.0)
    assert np.log(known.of_picks(found)).mean() > np.log(1 / 3)
    assert observer.score(known) > 0.6
    again = pickle.loads(pickle.dumps(observer))
    np.testing.assert_array_equal(again.theta_, observer.theta_)
    for refused in (lambda: observer.save("state.json"), lambda: observer.partial_fit(simulation.log[:50])):
        with pytest.raises(InputError, match="fit the whole log again"):
            refused()
    with pytest.raises(InputError, match="fit the whole log again"):
        seen.partial_fit(known)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [DynamicImitation, TrackingObserver])
def test_one_step_ahead_no_later_round_counts(kind, known):
    short = known[:110]
    other = np.array(short.possible)
    later = slice(int(short.offsets[80]), None)
    other[later] = ~other[later]
    changed = BanditLog(short.features, short.offsets, None, possible=other)
    one, two = (kind().fit(log).propensities(log) for log in (short, changed))
    np.testing.assert_array_equal(one[: short.offsets[81]], two[: short.offsets[81]])
    np.testing.assert_array_equal(kind().predicted_ahead(short), one)
    assert not np.array_equal(one, two)


def test_diagnosis_says_that_picks_were_drawn(known):
    short = known[300:]
    found = diagnose(short)
    assert found.verdict == "stable"
    assert "in 300 of 300 rounds only a set of arms is known" in found.notes[0]
    assert repr(diagnose(short)) == repr(found)


@pytest.mark.filterwarnings("ignore")
def test_propensities_of_sets(known):
    found = propensities(known[:300], DynamicImitation())
    assert found.values.min() > 0
    np.testing.assert_allclose(np.add.reduceat(found.values, found.log.offsets[:-1]), 1.0)
    assert found.chosen.shape == (300,)
    assert 0 < found.share < 1
    assert found.overlap().n_rounds == 300
    assert found.to_frame()["chosen"].sum() == pytest.approx(300)


def test_offers_that_were_sampled_unevenly_are_refused(simulation):
    log = simulation.log
    uneven = BanditLog(
        log.features, log.offsets, log.chosen, offer_probability=np.tile(np.linspace(0.1, 1, 9), log.n_rounds)
    )
    for needed in (DynamicImitation().fit, TrackingObserver().fit, diagnose):
        with pytest.raises(InputError, match="drawn evenly"):
            needed(uneven)


@pytest.mark.parametrize("use", [DynamicImitation().fit, TrackingObserver().fit, propensities])
def test_sets_of_all_arms_say_nothing(use):
    log = BanditLog(np.random.default_rng(0).normal(size=(400, 2)), np.arange(101) * 4, None, possible=np.ones(400))
    with pytest.raises(InputError, match="every offered arm may have been the pick in all rounds"):
        use(log)


def test_rounds_that_say_nothing_are_no_evidence_in_a_diagnosis():
    """Half of the rounds could have been any arm: what is left is judged, in its place."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4, 2))
    chosen = (X @ [1.0, -1.0] + rng.gumbel(size=(600, 4))).argmax(axis=1)
    marks = np.arange(4) == chosen[:, None]
    marks[:300] = True
    known = diagnose(BanditLog(X.reshape(-1, 2), np.arange(601) * 4, None, possible=marks.ravel()))
    assert any("in 300 rounds every offered arm may have been the pick" in note for note in known.notes)
    assert not any("a single arm" in note for note in known.notes)
    assert known.bins[0].start == 0
    assert known.bins[0].stop > 300
    nothing = diagnose(BanditLog(X.reshape(-1, 2), np.arange(601) * 4, None, possible=np.ones(2400)))
    assert nothing.verdict == "not enough evidence"
