"""Which rounds an observer was fitted on, so that they are recognised when they come again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.types import Features, Vector
from onlooker.logs.layouts import Layout
from onlooker.logs.log import BanditLog
from onlooker.logs.partial import Marks

CHANCE = 1e-3
"""Rounds are recognised if other rounds would look like them with less than this chance."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""A product with it is one-to-one and spreads bits."""


@dataclass(frozen=True, eq=False)
class FittedRounds:
    """A number for every round, from its pick and how many arms were offered: one pass over the picks, not the offers.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.random.default_rng(0).normal(size=(200, 3, 2)), np.zeros(200, dtype=int))
    >>> fitted = FittedRounds.of(log[:150])
    >>> fitted.place(log), fitted.place(log[100:]), fitted.place(log[150:])
    (0, 100, None)
    """

    prints: NDArray[np.uint64]

    @classmethod
    def of(cls, log: BanditLog) -> FittedRounds:
        """Take the rounds of a log."""
        if log.possible is not None:
            return cls(_of_sets(log, log.possible))
        picks, weights = _picks(log), np.random.default_rng(0).random(log.n_features)
        if isinstance(picks, Layout):
            values: Vector = picks @ weights
        else:
            values = _row_sums(picks, weights)
        numbers = (np.ascontiguousarray(values) + 0.0).view(np.uint64)
        return cls(numbers * _ODD + (log.chosen + 1).astype(np.uint64) * np.uint64(3) + log.n_arms.astype(np.uint64))

    def then(self, later: FittedRounds) -> FittedRounds:
        """Both, one after the other."""
        return FittedRounds(np.concatenate([self.prints, later.prints]))

    def place(self, log: BanditLog) -> int | None:
        """Where the log's rounds begin among these, as far as both go; None if they were not fitted, or may not be.

        Where many rounds are alike, as with few items and no other features, a short log is not recognised.
        """
        given, known = FittedRounds.of(log).prints, self.prints
        if not len(given) or not len(known):
            return None
        places = np.flatnonzero(known == given[0])
        for step in range(1, min(len(given), len(known))):
            if len(places) <= 1:
                break
            inside = places + step < len(known)
            places = places[~inside | (known[np.where(inside, places + step, 0)] == given[step])]
        for place in places.tolist():
            both = min(len(given), len(known) - place)
            if np.array_equal(known[place : place + both], given[:both]) and self._chance(given[:both]) < CHANCE:
                return int(place)
        return None

    def _chance(self, given: NDArray[Any]) -> float:
        """That other rounds would look like these, from how often rounds that were fitted look alike."""
        found, counts = np.unique(self.prints, return_counts=True)
        n = len(self.prints)
        repeated = 1.0 - (len(found) - 1) / n
        often = counts[np.searchsorted(found, given)]
        each = np.where(often > 1, often, min(repeated, 1.0)) / n
        return float(np.exp(min(0.0, np.log(n) + np.log(each).sum())))


def _picks(log: BanditLog) -> Features | Layout:
    rows = log.features
    return rows.take(log.chosen_rows, axis=0) if isinstance(rows, np.ndarray) else rows[log.chosen_rows]


def _of_sets(log: BanditLog, possible: Marks) -> NDArray[np.uint64]:
    """The same of rounds of which only a set is known that holds the pick."""
    weights, starts = np.random.default_rng(0).random(log.n_features), log.offsets[:-1]
    rows = log.features @ weights if isinstance(log.features, Layout) else _row_sums(log.features, weights)
    values = np.add.reduceat(np.where(possible, rows, 0.0), starts) + 0.0
    places = (np.arange(len(rows)) - np.repeat(starts, log.n_arms) + 1).astype(np.uint64) * _ODD
    sets = np.add.reduceat(np.where(possible, places ^ (places >> np.uint64(29)), np.uint64(0)), starts)
    return np.asarray(values.view(np.uint64) * _ODD + sets * np.uint64(3) + log.n_arms.astype(np.uint64))


def _row_sums(rows: Features, weights: Vector) -> Vector:
    """Weighted sum of every row, the same to the last bit wherever the row stands."""
    found = np.empty(len(rows))
    step = max(1, (1 << 18) // max(1, rows.shape[1]))
    for start in range(0, len(rows), step):
        found[start : start + step] = (rows[start : start + step] * weights).sum(axis=1)
    return found
