"""How well tracking does, in tables: `python benchmarks/tracking.py errors` (or many, logs, robust, speed).

Every part can be interrupted and goes on where it was; `--out` is where it keeps what is done. `errors` compares with
suffix imitation at its best over six (d, K), `many` does so over many seeds where ten leave it open; `logs` measures
which family is named, what not knowing it costs, and what the intervals cover; `robust` breaks the assumptions; `speed`
times one filter against one fit in NumPy and SciPy.
"""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np
from tracking_cells import CASES, LEARNERS, log_cell, robust_cell

from onlooker.experiments.grid import COLUMNS, Grid, run_grid
from onlooker.experiments.measurements import BEST_ALPHA, METRICS, ORACLE, Measurements, Setting
from onlooker.experiments.runner import Task, run_tasks
from onlooker.experiments.statistics import mean, paired_ratio
from onlooker.experiments.tables import write_csv
from onlooker.observers import TrackingObserver
from onlooker.report.plots import Chart, Level, Series, sheet_png

SETTINGS = [(d, K) for d in (20, 50) for K in (50, 100, 200)]
N = 10_000
SHAPES = [(10, 20, 2000), (20, 50, 2000), (20, 50, 5000), (50, 50, 5000), (20, 10, 3000)]
COVERED = [(10, 20, 2000)]
DIGITS = {"direction_error": 4, "predictive_regret": 6}
NUMBERS = ("error", "error_told", "learner_error", "covered", "path_covered", "length", "misfit")


def errors(folder: Path, seeds: int) -> None:
    """Direction error and predictive regret beside the learner's and suffix imitation's, at N = 10,000."""
    grid = Grid(
        environments=SETTINGS,
        learners=LEARNERS,
        horizons=[N],
        seeds=range(seeds),
        observers={"tracking": TrackingObserver()},
    )
    table = _compare(grid, folder, "errors", "# Tracking: errors over six settings")
    sheet_png(_curves(table), folder / "comparison.png", columns=3)


def many(folder: Path, seeds: int) -> None:
    """The same where ten seeds leave open how near tracking comes to the oracle: LinTS, d = 20, other seeds."""
    grid = Grid(
        environments=SETTINGS[:2],
        learners={"LinTS": LEARNERS["LinTS"]},
        horizons=[N],
        seeds=range(1000, 1000 + seeds),
        observers={"tracking": TrackingObserver()},
    )
    _compare(grid, folder, "many", "# Tracking: LinTS over many seeds")


def _compare(grid: Grid, folder: Path, name: str, title: str) -> Measurements:
    """Run the grid and write its table as `name`."""
    rows = run_grid(grid, folder / name, progress=_progress)
    write_csv(folder / f"{name}.csv", rows, COLUMNS)
    table = Measurements(rows)
    methods = ("learner", "naive", "rule", BEST_ALPHA, ORACLE, "tracking")
    text = []
    for metric, words in METRICS.items():
        lines = []
        for setting in sorted(table.settings, key=lambda s: (list(LEARNERS).index(s.learner), s.d, s.K)):
            of = {method: np.array(list(table.of(setting, N, method, metric).values())) for method in methods}
            ratios = [_ratio(of["tracking"], of[method]) for method in ("learner", BEST_ALPHA, ORACLE)]
            lines.append([str(setting), *(f"{of[method].mean():.{DIGITS[metric]}f}" for method in methods), *ratios])
        heads = ["log", *methods, "tracking / learner", "tracking / best alpha", "tracking / oracle"]
        text.append(f"## {words.capitalize()}\n\n{_markdown(heads, lines)}")
    seeds = len(grid.seeds)
    intro = f"Means over {seeds} seeds, N = {N:,}; ratios are geometric means paired over seeds, with 95% intervals."
    _keep(folder / f"{name}.md", title, intro, *text)
    return table


def _curves(table: Measurements) -> list[Chart]:
    """Direction error by burn-in exponent at d = 50, K = 200, with the learner and tracking, which have none."""
    charts = []
    for learner in LEARNERS:
        setting = Setting(learner, *SETTINGS[-1])
        curve = table.curve(setting, N, "direction_error")
        if curve is None:
            continue
        bands = [mean(column) for column in curve.values.T]
        levels = {m: mean(list(table.of(setting, N, m, "direction_error").values())) for m in ("learner", "tracking")}
        charts.append(
            Chart(
                title=learner,
                x_label="burn-in exponent alpha",
                y_label="direction error",
                series=(
                    Series(
                        "suffix imitation",
                        curve.alphas,
                        np.array([b.value for b in bands]),
                        low=np.array([b.low for b in bands]),
                        high=np.array([b.high for b in bands]),
                    ),
                ),
                levels=tuple(Level(m, b.value, low=b.low, high=b.high) for m, b in levels.items()),
            )
        )
    return charts


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
    write_csv(folder / "logs.csv", _counted(rows), list(rows[0]))
    lines = []
    for learner in LEARNERS:
        for d, K, n in SHAPES:
            cell = [row for row in rows if (row["learner"], row["d"], row["K"], row["N"]) == (learner, d, K, n)]
            of = {key: np.array([row[key] for row in cell]) for key in ("right", *NUMBERS)}
            covered, path = mean(of["covered"]), mean(of["path_covered"])
            lines.append(
                [
                    f"{learner}, d = {d}, K = {K}, N = {n:,}",
                    f"{of['right'].sum()} of {len(cell)}",
                    _ratio(of["error"], of["error_told"]),
                    _ratio(of["error"], of["learner_error"]),
                    f"{covered.value:.3f} [{covered.low:.3f}, {covered.high:.3f}]",
                    f"{path.value:.3f}",
                    f"{of['length'].mean():.2f} ± {of['length'].std():.2f}",
                    f"{of['misfit'].max():.3f}",
                ]
            )
    heads = ["log", "family named", "error / error if known", "error / learner's", "direction covered", "path covered"]
    right = sum(row["right"] for row in rows)
    intro = (
        f"The right family was named for {right} of {len(rows)} logs ({right / len(rows):.1%}). Coverage is of 95% "
        "intervals, by coordinate; length is that of theta over the truth's."
    )
    table = _markdown([*heads, "length", "largest misfit"], lines)
    _keep(folder / "logs.md", "# Tracking: families named, intervals that cover", intro, table)


