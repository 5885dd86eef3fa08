"""onlooker's simulation, whole: drawing the arms, letting LinUCB play, and the log at the end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onlooker import Environment, LinUCB, simulate
from rivals.adapters import ONCE
from rivals.problem import Problem

SETTINGS = ONCE


def prepare(problem: Problem) -> Callable[[int], np.ndarray]:
    n, k, d = problem.X.shape
    environment = Environment(d, k, seed=problem.seed)
    return lambda _setting: simulate(environment, LinUCB(), n, problem.seed).log.chosen
