"""Offers as the filter takes them: less their round's mean, in units of their spread; and the time between rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onlooker.base.errors import InputError
from onlooker.base.numerics import absolute_largest
from onlooker.base.types import Features, Matrix, Vector
from onlooker.logs import ragged
from onlooker.logs.layouts import Layout
from onlooker.logs.log import BanditLog, feature_labels

RARE = 1 / 8
"""A unit is at least this part of the feature's size where it differs: a rare one is not taken for a small one."""
LARGEST = 1e6
"""Units beyond which a feature is refused: sums of squares would lose their small digits."""
IN_RANGE = 1e150
"""Units above this, or below its inverse, are refused: their squares would be no proper numbers."""
LONGEST = 100.0
"""Typical gaps that a gap counts for at most."""


def spread_units(log: BanditLog) -> Vector:
    """Spread of each feature within rounds, shape (d,); infinity where it never differs.

    Examples
    --------
    >>> features = np.array([[1.0, 5.0, 7.0], [3.0, 5.0, 7.0], [1.0, 5.0, 7.0], [3.0, 5.5, 7.0]])
    >>> spread_units(BanditLog(features, offsets=[0, 2, 4], chosen=[0, 1]))
    array([1.        , 0.1767767,        inf])
    """
    every = log.features
    most = every.absolute_largest() if isinstance(every, Layout) else absolute_largest(every).astype(np.float64)
    # In powers of two, which change no digit: fourth powers of large or small features would be no proper numbers.
    power = np.ldexp(1.0, np.frexp(most)[1] - 1)
    squares, fourths = np.zeros((2, log.n_features))
    for start, stop in ragged.blocks(log.offsets, log.n_features):
        part = log[start:stop]
        rows, _ = _rows(part.dense, part, power)
        square = np.square(rows, out=rows)
        squares += square.sum(axis=0)
        fourths += np.einsum("ij,ij->j", square, square)
    # What differs in its last digits only was meant to be the same.
    varies = ~(squares <= len(log.features) * (1e-12 * most / power) ** 2)
    units = np.full(log.n_features, np.inf)
    size = np.sqrt(fourths[varies] / squares[varies])
    units[varies] = power[varies] * np.maximum(np.sqrt(squares[varies] / len(log.features)), size * RARE)
    wrong = np.flatnonzero(varies & ~((units >= 1 / IN_RANGE) & (units <= IN_RANGE)))
    if len(wrong):
        name = feature_labels(log.weight_names, log.n_features)[wrong[0]]
        raise InputError(f"feature {name!r} reaches {most[wrong[0]]:.3g}: rescale it to values nearer to 1")
    return units


def rows_in_units(log: BanditLog, units: Vector) -> tuple[Matrix, Matrix, Vector]:
    """The rows of some rounds, shape (rows, d), their picks as the learner saw them, and the units after them.

    A feature without a unit gets one in the first round in which it differs: nothing was learned of it before.
    """
    late, features = np.isinf(units), log.dense
    if late.any():
        units = units.copy()
        columns = np.flatnonzero(late)
        unknown = ragged.as_features(features[:, columns])
        raw, _ = _rows(unknown, log, np.ones(len(columns)))
        floor = 1e-12 * np.abs(unknown).max(axis=0)
        for place, column in enumerate(columns):
            differs = np.flatnonzero(np.abs(raw[:, place]) > floor[place])
            if len(differs):
                first = int(np.searchsorted(log.offsets, differs[0], side="right")) - 1
                units[column] = spread_units(log[first : first + 1])[column]
    rows, picks = _rows(features, log, units)
    if len(rows) and not (absolute_largest(rows) <= LARGEST).all():
        row, column = np.argwhere(~(np.abs(rows) <= LARGEST))[0]
        first = int(np.searchsorted(log.offsets, row, side="right")) - 1
        most = np.abs(log.arms(first)[:, column]).max()
        name = feature_labels(log.weight_names, log.n_features)[column]
        raise InputError(
            f"feature {name!r} reaches {most:.3g}, where it differed by about "
            f"{units[column]:.3g} within rounds before: check that value, or fit again from the first round"
        )
    return rows, picks, units


def _rows(features: Features, log: BanditLog, units: Vector) -> tuple[Matrix, Matrix]:
    from onlooker.kernels.dynamic import fill_rows

    rows, picks = np.empty(features.shape), np.empty((log.n_rounds, features.shape[1]))
    features.setflags(write=False)
    with np.errstate(over="ignore", invalid="ignore"):
        # Of predictions picks are not needed; what follows them asks for them.
        fill_rows(features, log.offsets, np.maximum(log.chosen_or_unknown, 0), units, rows, picks)
    return rows, picks


@dataclass(frozen=True)
class Clock:
    """How far apart rounds are, against how far apart they were so far."""

    last: float | None = None
    """Time of the last round; None where no times are given."""
    elapsed: float = 0.0
    """From the first round to the last."""
    n_rounds: int = 0

    def gaps(self, n_rounds: int, times: Vector | None) -> tuple[Vector, Clock]:
        """Time before each of the next rounds in typical gaps, and the clock after them.

        Examples
        --------
        >>> gaps, clock = Clock().gaps(4, np.array([10.0, 12.0, 13.0, 19.0]))
        >>> gaps.round(3), clock.elapsed
        (array([1.   , 1.   , 0.667, 2.   ]), 9.0)
        """
        if self.n_rounds and n_rounds and (times is None) != (self.last is None):
            given, missing = ("those before", "these") if times is None else ("these", "those before")
            raise InputError(
                f"{given} rounds have times and {missing} have none: pass times for all rounds or for none"
            )
        if times is None or not n_rounds:
            return np.ones(n_rounds), Clock(self.last, self.elapsed, self.n_rounds + n_rounds)
        steps = np.diff(times, prepend=times[0] if self.last is None else self.last)
        if (steps < 0).any():
            place = int(np.flatnonzero(steps < 0)[0])
            raise InputError(f"times go back at round {self.n_rounds + place}: sort the rounds by time")
        # One after the other, so that parts add up to exactly what the whole does.
        elapsed = np.add.accumulate(np.concatenate([[self.elapsed], steps]))[1:]
        counted = np.maximum(self.n_rounds + np.arange(n_rounds), 1)
        gaps = np.ones(n_rounds)
        np.divide(steps * counted, elapsed, out=gaps, where=elapsed > 0)
        if not self.n_rounds:
            gaps[0] = 1.0
        return np.minimum(gaps, LONGEST), Clock(float(times[-1]), float(elapsed[-1]), self.n_rounds + n_rounds)


def as_times(times: Any, log: BanditLog) -> Vector | None:
    """Times of a log's rounds as numbers, shape (N,): those that were passed, else the log's own, else None."""
    if times is None:
        times = log.times
        if times is None or times.dtype.kind not in "iufM":
            # Rounds ordered by text have an order and no gaps.
            return None
    values = np.asarray(times)
    if values.dtype.kind == "M":
        values = values.astype("datetime64[us]").astype(np.int64) / 1e6
    try:
        values = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("times hold neither numbers nor dates: pass one per round") from error
    if values.shape != (log.n_rounds,):
        raise InputError(f"times have shape {values.shape}: pass one for each of the {log.n_rounds} rounds")
    if not np.isfinite(values).all():
        raise InputError(f"the time of round {np.flatnonzero(~np.isfinite(values))[0]} is missing: fill it in")
    return values
