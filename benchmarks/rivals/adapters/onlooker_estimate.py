"""onlooker's solver alone: the estimate to its default tolerance, without intervals."""

from __future__ import annotations

from collections.abc import Callable

from onlooker import BanditLog
from onlooker.newton import minimise
from onlooker.softmax import SoftmaxObjective
from rivals.adapters import ONCE
from rivals.problem import Array, Problem

SETTINGS = ONCE


def prepare(problem: Problem) -> Callable[[int], Array]:
    log = BanditLog.from_dense(problem.X, problem.chosen)
    return lambda _setting: minimise(SoftmaxObjective(log, l2=problem.l2)).at.theta
