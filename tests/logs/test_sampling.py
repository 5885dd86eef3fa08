"""Samples of a catalogue: fits recover the policy among all offers, whatever the sampling was."""

from __future__ import annotations

import numpy as np
import pytest

from onlooker import BanditLog, InputError, SuffixImitation, sample_offers
from onlooker.logs.sampling import _rates

THETA = np.array([1.0, -0.8, 0.5])


def _log(seed: int, n: int = 600, k: int = 60) -> BanditLog:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, k, 3))
    return BanditLog.from_dense(X, (X @ THETA + rng.gumbel(size=(n, k))).argmax(axis=1))


def _catalogue(n: int, k: int, seed: int = 0) -> BanditLog:
    """Items with features of their own, all of them on offer in every round."""
    rng = np.random.default_rng(seed)
    items = rng.normal(size=(k, 3))
    contexts = rng.normal(size=(n, 2))
    weights = rng.normal(size=9) * 0.7
    turned = np.column_stack([items @ weights[:3], items @ weights[3:6], items @ weights[6:]])
    chosen = np.array([(turned @ [1.0, *c] + rng.gumbel(size=k)).argmax() for c in contexts])
    return BanditLog.from_contexts(contexts, chosen, arms=np.arange(k), arm_features=items)


def test_an_even_sample_keeps_the_pick_and_as_many_others() -> None:
    log = _log(0)
    found = sample_offers(log, 10, seed=1)
    assert (found.n_arms == 10).all()
    np.testing.assert_array_equal(found.features[found.chosen_rows], log.features[log.chosen_rows])
    np.testing.assert_allclose(found.offer_probability, 9 / 59)
    rows = {tuple(row) for row in log.arms(3).tolist()}
    assert {tuple(row) for row in found.arms(3).tolist()} <= rows
    again = sample_offers(log, 10, seed=1)
    np.testing.assert_array_equal(again.features, found.features)
    assert not np.array_equal(sample_offers(log, 10, seed=2).features, found.features)


def test_short_rounds_stay_as_they_are() -> None:
    log = _log(0, n=20, k=5)
    found = sample_offers(log, 10)
    np.testing.assert_array_equal(found.features, log.features)
    assert (found.offer_probability == 1).all()


def test_others_are_drawn_evenly() -> None:
    log = BanditLog.from_dense(np.tile(np.arange(8.0)[:, None], (4000, 1, 1)), np.full(4000, 3))
    found = sample_offers(log, 4, seed=0)
    counts = np.bincount(found.features[:, 0].astype(int), minlength=8)
    assert counts[3] == 4000
    np.testing.assert_allclose(np.delete(counts, 3) / 4000, 3 / 7, atol=0.03)


def test_rows_are_kept_by_weight_with_the_stated_probability() -> None:
    log = BanditLog.from_dense(np.tile(np.arange(8.0)[:, None], (4000, 1, 1)), np.full(4000, 3))
    weights = np.tile([1, 2, 3, 4, 5, 6, 7, 8], 4000)
    found = sample_offers(log, 4, seed=0, weights=weights)
    places = found.features[:, 0].astype(int)
    counts = np.bincount(places, minlength=8) / 4000
    stated = np.array([found.offer_probability[places == one][0] for one in range(8)])
    assert stated.sum() == pytest.approx(3.0)
    np.testing.assert_allclose(np.delete(counts, 3), np.delete(stated, 3), atol=0.03)
    assert counts[3] == 1.0
    together = np.zeros((4000, 8))
    together[np.repeat(np.arange(4000), found.n_arms), places] = 1
    np.testing.assert_allclose(np.corrcoef(np.delete(together, 3, axis=1).T), np.eye(7), atol=0.06)


def test_rates_reach_what_is_wanted() -> None:
    assert -np.expm1(-_rates(np.array([1.0, 2.0, 50.0]), np.array([0, 3]), 2)).sum() == pytest.approx(2.0)


@pytest.mark.filterwarnings("ignore:in .* a single arm")
def test_a_sample_by_weight_is_corrected_for_and_ignoring_it_is_not_right() -> None:
    """Arms are kept by a weight that goes with the first feature: only the correction gives its weight back."""
    found, ignored, inside = [], [], []
    for seed in range(25):
        log = _log(seed)
        sampled = sample_offers(log, 8, seed=seed, weights=np.exp(1.5 * log.features[:, 0]))
        observer = SuffixImitation(burn_in="naive", l2=0.0).fit(sampled)
        plain = BanditLog(sampled.features, sampled.offsets, sampled.chosen)
        found.append(observer.theta_)
        ignored.append(SuffixImitation(burn_in="naive", l2=0.0).fit(plain).theta_)
        inside.append(np.abs(observer.theta_ - THETA) < 1.96 * np.sqrt(np.diag(observer.covariance_)))
    np.testing.assert_allclose(np.mean(found, axis=0), THETA, atol=0.06)
    assert abs(np.mean(ignored, axis=0)[0] - THETA[0]) > 0.5
    assert 0.88 <= np.mean(inside) <= 1.0


def test_a_catalogue_is_never_written_out() -> None:
    log = _catalogue(200, 20_000)
    found = sample_offers(log, 30)
    assert (found.n_arms == 30).all()
    assert found.features.which is not None
    np.testing.assert_array_equal(found.arm_ids[found.chosen_rows], log.features.arms[log.chosen])
    weighted = sample_offers(log, 30, weights=np.linspace(1.0, 2.0, 20_000))
    assert abs(weighted.n_arms.mean() - 30) < 2
    one, two = (SuffixImitation(burn_in="naive").fit(each).theta_ for each in (found, weighted))
    assert np.corrcoef(one, two)[0, 1] > 0.9


@pytest.mark.parametrize(
    ("n", "weights", "message"),
    [
        (1, None, "n is 1"),
        (5, np.ones(3), "one per row of the log"),
        (5, np.zeros(60 * 600), "not all 0"),
        (5, np.full(60 * 600, -1.0), "not negative"),
    ],
)
def test_what_cannot_be_is_refused(n: int, weights: np.ndarray | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        sample_offers(_log(0), n, weights=weights)


def test_an_arm_that_is_picked_and_never_kept_is_refused() -> None:
    log = BanditLog.from_dense(np.zeros((2, 4, 1)), [0, 1])
    with pytest.raises(InputError, match="the pick of round 1 has weight 0"):
        sample_offers(log, 3, weights=np.tile([1.0, 0.0, 1.0, 1.0], 2))


def test_a_log_known_in_part_is_refused() -> None:
    with pytest.raises(InputError, match="known only in part already"):
        sample_offers(sample_offers(_log(0), 5), 3)
