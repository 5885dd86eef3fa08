"""What one pass over a log in parts finds before anything is fitted: how much there is, and an even sample of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from onlooker.base.errors import InputError
from onlooker.base.numerics import absolute_largest
from onlooker.base.types import Features, Ids, Index, Vector
from onlooker.logs.layouts import Layout
from onlooker.logs.log import BanditLog
from onlooker.logs.partial import Marks, marks_of
from onlooker.logs.parts import Parts
from onlooker.logs.ragged import in_slate, whole_slates

_MOVED_ROWS = 1 << 14
"""Rows that are moved at a time when the sample is thinned."""


class EvenSample:
    """Every `stride`-th round of a log that comes in parts; the stride doubles whenever they would take too much room.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.arange(16.0).reshape(8, 2, 1), chosen=[0] * 8)
    >>> sample = EvenSample(n_bytes=64)
    >>> sample.add(log[:5], 0)
    >>> sample.add(log[5:], 5)
    >>> sample.stride, sample.log().features[::2, 0]
    (2, array([ 0.,  4.,  8., 12.]))
    """

    def __init__(self, n_bytes: int, stride: int = 1) -> None:
        self.stride = stride
        """Distance between the rounds that are kept."""
        self._n_bytes = n_bytes
        self._rows: Features = np.empty((0, 1))
        self._layouts: list[Layout] = []
        """The rows where they are not dense."""
        self._sizes: list[Index] = []
        self._chosen: list[Index] = []
        self._marks: list[Marks] = []
        self._chances: list[Vector] = []
        """Marks and offer probabilities of the rows."""
        self._in_part = [False, False]
        """Whether picks are known to sets, and offers are a sample."""
        self._n_rows = 0
        self._like: BanditLog | None = None

    def add(self, rounds: BanditLog, first: int, stride: int = 1) -> None:
        """Take the rounds `first`, `first + stride` and so on of the log, `first` a multiple of the stride."""
        self._like = rounds[:0] if self._like is None else self._like
        taken = self._taken(rounds, first, stride)
        while not self._fits(taken):
            self._thin()
            taken = self._taken(rounds, first, stride)
        stop = self._n_rows + len(taken.features)
        if isinstance(taken.features, Layout):
            self._layouts.append(taken.features)
        else:
            self._rows[self._n_rows : stop] = taken.features
        self._n_rows = stop
        self._sizes.append(taken.n_arms)
        self._chosen.append(taken.chosen_or_unknown)
        self._marks.append(marks_of(taken.chosen, taken.offsets) if taken.possible is None else taken.possible)
        chances = taken.offer_probability
        self._chances.append(np.ones(len(taken.features)) if chances is None else chances)
        self._in_part = [self._in_part[0] or taken.possible is not None, self._in_part[1] or chances is not None]

    def log(self) -> BanditLog:
        """What was kept, without ids; it shares the sample's memory."""
        assert self._like is not None
        sets, sampled = self._in_part
        return BanditLog(
            self._joined() if self._layouts else self._rows[: self._n_rows],
            np.concatenate([[0], *map(np.asarray, self._sizes)]).cumsum(),
            np.concatenate(self._chosen),
            feature_names=self._like.feature_names,
            categories=self._like.categories,
            possible=np.concatenate(self._marks) if sets else None,
            offer_probability=np.concatenate(self._chances) if sampled else None,
        )

    def _joined(self) -> Layout:
        """All rows in one piece, which is kept in the place of the pieces."""
        self._layouts = [type(self._layouts[0]).concat(self._layouts)]
        return self._layouts[0]

    def _taken(self, rounds: BanditLog, first: int, stride: int) -> BanditLog:
        apart = self.stride // stride
        return rounds if apart == 1 else rounds[(-(first // stride)) % apart :: apart]

    def _fits(self, taken: BanditLog) -> bool:
        """Whether the rounds fit in; room is made for them where thinning cannot."""
        if isinstance(taken.features, Layout):
            held = sum(one.nbytes for one in self._layouts) + taken.nbytes
            return held <= self._n_bytes or sum(map(len, self._sizes)) + taken.n_rounds <= 1
        dtype = np.result_type(self._rows, taken.features) if self._n_rows else taken.features.dtype
        room = max(1, self._n_bytes // (taken.n_features * dtype.itemsize))
        kept = sum(map(len, self._sizes)) + taken.n_rounds
        needed = self._n_rows + len(taken.features)
        if needed > room and kept > 1:
            return False
        if needed > len(self._rows) or dtype != self._rows.dtype:
            # Memory that is never written to is never taken.
            rows: Features = np.empty((max(room, needed), taken.n_features), dtype=dtype)
            rows[: self._n_rows] = self._rows[: self._n_rows]
            self._rows = rows
        return True

    def _thin(self) -> None:
        """Keep every second round, in place."""
        self.stride *= 2
        if not self._sizes:
            return
        sizes, chosen = np.concatenate(self._sizes), np.concatenate(self._chosen)
        offsets = np.concatenate([[0], sizes.cumsum()])
        starts, sizes = offsets[:-1][::2], sizes[::2]
        ends = np.concatenate([[0], sizes.cumsum()])
        source = np.repeat(starts - ends[:-1], sizes) + np.arange(ends[-1])
        if self._layouts:
            self._layouts = [self._joined()[source]]
        for begin in range(0, 0 if self._layouts else len(source), _MOVED_ROWS):
            rows = source[begin : begin + _MOVED_ROWS]
            self._rows[begin : begin + len(rows)] = self._rows[rows]
        self._marks, self._chances = [np.concatenate(self._marks)[source]], [np.concatenate(self._chances)[source]]
        self._n_rows = len(source)
        self._sizes, self._chosen = [sizes], [chosen[::2]]


SAMPLE_BYTES = 1 << 27
"""Memory that the features of a sample may take by default."""


@runtime_checkable
class Limited(Protocol):
    """Parts that say how much of them may be gathered in memory."""

    @property
    def sample_bytes(self) -> int:
        """Memory that the features of a sample may take."""


@runtime_checkable
class Distant(Protocol):
    """Parts that can be counted sooner than sent."""

    def stride_for(self, n_bytes: int) -> int:
        """How far apart rounds must be to take no more than `n_bytes`: a power of 2."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How much some rounds hold."""

    n_rounds: int
    """All of them."""
    n_choices: int
    """Those that offer two arms or more, and reveal something of the pick."""
    log_arms: float
    """Sum over the rounds of the logarithm of how many arms they offer, for every one that may be the pick."""
    slated: bool = False
    """Whether some of them are positions of one slate."""
    n_vague: int = 0
    """Those that offer two arms or more, each of which may be the pick."""
    n_sets: int = 0
    """Those of which only a set is known that holds the pick."""
    has_sets: bool = False
    """Whether picks are given by sets, even if each has one arm."""

    @classmethod
    def of(cls, log: BanditLog) -> Counts:
        """Count the rounds of a log."""
        sizes, informative = log.n_arms, log.informative
        arms = np.log(sizes)
        if log.partial and log.n_rounds:
            stand_for = np.ones(len(log.features)) if log.offer_probability is None else 1 / log.offer_probability
            arms = np.log(np.add.reduceat(stand_for, log.offsets[:-1]) / log.of_picks(stand_for))
        return cls(
            n_rounds=log.n_rounds,
            n_choices=int(np.count_nonzero(informative)),
            log_arms=float(arms.sum()),
            slated=bool(in_slate(log.round_ids, sizes).any()),
            n_vague=int(np.count_nonzero((sizes > 1) & ~informative)),
            n_sets=log.n_sets,
            has_sets=log.possible is not None,
        )

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            n_rounds=self.n_rounds + other.n_rounds,
            n_choices=self.n_choices + other.n_choices,
            log_arms=self.log_arms + other.log_arms,
            slated=self.slated or other.slated,
            n_vague=self.n_vague + other.n_vague,
            n_sets=self.n_sets + other.n_sets,
            has_sets=self.has_sets or other.has_sets,
        )


@dataclass(frozen=True)
class TakeIds:
    """Round ids of a part, and how many arms its rounds offer."""

    def __call__(self, part: BanditLog, first: int) -> tuple[Ids | None, Index]:  # noqa: ARG002  the protocol's shape
        """Return both."""
        return part.round_ids, part.n_arms


@dataclass(frozen=True)
class CountRounds:
    """Count the rounds of a part."""

    def __call__(self, part: BanditLog, first: int) -> Counts:  # noqa: ARG002  the protocol's shape
        """Count the rounds."""
        return Counts.of(part)


@dataclass(frozen=True, eq=False)
class PartSurvey:
    """What a part holds."""

    counts: Counts
    """How much."""
    largest: Vector
    """Largest absolute value of each feature, shape (d,)."""
    dtype: np.dtype[Any]
    """Of the features."""
    sampled: BanditLog
    """Its rounds whose number is a multiple of the stride."""
    sampled_first: int
    """Number of the first of them."""


def _largest(rows: Features | Layout) -> Vector:
    """Largest absolute value of every feature."""
    if isinstance(rows, Layout):
        return rows.absolute_largest()
    return absolute_largest(rows).astype(np.float64)


@dataclass(frozen=True)
class SurveyPart:
    """Summarise a part, and take every `stride`-th round of the log."""

    stride: int = 1

    def __call__(self, part: BanditLog, first: int) -> PartSurvey:
        """Summarise the part that begins at round `first`."""
        skipped = -first % self.stride
        taken = part if self.stride == 1 else part[skipped :: self.stride]
        return PartSurvey(
            counts=Counts.of(part),
            largest=_largest(part.features),
            dtype=part.features.dtype,
            sampled=taken,
            sampled_first=first + skipped,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class PartsSummary:
    """What a log in parts holds."""

    firsts: Index
    """First round of every part, and the number of rounds at the end; shape (parts + 1,)."""
    counts: tuple[Counts, ...]
    """Of every part."""
    largest: Vector
    """Largest absolute value of each feature, shape (d,)."""
    dtype: np.dtype[Any]
    """Of the features."""
    sample: BanditLog
    """Every `stride`-th round, without ids."""
    stride: int
    """1 where the sample is all of the log."""

    @property
    def n_rounds(self) -> int:
        """Number of rounds, N."""
        return int(self.firsts[-1])

    def after(self, parts: Parts, start: int) -> Counts:
        """How much the rounds from `start` on hold; only the part that `start` cuts is read again."""
        place = int(np.searchsorted(self.firsts, start))
        whole = self.counts[place:]
        cut = () if self.firsts[place] == start else parts.run(CountRounds(), start, int(self.firsts[place]))
        return sum([*cut, *whole], start=Counts(n_rounds=0, n_choices=0, log_arms=0.0))

    def behind_slate(self, parts: Parts, start: int) -> int:
        """The same round, or the one behind the slate that `start` would cut; only its part is read again."""
        place = int(np.searchsorted(self.firsts, start))
        if self.firsts[place] == start or not self.counts[place - 1].slated:
            return start
        first = int(self.firsts[place - 1])
        ids, n_arms = next(iter(parts.run(TakeIds(), first, int(self.firsts[place]))))
        return first + int(whole_slates(ids, n_arms, np.array([start - first]))[0])

    def sample_after(self, start: int) -> BanditLog:
        """The rounds of the sample from round `start` of the log on."""
        return self.sample.suffix(min(self.sample.n_rounds, -(-start // self.stride)))


def summarise_parts(parts: Parts, n_bytes: int = SAMPLE_BYTES, stride: int = 1) -> PartsSummary:
    """Scan all parts once; the sample's features take at most `n_bytes`, or as much as the parts themselves say.

    A `stride` of more than 1, a power of 2, spares sending rounds that the sample would drop again.
    """
    if isinstance(parts, Limited):
        n_bytes = parts.sample_bytes
    if isinstance(parts, Distant):
        stride = parts.stride_for(n_bytes)
    sample = EvenSample(n_bytes, stride)
    counts: list[Counts] = []
    largest, dtype = np.zeros(parts.n_features), np.dtype(np.float32)
    for part in parts.run(SurveyPart(stride)):
        if part.sampled.n_rounds:
            sample.add(part.sampled, part.sampled_first, stride)
        counts.append(part.counts)
        largest, dtype = np.maximum(largest, part.largest), np.result_type(dtype, part.dtype)
    if not counts:
        raise InputError("there are no rounds: nothing was offered")
    return PartsSummary(
        firsts=np.cumsum([0, *(part.n_rounds for part in counts)]),
        counts=tuple(counts),
        largest=largest,
        dtype=dtype,
        sample=sample.log(),
        stride=sample.stride,
    )
