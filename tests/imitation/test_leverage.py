"""Short logs: what a round's own pull on theta hides from the sandwich, and how far it is made up for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import norm
from scipy.stats import t as student

from onlooker import BanditLog, Environment, LinUCB, Mask, SuffixImitation, simulate
from onlooker.imitation.leverage import lifted_gradients
from onlooker.imitation.objective import sandwich_covariance
from onlooker.imitation.softmax import SoftmaxObjective


def softmax_log(n: int, seed: int = 0, k: int = 5, d: int = 3, sharp: float = 1.0) -> BanditLog:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, k, d))
    return BanditLog.from_dense(X, (X @ np.linspace(-sharp, sharp, d) + rng.gumbel(size=(n, k))).argmax(axis=1))


def fitted(log: BanditLog, **options) -> SuffixImitation:
    return SuffixImitation(burn_in="naive", **options).fit(log)


def test_errors_are_those_of_leaving_each_round_out() -> None:
    """The jackknife fits again without each round in turn; Student's width is taken off before."""
    log = softmax_log(100)
    observer = fitted(log, lags=0, l2=1e-6)
    rounds = np.arange(log.n_rounds)
    thetas = np.array([fitted(log[rounds != t], lags=0, l2=1e-6).theta_ for t in rounds]) - observer.theta_
    jackknife = np.sqrt((thetas**2).sum(axis=0))
    objective = SoftmaxObjective(log, l2=1e-6)
    at = objective.at_minimum(observer.theta_, 1)
    plain = np.sqrt(np.diag(sandwich_covariance(objective, at, 1)))
    lifted = objective.lifted(observer.theta_, np.linalg.inv(at.hessian) / objective.total)
    errors = np.sqrt(np.diag(observer.covariance_)) / (student.ppf(0.975, lifted.freedom) / norm.ppf(0.975))
    np.testing.assert_allclose(errors, jackknife, rtol=0.05)
    assert (np.abs(errors - jackknife) < np.abs(plain - jackknife)).all()


def test_rounds_in_blocks_with_weights_and_in_other_layouts() -> None:
    log = softmax_log(80)
    observer = fitted(log)
    sparse = log.with_features(csr_array(log.features))
    np.testing.assert_allclose(fitted(sparse).covariance_, observer.covariance_, rtol=1e-6)
    twice = SuffixImitation(burn_in="naive", lags=0).fit(log, sample_weight=np.full(80, 2))
    repeated = fitted(log[np.repeat(np.arange(80), 2)], lags=0)
    np.testing.assert_allclose(twice.covariance_, repeated.covariance_, rtol=1e-6)


def test_parts_add_up() -> None:
    log, theta, metric = softmax_log(50), np.array([0.5, 0.0, -0.5]), np.eye(3) / 20
    pieces = [lifted_gradients(each, np.ones(25), theta, np.zeros(3), metric) for each in (log[:25], log[25:])]
    whole = lifted_gradients(log, np.ones(50), theta, np.zeros(3), metric)
    np.testing.assert_allclose((pieces[0] + pieces[1]).scatter, whole.scatter)
    assert np.isclose((pieces[0] + pieces[1]).freedom, whole.freedom)


@pytest.mark.parametrize(("sharp", "rounds"), [(1.0, 1200), (10.0, 16_000)])
def test_leverage_is_left_out_where_it_hardly_matters(
    sharp: float, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy that hardly ever makes a mistake needs more rounds for it."""
    log = softmax_log(rounds, sharp=sharp)
    short, long = fitted(log[: rounds // 40], l2=1e-6), fitted(log, l2=1e-6)
    for least in ("DECIDING", "DECIDING_PER_WEIGHT"):
        monkeypatch.setattr(f"onlooker.imitation.leverage.{least}", 0)
    monkeypatch.setattr("onlooker.imitation.leverage.SHARE", np.inf)
    left_out = fitted(log[: rounds // 40], l2=1e-6)
    assert (np.diag(short.covariance_) > 1.04 * np.diag(left_out.covariance_)).all()
    monkeypatch.setattr("onlooker.imitation.leverage.DECIDING", 10**9)
    corrected = fitted(log, l2=1e-6)
    assert not np.array_equal(corrected.covariance_, long.covariance_)
    np.testing.assert_allclose(np.diag(corrected.covariance_), np.diag(long.covariance_), rtol=0.02)


def test_a_feature_that_is_hardly_ever_on_has_leverage_in_long_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    log = softmax_log(3000)
    rows = log.features.copy()
    rows[15 * 5 :, 2] = 0.0
    rare = fitted(log.with_features(rows), l2=1e-6)
    monkeypatch.setattr("onlooker.imitation.leverage.SHARE", np.inf)
    left_out = fitted(log.with_features(rows), l2=1e-6)
    assert rare.covariance_[2, 2] > 1.15 * left_out.covariance_[2, 2]
    np.testing.assert_allclose(np.diag(rare.covariance_)[:2], np.diag(left_out.covariance_)[:2], rtol=0.1)


@pytest.mark.filterwarnings("ignore:the picks are separable")
@pytest.mark.parametrize("l2", [1e-6, 1e-4])
def test_separable_picks_have_no_intervals(l2: float) -> None:
    log = simulate(Environment(4, 20, seed=0), LinUCB(), 600, seed=0).log.suffix(540)
    observer = fitted(log, l2=l2)
    assert any("separable" in text and "no intervals" in text for text in observer.warnings_)
    assert np.isnan(observer.covariance_).all()
    assert "nan" in repr(observer.summary())


def test_sets_are_told_apart_from_picks() -> None:
    log = softmax_log(150, k=6)
    known = Mask(groups=3)(log, 0).log
    assert (np.diag(fitted(known).covariance_) > np.diag(fitted(log).covariance_)).all()