def robust(folder: Path, seeds: int) -> None:
    """What is lost when the assumptions do not hold: LinUCB, d = 20, K = 50, N = 5,000."""
    tasks = [
        Task(f"case{i}-seed{seed}", {"case": case, "seed": seed})
        for i, case in enumerate(CASES)
        for seed in range(3000, 3000 + seeds)
    ]
    rows = list(run_tasks(robust_cell, tasks, folder / "robust", settings={"schema": 1}, progress=_progress).values())
    write_csv(folder / "robust.csv", _counted(rows), list(rows[0]))
    lines = []
    for case in CASES:
        cell = [row for row in rows if row["case"] == case]
        of = {key: np.array([row[key] for row in cell]) for key in cell[0] if key not in {"case", "seed"}}
        errors = [f"{of[key].mean():.4f}" for key in ("learner_error", "error", "suffix_error")]
        loss = _ratio(of["error"], of["learner_error"])
        finite = "yes" if of["finite"].all() else "no"
        lines.append([case, *errors, loss, f"{of['covered'].mean():.3f}", f"{of['misfit'].mean():.3f}", finite])
    heads = [
        "case",
        "learner",
        "tracking",
        "suffix imitation, rule",
        "tracking / learner",
        "covered",
        "misfit",
        "finite",
    ]
    intro = (
        f"LinUCB, d = 20, K = 50, N = 5,000, {seeds} seeds; the observer is given UCB(1) and ridge 1 unless the case "
        "says otherwise."
    )
    _keep(folder / "robust.md", "# Tracking: what wrong assumptions cost", intro, _markdown(heads, lines))


def speed(folder: Path, seeds: int) -> None:
    """One LinUCB filter over N = 10,000, K = 200, d = 50 beside one L-BFGS fit; how the filter's time grows with N."""
    from time import perf_counter

    from rivals.adapters.numpy_scipy import fit
    from rivals.workloads import L2

    from onlooker import Environment, LinUCB, simulate
    from onlooker.observers.tracking import UCB
    from onlooker.observers.tracking.follower import Assumption, Follower

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
            timed(lambda: fit(dense[3981:], log.chosen[3981:], L2))
        )
        found.setdefault("NumPy + SciPy L-BFGS, whole log", []).append(timed(lambda: fit(dense, log.chosen, L2)))
        for n in (2500, 5000, N):
            found.setdefault(f"tracking, {n:,} rounds", []).append(timed(lambda n=n: follow(n)))
    lines = [[name, f"{np.median(seconds):.3f}"] for name, seconds in found.items()]
    intro = "LinUCB log, K = 200, d = 50, float32; medians of interleaved runs on one thread."
    _keep(folder / "speed.md", "# Tracking: times", intro, _markdown(["work", "seconds"], lines))


def _counted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Yes and no as 1 and 0, which a table can hold."""
    return [{key: int(value) if isinstance(value, bool) else value for key, value in row.items()} for row in rows]


def _markdown(heads: list[str], lines: list[list[str]]) -> str:
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _keep(path: Path, *parts: str) -> None:
    text = "\n\n".join(parts) + "\n"
    path.write_text(text, encoding="utf-8")
    print(text)


def _ratio(first: np.ndarray, second: np.ndarray) -> str:
    found = paired_ratio(first, second)
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _progress(done: int, total: int, left: float | None) -> None:
    if sys.stderr.isatty() or done == total or done % 20 == 0:
        ahead = "" if left is None else f", some {left / 60:.0f} minutes left"
        print(f"{done} of {total}{ahead}", file=sys.stderr)


PARTS = {"errors": (errors, 10), "many": (many, 100), "logs": (logs, 200), "robust": (robust, 10), "speed": (speed, 3)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--out", type=Path, default=Path("tracking-results"))
    parser.add_argument("--seeds", type=int)
    arguments = parser.parse_args()
    run, default = PARTS[arguments.part]
    arguments.out.mkdir(parents=True, exist_ok=True)
    run(arguments.out, arguments.seeds or default)
