"""What each constant of the solver buys: processor seconds with another value beside those with its own.

    python benchmarks/solver_constants.py                       # N = 10,000; about ten minutes
    python benchmarks/solver_constants.py --rounds 2000 --repeats 1 SLOW

Fits of all rounds, after the rule's burn-in and of a whole sweep, of two learners' logs of two sizes. Both values
alternate within one process; the least of the repeats counts. `theta moves` is the largest difference to the fit with
the constants as they are: a constant may trade time, never the answer.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from onlooker import BanditLog, Environment, LinTS, LinUCB, SuffixImitation, burn_in_sweep, simulate
from onlooker.imitation import newton, objective
from onlooker.imitation import softmax as softmax_module

HOMES = (newton, objective, softmax_module)
"""Modules that hold the constants, or a copy of their names."""

VALUES: dict[str, tuple[float, ...]] = {
    "SLOW": (0.05, 0.5),
    "BEND": (0.05, 5.0),
    "CAUTION": (1.0, 30.0),
    "SETTLED": (1e-8, 1e-3),
    "SKETCH_TOLERANCE": (0.2, 20.0),
    "SKETCH_STRIDE": (2, 8),
    "SKETCH_ROUNDS_PER_FEATURE": (2, 10, 1_000_000),
    "LONG": (0, 1 << 60),
    "FINE": (1e-9, 1e-4),
    "ROUGH": (1e-2, 3e-1),
    "BLOCKS": (4, 64),
    "FEWEST_VALUES": (1 << 14, 1 << 21),
    "MOST_VALUES": (1 << 19, 1 << 25),
    "ROWS_PER_FEATURE": (1, 16),
}
"""Values to try in the place of each, on both sides of it."""

SIZES = ((50, 20), (200, 50))
"""Arms and features."""


@contextmanager
def put(name: str, value: float) -> Iterator[None]:
    """Give a constant another value for a while."""
    homes = [home for home in HOMES if hasattr(home, name)]
    kept = [getattr(home, name) for home in homes]
    for home in homes:
        setattr(home, name, value)
    try:
        yield
    finally:
        for home, own in zip(homes, kept, strict=True):
            setattr(home, name, own)


def jobs(n_rounds: int) -> dict[str, Callable[[], Any]]:
    """What is timed, each of which gives a theta or several."""
    found: dict[str, Callable[[], Any]] = {}
    for n_arms, d in SIZES:
        for learner in (LinUCB(), LinTS()):
            log = simulate(Environment(d, n_arms, seed=3), learner, n_rounds).log
            name = f"K={n_arms} d={d} {type(learner).__name__}"
            found[f"{name} all"] = _fit(log, "naive")
            found[f"{name} rule"] = _fit(log, "rule")
            found[f"{name} sweep"] = _sweep(log)
    return found


def _fit(log: BanditLog, burn_in: str) -> Callable[[], Any]:
    return lambda: SuffixImitation(burn_in=burn_in).fit(log).theta_


def _sweep(log: BanditLog) -> Callable[[], Any]:
    return lambda: burn_in_sweep(log, np.linspace(0.0, 0.95, 8)).thetas


def timed(job: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds, and what it gave."""
    begun = time.process_time()
    theta = job()
    return time.process_time() - begun, theta


def main() -> None:
    """Time every value, and print what it costs beside the constant's own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help="constants to look at; all unless given")
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=2)
    asked = parser.parse_args()
    todo = jobs(asked.rounds)
    for job in todo.values():
        job()
    print(f"{'constant':<28}{'value':>12}{'seconds, to its own':>22}{'best job':>10}{'worst job':>10}  theta moves")
    for name in asked.names or VALUES:
        for value in VALUES[name]:
            ratios, moved = [], 0.0
            for title, job in todo.items():
                own, other = np.inf, np.inf
                for _ in range(asked.repeats):
                    seconds, theta = timed(job)
                    own = min(own, seconds)
                    with put(name, value):
                        seconds, there = timed(job)
                    other = min(other, seconds)
                ratios.append(other / own)
                if not title.endswith("sweep"):
                    moved = max(moved, float(np.abs(theta - there).max()))
            mean = float(np.exp(np.mean(np.log(ratios))))
            line = f"{name:<28}{value:>12g}{mean:>22.3f}{min(ratios):>10.2f}{max(ratios):>10.2f}  {moved:.1e}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
