"""Compiling the kernels ahead of use: once per machine, kept on disk."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

from onlooker.errors import OnlookerWarning

if TYPE_CHECKING:
    from onlooker.observers import Observer


def compile_kernels(dtype: str = "float32", observers: Iterable[Observer] = ()) -> None:
    """Run the kernels once on a small log, and `observers`, which may have some of their own.

    Do it before starting worker processes: the cache is shared.

    Examples
    --------
    >>> compile_kernels("float64")
    """
    from onlooker.environment import Environment
    from onlooker.learners import LinUCB
    from onlooker.observers import SuffixImitation, TrackingObserver
    from onlooker.simulation import simulate
    from onlooker.softmax import SoftmaxObjective, round_losses
    from onlooker.zero_one.circles import Circles

    simulation = simulate(Environment(2, 3, dtype=dtype), LinUCB(), n_rounds=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnlookerWarning)
        observer = SuffixImitation(burn_in="naive").fit(simulation.log)
        # All families, by the same kernels.
        TrackingObserver().fit(simulation.log).predict_proba(simulation.log)
        for other in observers:
            other.fit(simulation.log)
    round_losses(simulation.log, observer.theta_)
    circles = Circles(SoftmaxObjective(simulation.log, l2=0.0))
    circles.stand(observer.theta_)
    circles.look(observer.theta_)


def compiled() -> int:
    """How many kernels were asked for that are not kept on disk; a busy machine may take long to load those that are.

    Examples
    --------
    >>> compile_kernels()
    >>> before = compiled()
    >>> compile_kernels()
    >>> compiled() - before
    0
    """
    from numba.core.dispatcher import Dispatcher

    modules = [module for name, module in list(sys.modules.items()) if name.startswith("onlooker.kernels.")]
    kernels = (one for module in modules for one in list(vars(module).values()) if isinstance(one, Dispatcher))
    return sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels)
