"""Appendix A: whether picks become more predictable, and whether the late policy fits late rounds better."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from onlooker.environment import Environment, Stream, generator
from onlooker.experiments.grid import L2
from onlooker.learners import LinUCB
from onlooker.log import BanditLog
from onlooker.metrics import agreement
from onlooker.newton import minimise
from onlooker.simulation import simulate
from onlooker.softmax import SoftmaxObjective
from onlooker.types import Vector

COLUMNS = ("learner", "d", "K", "N", "seed", "kind", "index", "start", "stop", "accuracy")
"""Of the diagnostics' table."""

BINS = 10
"""Equal stretches of time; the printed rank correlation of the paper fits ten."""

LATE = 0.7
"""The late policy learns from the rounds after this part of the log."""


def diagnostics_rows(d: int, K: int, N: int, seed: int) -> list[dict[str, Any]]:
    """Both diagnostics on one log of LinUCB: accuracy within every time bin, and of the late policy on every window.

    The paper does not define its rolling windows, and the figure hangs on them. Both readings are measured: ten windows
    side by side (`window`), which is what is drawn, and windows that overlap by half (`overlapping`).

    Examples
    --------
    >>> kinds = [row["kind"] for row in diagnostics_rows(d=3, K=5, N=400, seed=0)]
    >>> kinds.count("bin"), kinds.count("window"), kinds.count("overlapping")
    (10, 10, 19)
    """
    log = simulate(Environment(d, K, seed=seed), LinUCB(), N, seed=seed).log
    late = _theta(log[int(LATE * N) :])
    edges = np.linspace(0, N, BINS + 1).astype(int).tolist()
    halves = np.linspace(0, N, 2 * BINS + 1).astype(int).tolist()
    stretches = {
        "bin": list(pairwise(edges)),
        "window": list(pairwise(edges)),
        "overlapping": list(zip(halves[:-2], halves[2:], strict=True)),
    }
    rows = []
    for kind, places in stretches.items():
        for index, (start, stop) in enumerate(places):
            part = log[start:stop]
            accuracy = _predictability(part, seed, index) if kind == "bin" else agreement(late, part)
            values = ("LinUCB", d, K, N, seed, kind, index, start, stop, accuracy)
            rows.append(dict(zip(COLUMNS, values, strict=True)))
    return rows


def _predictability(part: BanditLog, seed: int, index: int) -> float:
    """Fit on four fifths of the rounds, drawn at random; agreement on the rest."""
    order = generator(seed, Stream.SPLIT, index).permutation(part.n_rounds)
    cut = part.n_rounds * 4 // 5
    return agreement(_theta(part[np.sort(order[:cut])]), part[np.sort(order[cut:])])


def _theta(log: BanditLog) -> Vector:
    return minimise(SoftmaxObjective(log, l2=L2)).at.theta
