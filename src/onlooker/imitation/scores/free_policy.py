"""What policies share whose scores are a function of the features and no sum of weights: effects over typical rows."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.errors import InputError
from onlooker.base.types import Matrix, Vector
from onlooker.logs.effects import Effect, as_curve, grid
from onlooker.logs.log import BanditLog
from onlooker.logs.policy import Scoring, feature_place

TYPICAL_ROWS = 200
"""Rows that are kept with a policy, for the effects of its features."""


class FreePolicy(Scoring, ABC):
    """A policy that scores rows of features by a function of its own.

    Parameters
    ----------
    typical
        Some of the rows that were fitted, shape (n, d): the effect of a feature is a mean over them.
    feature_names, categories
        Of the features, as a `LinearPolicy` has them.
    """

    def __init__(
        self,
        typical: ArrayLike,
        feature_names: Sequence[str] | None = None,
        categories: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.typical = np.asarray(typical, dtype=np.float64)
        if self.typical.ndim != 2 or not self.typical.size or not np.isfinite(self.typical).all():
            raise InputError("typical must be rows of finite features")
        self._describe(self.typical.shape[1], feature_names, categories)

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return int(self.typical.shape[1])

    def effect(self, name: str, x: ArrayLike | None = None, *, level: float = 0.95) -> Effect:
        """Mean score over typical rows with the feature set to each `x`, less its mean over their own values.

        That is its partial dependence. It has no band: how certain it is, is not known.
        """
        place = feature_place(self, name)
        own = self.typical[:, place]
        points = grid(own) if x is None else as_curve(x)
        values = np.array([self._with(place, value) for value in (*points, *own)])
        unknown = np.full(len(points), np.nan)
        effect = values[: len(points)] - values[len(points) :].mean()
        return Effect(name=name, x=points, effect=effect, low=unknown, high=unknown, level=level)

    def _with(self, place: int, value: float) -> float:
        rows = self.typical.copy()
        rows[:, place] = value
        return float(self.row_scores(rows).mean())


def choices(log: BanditLog, weights: Vector | None) -> tuple[BanditLog, Vector]:
    """The rounds that offer a choice and have a weight, and their weights."""
    counts = np.ones(log.n_rounds) if weights is None else weights
    kept = np.flatnonzero((log.n_arms > 1) & (counts > 0))
    if not len(kept):
        raise InputError("no round offers a choice between two arms or more: there is nothing to imitate")
    return log[kept], counts[kept]


def shares_before(counts: Vector) -> Vector:
    """Which share of all rounds, each counted as often as its weight says, lies before each of them.

    Examples
    --------
    >>> shares_before(np.array([1.0, 2.0, 1.0]))
    array([0.  , 0.25, 0.75])
    """
    return np.asarray((np.cumsum(counts) - counts) / counts.sum())


def typical_rows(log: BanditLog) -> Matrix:
    """An even sample of a log's rows."""
    rows = log.dense
    return np.asarray(rows[:: max(1, len(rows) // TYPICAL_ROWS)][:TYPICAL_ROWS], dtype=np.float64)
