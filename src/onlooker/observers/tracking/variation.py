"""Units in which features are of about one size: of those that vary from the start, and of those that do so later."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.checks import as_number
from onlooker.base.numerics import UNIDENTIFIED, Curvature, absolute_largest, chi_square_p
from onlooker.base.types import Features, Matrix, Vector
from onlooker.logs import ragged
from onlooker.logs.layouts import Layout, divided
from onlooker.logs.log import BanditLog, finite_log


def within_rounds(log: BanditLog) -> tuple[Vector, Matrix]:
    """Picked features less their round's mean, summed; and the features' covariance within a round, summed."""
    score, information = np.zeros(log.n_features), np.zeros((log.n_features, log.n_features))
    for rows, shares, part in _differences(log, shared=True):
        score += rows[part.chosen_rows].sum(axis=0)
        information += shares.T @ rows
    return score, information


def _differences(log: BanditLog, *, shared: bool = False) -> Iterator[tuple[Matrix, Matrix, BanditLog]]:
    """Features less their round's mean, if `shared` the same by the number of arms, and their rounds, some at a time.

    Arrays are used again for the next ones.
    """
    from onlooker.kernels.differences import fill_differences

    room = np.empty((1 + shared, 0, log.n_features))
    for start, stop in ragged.blocks(log.offsets, log.n_features):
        part = log[start:stop]
        size = len(part.features)
        if size > room.shape[1]:
            room = np.empty((1 + shared, size, log.n_features))
        rows, shares = room[0, :size], room[1, :size] if shared else room[0, :0]
        features = part.dense
        features.setflags(write=False)
        fill_differences(features, part.offsets, rows, shares)
        yield rows, shares, part


def uniform_p_value(score: Vector, information: Matrix) -> float:
    """Chance of picks as one-sided as these if every arm were as likely: the score test of a softmax policy at zero.

    Examples
    --------
    >>> from onlooker import Environment, LinUCB, UniformRandom, simulate
    >>> logs = [simulate(Environment(5, 20), who, 500).log for who in (LinUCB(), UniformRandom())]
    >>> [uniform_p_value(*within_rounds(log)) < 0.01 for log in logs]
    [True, False]
    """
    found = _curvature(information, UNIDENTIFIED)
    return chi_square_p(found.square(score), found.rank)


def unidentified(information: Matrix, flat: float = UNIDENTIFIED) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which features never vary within a round, and which only together with others, each of shape (d,).

    Directions count as not varying up to the fraction `flat`.

    Examples
    --------
    >>> constant, tangled = unidentified(np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]))
    >>> constant.tolist(), tangled.tolist()
    ([True, False, False], [False, True, True])
    """
    found = _curvature(information, flat)
    return found.constant, found.tangled


def _curvature(information: Matrix, flat: float) -> Curvature:
    """A feature whose spread is below the last digits of the largest one's does not vary."""
    return Curvature.of(information, flat=flat, noise=1e-24 * np.diag(information).max(initial=0.0))


CLEAR = 1e-4
"""A feature is done with once no direction that it is part of varies by less than this fraction of its features.

Far above `inverses.UNIDENTIFIED`, below which a direction counts as not identified: ten thousand times as many rounds
that do not identify the features separately would not change that.
"""


