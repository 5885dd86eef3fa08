"""What a reproduction would take, judged by one small cell."""

from __future__ import annotations

import math
import time
from typing import Any

from onlooker.experiments.paper import Paper, quick_paper
from onlooker.threads import n_threads

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
