"""Bounds against what is measured in the paper's settings: `python benchmarks/bounds.py --out docs/bounds`.

Six (d, K), LinUCB and LinTS, N = 500 to 10,000, several burn-ins. Can be interrupted and goes on where it was; `--work`
is where it keeps what is done. Writes every row, the table and the picture; fails if a bound lies below the regret.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np
from bounds_cells import LEARNERS, NARROW, bound_cell
from onlooker.bounds import TRIVIAL_REGRET, Dimension, predictive_regret_bound

from onlooker.experiments.runner import Task, run_tasks
from onlooker.experiments.tables import write_csv
from onlooker.report.plots import Chart, Level, Series, sheet_png

SETTINGS = [(d, K) for d in (20, 50) for K in (50, 100, 200)]
HORIZONS = [500, 1000, 2000, 5000, 10_000]
ALPHAS = [0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98]
RULE = 0.9
DELTA = 0.05
BOUNDS = {"any_learner": "any learner", "theorem_sharp": "theorem 2, d", "theorem_paper": "theorem 2, d log2 K"}
PANELS = [("LinUCB", 20, 50), ("LinTS", 20, 50), ("LinUCB", 50, 200)]

Rows = list[dict[str, Any]]


def measured(work: Path, seeds: int) -> Rows:
    shared = {"horizons": HORIZONS, "alphas": ALPHAS, "delta": DELTA}
    tasks = [
        Task(
            f"{learner}-d{d}-K{K}-seed{seed:02d}",
            {"learner": learner, "d": d, "K": K, "seed": seed, **shared},
            cost=float(d * K),
        )
        for learner in LEARNERS
        for d, K in SETTINGS
        for seed in range(seeds)
    ]
    found = run_tasks(bound_cell, tasks, work, settings={"schema": 1, **shared}, progress=_progress)
    return [row for cell in found.values() for row in cell]


def table(rows: Rows) -> str:
    heads = ["log", "N", "regret", "cost of a miss", "risk", "mistakes", "narrow", "eta", "eta, gaps", *BOUNDS.values()]
    lines = [heads, ["---"] * len(heads)]
    for learner in LEARNERS:
        for d, K in SETTINGS:
            for n in (HORIZONS[0], HORIZONS[2], HORIZONS[-1]):
                cell = _where(rows, learner=learner, d=d, K=K, N=n, alpha=RULE)
                lines.append(
                    [
                        f"{learner}, d = {d}, K = {K}",
                        f"{n:,}",
                        f"{_mean(cell, 'regret'):.5f}",
                        f"{_mean(cell, 'regret') / _mean(cell, 'risk'):.4f}",
                        *(f"{_mean(cell, key):.3f}" for key in ("risk", "mistakes", "mistakes_narrow")),
                        *(f"{_mean(cell, key):.3f}" for key in ("eta", "eta_from_gaps")),
                        *(_number(cell, key) for key in BOUNDS),
                    ]
                )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def verdict(rows: Rows) -> tuple[str, bool]:
    """Whether every bound of every row is above what was measured there, and how many say something."""
    parts, held = [], True
    for key, name in BOUNDS.items():
        finite = [row for row in rows if row[key] is not None]
        above = sum(row[key] >= row["regret"] for row in finite)
        held &= above == len(finite)
        telling = sum(row[key] < TRIVIAL_REGRET for row in finite)
        closest = min(row[key] / row["regret"] for row in finite)
        parts.append(
            f"- {name}: not below the regret in {above:,} of {len(finite):,} finite cells of {len(rows):,}; at the "
            f"closest {closest:,.0f} times as large; below the trivial {TRIVIAL_REGRET:g} in {telling:,}"
        )
    return "\n".join(parts), held


def needed() -> str:
    """From how many imitated rounds on theorem 2 says something, and something useful, with an eta of 0.1."""
    lines = [["", "regret <= 2", "regret <= 0.1"], ["---"] * 3]
    for d, K in (SETTINGS[0], SETTINGS[-1]):
        for dimension in ("sharp", "paper"):
            counts = [f"{_needed(target, d, K, dimension):,}" for target in (TRIVIAL_REGRET, 0.1)]
            lines.append([f"d = {d}, K = {K}, {BOUNDS[f'theorem_{dimension}']}", *counts])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _needed(target: float, d: int, K: int, dimension: Dimension) -> int:
    low, high = 1, 2**40
    while low < high:
        middle = (low + high) // 2
        enough = predictive_regret_bound(middle, 0, d, K, DELTA, 0.1, dimension=dimension) <= target
        low, high = (low, middle) if enough else (middle + 1, high)
    return low


def charts(rows: Rows) -> list[Chart]:
    found = []
    for axis, label, fixed in (("T", "burn-in T", {"N": HORIZONS[-1]}), ("N", "rounds N", {"alpha": RULE})):
        for learner, d, K in PANELS:
            cells = _where(rows, learner=learner, d=d, K=K, **fixed)
            xs = sorted({row[axis] for row in cells})
            groups = [_where(cells, **{axis: x}) for x in xs]
            regrets = [[row["regret"] for row in group] for group in groups]
            series = [
                Series(
                    "measured regret",
                    np.array(xs, dtype=float),
                    np.array([np.mean(values) for values in regrets]),
                    low=np.array([np.min(values) for values in regrets]),
                    high=np.array([np.max(values) for values in regrets]),
                )
            ]
            series += [
                Series(name, np.array(xs, dtype=float), np.array([_or_gap(group, key) for group in groups]))
                for key, name in BOUNDS.items()
            ]
            rest = f"N = {HORIZONS[-1]:,}" if axis == "T" else f"T = N^{RULE}"
            found.append(
                Chart(
                    title=f"{learner}, d = {d}, K = {K}, {rest}",
                    x_label=label,
                    y_label="predictive regret",
                    series=tuple(series),
                    levels=(Level("the most possible", TRIVIAL_REGRET),),
                    log_x=True,
                    log_y=True,
                )
            )
    return found


def _where(rows: Rows, **values: object) -> Rows:
    return [row for row in rows if all(row[key] == value for key, value in values.items())]


def _mean(rows: Rows, key: str) -> float:
    return float(np.mean([row[key] for row in rows]))


def _or_gap(rows: Rows, key: str) -> float:
    return float("nan") if any(row[key] is None for row in rows) else _mean(rows, key)


def _number(rows: Rows, key: str) -> str:
    value = _or_gap(rows, key)
    return "none" if np.isnan(value) else f"{value:.3g}"


def _six_digits(row: dict[str, Any]) -> dict[str, Any]:
    return {key: float(f"{value:.6g}") if isinstance(value, float) else value for key, value in row.items()}


def _progress(done: int, total: int, left: float | None) -> None:
    if sys.stderr.isatty() or done == total or done % 10 == 0:
        ahead = "" if left is None else f", some {left / 60:.0f} minutes left"
        print(f"{done} of {total}{ahead}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("bounds-results"))
    parser.add_argument("--work", type=Path, default=Path("bounds-results/cells"))
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows = measured(arguments.work, arguments.seeds)
    write_csv(arguments.out / "bounds.csv", [_six_digits(row) for row in rows], list(rows[0]))
    words, held = verdict(rows)
    intro = (
        f"Means over {arguments.seeds} seeds after T = N^{RULE}, delta = {DELTA}. *Cost of a miss* is regret over "
        "risk; *mistakes* the share of the suffix's picks that are not the best arm, *narrow* the same in the "
        f"{NARROW:.0%} of the rounds where the best arm leads least; *eta* the upper limit of their mean probability; "
        "*eta, gaps* the limit from the learner's regret and the distribution of leads; *none*: eta is 1/2 or more in "
        "one seed at least."
    )
    text = f"# Bounds beside what is measured\n\n{intro}\n\n{table(rows)}\n\n"
    text += f"All {len(rows):,} cells (burn-ins, horizons, settings, seeds):\n\n{words}\n"
    text += f"\nRounds after the burn-in that theorem 2 needs, eta = 0.1:\n\n{needed()}\n"
    (arguments.out / "bounds.md").write_text(text, encoding="utf-8")
    print(text)
    sheet_png(charts(rows), arguments.out / "bounds.png", columns=3)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
