"""Conditional softmax by SciPy's L-BFGS on NumPy arrays: what a paper's author writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize

from rivals.adapters import ITERATIONS
from rivals.problem import Array, Problem

SETTINGS = ITERATIONS


def prepare(problem: Problem) -> Callable[[int], Array]:
    def run(iterations: int) -> Array:
        options = {"maxiter": iterations, "ftol": 0.0, "gtol": 0.0}
        return fit(problem.X, problem.chosen, problem.l2, options=options)

    return run


def fit(X: np.ndarray, chosen: np.ndarray, l2: float, *, options: dict[str, Any] | None = None) -> Array:
    """Minimise from zero. Products are of the features' own precision and one flat matrix, which BLAS is fastest at."""
    n, k, d = X.shape
    rows, rounds = X.reshape(n * k, d), np.arange(n)

    def objective(theta: Array) -> tuple[float, Array]:
        scores = (rows @ theta.astype(X.dtype)).reshape(n, k)
        scores -= scores.max(axis=1, keepdims=True)
        p = np.exp(scores)
        total = p.sum(axis=1, keepdims=True)
        loss = np.mean(np.log(total[:, 0]) - scores[rounds, chosen], dtype=np.float64) + l2 / 2 * theta @ theta
        p /= total
        p[rounds, chosen] -= 1
        return loss, (p.reshape(n * k) @ rows).astype(np.float64) / n + l2 * theta

    return np.asarray(minimize(objective, np.zeros(d), jac=True, method="L-BFGS-B", options=options).x)
