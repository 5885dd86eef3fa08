"""Intervals of long logs with weights for each arm: coarser sums, the same answers but for what is stated."""

import numpy as np
import pytest

from onlooker import BanditLog, SuffixImitation
from onlooker.imitation import softmax
from onlooker.imitation.objective import Windows, single_sandwich
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.logs.factored_curvature import block_hessian, decorrelated
from onlooker.logs.factored_windows import block_edges, window_products

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")


def contexts_of(n, p, seed=0):
    """Correlated contexts on different scales, with an intercept."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) @ (np.eye(p) + 0.3 * rng.normal(size=(p, p))) * 10.0 ** rng.uniform(-2, 2, p)
    X[:, 0] = 1.0
    return X


def log_of(n, arms, p, seed=0):
    """A softmax policy whose picks stick: runs of one to five alike rounds, half of them with the same noise."""
    rng = np.random.default_rng(seed)
    runs = np.repeat(np.arange(n), rng.integers(1, 6, n))[:n]
    X = contexts_of(n, p, seed)[runs]
    W = rng.normal(size=(arms, p)) / X.std(axis=0).clip(1.0) * 0.5
    noise = rng.gumbel(size=(n, arms))[runs]
    fresh = rng.random(n) < 0.5
    noise[fresh] = rng.gumbel(size=(fresh.sum(), arms))
    return BanditLog.from_contexts(X, (X @ W.T + noise).argmax(axis=1), arms=range(arms))


def test_a_hessian_in_single_precision_has_six_digits_in_every_direction():
    rng = np.random.default_rng(1)
    X, shares = contexts_of(4000, 12), rng.dirichlet(10.0 ** np.arange(-1, 2, 0.5), 4000)
    weights = (rng.random(4000) < 0.9).astype(float)
    exact, single = (block_hessian(X, shares, weights, turned) for turned in (None, decorrelated(X)))
    kept = slice(0, 5 * 12)
    root = np.linalg.inv(np.linalg.cholesky(exact[kept, kept]))
    np.testing.assert_allclose(root @ single[kept, kept] @ root.T, np.eye(60), atol=2e-5)
    np.testing.assert_allclose(single.reshape(6, 12, 6, 12).sum(axis=0), 0.0, atol=1e-9 * np.abs(exact).max())


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 10, 16, 17])
def test_coarse_windows_against_their_definition(width):
    rng = np.random.default_rng(2)
    n, K, p = 203, 4, 3
    X, residuals = contexts_of(n, p), rng.normal(size=(n, K))
    residuals -= residuals.mean(axis=1, keepdims=True)
    mean = np.einsum("nk,np->kp", residuals, X).ravel() / n
    vectors = np.einsum("nk,np->nkp", residuals, X).reshape(n, K * p) - mean
    edges = block_edges(n, width)
    sums = np.add.reduceat(vectors, edges[:-1], axis=0)
    found = Windows(*window_products(X, residuals, mean, width, decorrelated(X)))
    want = Windows.of(sums, min(2, width))
    scale = np.sqrt(np.outer(*2 * [np.diag(want.products())]))
    np.testing.assert_allclose(found.products() / scale, want.products() / scale, atol=1e-5)
    # A round is in as many windows as a window has blocks, whatever their lengths.
    assert np.diff(edges).max() - np.diff(edges[:-1]).min() <= 1
    if width <= 2:
        exact = Windows(*window_products(X, residuals, mean, width))
        np.testing.assert_allclose(found.products() / scale, exact.products() / scale, atol=1e-5)


def test_coarse_windows_in_parts_join():
    rng = np.random.default_rng(3)
    X, residuals = contexts_of(160, 2), rng.normal(size=(160, 3))
    residuals -= residuals.mean(axis=1, keepdims=True)
    whole = Windows(*window_products(X, residuals, np.zeros(6), 16, decorrelated(X)))
    first, rest = (
        Windows(*window_products(X[part], residuals[part], np.zeros(6), 16, decorrelated(X[part])))
        for part in (slice(0, 40), slice(40, None))
    )
    scale = np.abs(whole.products()).max()
    np.testing.assert_allclose(first.joined(rest).products() / scale, whole.products() / scale, atol=1e-5)


def test_errors_are_about_those_of_all_windows_and_the_estimate_is_the_same(monkeypatch):
    log = log_of(12_000, 6, 8)
    assert SoftmaxObjective(log, l2=1e-4).coarse
    coarse = SuffixImitation(burn_in="naive", l2=1e-4).fit(log)
    monkeypatch.setattr(softmax, "COARSE", 1 << 40)
    exact = SuffixImitation(burn_in="naive", l2=1e-4).fit(log)
    errors, wanted = (np.sqrt(np.diag(one.covariance_)) for one in (coarse, exact))
    assert np.abs(coarse.theta_ - exact.theta_).max() < 1e-6 * np.abs(exact.theta_).max()
    assert np.abs((coarse.theta_ - exact.theta_) / wanted).max() < 1e-4
    assert abs(np.mean(errors / wanted) - 1) < 0.005
    np.testing.assert_allclose(errors, wanted, rtol=0.03)
    # Neighbours count: as independent rounds, errors would be far smaller.
    alone = SuffixImitation(burn_in="naive", l2=1e-4, lags=0).fit(log)
    assert np.mean(np.sqrt(np.diag(alone.covariance_)) / wanted) < 0.9


def test_independent_rounds_and_models_have_the_errors_of_exact_sums(monkeypatch):
    log = log_of(12_000, 6, 8)
    options = [{"lags": 0}, {"covariance": "model"}]
    coarse = [SuffixImitation(burn_in="naive", **option).fit(log).covariance_ for option in options]
    monkeypatch.setattr(softmax, "COARSE", 1 << 40)
    for found, option in zip(coarse, options, strict=True):
        exact = SuffixImitation(burn_in="naive", **option).fit(log).covariance_
        np.testing.assert_allclose(np.diag(found), np.diag(exact), rtol=1e-4)


def test_rounds_that_count_twice_are_counted_exactly():
    log = log_of(15_000, 6, 8)
    assert not SoftmaxObjective(log, l2=1e-4, weights=1.0 + (np.arange(15_000) == 7)).coarse
    some = (np.arange(15_000) % 5 > 0).astype(float)
    weighted = SuffixImitation(burn_in="naive").fit(log, some)
    cut = SuffixImitation(burn_in="naive").fit(log[np.flatnonzero(some)])
    np.testing.assert_allclose(weighted.theta_, cut.theta_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(np.diag(weighted.covariance_), np.diag(cut.covariance_), rtol=1e-3)


def test_long_fits_agree_with_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(5)
    X, W = rng.normal(size=(12_000, 8)), rng.normal(size=(6, 8))
    chosen = (X @ W.T + rng.gumbel(size=(12_000, 6))).argmax(axis=1)
    found = SuffixImitation(burn_in="naive", l2=1e-3).fit(BanditLog.from_contexts(X, chosen, arms=range(6)))
    other = LogisticRegression(C=1 / (1e-3 * 12_000), fit_intercept=False, solver="newton-cg", tol=1e-10, max_iter=500)
    np.testing.assert_allclose(found.theta_.reshape(6, 8), other.fit(X, chosen).coef_, atol=1e-6)


@pytest.mark.parametrize(("apart", "single"), [(1.0, True), (1e-3, False)])
def test_sandwich_in_single_precision_is_right_or_left_alone(apart, single):
    """A second context that hardly differs from the first widens variances, and rounding with them."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 3)) * np.array([1.0, 1.0, 1e-9])
    X[:, 1] = X[:, 0] + apart * X[:, 1]
    rows = X / np.sqrt(400)
    metric, meat = np.linalg.inv(rows.T @ rows), rows.T @ (rng.exponential(size=(400, 1)) * rows)
    found = single_sandwich(meat, metric)
    assert (found is not None) == single
    if found is not None:
        np.testing.assert_allclose(found, metric @ meat @ metric, rtol=1e-4, atol=1e-5 * np.diag(found).min())
