"""Rounds lost by what was picked: weights by the inverse of what they were kept with, and a sandwich that knows it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import norm
from scipy.stats import t as student

from onlooker import BanditLog, InputError, SuffixImitation

THETA = np.array([1.0, -0.7, 0.4])


def _simulated(seed: int, n: int = 1500, k: int = 5) -> tuple[BanditLog, np.ndarray]:
    """A log whose rounds are kept by the first feature of what was picked, and what each was kept with."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, k, 3))
    chosen = (X @ THETA + rng.gumbel(size=(n, k))).argmax(axis=1)
    chance = np.where(X[np.arange(n), chosen, 0] > 0.5, 0.9, 0.15)
    kept = np.flatnonzero(rng.random(n) < chance)
    return BanditLog.from_dense(X[kept], chosen[kept]), chance[kept]


def _brute_sandwich(log: BanditLog, weights: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """H^-1 (sum of w^2 g g') H^-1, round by round, each gradient at the theta of the other rounds; Student's width."""
    hessians, gradients = [], []
    for t in range(log.n_rounds):
        rows = log.arms(t)
        p = np.exp(rows @ theta)
        p /= p.sum()
        gradients.append(weights[t] * (p @ rows - rows[log.chosen[t]]))
        hessians.append(weights[t] * ((rows.T * p) @ rows - np.outer(p @ rows, p @ rows)))
    bread = np.linalg.inv(np.sum(hessians, axis=0))
    without = [np.linalg.solve(np.eye(3) - h @ bread, g) for h, g in zip(hessians, gradients, strict=True)]
    sizes = np.array([g @ bread @ g for g in without])
    wider = (student.ppf(0.975, 2 * sizes.sum() ** 2 / (sizes**2).sum()) / norm.ppf(0.975)) ** 2
    return wider * bread @ np.einsum("ti,tj->ij", without, without) @ bread


@pytest.mark.parametrize("sparse", [False, True])
def test_sandwich_is_that_of_the_definition(sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onlooker.imitation.leverage.CLOSELY", 0.0)
    log, kept = _simulated(0)
    given = log.with_features(csr_array(log.features)) if sparse else log
    observer = SuffixImitation(burn_in="naive", l2=0.0, lags=0).fit(given, round_probability=kept)
    np.testing.assert_allclose(observer.covariance_, _brute_sandwich(log, 1 / kept, observer.theta_), rtol=1e-6)


def test_the_scale_of_probabilities_does_not_matter() -> None:
    log, kept = _simulated(0)
    one, two = (SuffixImitation(burn_in="naive", l2=0.0).fit(log, round_probability=kept * c) for c in (1.0, 0.01))
    np.testing.assert_allclose(one.theta_, two.theta_, rtol=1e-7)
    np.testing.assert_allclose(one.covariance_, two.covariance_, rtol=1e-6)


def test_probabilities_that_are_all_the_same_change_nothing() -> None:
    log, _ = _simulated(0)
    one = SuffixImitation().fit(log, round_probability=np.full(log.n_rounds, 0.3))
    two = SuffixImitation().fit(log)
    assert one.burn_in_ == two.burn_in_
    np.testing.assert_allclose(one.theta_, two.theta_, rtol=1e-7)
    np.testing.assert_allclose(one.covariance_, two.covariance_, rtol=1e-6)


def test_weights_correct_what_was_lost_by_the_pick() -> None:
    found, ignored, inside = [], [], []
    for seed in range(40):
        log, kept = _simulated(seed)
        observer = SuffixImitation(burn_in="naive", l2=0.0).fit(log, round_probability=kept)
        found.append(observer.theta_)
        ignored.append(SuffixImitation(burn_in="naive", l2=0.0).fit(log).theta_)
        inside.append(np.abs(observer.theta_ - THETA) < 1.96 * np.sqrt(np.diag(observer.covariance_)))
    np.testing.assert_allclose(np.mean(found, axis=0), THETA, atol=0.08)
    assert np.mean(ignored, axis=0)[0] > 1.5
    assert 0.88 <= np.mean(inside) <= 0.99


@pytest.mark.parametrize(
    ("kept", "weight", "message"),
    [
        (np.zeros(3), None, "above 0"),
        (np.full(3, 2.0), None, "at most 1"),
        (np.ones(2), None, "one a round"),
        (np.ones(3), np.ones(3), "pass one of them"),
    ],
)
def test_what_cannot_be_is_refused(kept: np.ndarray, weight: np.ndarray | None, message: str) -> None:
    log = BanditLog.from_dense(np.random.default_rng(0).normal(size=(3, 2, 1)), [0, 1, 0])
    with pytest.raises(InputError, match=message):
        SuffixImitation(burn_in="naive").fit(log, weight, round_probability=kept)
