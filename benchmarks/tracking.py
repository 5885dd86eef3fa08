"""How well tracking does, in tables: `python benchmarks/tracking.py errors` (or logs, robust, speed).

Every part can be interrupted and goes on where it was; `--out` is where it keeps what is done. `errors` compares with
suffix imitation at its best over six (d, K); `logs` measures which family is named, what not knowing it costs, and what
the intervals cover; `robust` breaks the assumptions; `speed` times one filter against one fit in NumPy and SciPy.
"""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np

from onlooker.experiments.grid import COLUMNS, Grid, run_grid
from onlooker.experiments.measurements import BEST_ALPHA, METRICS, ORACLE, Measurements
from onlooker.experiments.runner import Task, run_tasks
from onlooker.experiments.statistics import mean, paired_ratio
from onlooker.experiments.tables import write_csv
from onlooker.experiments.tracking import CASES, LEARNERS, log_cell, robust_cell
from onlooker.observers import TrackingObserver

SETTINGS = [(d, K) for d in (20, 50) for K in (50, 100, 200)]
N = 10_000
SHAPES = [(10, 20, 2000), (20, 50, 2000), (20, 50, 5000), (50, 50, 5000), (20, 10, 3000)]
COVERED = [(10, 20, 2000)]


def errors(folder: Path, seeds: int) -> None:
    """Direction error and predictive regret beside the learner's and suffix imitation's, at N = 10,000."""
    grid = Grid(
        environments=SETTINGS,
        learners=LEARNERS,
        horizons=[N],
        seeds=range(seeds),
        observers={"tracking": TrackingObserver()},
    )
    rows = run_grid(grid, folder / "errors", progress=_progress)
    write_csv(folder / "errors.csv", rows, COLUMNS)
    table = Measurements(rows)
    for metric, name in METRICS.items():
        print(f"\n{name}: means over {seeds} seeds, N = {N:,}; ratios are paired over seeds, with 95% intervals")
        print(
            f"{'log':34}  learner   naive    rule  best alpha  oracle  tracking | to learner           "
            "to best alpha        to oracle"
        )
        for setting in sorted(table.settings, key=lambda s: (list(LEARNERS).index(s.learner), s.d, s.K)):
            of = {
                m: np.array(list(table.of(setting, N, m, metric).values()))
                for m in ("learner", "naive", "rule", BEST_ALPHA, ORACLE, "tracking")
            }
            means = "  ".join(f"{of[m].mean():.5f}" for m in of)
            ratios = "  ".join(_ratio(of["tracking"], of[m]) for m in ("learner", BEST_ALPHA, ORACLE))
            print(f"{setting!s:34}  {means} | {ratios}")


