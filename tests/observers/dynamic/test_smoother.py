"""The smoothed path: its bands, its jumps, and its agreement with what is known otherwise."""

import numpy as np
import pytest

from observers.dynamic.walker import walking_log
from onlooker.observers import DynamicImitation, SuffixImitation
from onlooker.observers.dynamic import members, smoother


@pytest.mark.parametrize("step", [1e-4, 3e-3])
def test_bands_cover(step):
    inside = []
    for seed in range(4):
        log, truth = walking_log(seed, step=step)
        path = DynamicImitation().fit(log).path_
        low, high = path.band()
        known = truth[path.rounds - 1]
        inside.append((low <= known) & (known <= high))
    # Neighbours in time are alike, so four logs of four weights hold about a hundred independent looks.
    assert 0.88 <= np.mean(inside) <= 0.99


def test_still_weights_are_those_of_maximum_likelihood():
    log, truth = walking_log(5, random=0.0)
    path = DynamicImitation().fit(log).path_
    fitted = SuffixImitation(burn_in="naive", l2=1e-9).fit(log).theta_
    assert np.abs(path.theta[-1] - fitted).max() < 1.5 * path.standard_error[-1].max()
    assert np.ptp(path.theta, axis=0).max() < 0.1
    assert np.linalg.norm(path.theta[-1] - truth[-1]) < 0.2


def test_a_jump_is_found_where_it_was_and_none_where_there_is_none():
    assert DynamicImitation().fit(walking_log(2)[0]).changes_ == ()
    assert DynamicImitation().fit(walking_log(2, step=1e-3)[0]).changes_ == ()
    (found,) = DynamicImitation().fit(walking_log(2, jump=1200)[0]).changes_
    assert abs(found - 1200) <= 10


def test_weights_that_grow_are_followed_back_to_where_they_were_small():
    log, truth = walking_log(1, n_rounds=3000, n_arms=15, d=8, grows=0.5, random=0.0)
    path = DynamicImitation().fit(log).path_
    known = truth[path.rounds - 1]
    lengths, true = np.linalg.norm(path.theta, axis=1), np.linalg.norm(known, axis=1)
    assert true[-1] > 4 * true[0]
    assert np.abs(lengths / true - 1)[5:].max() < 0.25
    low, high = path.band()
    assert ((low <= known) & (known <= high)).mean() > 0.88


@pytest.mark.parametrize("moves", [{"step": 1e-3}, {"grows": 0.5, "random": 0.0}])
def test_stretches_make_no_difference(monkeypatch, moves):
    log, _ = walking_log(3, n_rounds=700, **moves)
    whole = DynamicImitation().fit(log)
    probabilities = whole.propensities(log, ahead=False)
    path = whole.path_
    monkeypatch.setattr(smoother, "STRETCH", 37)
    again = DynamicImitation().fit(log)
    np.testing.assert_allclose(again.path_.theta, path.theta, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(again.propensities(log, ahead=False), probabilities, rtol=1e-6)


def test_later_picks_bring_probabilities_nearer_to_the_truth():
    log, truth = walking_log(4, step=3e-3, random=0.0)
    weights = np.exp(np.einsum("nkd,nd->nk", log.dense.reshape(log.n_rounds, -1, 4), truth))
    known = (weights / weights.sum(axis=1, keepdims=True)).ravel()
    observer = DynamicImitation().fit(log)
    ahead, smoothed = observer.propensities(log), observer.propensities(log, ahead=False)
    rest = slice(log.offsets[200], None)
    assert np.abs(smoothed - known)[rest].mean() < 0.8 * np.abs(ahead - known)[rest].mean()
    np.testing.assert_allclose(np.add.reduceat(smoothed, log.offsets[:-1]), 1.0)


@pytest.fixture
def variances_alone(monkeypatch):
    """Beyond 40 features; the laws depend on it, and are kept."""
    monkeypatch.setattr(members, "FULL", 40)
    members.bank.cache_clear()
    yield
    members.bank.cache_clear()


@pytest.mark.usefixtures("variances_alone")
def test_many_features_have_their_variances_followed_alone():
    log, truth = walking_log(6, d=45, n_rounds=2500, step=1e-5)
    observer = DynamicImitation().fit(log)
    path = observer.path_
    low, high = path.band()
    known = truth[path.rounds - 1][30:]
    assert ((low[30:] <= known) & (known <= high[30:])).mean() > 0.8
    assert np.corrcoef(observer.theta_, truth[-1])[0, 1] > 0.9
    smoothed = observer.propensities(log, ahead=False)
    np.testing.assert_allclose(np.add.reduceat(smoothed, log.offsets[:-1]), 1.0)


def test_powers_are_those_of_every_sharpness():
    below = -np.random.default_rng(0).exponential(3.0, size=(4, 5))
    expected = np.exp(np.array(smoother.SHARPER)[:, None, None] * below)
    np.testing.assert_allclose(smoother._powers(np.exp(below / 2)), expected, rtol=1e-12, atol=1e-300)
