"""The solver's constants trade time alone: other values lead to the same minimum."""

import numpy as np
import pytest
import solver_constants

from onlooker import BanditLog
from onlooker.base.numerics import inverse
from onlooker.imitation.newton import TOLERANCE, minimise
from onlooker.imitation.softmax import SoftmaxObjective


def problem(seed: int) -> SoftmaxObjective:
    """Features of any size, picks from nearly random to nearly certain."""
    random = np.random.default_rng(seed)
    n_arms, d = int(random.integers(2, 30)), int(random.integers(1, 8))
    features = random.normal(size=(int(random.integers(20 * d, 600)), n_arms, d)) * 10 ** random.uniform(-2, 2, size=d)
    theta = random.normal(size=d) / features.std(axis=(0, 1)) * 10 ** random.uniform(-1, 1)
    chosen = (features @ theta + random.gumbel(size=features.shape[:2])).argmax(axis=1)
    return SoftmaxObjective(BanditLog.from_dense(features, chosen), l2=float(random.choice([1e-8, 1e-4, 1e-2])))


def decrement(objective: SoftmaxObjective, theta: np.ndarray) -> float:
    """How far a theta is from the minimum, whatever the units."""
    at = objective.evaluate(theta)
    return float(at.gradient @ inverse(at.hessian) @ at.gradient) ** 0.5


@pytest.mark.parametrize("seed", range(40))
def test_the_last_step_that_is_not_looked_at_ends_within_the_tolerance(seed):
    objective = problem(seed)
    fit = minimise(objective)
    assert fit.converged
    assert decrement(objective, fit.theta) <= TOLERANCE


@pytest.mark.parametrize("name", solver_constants.VALUES)
def test_other_values_lead_to_the_same_minimum(name):
    assert any(hasattr(home, name) for home in solver_constants.HOMES)
    objective = problem(3)
    for value in solver_constants.VALUES[name]:
        with solver_constants.put(name, value):
            fit = minimise(problem(3))
        assert fit.converged
        assert decrement(objective, fit.theta) <= 100 * TOLERANCE
