"""Missing features: rounds left out, or values drawn; against what a fit to all values gives."""

from __future__ import annotations

import numpy as np
import pytest

from onlooker import BanditLog, InputError, Mask, SuffixImitation, draw_missing, drop_missing, fit_draws
from onlooker.base.errors import MissingValuesWarning

THETA = np.array([1.0, -0.7, 0.4])
SPREAD = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 1.0]])


def _log(seed: int, n: int = 800, k: int = 5) -> BanditLog:
    rng = np.random.default_rng(seed)
    X = rng.multivariate_normal(np.zeros(3), SPREAD, size=(n, k))
    return BanditLog.from_dense(X, (X @ THETA + rng.gumbel(size=(n, k))).argmax(axis=1))


def test_incomplete_rounds_are_left_out_and_counted() -> None:
    log = _log(0)
    features = np.array(log.features)
    features[[3, 4, 21], 1] = np.nan
    with pytest.warns(MissingValuesWarning, match="2 rounds of 800"):
        found = drop_missing(features, log.offsets, log.chosen, feature_names=["a", "b", "c"])
    assert found.feature_names == ("a", "b", "c")
    kept = np.setdiff1d(np.arange(800), [0, 4])
    np.testing.assert_array_equal(found.features, log[kept].features)
    np.testing.assert_array_equal(found.chosen, log.chosen[kept])


def test_complete_features_are_left_as_they_are() -> None:
    log = _log(0, n=50)
    np.testing.assert_array_equal(drop_missing(log.features, log.offsets, log.chosen).features, log.features)
    for one in draw_missing(log.features, log.offsets, log.chosen, n=2):
        np.testing.assert_array_equal(one.features, log.features)


def test_draws_have_the_spread_and_the_correlations_of_what_is_missing() -> None:
    log = _log(1, n=2000)
    features = np.array(log.features)
    gone = np.random.default_rng(0).random(len(features)) < 0.3
    features[gone, 0] = np.nan
    (found,) = draw_missing(features, log.offsets, log.chosen, n=1)
    drawn, true = np.asarray(found.features)[gone], np.asarray(log.features)[gone]
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(true.T), atol=0.1)
    picked = np.isin(np.flatnonzero(gone), log.chosen_rows)
    assert drawn[picked, 0].mean() == pytest.approx(true[picked, 0].mean(), abs=0.1)


def test_draws_keep_to_what_the_other_features_allow() -> None:
    """Rows of norm 1 stay so, and a feature of two values gets no third."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 4))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    both = np.column_stack([rows, (rows[:, 0] + 0.3 * rng.normal(size=3000) > 0.2).astype(float)])
    gone = rng.random(3000) < 0.4
    for place in (1, 4):
        hidden = both.copy()
        hidden[gone, place] = np.nan
        (found,) = draw_missing(hidden, np.arange(601) * 5, rng.integers(5, size=600), n=1)
        drawn = np.asarray(found.features)[gone]
        if place == 1:
            assert np.mean(np.abs(np.linalg.norm(drawn[:, :4], axis=1) - 1.0) < 0.05) > 0.95
        else:
            assert set(drawn[:, 4].tolist()) == {0.0, 1.0}
            assert np.corrcoef(drawn[:, 0], drawn[:, 4])[0, 1] > 0.5


def test_values_that_picks_miss_more_or_less_often_are_allowed_for() -> None:
    errors = []
    for seed in range(4):
        log = _log(seed, n=500)
        features, picked = np.array(log.features), np.zeros(len(log.features), dtype=bool)
        picked[log.chosen_rows] = True
        gone = np.random.default_rng(seed).random(len(features)) < np.where(picked, 0.1, 0.6)
        features[gone, 0] = np.nan
        draws = draw_missing(features, log.offsets, log.chosen, n=4, seed=seed)
        errors.append(fit_draws(SuffixImitation(burn_in="naive", l2=0.0), draws).theta_ - THETA)
    np.testing.assert_allclose(np.mean(errors, axis=0), 0.0, atol=0.1)


def test_intervals_of_combined_draws_cover() -> None:
    """Values are missing more often where other features are large: at random, given these."""
    inside, errors, wider = [], [], []
    for seed in range(8):
        log = _log(seed, n=300)
        masked = Mask(hide={0: 0.2, 2: 0.1})(log, seed)
        found = fit_draws(SuffixImitation(burn_in="naive", l2=0.0), masked.draws(6, seed=seed))
        full = SuffixImitation(burn_in="naive", l2=0.0).fit(log)
        inside.append(np.abs(found.theta_ - THETA) < 1.96 * np.sqrt(np.diag(found.covariance_)))
        errors.append([np.linalg.norm(one.theta_ - THETA) for one in (found, full)])
        wider.append(np.diag(found.covariance_) / np.diag(full.covariance_))
    assert 0.85 <= np.mean(inside) <= 1.0
    assert (np.mean(wider, axis=0) > 1.0).all()
    assert np.mean(errors, axis=0)[0] < 1.5 * np.mean(errors, axis=0)[1]


def test_the_summary_is_that_of_the_combined_fit() -> None:
    masked = Mask(hide={0: 0.2})(_log(3), 3)
    found = fit_draws(SuffixImitation(burn_in="naive"), masked.draws(4))
    rows = found.summary().coefficients
    assert [one.estimate for one in rows] == found.theta_.tolist()
    np.testing.assert_allclose([one.standard_error for one in rows], np.sqrt(np.diag(found.covariance_)))


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.full((4, 2), np.nan), "missing in every row"),
        (np.array([[np.inf, 1.0]] * 4), "infinite"),
        (np.zeros(4), "one row per offered arm"),
    ],
)
def test_what_cannot_be_is_refused(features: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        draw_missing(features, [0, 2, 4], [0, 1])


def test_nothing_complete_is_refused() -> None:
    with pytest.raises(InputError, match="every round has a missing value"):
        drop_missing([[np.nan], [1.0]], [0, 2], [0])
    with pytest.raises(InputError, match="there are no logs"):
        fit_draws(SuffixImitation(), [])
