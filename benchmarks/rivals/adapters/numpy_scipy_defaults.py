"""NumPy and SciPy again, stopping where SciPy's L-BFGS stops by default."""

from __future__ import annotations

from collections.abc import Callable

from rivals.adapters import ONCE
from rivals.adapters.numpy_scipy import fit
from rivals.problem import Array, Problem

SETTINGS = ONCE


def prepare(problem: Problem) -> Callable[[int], Array]:
    return lambda _setting: fit(problem.X, problem.chosen, problem.l2)
