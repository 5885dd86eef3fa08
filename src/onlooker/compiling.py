"""Compiling the kernels ahead of use: once per machine, kept on disk by numba."""

import os
import warnings
from pathlib import Path

from onlooker.errors import OnlookerWarning


def is_compiled() -> bool:
    """Whether kernels were compiled and kept before; false negatives only cost a message.

    Examples
    --------
    >>> compile_kernels()
    >>> is_compiled()
    True
    """
    setting = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(setting) if setting else Path(__file__).parent
    return any(folder.rglob("*accumulate*.nbi")) and any(folder.rglob("*play*.nbi"))


def compile_kernels() -> None:
    """Run every kernel once on a small float32 log. Do it before starting worker processes: the cache is shared."""
    from onlooker.environment import Environment
    from onlooker.learners import LinUCB
    from onlooker.observers import SuffixImitation
    from onlooker.simulation import simulate
    from onlooker.softmax import round_losses

    simulation = simulate(Environment(2, 3), LinUCB(), n_rounds=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnlookerWarning)
        observer = SuffixImitation(burn_in="naive").fit(simulation.log)
    round_losses(simulation.log, observer.theta_)
