"""200 random problems: coefficients and standard errors as statsmodels and SciPy find them, to a millionth."""

import warnings
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize, root
from statsmodels.discrete.conditional_models import ConditionalLogit

from onlooker import BanditLog, SuffixImitation
from onlooker.base.errors import NoPreferenceWarning

PROBLEMS = 200


def problem(seed):
    """Ragged rounds enough to bound theta: one to four features on unlike scales, two to five arms."""
    rng = np.random.default_rng([8, seed])
    d = int(rng.integers(1, 5))
    sizes = rng.integers(2, 6, size=int(rng.integers(15, 25)) + 8 * d)
    scales = 10 ** rng.uniform(-1, 1, size=d)
    features = rng.normal(size=(sizes.sum(), d)) * scales
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    scores = features @ (rng.normal(scale=0.5, size=d) / scales) + rng.gumbel(size=len(features))
    chosen = [int(scores[a:b].argmax()) for a, b in pairwise(offsets)]
    return BanditLog(features, offsets, chosen)


def by_statsmodels(log):
    """Coefficients and standard errors of its conditional likelihood; its own optimiser stops too early for this."""
    picked = np.zeros(len(log.features))
    picked[log.chosen_rows] = 1
    rival = ConditionalLogit(picked, log.features, groups=np.repeat(np.arange(log.n_rounds), log.n_arms))
    unit = log.features.std(axis=0)
    theta = root(lambda scaled: rival.score(scaled / unit) / unit, np.zeros(len(unit)), tol=1e-13).x / unit
    steps = 1e-5 / unit
    slopes = [(rival.score(theta + step) - rival.score(theta - step)) / (2 * step.max()) for step in np.diag(steps)]
    return theta, np.sqrt(np.diag(np.linalg.inv(-np.array(slopes))))


def by_scipy(log):
    """The same from the formula, over all rows at once."""
    X, starts = log.features, log.offsets[:-1]
    which = np.repeat(np.arange(log.n_rounds), log.n_arms)
    unit = X.std(axis=0)

    def parts(theta):
        scores = (X / unit) @ theta
        weights = np.exp(scores - np.maximum.reduceat(scores, starts)[which])
        share = weights / np.add.reduceat(weights, starts)[which]
        centred = X / unit - np.add.reduceat(share[:, None] * X / unit, starts)[which]
        return share, centred

    def value(theta):
        return -np.log(parts(theta)[0][log.chosen_rows]).sum()

    def gradient(theta):
        return -parts(theta)[1][log.chosen_rows].sum(axis=0)

    def hessian(theta):
        share, centred = parts(theta)
        return (centred.T * share) @ centred

    options = {"gtol": 1e-8}
    theta = minimize(value, np.zeros(len(unit)), jac=gradient, hess=hessian, method="trust-exact", options=options).x
    theta -= np.linalg.solve(hessian(theta), gradient(theta))
    return theta / unit, np.sqrt(np.diag(np.linalg.inv(hessian(theta)))) / unit


def ours(log):
    observer = SuffixImitation(burn_in="naive", l2=0.0, covariance="model").fit(log)
    return observer.theta_, np.sqrt(np.diag(observer.covariance_))


@cache
def answers(rival, seeds):
    """Ours and the rival's on some of the problems."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoPreferenceWarning)
        return [(ours(log), rival(log)) for log in map(problem, seeds)]


# statsmodels takes each round by itself, in Python: a quarter of the problems here, the others by `make test-slow`.
COMPARED = [
    pytest.param(by_statsmodels, range(PROBLEMS // 4), id="by_statsmodels, a quarter"),
    pytest.param(by_statsmodels, range(PROBLEMS // 4, PROBLEMS), id="by_statsmodels, the rest", marks=pytest.mark.slow),
    pytest.param(by_scipy, range(PROBLEMS), id="by_scipy"),
]


@pytest.mark.parametrize(("rival", "seeds"), COMPARED)
def test_coefficients(rival, seeds):
    for seed, ((theta, _), (other, errors)) in zip(seeds, answers(rival, seeds), strict=True):
        # A coefficient near 0 is known no better than its standard error says.
        assert (np.abs(theta - other) <= 1e-6 * np.maximum(np.abs(other), errors)).all(), seed


@pytest.mark.parametrize(("rival", "seeds"), COMPARED)
def test_standard_errors(rival, seeds):
    for seed, ((_, errors), (_, other)) in zip(seeds, answers(rival, seeds), strict=True):
        np.testing.assert_allclose(errors, other, rtol=1e-6, err_msg=str(seed))
