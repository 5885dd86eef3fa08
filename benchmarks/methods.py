"""Every method on the same logs, in one table: `python benchmarks/methods.py --out docs/methods`.

LinUCB and LinTS, d = 20, K = 50, N = 500, 2,000 and 10,000, ten seeds. It can be interrupted and goes on where it was;
`--cells` is where it keeps what is done. Bayesian chains are shortened (`SHORTENED`); times are of the processor.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np
from methods_cells import LEARNER, LEARNERS, SHORTENED, method_cell

from onlooker.base.files import write_text
from onlooker.experiments.runner import Task, run_tasks
from onlooker.experiments.statistics import mean, paired_ratio
from onlooker.experiments.tables import write_csv
from onlooker.observers.methods import METHODS
from onlooker.report.plots import DotChart, Level, to_png

D, K = 20, 50
HORIZONS = (500, 2000, 10_000)
FIRST_SEED = 100
TITLES = {LEARNER: LEARNER} | {method.name: method.title for method in METHODS}
COST = {"bayesian": 20.0, "nonparametric": 10.0, "tracking": 3.0, "ibcb": 2.0}
DIGITS = {"direction_error": 4, "predictive_regret": 6}
COLUMNS = (
    *("method", "learner", "d", "K", "N", "seed"),
    *("direction_error", "predictive_regret", "agreement", "cpu_seconds"),
)


def main(out: Path, cells: Path, horizons: tuple[int, ...], seeds: int) -> None:
    tasks = [
        Task(
            f"{learner}-N{n}-{method.split()[0]}-seed{seed}",
            {"method": method, "learner": learner, "d": D, "K": K, "N": n, "seed": seed},
            cost=n * COST.get(method, 1.0),
        )
        for n in horizons
        for learner in LEARNERS
        for method in TITLES
        for seed in range(FIRST_SEED, FIRST_SEED + seeds)
    ]
    settings = {"schema": 1, "shortened": {name: dict(values) for name, values in SHORTENED.items()}}
    rows = list(run_tasks(method_cell, tasks, cells, settings=settings, progress=_progress).values())
    out.mkdir(parents=True, exist_ok=True)
    write_csv(out / "methods.csv", rows, COLUMNS)
    parts = [_table(rows, learner, horizons) for learner in LEARNERS]
    chains = "; ".join(
        f"{TITLES[name]}, {', '.join(f'{key} {value}' for key, value in values.items())}"
        for name, values in SHORTENED.items()
    )
    intro = (
        f"d = {D}, K = {K}; means over {seeds} seeds with 95% intervals; ratios are geometric means, paired by seed; "
        "times are of the processor, one thread, on a machine with other work on it. "
        f"Chains shorter than by default: {chains.replace('_', ' ')}."
    )
    text = "\n\n".join(["# Every method on the same logs", intro, *parts]) + "\n"
    write_text(out / "methods.md", text)
    print(text)
    for learner in LEARNERS:
        to_png([_chart(rows, learner, n) for n in horizons], out / f"{learner.lower()}.png")


def _of(rows: list[dict[str, Any]], method: str, learner: str, n: int, measure: str) -> np.ndarray:
    return np.array(
        [row[measure] for row in rows if (row["method"], row["learner"], row["N"]) == (method, learner, n)], dtype=float
    )


def _table(rows: list[dict[str, Any]], learner: str, horizons: tuple[int, ...]) -> str:
    tables = []
    for measure in ("direction_error", "predictive_regret"):
        lines = [["method", *(f"N = {n:,}" for n in horizons)], ["---"] + ["--:"] * len(horizons)]
        for method, title in TITLES.items():
            cells = []
            for n in horizons:
                found = mean(_of(rows, method, learner, n, measure))
                value, low, high = (f"{x:.{DIGITS[measure]}f}" for x in (found.value, found.low, found.high))
                cells.append(f"{value} [{low}, {high}]")
            lines.append([title, *cells])
        tables.append(f"## {learner}: {measure.replace('_', ' ')}\n\n{_markdown(lines)}")
    lines = [["method", *(f"N = {n:,}" for n in horizons)], ["---"] + ["--:"] * len(horizons)]
    for method, title in TITLES.items():
        if method != "rule":
            lines.append([title, *(_beside_rule(rows, method, learner, n) for n in horizons)])
    tables.append(f"## {learner}: direction error / that of the rule N^0.9\n\n{_markdown(lines)}")
    lines = [["method", *(f"N = {n:,}" for n in horizons)], ["---"] + ["--:"] * len(horizons)]
    for method, title in TITLES.items():
        if method != LEARNER:
            lines.append([title, *(f"{np.median(_of(rows, method, learner, n, 'cpu_seconds')):.2f}" for n in horizons)])
    return "\n\n".join([*tables, f"## {learner}: processor seconds (median)\n\n{_markdown(lines)}"])


def _beside_rule(rows: list[dict[str, Any]], method: str, learner: str, n: int) -> str:
    own, rule = (_of(rows, one, learner, n, "direction_error") for one in (method, "rule"))
    found = paired_ratio(own, rule)
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _chart(rows: list[dict[str, Any]], learner: str, n: int) -> DotChart:
    found = [mean(_of(rows, method, learner, n, "direction_error")) for method in TITLES]
    return DotChart(
        title=f"{learner}, N = {n:,}",
        x_label="direction error (log scale)",
        y_label="method",
        names=tuple(TITLES.values())[1:],
        values=np.array([one.value for one in found[1:]]),
        # A mean of few seeds may have an interval that reaches below zero: it is drawn to the edge of the chart.
        low=np.array([one.low if one.low > 0 else one.value / 10 for one in found[1:]]),
        high=np.array([one.high for one in found[1:]]),
        level=Level(LEARNER, found[0].value),
        log_x=True,
    )


def _markdown(lines: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _progress(done: int, total: int, left: float | None) -> None:
    if sys.stderr.isatty() or done == total or done % 20 == 0:
        ahead = "" if left is None else f", some {left / 60:.0f} minutes left"
        print(f"{done} of {total}{ahead}", file=sys.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("methods-results"), help="where to write tables and charts")
    parser.add_argument("--cells", type=Path, default=Path("methods-cells"), help="where to keep what is done")
    parser.add_argument("--horizons", type=int, nargs="+", default=HORIZONS)
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    main(arguments.out, arguments.cells, tuple(arguments.horizons), arguments.seeds)
