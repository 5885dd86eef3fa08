"""What a reproduction would take, judged by one small cell."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from onlooker.base.errors import InputError
from onlooker.base.threads import n_threads
from onlooker.experiments.diagnostics import diagnostics_rows
from onlooker.experiments.grid import Grid
from onlooker.experiments.runner import Task
from onlooker.observers import TrackingObserver
from onlooker.simulation.learners import LinTS, LinUCB


@dataclass(frozen=True, kw_only=True)
class Paper:
    """The grid of figures 1 and 2 with their appendix versions, and the diagnostics of appendix A."""

    grid: Grid
    """Figures 1 and 2."""

    diagnosed: tuple[int, int, int]
    """Features, arms and rounds of appendix A."""

    def tasks(self, figure: str | None = None) -> list[Task]:
        """All of them, or those that a figure needs: `figure1`, `figure2-d50-K200`, `appendixA` and the like."""
        cells = [
            Task(f"grid-{task.key}", {"kind": "grid", **task.arguments}, cost=task.cost) for task in self.grid.tasks()
        ]
        d, K, N = self.diagnosed
        bins = [
            Task(
                f"diagnostics-d{d}-K{K}-seed{seed:02d}",
                {"kind": "diagnostics", "d": d, "K": K, "N": N, "seed": seed},
                cost=0.2 * d * K * N,
            )
            for seed in self.grid.seeds
        ]
        if figure is None:
            return cells + bins
        wanted = bins if figure == "appendixA" else [task for task in cells if _belongs(task, figure)]
        if not wanted:
            panels = ", ".join(f"d{d}-K{K}" for d, K in self.grid.environments)
            raise InputError(
                f"--figure {figure}: use figure1, figure2 or appendixA, or one panel as in figure1-d50-K200 ({panels})"
            )
        return wanted

    def settings(self) -> dict[str, Any]:
        """What must be the same for results to be in one folder."""
        return {"grid": self.grid.settings(), "diagnosed": list(self.diagnosed)}

    def __call__(self, kind: str, **arguments: Any) -> list[dict[str, Any]]:
        """Rows of one task."""
        return self.grid(**arguments) if kind == "grid" else diagnostics_rows(**arguments)


def full_paper(n_seeds: int, *, tracking: bool = False) -> Paper:
    """The paper's own settings; `tracking` puts that observer beside them."""
    return Paper(
        grid=Grid(
            environments=[(d, K) for d in (20, 50) for K in (50, 100, 200)],
            learners={"LinTS": LinTS(), "LinUCB": LinUCB()},
            horizons=[500, 1000, 2000, 5000, 10_000],
            seeds=range(n_seeds),
            observers={"tracking": TrackingObserver()} if tracking else {},
        ),
        diagnosed=(50, 200, 10_000),
    )


def quick_paper(n_seeds: int, *, tracking: bool = False) -> Paper:
    """The same on a small scale, to see that everything works."""
    return Paper(
        grid=Grid(
            environments=[(5, 20)],
            learners={"LinTS": LinTS(), "LinUCB": LinUCB()},
            horizons=[300, 600, 1200],
            seeds=range(n_seeds),
            observers={"tracking": TrackingObserver()} if tracking else {},
        ),
        diagnosed=(5, 20, 1200),
    )


def _belongs(task: Task, figure: str) -> bool:
    name, _, panel = figure.partition("-")
    key = f"d{task.arguments['d']}-K{task.arguments['K']}"
    return name in {"figure1", "figure2"} and panel in {"", key}


PROCESS_MB = 200.0
"""An interpreter with the libraries that a cell needs."""

CELL_MB = 0.05
"""Largest file of a finished cell."""


def estimate(paper: Paper, *, figure: str | None = None, workers: int | None = None) -> dict[str, Any]:
    """Cells, minutes, memory and disk. Time is taken to grow with rounds x arms x features: right to a factor of two.

    Examples
    --------
    >>> sorted(estimate(quick_paper(2)))
    ['cells', 'disk_mb', 'memory_mb', 'minutes', 'workers']
    """
    tasks = paper.tasks(figure)
    number = workers or n_threads()
    probe = quick_paper(1).tasks()[0]
    started = time.perf_counter()
    quick_paper(1)(**probe.arguments)
    pace = (time.perf_counter() - started) / probe.cost
    # A small cell is mostly overhead: a value of a large one takes about an eighth of the time.
    seconds = sum(task.cost * max(pace / 8, 1e-9) for task in tasks) / number
    largest = max(paper.grid.horizons) * max(d * K for d, K in paper.grid.environments) * 4 / 1e6
    return {
        "cells": len(tasks),
        "workers": number,
        "minutes": seconds / 60,
        "memory_mb": number * (PROCESS_MB + 1.3 * largest),
        "disk_mb": math.ceil(len(tasks) * CELL_MB),
    }
