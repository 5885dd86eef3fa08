"""Members of the bank: what each assumes of the weights, the rounds as it takes them, and how it moves on.

Steps are measured by the variance that they add to the score of a typical arm, so that one bank serves any number of
features in any units. Nothing is tuned to a log: all members follow it side by side, and each counts by how well it
predicted the picks so far, one step ahead. Each member was kept because some learner is predicted better with it than
without (`benchmarks/outside_learners.py`). Offers are taken less their round's mean, in units of their spread.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.base.errors import InputError
from onlooker.base.numerics import absolute_largest
from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.logs import ragged
from onlooker.logs.layouts import Layout
from onlooker.logs.log import BanditLog, feature_labels

if TYPE_CHECKING:
    from onlooker.kernels.dynamic import Law, Member, Record

PRIOR = 1.0
"""Variance of a typical arm's score before the first pick. Logs of 1,000 rounds hardly notice it."""
RANDOM = (-2.5, 2.0)
"""Mean and variance of the logit of the share of random picks before the first: about 8%, between 0.5% and 57%."""
NEVER = (-8.0, 1e-8)
"""The same where no picks are random."""
FULL = 64
"""Up to so many features their covariances are followed, beyond them only their variances: d against d^2 an arm.

With variances alone, direction errors on LinTS with 50 features are 1.2 times as large, and the 46 items of Open Bandit
are predicted worse; 50 features take 1.7 times as long with covariances."""
AVERAGES, GROWS, DRIFTS = 2, 3, 6
"""Places in the bank, where covariances are followed: of ridge regression, of what grows, of what drifts."""
SETTLES = frozenset({0, 1, 2})
"""Places of laws whose weights settle and do not grow."""
RARE = 1 / 8
"""A unit is at least this part of the feature's size where it differs: a rare one is not taken for a small one."""
FAR, FAINT = 100.0, 1e-9
"""Values that differ by more than so many times the median do not set a unit, or one of them would hide all others;
unless the median itself is next to nothing beside the largest, as what rounding leaves of values that are the same."""
LARGEST = 1e6
"""Units beyond which a feature is refused: sums of squares would lose their small digits."""
IN_RANGE = 1e150
"""Units above this, or below its inverse, are refused: their squares would be no proper numbers."""
LONGEST = 100.0
"""Typical gaps that a gap counts for at most."""


@cache
def bank(n_features: int) -> tuple[Law, ...]:
    """All laws of motion; the first is that nothing moves, which those that revert need.

    Examples
    --------
    >>> len(bank(10)), len(bank(100)), bank(10)[0].every
    (9, 9, 0.0)
    """
    from onlooker.kernels.dynamic import Law

    still = Law(every=0.0, pick=0.0, surprise=0.0, shrinks=0.0, averages=0.0, reverts=0.0, grows=0.0, random=1.0)
    if n_features <= FULL:
        settling = (
            # Ridge regression whose picks stay random, as softmax picks do; and a fixed policy that decides clearly,
            # which the first law takes long to reach from what it believes at first.
            still._replace(pick=2.0, shrinks=1.0, averages=1.0),
            # Learners that explore less and less, as Thompson sampling: the direction settles, the weights grow.
            still._replace(pick=0.01, shrinks=1.0, grows=0.35),
        )
    else:
        # Without covariances a mean lags behind, and only steps that go on let it catch up.
        settling = (still._replace(pick=0.03, shrinks=1.0), still._replace(pick=1.0, shrinks=1.0))
    return (
        still,
        # Ridge regression whose picks are nearly certain.
        still._replace(pick=3000.0, averages=1.0),
        *settling,
        # Gradient steps that never end, and importance-weighted ones, which jump after an improbable pick.
        still._replace(pick=0.1),
        still._replace(pick=0.01, surprise=3.0),
        # Anything that drifts; and what strays from a level and comes back, slowly or fast.
        still._replace(every=0.003),
        still._replace(every=0.01, reverts=0.003, random=0.0),
        still._replace(every=0.003, reverts=0.003),
    )


def scaled(law: Law, factor: float) -> Law:
    """The same law with steps whose variance is `factor` times as large."""
    return law._replace(every=factor * law.every, pick=factor * law.pick, surprise=factor * law.surprise)


@dataclass(frozen=True, eq=False)
class Block:
    """Some rounds as the filter takes them."""

    rows: Matrix
    picks: Matrix
    """As the learner saw them, shape (n, d)."""
    offsets: Index
    chosen: Index
    gaps: Vector
    first: int
    """Number of the first round in the log."""


def fresh_member(n_features: int, law: Law) -> Member:
    """What is believed before the first round."""
    from onlooker.kernels.dynamic import AGE, Member

    logit, variance = RANDOM if law.random else NEVER
    diagonal = np.append(np.full(n_features, PRIOR / n_features), variance)
    spread = np.diag(diagonal) if n_features <= FULL else diagonal
    known = n_features if law.averages else 0
    inverse = np.eye(known) / AGE if n_features <= FULL else np.full(known, 1 / AGE)
    return Member(np.append(np.zeros(n_features), logit), spread, np.zeros(n_features + 1), inverse)


def copied(member: Member) -> Member:
    """One that can be moved on without moving this one."""
    return type(member)(*(value.copy() for value in member))


def no_record(d: int) -> Record:
    """To record nothing."""
    from onlooker.kernels.dynamic import Record

    means = np.zeros((0, d + 1))
    spreads = np.zeros((0, d + 1, d + 1)) if d <= FULL else means
    return Record(means, spreads, means, spreads)


def run(
    law: Law,
    member: Member,
    block: Block,
    anchors: Matrix,
    record: Record,
    arms: Vector,
    logs: Vector,
    sites: tuple[Matrix, Vector] | None = None,
) -> None:
    """Move one member on through some rounds; `sites` has what their choice models are approximated at, if known."""
    from onlooker.kernels.dynamic import follow

    near = anchors if len(anchors) else member.mean[None].copy()
    rounds = block.rows, block.picks, block.offsets, block.chosen, block.gaps, block.first
    middles, flats = (np.empty((0, len(member.mean))), np.empty(0)) if sites is None else sites
    follow(*rounds, law, member, near, record, middles, flats, arms, logs)


def step(law: Law, member: Member, round_number: int, anchor: Vector) -> None:
    """Let the weights of one member move by a typical gap."""
    from onlooker.kernels.dynamic import step as move

    if round_number:
        move(law, round_number, 1.0, anchor, member, member.spread)


def check_member(member: Member) -> None:
    """Refuse what no filter can have found."""
    for matrix in (member.spread, member.inverse):
        values = np.linalg.eigvalsh(matrix) if matrix.ndim == 2 else np.sort(matrix)
        if len(values) and values[0] < -1e-9 * abs(values[-1]):
            raise ValueError("a variance is negative")


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
        middle = np.median(np.abs(rows), axis=0)
        limit = np.where(middle > FAINT * most / power, FAR * middle, np.inf)
        square = np.square(np.clip(rows, -limit, limit, out=rows), out=rows)
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
