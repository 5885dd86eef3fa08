"""Dense rows with many features: the same minimum and curvature as from few, in fewer passes over matrices of d x d."""

import numpy as np
import pytest
from scipy.optimize import minimize

from onlooker import BanditLog, SuffixImitation
from onlooker.imitation import softmax
from onlooker.imitation.newton import minimise
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.imitation.wide import by_hessian, by_variances, hessian_of

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")


def made(n=900, K=6, d=150, seed=0, offset=0.0):
    """Correlated features on different scales, and the picks of a softmax policy."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, K, d)) @ (np.eye(d) + rng.normal(size=(d, d)) / np.sqrt(d)) * 10.0 ** rng.uniform(-1, 1, d)
    theta = rng.normal(size=d) / X.reshape(-1, d).std(axis=0) / np.sqrt(d) * 2
    return BanditLog.from_dense(X + offset, (X @ theta + rng.gumbel(size=(n, K))).argmax(axis=1))


def test_a_wide_fit_is_that_of_newton_and_of_scipy(monkeypatch):
    log = made()
    found = SuffixImitation(burn_in="naive", l2=1e-3).fit(log)
    assert SoftmaxObjective(log, l2=1e-3).many
    monkeypatch.setattr(softmax, "WIDE", 1000)
    objective = SoftmaxObjective(log, l2=1e-3)
    newton = SuffixImitation(burn_in="naive", l2=1e-3).fit(log)
    scale = np.sqrt(np.diag(newton.covariance_))
    assert np.abs((found.theta_ - newton.theta_) / scale).max() < 1e-6
    np.testing.assert_allclose(
        found.covariance_ / np.outer(scale, scale), newton.covariance_ / np.outer(scale, scale), atol=1e-5
    )
    assert (found.rank_, found.agreement_, found.warnings_) == (newton.rank_, newton.agreement_, newton.warnings_)
    assert found.shrinkage_ == pytest.approx(newton.shrinkage_, rel=1e-5)

    def look(theta):
        at = objective.slope(theta)
        return at.value, at.gradient

    other = minimize(
        look, np.zeros(150), jac=True, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-9, "maxiter": 9999}
    )
    assert found.loss_ + 0.5e-3 * found.theta_ @ found.theta_ <= other.fun + 1e-9


def test_the_estimate_takes_few_passes_where_features_are_correlated():
    objective = SoftmaxObjective(made(3000), l2=1e-4)
    fit = minimise(objective, tolerance=3e-5)
    assert fit.converged
    assert fit.n_iter < 40


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_curvature_is_that_of_the_kernel(offset):
    log = made(300, d=20, offset=offset)
    weights = np.random.default_rng(1).integers(0, 3, 300).astype(float)
    theta = np.random.default_rng(2).normal(size=20) * 0.01
    want = SoftmaxObjective(log, l2=0.0, weights=weights).evaluate(theta)
    np.testing.assert_allclose(hessian_of(log, weights, theta) / weights.sum(), want.hessian, rtol=1e-4, atol=1e-5)


def test_rounds_of_different_sizes_and_weights_are_preconditioned():
    log = made(200, d=10)
    keep = np.random.default_rng(3).random(len(log.features)) < 0.7
    keep[log.chosen_rows] = True
    sizes = np.add.reduceat(keep.astype(int), log.offsets[:-1])
    before = np.add.reduceat(keep & (np.arange(len(keep)) < np.repeat(log.chosen_rows, 6)), log.offsets[:-1])
    ragged = BanditLog(log.features[keep], np.append(0, np.cumsum(sizes)), before)
    weights = (sizes > 1).astype(float)
    hessian = hessian_of(ragged, weights, np.zeros(10)) / weights.sum()
    vector = np.ones(10)
    close = by_hessian(ragged, weights, np.zeros(10), 0.1)(vector)
    np.testing.assert_allclose(close, np.linalg.solve(hessian + 0.1 * np.eye(10), vector), rtol=1e-2)
    np.testing.assert_allclose(
        by_variances(ragged, weights, np.zeros(10), 0.1)(vector), 1 / (np.diag(hessian) + 0.1), rtol=1e-6
    )


def test_separable_and_collinear_wide_logs_are_said_to_be():
    log = made(700)
    doubled = np.concatenate([log.features, log.features[:, :1]], axis=1)
    found = SuffixImitation(burn_in="naive").fit(log.with_features(doubled))
    assert np.isnan(found.covariance_[0, 0])
    assert np.isnan(found.covariance_[150, 150])
    assert np.isfinite(found.covariance_[1, 1])
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4, 140))
    easy = BanditLog.from_dense(X, (X @ rng.normal(size=140)).argmax(axis=1))
    for l2 in (0.0, 1e-4):
        assert any("separable" in text for text in SuffixImitation(burn_in="naive", l2=l2).fit(easy).warnings_)
