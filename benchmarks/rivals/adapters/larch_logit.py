"""larch: its logit model on dense arrays with its numba engine, maximised by SciPy's L-BFGS."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import larch
import numpy as np
import xarray as xr

from rivals.adapters import ITERATIONS
from rivals.problem import Array, Problem

SETTINGS = ITERATIONS


def prepare(problem: Problem) -> Callable[[int], Array]:
    warnings.simplefilter("ignore")
    n, k, d = problem.X.shape
    names = [f"x{j}" for j in range(d)]
    columns = {name: (("round", "arm"), problem.X[:, :, j]) for j, name in enumerate(names)}
    columns["picked"] = (("round", "arm"), np.arange(k) == problem.chosen[:, None])
    table = xr.Dataset(columns, coords={"round": np.arange(n), "arm": np.arange(1, k + 1)})
    model = larch.Model(larch.Dataset.construct(table, caseid="round", alts="arm"), compute_engine="numba")
    model.utility_ca = sum(larch.P(name) * larch.X(name) for name in names)
    model.choice_ca_var = "picked"
    model.loglike(np.zeros(d))
    places = [list(model.pnames).index(name) for name in names]

    def run(iterations: int) -> Array:
        model.pvals = np.zeros(d)
        model.maximize_loglike(
            method="L-BFGS-B",
            options={"maxiter": iterations, "ftol": 0.0, "gtol": 0.0},
            quiet=True,
            check_for_overspecification=False,
        )
        return np.asarray(model.pvals, dtype=np.float64)[places]

    return run
