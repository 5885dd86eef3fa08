"""What one pass over a log in parts finds before anything is fitted: how much there is, and an even sample of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from onlooker.errors import InputError
from onlooker.even_sample import EvenSample
from onlooker.log import BanditLog
from onlooker.memory_limit import check_work
from onlooker.parts import Parts
from onlooker.types import Index, Vector

SAMPLE_BYTES = 1 << 27
"""Memory that the features of a sample may take unless said otherwise."""


@runtime_checkable
class Limited(Protocol):
    """Parts that say how much of them may be gathered in memory."""

    @property
    def sample_bytes(self) -> int:
        """Memory that the features of a sample may take."""


@runtime_checkable
class Bounded(Protocol):
    """Parts that are worked on under a limit."""

    @property
    def memory_limit(self) -> int | None:
        """Peak memory in bytes that working on them may take, or None."""


def check_room(log: BanditLog | Parts, matrices: int) -> None:
    """Refuse a log of so many features that the work on it would break the limit; see `check_work`.

    Examples
    --------
    >>> check_room(BanditLog.from_dense(np.zeros((3, 2, 1)), chosen=[0, 1, 0]), matrices=20)
    """
    if isinstance(log, BanditLog):
        check_work(log.n_features, matrices, held=8 * log.features.size)
    elif isinstance(log, Bounded):
        check_work(log.n_features, matrices, limit=log.memory_limit)


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
    """Those that offer two arms or more."""
    log_arms: float
    """Sum over the rounds of the logarithm of how many arms they offer."""

    @classmethod
    def of(cls, log: BanditLog) -> Counts:
        """Count the rounds of a log."""
        sizes = log.n_arms
        return cls(
            n_rounds=log.n_rounds,
            n_choices=int(np.count_nonzero(sizes > 1)),
            log_arms=float(np.log(sizes).sum()),
        )

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            n_rounds=self.n_rounds + other.n_rounds,
            n_choices=self.n_choices + other.n_choices,
            log_arms=self.log_arms + other.log_arms,
        )


@dataclass(frozen=True)
class CountRounds:
    """Count the rounds of a part."""

    def __call__(self, part: BanditLog, first: int) -> Counts:  # noqa: ARG002  the protocol's shape
        """Count them."""
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


@dataclass(frozen=True)
class SurveyPart:
    """Survey a part, and take every `stride`-th round of the log."""

    stride: int = 1

    def __call__(self, part: BanditLog, first: int) -> PartSurvey:
        """Survey the part that begins at round `first`."""
        skipped = -first % self.stride
        taken = part if self.stride == 1 else part[skipped :: self.stride]
        return PartSurvey(
            counts=Counts.of(part),
            largest=np.maximum(part.dense.max(axis=0), -part.dense.min(axis=0)).astype(np.float64),
            dtype=part.features.dtype,
            sampled=taken,
            sampled_first=first + skipped,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Survey:
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
        """How much the rounds from `start` on hold; only the part that `start` cuts is looked at again."""
        place = int(np.searchsorted(self.firsts, start))
        whole = self.counts[place:]
        cut = () if self.firsts[place] == start else parts.run(CountRounds(), start, int(self.firsts[place]))
        return sum([*cut, *whole], start=Counts(n_rounds=0, n_choices=0, log_arms=0.0))

    def sample_after(self, start: int) -> BanditLog:
        """The rounds of the sample from round `start` of the log on."""
        return self.sample.suffix(min(self.sample.n_rounds, -(-start // self.stride)))


def survey(parts: Parts, n_bytes: int = SAMPLE_BYTES, stride: int = 1) -> Survey:
    """Go over all parts once; the sample's features take at most `n_bytes`, or as much as the parts themselves say.

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
    return Survey(
        firsts=np.cumsum([0, *(part.n_rounds for part in counts)]),
        counts=tuple(counts),
        largest=largest,
        dtype=dtype,
        sample=sample.log(),
        stride=sample.stride,
    )
