"""onlooker as a user calls it: the estimate, its intervals, and the search for trouble."""

from __future__ import annotations

from collections.abc import Callable

from onlooker import BanditLog, SuffixImitation
from rivals.adapters import ONCE
from rivals.problem import Array, Problem

SETTINGS = ONCE


def prepare(problem: Problem) -> Callable[[int], Array]:
    log = BanditLog.from_dense(problem.X, problem.chosen)
    observer = SuffixImitation(burn_in="naive", l2=problem.l2)
    return lambda _setting: observer.fit(log).theta_
