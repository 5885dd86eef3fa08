"""Units in which features are of about one size: of those that vary from the start, and of those that do so later."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.checks import as_number
from onlooker.base.types import Features, Matrix, Vector
from onlooker.logs.log import BanditLog
from onlooker.observers.tracking.variation import differences

UNEQUAL = 64.0
"""Features that differ in size by more than this are counted in units of their own."""


@dataclass(eq=False)
class Sizes:
    """Sizes of the features that the units were chosen by: what a feature that first varies later is compared with.

    Examples
    --------
    >>> sizes = Sizes(0.5, 2.0, np.array([True, True, False]))
    >>> sizes.unit(20.0), sizes.unit(1000.0), sizes.unit(0.001)
    (1.0, 1024.0, 0.0009765625)
    """

    low: float
    """The smallest, in units."""
    high: float
    """The largest."""
    known: NDArray[np.bool_]
    """Which features have varied within a round and so have a size, shape (d,)."""

    @classmethod
    def of_variation(cls, information: Matrix, n_rounds: int, units: Vector | None) -> Sizes:
        """About what they are, from the features' variation within so many rounds."""
        found = np.sqrt(3 * np.maximum(np.diag(information), 0.0) / n_rounds)
        known = found > 0
        if not known.any():
            return cls(1.0, 1.0, known)
        found = found[known] if units is None else found[known] / units[known]
        return cls(float(found.min()), float(found.max()), known)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"low": self.low, "high": self.high, "known": self.known.tolist()}

    @classmethod
    def from_dict(cls, values: dict[str, Any], n_features: int) -> Sizes:
        """Give back what `to_dict` was made of."""
        low = as_number(values["low"], "low", above=0.0)
        return cls(low, as_number(values["high"], "high", least=low), as_flags(values["known"], n_features))

    def unit(self, size: float) -> float:
        """Power of two in which a feature of this size is like the others; 1 if it is like them as it is."""
        if max(self.high, size) <= UNEQUAL * min(self.low, size):
            return 1.0
        return float(2.0 ** round(math.log2(size / math.sqrt(self.low * self.high))))

    def late(self, log: BanditLog) -> Iterator[tuple[int, int]]:
        """Rounds in which a feature without a size first varies, and the feature, in the order of the rounds."""
        from onlooker.kernels.differences import first_varying

        places = np.flatnonzero(~self.known)
        if not len(places):
            return
        rounds = np.empty(len(places), dtype=np.int64)
        first_varying(log.dense, log.offsets, places, rounds)
        for place in np.argsort(rounds, kind="stable").tolist():
            if rounds[place] < log.n_rounds:
                yield int(rounds[place]), int(places[place])


def own_units(log: BanditLog) -> tuple[Vector | None, Sizes]:
    """Units in which features are of about one size, and arms of length one; None if they are of one size as they are.

    Units are powers of two, and 1 for features that do not vary.

    Examples
    --------
    >>> features = np.tile(np.eye(3), (10, 1)) * [1, 5000, 1]
    >>> units, sizes = own_units(BanditLog.from_dense(features.reshape(10, 3, 3), np.zeros(10, dtype=int)))
    >>> units.tolist(), sizes.known.tolist()
    ([0.5, 2048.0, 0.5], [True, True, True])
    """
    sizes = feature_sizes(log)
    known = sizes > 0
    if not known.any():
        return None, Sizes(1.0, 1.0, known)
    found = sizes[known]
    if found.max() <= UNEQUAL * found.min():
        return None, Sizes(float(found.min()), float(found.max()), known)
    units = np.ones(log.n_features)
    # Of normal differences, the size is the deviation times the root of 3.
    units[known] = 2.0 ** np.round(np.log2(found * np.sqrt(len(found) / 3)))
    found = found / units[known]
    return units, Sizes(float(found.min()), float(found.max()), known)


def feature_sizes(log: BanditLog) -> Vector:
    """Size of each feature, that of its differences within a round where it differs: a rare one is not small.

    0 for a feature that does not vary within any round.
    """
    squares, fourths, most = np.zeros((3, log.n_features))
    for rows, part in differences(log):
        most = np.maximum(most, np.abs(part.dense).max(axis=0))
        square = np.square(rows, out=rows)
        squares += square.sum(axis=0)
        fourths += np.einsum("ij,ij->j", square, square)
    # What differs in its last digits only was meant to be the same.
    # So was what is too small for its fourth power.
    varies = (squares > len(log.features) * (1e-12 * most) ** 2) & (fourths > 0)
    return np.sqrt(np.divide(fourths, squares, out=np.zeros_like(squares), where=varies))


def in_units(features: Features, units: Vector) -> Features:
    """Features counted in other units; powers of two leave every digit as it is."""
    found: Features = features / units.astype(features.dtype)
    # As those of logs are: kernels are compiled for either.
    found.setflags(write=False)
    return found


def as_flags(values: Any, n_features: int) -> NDArray[np.bool_]:
    """What was saved as true or false for every feature."""
    if len(values) != n_features or not all(isinstance(one, bool) for one in values):
        raise ValueError(f"true or false is not kept for each of {n_features} features")
    return np.array(values, dtype=bool)
