"""Appendix A: whether picks become more predictable, and whether the late policy fits late rounds better."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from onlooker.evaluation.metrics import agreement
from onlooker.imitation.stretches import LATE, edges, held_out_hits, imitate
from onlooker.logs.log import BanditLog
from onlooker.simulation.environment import Environment, Stream, generator
from onlooker.simulation.learners import LinUCB
from onlooker.simulation.play import simulate

COLUMNS = ("learner", "d", "K", "N", "seed", "kind", "index", "start", "stop", "accuracy")
"""Of the diagnostics' table."""

BINS = 10
"""Equal stretches of time; the printed rank correlation of the paper fits ten."""


def diagnostics_rows(d: int, K: int, N: int, seed: int) -> list[dict[str, Any]]:
    """Both diagnostics on one log of LinUCB: accuracy within every time bin, and of the late policy on every window.

    The paper does not define its rolling windows, and the figure depends on them. Both readings are measured: ten
    windows side by side (`window`), which is what is drawn, and windows that overlap by half (`overlapping`).

    Examples
    --------
    >>> kinds = [row["kind"] for row in diagnostics_rows(d=3, K=5, N=400, seed=0)]
    >>> kinds.count("bin"), kinds.count("window"), kinds.count("overlapping")
    (10, 10, 19)
    """
    log = simulate(Environment(d, K, seed=seed), LinUCB(), N, seed=seed).log
    late = imitate(log[int(LATE * N) :]).theta
    halves = edges(N, 2 * BINS)
    stretches = {
        "bin": list(pairwise(edges(N, BINS))),
        "window": list(pairwise(edges(N, BINS))),
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
    return float(held_out_hits(part, np.sort(order[:cut]), np.sort(order[cut:])).mean())
