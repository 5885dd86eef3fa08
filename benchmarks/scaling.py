"""How cost grows: `python benchmarks/scaling.py` times fit, sweep, simulation and tracking over N, K and d in turn.

One of the three changes, the others stay; all sizes take turns. The exponent is the slope of log seconds on log size by
least squares, with its 95% interval; 1 means that twice the size takes twice the time. Writes docs/speed/scaling.md and
the JSON behind it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from rivals.tables import markdown, spread
from rivals.workloads import Workload

from onlooker import BanditLog, Environment, LinUCB, SuffixImitation, burn_in_sweep, simulate
from onlooker.imitation.sweep import DEFAULT_ALPHAS
from onlooker.observers.tracking import UCB
from onlooker.observers.tracking.follower import Assumption, Follower

BASE = Workload(8_000, 100, 32)
SIZES = {"n": (2_000, 4_000, 8_000, 16_000, 32_000), "k": (25, 50, 100, 200, 400), "d": (8, 16, 32, 64, 128)}
SWEPT = Workload(10_000, 200, 50)
"""Where a sweep is compared with single fits."""

HEAD = """# How cost grows

Written by `python benchmarks/scaling.py`; medians. An exponent of 1 is linear growth. It is less where a longer log
needs no more passes, or a settled learner leaves fewer arms to be looked at closely. In d it can be more for the
simulation and for tracking: what a ridge learner knows is a matrix of d by d, which every round updates.
"""

Times = dict[str, list[float]]


def main() -> None:
    options = _options()
    kept = options.out / "scaling.json"
    if not options.table:
        options.out.mkdir(parents=True, exist_ok=True)
        found = {axis: _along(axis, options.repeats) for axis in SIZES}
        kept.write_text(json.dumps({**found, "sweep": _sweep(options.repeats)}, indent=1), encoding="utf-8")
    text = _page(json.loads(kept.read_text(encoding="utf-8")))
    (options.out / "scaling.md").write_text(text, encoding="utf-8")
    print(text)


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> tuple[float, float, float]:
    """Slope of log seconds on log size, and the ends of its 95% interval.

    >>> [round(value, 6) for value in exponent([1, 2, 4], [3, 12, 48])]
    [2.0, 2.0, 2.0]
    """
    from scipy.stats import linregress, t

    line = linregress(np.log(sizes), np.log(seconds))
    reach = float(t.ppf(0.975, len(sizes) - 2)) * line.stderr
    return float(line.slope), float(line.slope - reach), float(line.slope + reach)


def _works(workload: Workload) -> dict[str, Callable[[], object]]:
    """What is timed at one size."""
    environment = Environment(workload.d, workload.k, seed=workload.seed)
    log = simulate(environment, LinUCB(), workload.n, workload.seed).log
    assumption = Assumption(exploration=UCB(1.0), ridge=1.0, precision=0.5, slip=0.001)
    return {
        "fit": lambda: SuffixImitation(burn_in="naive").fit(log),
        "sweep": lambda: burn_in_sweep(log, DEFAULT_ALPHAS[::4]),
        "simulation": lambda: simulate(environment, LinUCB(), workload.n, workload.seed),
        "tracking filter": lambda: Follower.start(assumption, workload.d).follow(log),
    }


def _along(axis: str, repeats: int) -> dict[str, Times]:
    """Seconds of every work, by size; sizes take turns."""
    works = {str(size): _works(replace(BASE, **{axis: size})) for size in SIZES[axis]}
    found: dict[str, Times] = {}
    for turn in range(repeats):
        for size, at_size in works.items():
            for name, work in at_size.items():
                found.setdefault(name, {}).setdefault(size, []).append(_timed(work))
        print(f"{axis}: turn {turn + 1} of {repeats}", file=sys.stderr, flush=True)
    return found


def _sweep(repeats: int) -> Times:
    """A whole sweep beside single fits."""
    log: BanditLog = simulate(Environment(SWEPT.d, SWEPT.k), LinUCB(), SWEPT.n).log
    found: Times = {"single fit": [], "sweep": []}
    for _ in range(repeats):
        found["single fit"].append(_timed(lambda: SuffixImitation(burn_in="naive").fit(log)))
        found["sweep"].append(_timed(lambda: burn_in_sweep(log)))
    return found


def _page(found: dict[str, dict[str, Times]]) -> str:
    parts = [HEAD]
    for axis, sizes in SIZES.items():
        rows = []
        for name, times in found[axis].items():
            medians = [statistics.median(times[str(size)]) for size in sizes]
            slope, low, high = exponent(sizes, medians)
            per_round = [
                f"{seconds * 1e6 / (size if axis == 'n' else BASE.n):.3g}"
                for seconds, size in zip(medians, sizes, strict=True)
            ]
            rows.append([name, *per_round, f"{slope:.2f} [{low:.2f}, {high:.2f}]"])
        letter = axis.upper() if axis != "d" else axis
        rest = ", ".join(f"{a.upper() if a != 'd' else a} = {getattr(BASE, a):,}" for a in SIZES if a != axis)
        heads = [f"µs a round, by {letter}", *(f"{size:,}" for size in sizes), f"exponent of the whole in {letter}"]
        parts.append(f"## Against {letter}, at {rest}\n\n{markdown(heads, rows)}\n")
    sweep = {name: [float(value) for value in values] for name, values in found["sweep"].items()}
    ratio = statistics.median(sweep["sweep"]) / statistics.median(sweep["single fit"])
    parts.append(
        f"## `burn_in_sweep` over {len(DEFAULT_ALPHAS)} alphas, {SWEPT}\n\n"
        f"One fit with intervals {spread(sweep['single fit'])}, the sweep {spread(sweep['sweep'])}: as long as "
        f"{ratio:.1f} fits.\n"
    )
    return "\n".join(parts)


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="turns of every size")
    parser.add_argument("--table", action="store_true", help="rebuild the table from the kept JSON")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "docs" / "speed")
    return parser.parse_args()


if __name__ == "__main__":
    main()
