"""Covariances against the textbook formula written out, a rival library, and their own promise of coverage."""

import numpy as np
import pytest

from onlooker.imitation.newton import minimise
from onlooker.imitation.objective import model_covariance, sandwich_covariance
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.logs.log import BanditLog
from onlooker.observers.suffix_imitation import SuffixImitation


def softmax_log(seed, n_rounds=400, n_arms=4, theta=(1.0, -0.5, 0.0)):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rounds, n_arms, len(theta)))
    return BanditLog.from_dense(X, (X @ theta + rng.gumbel(size=(n_rounds, n_arms))).argmax(axis=1))


def newey_west(objective, at, lags):
    """Bartlett-weighted sums of lagged products, the definition."""
    log, theta = objective.log, at.theta
    gradients = []
    for t in range(log.n_rounds):
        arms = log.arms(t)
        p = np.exp(arms @ theta - (arms @ theta).max())
        gradients.append(p / p.sum() @ arms - arms[log.chosen[t]])
    g = np.array(gradients) - np.mean(gradients, axis=0)
    meat = g.T @ g
    for lag in range(1, lags + 1):
        product = g[lag:].T @ g[:-lag]
        meat += (1 - lag / (lags + 1)) * (product + product.T)
    bread = np.linalg.inv(at.hessian * len(g))
    return bread @ meat @ bread * len(g) / (len(g) - len(theta))


@pytest.mark.parametrize("lags", [0, 1, 5, 40])
@pytest.mark.parametrize("l2", [0.0, 1e-2])
def test_sandwich_is_newey_west(lags, l2):
    objective = SoftmaxObjective(softmax_log(0), l2=l2)
    at = objective.scattered(minimise(objective).at, lags + 1)
    np.testing.assert_allclose(sandwich_covariance(objective, at, lags + 1), newey_west(objective, at, lags), rtol=1e-8)


def test_sandwich_is_the_same_across_blocks():
    log = softmax_log(1, n_rounds=120_000, n_arms=3)
    objective = SoftmaxObjective(log, l2=0.0)
    at = objective.scattered(minimise(objective).at, 8)
    np.testing.assert_allclose(sandwich_covariance(objective, at, 8), newey_west(objective, at, 7), rtol=1e-8)


def test_model_covariance_agrees_with_statsmodels():
    from statsmodels.discrete.conditional_models import ConditionalLogit

    log = softmax_log(2)
    objective = SoftmaxObjective(log, l2=0.0)
    at = objective.evaluate(minimise(objective).theta)
    picked = np.zeros(len(log.features))
    picked[log.chosen_rows] = 1
    rival = ConditionalLogit(picked, log.features, groups=np.repeat(np.arange(log.n_rounds), log.n_arms))
    # Its own optimiser stops early, so its gradient and likelihood judge ours.
    assert np.abs(rival.score(at.theta)).max() < 1e-6
    found = rival.fit(disp=0)
    assert rival.loglike(at.theta) >= found.llf
    np.testing.assert_allclose(np.sqrt(np.diag(model_covariance(objective, at))), found.bse, rtol=1e-3)


@pytest.mark.parametrize("covariance", ["model", "sandwich"])
def test_intervals_cover_as_promised(covariance):
    """300 logs, three coefficients: 95% intervals cover 93% to 97% of the time."""
    theta = np.array([1.0, -0.5, 0.0])
    hits = []
    for seed in range(300):
        observer = SuffixImitation(burn_in="naive", l2=0.0, covariance=covariance).fit(softmax_log(seed))
        hits += [
            row.low <= truth <= row.high for row, truth in zip(observer.summary().coefficients, theta, strict=True)
        ]
    assert 0.93 < np.mean(hits) < 0.97


def test_intervals_allow_for_serial_dependence():
    """Every round repeated four times in a row carries no more evidence: the sandwich sees that, the model does not."""
    log = softmax_log(3, n_rounds=500)
    repeated = log[np.repeat(np.arange(500), 4)]
    once = SuffixImitation(burn_in="naive", l2=0.0, lags=0).fit(log).summary().coefficients
    model = SuffixImitation(burn_in="naive", l2=0.0, covariance="model").fit(repeated).summary().coefficients
    robust = SuffixImitation(burn_in="naive", l2=0.0, lags=30).fit(repeated).summary().coefficients
    for honest, naive, wide in zip(once, model, robust, strict=True):
        assert naive.standard_error < 0.6 * honest.standard_error
        assert wide.standard_error == pytest.approx(honest.standard_error, rel=0.25)
