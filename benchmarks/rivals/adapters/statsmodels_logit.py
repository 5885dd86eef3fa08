"""statsmodels: its conditional logit on the long table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from statsmodels.discrete.conditional_models import ConditionalLogit

from rivals.adapters import ITERATIONS
from rivals.problem import Array, Problem

SETTINGS = ITERATIONS


def prepare(problem: Problem) -> Callable[[int], Array]:
    n, k, d = problem.X.shape
    picked = (np.arange(k) == problem.chosen[:, None]).ravel().astype(int)
    model = ConditionalLogit(picked, problem.X.reshape(n * k, d), groups=np.repeat(np.arange(n), k))
    return lambda iterations: np.asarray(model.fit(method="lbfgs", maxiter=iterations, factr=0.0, pgtol=0.0).params)
