"""onlooker's solver alone: the estimate, without intervals, to the tolerance that a setting says."""

from __future__ import annotations

from collections.abc import Callable

from onlooker import BanditLog
from onlooker.imitation.newton import minimise
from onlooker.imitation.softmax import SoftmaxObjective
from rivals.problem import Array, Problem

SETTINGS = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6, 1e-8)


def prepare(problem: Problem) -> Callable[[float], Array]:
    log = BanditLog.from_dense(problem.X, problem.chosen)
    return lambda tolerance: minimise(SoftmaxObjective(log, l2=problem.l2), tolerance=tolerance).theta
