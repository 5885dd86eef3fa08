"""xlogit: its multinomial logit on the long table, by its BFGS; standard errors are left out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xlogit import MultinomialLogit

from rivals.adapters import ITERATIONS
from rivals.problem import Array, Problem

SETTINGS = ITERATIONS


def prepare(problem: Problem) -> Callable[[int], Array]:
    n, k, d = problem.X.shape
    arms = np.arange(k)
    table = {
        "X": problem.X.reshape(n * k, d),
        "y": (arms == problem.chosen[:, None]).ravel().astype(int),
        "alts": np.tile(arms, n),
        "ids": np.repeat(np.arange(n), k),
        "varnames": [f"x{j}" for j in range(d)],
    }

    def run(iterations: int) -> Array:
        model = MultinomialLogit()
        model.fit(**table, maxiter=iterations, tol_opts={"ftol": 1e-14}, skip_std_errs=True, verbose=0)
        return np.asarray(model.coeff_)

    return run