@dataclass(eq=False)
class Identification:
    """What is known of which weights are identified.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(100, 4, 3))
    >>> rows[:90, :, 2] = 7.0
    >>> log, found = BanditLog.from_dense(rows, np.zeros(100, dtype=int)), Identification.start(3)
    >>> found.take_in(log[:90])
    >>> found.flags()[0].tolist(), found.open.tolist()
    ([False, False, True], [False, False, True])
    >>> found.take_in(log[90:])
    >>> found.flags()[0].tolist()
    [False, False, False]
    """

    information: Matrix
    """Variation of the features within the rounds, shape (d, d); of those not open any more, until they were done."""
    open: NDArray[np.bool_]
    """Features that are still looked at, shape (d,)."""
    n_rounds: int = 0
    """Rounds taken in."""

    @classmethod
    def start(cls, n_features: int) -> Identification:
        """Before the first round."""
        return cls(np.zeros((n_features, n_features)), np.ones(n_features, dtype=bool))

    @classmethod
    def resume(cls, information: Matrix, n_rounds: int) -> Identification:
        """From variation that was added up for all features alike."""
        found = cls(information, np.ones(len(information), dtype=bool), n_rounds)
        found._close()
        return found

    def take_in(self, log: BanditLog) -> None:
        """Add the next rounds; parts of a log, one after the other, give the same as the whole."""
        from onlooker.kernels.differences import add_differences

        done = 0
        while done < log.n_rounds and self.open.any():
            # Which features are done is asked at powers of two, whatever the parts are.
            ahead = (1 << self.n_rounds.bit_length()) - self.n_rounds
            part = log[done : done + ahead]
            for rows in _blocks(part):
                add_differences(rows.dense, rows.offsets, np.flatnonzero(self.open), self.information)
            self.n_rounds += part.n_rounds
            done += part.n_rounds
            if self.n_rounds.bit_count() == 1:
                self._close()
        self.n_rounds += log.n_rounds - done

    def grow(self, count: int) -> None:
        """Have so many features more, which did not vary so far."""
        self.information = np.pad(self.information, (0, count))
        self.open = np.append(self.open, np.ones(count, dtype=bool))

    def flags(self, redundant: Matrix | None = None) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which features never varied within a round, and which only together with others, each of shape (d,).

        `redundant` projects on directions that no pick depends on by design: that they do not vary says nothing.
        """
        constant, tangled = np.zeros((2, len(self.open)), dtype=bool)
        if self.open.any():
            information = self._open_part()
            if redundant is not None:
                roots = np.sqrt(np.diag(information))
                information = information + redundant[np.ix_(self.open, self.open)] * np.outer(roots, roots)
            constant[self.open], tangled[self.open] = unidentified(information)
        return constant, tangled

    def _open_part(self) -> Matrix:
        return self.information[np.ix_(self.open, self.open)]

    def _close(self) -> None:
        constant, tangled = unidentified(self._open_part(), CLEAR)
        self.open[self.open] = constant | tangled


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
        rounds, done = np.full(len(places), log.n_rounds), 0
        for part in _blocks(log):
            later, found = rounds == log.n_rounds, np.empty(len(places), dtype=np.int64)
            first_varying(part.dense, part.offsets, places, found)
            rounds[later & (found < part.n_rounds)] = done + found[later & (found < part.n_rounds)]
            done += part.n_rounds
        for place in np.argsort(rounds, kind="stable").tolist():
            if rounds[place] < log.n_rounds:
                yield int(rounds[place]), int(places[place])


def _blocks(log: BanditLog) -> Iterator[BanditLog]:
    """Some rounds at a time where an array has to be made of them; else all of them."""
    if isinstance(log.features, Layout):
        for start, stop in ragged.blocks(log.offsets, log.n_features):
            yield log[start:stop]
    else:
        yield log


def own_units(log: BanditLog, length: float | None = None) -> tuple[Vector | None, Sizes]:
    """Units in which features are of about one size, and arms of such a length; None takes the features as they are.

    Without a length, units are powers of two in which arms are of length one if features differ much in size, else
    None. A feature that does not vary has a unit of 1.

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
    if length is None and found.max() <= UNEQUAL * found.min():
        return None, Sizes(float(found.min()), float(found.max()), known)
    units = np.ones(log.n_features)
    # Of normal differences, the size is the deviation times the root of 3.
    units[known] = found * np.sqrt(len(found) / 3) / (length or 1.0)
    if length is None:
        units[known] = 2.0 ** np.round(np.log2(units[known]))
    found = found / units[known]
    return units, Sizes(float(found.min()), float(found.max()), known)


def in_own_units(log: BanditLog, length: float | None = None) -> tuple[BanditLog, Vector | None, Sizes]:
    """The log with its features in such units, and what these are."""
    units, sizes = own_units(log, length)
    if units is not None:
        log = finite_log(divided(log.features, units), log.offsets, log.chosen)
    return log, units, sizes


def feature_sizes(log: BanditLog) -> Vector:
    """Size of each feature, that of its differences within a round where it differs: a rare one is not small.

    0 for a feature that does not vary within any round.
    """
    squares, fourths, most = np.zeros((3, log.n_features))
    for rows, _, part in _differences(log):
        most = np.maximum(most, absolute_largest(part.dense))
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
