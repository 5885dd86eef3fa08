"""Rounds at which the weights jumped by more than their steps explain."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from onlooker.base.types import Matrix, Vector

Beliefs = tuple[Matrix, NDArray[np.float64]]
LOOKS = 400
"""Rounds that are looked at, evenly spread."""
LEVEL = 0.001
"""Chance of a jump being found anywhere in a log whose weights walk as assumed."""
EARLY = 100
"""Rounds at either end without a look: what moves there is the first guess, or has no picks after it."""
FLAT = 1e-6
"""Directions of which later picks show less than this share of the most that they show are left out."""


class Jumps:
    """Looks for jumps, the last rounds first.

    If weights jumped before round t, picks from t on place them elsewhere than the picks before did. How far, against
    what chance explains, is a chi-square statistic: that of a free jump at t, all other steps staying as they are.
    """

    def __init__(self, n_rounds: int) -> None:
        self.n_rounds = n_rounds
        self.every = max(1, n_rounds // LOOKS)
        self._excess: list[tuple[int, float]] = []

    def look(self, start: int, ahead: Beliefs, smoothed: Beliefs) -> None:
        """Look at some of the rounds from `start` on: means and spreads given the picks before, and given all."""
        for t in range(start + len(ahead[0]) - 1, start - 1, -1):
            if t % self.every == 0 and EARLY <= t < self.n_rounds - EARLY:
                place = t - start
                shift = smoothed[0][place] - ahead[0][place]
                self._excess.append((t, _excess(shift, ahead[1][place] - smoothed[1][place])))

    def found(self) -> list[int]:
        """One round for every run of looks that show a jump, gaps of `EARLY` rounds aside: that which shows it most."""
        bound = np.log(LEVEL / max(len(self._excess), 1))
        runs: list[list[tuple[float, int]]] = []
        for t, log_p in reversed(self._excess):
            if log_p < bound:
                if not runs or t - runs[-1][-1][1] > EARLY:
                    runs.append([])
                runs[-1].append((log_p, t))
        return [min(run)[1] for run in runs]


def _excess(shift: Vector, spread: Vector | Matrix) -> float:
    """Logarithm of the p-value of a shift with this covariance."""
    from scipy.special import chdtrc

    if spread.ndim == 1:
        kept = spread > FLAT * spread.max(initial=0.0)
        statistic = float(np.sum(shift[kept] ** 2 / spread[kept]))
    else:
        values, vectors = np.linalg.eigh(spread)
        kept = values > FLAT * values[-1]
        statistic = float(np.sum((shift @ vectors[:, kept]) ** 2 / values[kept]))
    count = int(kept.sum())
    p = float(chdtrc(count, statistic)) if count else 1.0
    return math.log(p) if p else -math.inf