def logs(folder: Path, seeds: int) -> None:
    """Which family is named, what not knowing it costs, and what the intervals cover."""
    tasks = [
        Task(
            f"{learner.replace(' ', '_')}-d{d}-K{K}-N{n}-seed{seed}",
            {"learner": learner, "d": d, "K": K, "N": n, "seed": seed},
            cost=float(d * K * n),
        )
        for learner in LEARNERS
        for d, K, n in SHAPES
        for seed in range(2000, 2000 + (seeds if (d, K, n) in COVERED else max(4, seeds // 25)))
    ]
    rows = list(run_tasks(log_cell, tasks, folder / "logs", settings={"schema": 2}, progress=_progress).values())
    write_csv(folder / "logs.csv", rows, list(rows[0]))
    print("\nfamily named rightly, error without knowing it over error knowing it, coverage of 95% intervals")
    for learner in LEARNERS:
        for d, K, n in SHAPES:
            cell = [row for row in rows if (row["learner"], row["d"], row["K"], row["N"]) == (learner, d, K, n)]
            right = sum(row["right"] for row in cell)
            ratio = _ratio(np.array([row["error"] for row in cell]), np.array([row["error_told"] for row in cell]))
            covered, path = (mean([row[key] for row in cell]) for key in ("covered", "path_covered"))
            length = np.array([row["length"] for row in cell])
            print(
                f"{learner:20} d = {d:2}, K = {K:2}, N = {n:5}: {right:3} of {len(cell):3}; {ratio}; direction "
                f"{covered.value:.3f} [{covered.low:.3f}, {covered.high:.3f}]; path {path.value:.3f}; "
                f"length {length.mean():.2f} +- {length.std():.2f} of the truth"
            )
    right = sum(row["right"] for row in rows)
    print(f"in all {right} of {len(rows)} ({right / len(rows):.1%})")


def robust(folder: Path, seeds: int) -> None:
    """What is lost when the assumptions do not hold: LinUCB, d = 20, K = 50, N = 5,000."""
    tasks = [
        Task(f"case{i}-seed{seed}", {"case": case, "seed": seed})
        for i, case in enumerate(CASES)
        for seed in range(3000, 3000 + seeds)
    ]
    rows = list(run_tasks(robust_cell, tasks, folder / "robust", settings={"schema": 1}, progress=_progress).values())
    write_csv(folder / "robust.csv", rows, list(rows[0]))
    print(f"\n{'case':28}  learner  tracking  suffix rule  tracking / learner    covered  misfit  finite")
    for case in CASES:
        cell = [row for row in rows if row["case"] == case]
        of = {key: np.array([row[key] for row in cell]) for key in cell[0] if key not in {"case", "seed"}}
        print(
            f"{case:28}  {of['learner_error'].mean():.4f}   {of['error'].mean():.4f}    "
            f"{of['suffix_error'].mean():.4f}       {_ratio(of['error'], of['learner_error'])}   "
            f"{of['covered'].mean():.3f}    {of['misfit'].mean():.3f}   {bool(of['finite'].all())}"
        )


def speed(folder: Path, seeds: int) -> None:
    """One LinUCB filter over N = 10,000, K = 200, d = 50 beside one L-BFGS fit; how the filter's time grows with N."""
    del folder
    from time import perf_counter

    from plain_numpy import fit

    from onlooker import Environment, LinUCB, simulate
    from onlooker.tracking import UCB
    from onlooker.tracking.follower import Assumption, Follower

    log = simulate(Environment(50, 200), LinUCB(), N).log
    dense = log.features.reshape(N, 200, 50)
    assumption = Assumption(exploration=UCB(1.0), ridge=1.0, precision=0.5, slip=0.001)

    def timed(work: Callable[[], Any]) -> float:
        started = perf_counter()
        work()
        return perf_counter() - started

    def follow(n: int) -> None:
        Follower.start(assumption, 50).follow(log[:n])

    follow(100)
    found: dict[str, list[float]] = {}
    for _ in range(max(3, min(seeds, 5))):
        found.setdefault("NumPy + SciPy L-BFGS, one suffix fit (rule)", []).append(
            timed(lambda: fit(dense[3981:], log.chosen[3981:]))
        )
        found.setdefault("NumPy + SciPy L-BFGS, whole log", []).append(timed(lambda: fit(dense, log.chosen)))
        for n in (2500, 5000, N):
            found.setdefault(f"tracking, {n:,} rounds", []).append(timed(lambda n=n: follow(n)))
    for name, seconds in found.items():
        print(f"{name:45} {np.median(seconds):.3f} s")


def _ratio(first: np.ndarray, second: np.ndarray) -> str:
    found = paired_ratio(first, second)
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _progress(done: int, total: int, left: float | None) -> None:
    if sys.stderr.isatty() or done == total or done % 20 == 0:
        ahead = "" if left is None else f", some {left / 60:.0f} minutes left"
        print(f"{done} of {total}{ahead}", file=sys.stderr)


PARTS = {"errors": (errors, 10), "logs": (logs, 200), "robust": (robust, 10), "speed": (speed, 3)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--out", type=Path, default=Path("tracking-results"))
    parser.add_argument("--seeds", type=int)
    arguments = parser.parse_args()
    run, default = PARTS[arguments.part]
    arguments.out.mkdir(parents=True, exist_ok=True)
    run(arguments.out, arguments.seeds or default)
