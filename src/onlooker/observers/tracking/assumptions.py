"""What is assumed of a learner before its picks are looked at: how it explores and learns, and from which features.

Where weights per arm are logged with the block of one arm left out, the learner may have had a block for every arm.
Picks depend on differences between arms alone, so that both codings hold the same policies. A learner with a ridge is
not the same in both: without its block the reference arm's value is known to be 0 from the first round on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onlooker.base.checks import as_number, as_whole
from onlooker.base.types import Features, Index, Matrix
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog, finite_log

if TYPE_CHECKING:
    from onlooker.kernels.margins import Model

LARGEST = 1e9
"""Constants beyond this, or below its inverse, are refused."""


@dataclass(frozen=True)
class UCB:
    """Optimism: the best of `<x, theta> + alpha sqrt(x' V^-1 x)` is picked.

    Examples
    --------
    A LinUCB with `alpha=0.1` whose rewards have noise 0.1:

    >>> UCB(0.1 / 0.1)
    UCB(alpha=1.0)
    """

    name: ClassVar[str] = "UCB"
    words: ClassVar[str] = "optimism (upper confidence bounds)"
    constant: ClassVar[str] = "alpha"
    unit: ClassVar[str] = " times the reward noise"

    alpha: float
    """Width of the bonus, in units of the reward noise."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", as_number(self.alpha, "alpha", least=0.0, most=LARGEST))

    @property
    def strength(self) -> float:
        """Its constant."""
        return self.alpha


@dataclass(frozen=True)
class TS:
    """Thompson sampling: the best for a parameter drawn from `N(theta, nu V^-1)` is picked.

    Examples
    --------
    A LinTS with `nu=0.2` whose rewards have noise 0.1:

    >>> round(TS(0.2 / 0.1**2).nu, 6)
    20.0
    """

    name: ClassVar[str] = "TS"
    words: ClassVar[str] = "Thompson sampling"
    constant: ClassVar[str] = "nu"
    unit: ClassVar[str] = " times the reward noise squared"

    nu: float
    """Scale of the covariance, in units of the squared reward noise."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "nu", as_number(self.nu, "nu", least=1 / LARGEST, most=LARGEST))

    @property
    def strength(self) -> float:
        """Its constant."""
        return self.nu


@dataclass(frozen=True)
class Lapse:
    """Epsilon-greedy: the best arm is picked, except in a share `epsilon` of the rounds, where any arm is.

    Examples
    --------
    >>> Lapse(0.05)
    Lapse(epsilon=0.05)
    """

    name: ClassVar[str] = "Lapse"
    words: ClassVar[str] = "epsilon-greedy"
    constant: ClassVar[str] = "epsilon"
    unit: ClassVar[str] = ""

    epsilon: float
    """Share of uniform picks."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", as_number(self.epsilon, "epsilon", least=0.0, most=1.0))

    @property
    def strength(self) -> float:
        """Its constant."""
        return self.epsilon


@dataclass(frozen=True)
class Softmax:
    """Arms are picked with probability proportional to `exp(<x, theta> / temperature)`.

    Examples
    --------
    A Boltzmann learner of temperature 0.05 whose rewards have noise 0.1:

    >>> Softmax(0.05 / 0.1)
    Softmax(temperature=0.5)
    """

    name: ClassVar[str] = "Softmax"
    words: ClassVar[str] = "softmax picks (Boltzmann exploration)"
    constant: ClassVar[str] = "temperature"
    unit: ClassVar[str] = " times the reward noise"

    temperature: float
    """In units of the reward noise."""

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "temperature", as_number(self.temperature, "temperature", least=1 / LARGEST, most=LARGEST)
        )

    @property
    def strength(self) -> float:
        """Its constant."""
        return self.temperature


Exploration = UCB | TS | Lapse | Softmax
FAMILIES: dict[str, type[Exploration]] = {one.name: one for one in (UCB, TS, Lapse, Softmax)}
"""The kinds of exploration that are compared, by name."""


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """How the learner explores and learns, and what is thought of the truth before the first pick."""

    exploration: Exploration
    """How picks depart from the best estimate."""
    ridge: float
    """Of the learner: `V = ridge * I + sum of x x'`."""
    precision: float
    """Of every coordinate of theta*, one over its prior variance in units of the reward noise."""
    slip: float
    """Share of uniform picks, where `exploration` is not such a share itself."""
    noise: float = 0.0
    """Deviation of normal noise on every score, as of features that are not in the log; no known learner has any."""
    known: float = 0.0
    """What the learner knew at the log's first round: `V` is this much larger there, in every direction alike."""
    batch: int = 1
    """Rounds after which the learner updates, counted from the log's first."""
    memory: float = 1.0
    """What a round counts for after one more; below 1 for a learner that forgets, which no family does."""
    rate: float = 0.0
    """Of gradient steps, for a learner that makes such instead of keeping `V`; no family does."""
    other: Exploration | None = None
    """How every other pick comes about, at random: two learners that take turns, which no family is."""

    @property
    def lapse(self) -> float:
        """Share of uniform picks."""
        return self.exploration.epsilon if isinstance(self.exploration, Lapse) else self.slip

    def model(self) -> Model:
        """In the terms of the compiled filter."""
        from onlooker.kernels.margins import Model

        return Model(
            width=self.exploration.alpha if isinstance(self.exploration, UCB) else 0.0,
            sampling=self.exploration.nu if isinstance(self.exploration, TS) else 0.0,
            jitter=self.noise**2,
            temperature=self.exploration.temperature
            if isinstance(self.exploration, Softmax) and not self.noise
            else 0.0,
            lapse=self.lapse,
            shrink=0.0 if self.rate else self.ridge - self.precision,
            waits=1.0 if self.batch > 1 else 0.0,
            rate=self.rate,
        )

    def as_of_0_1(self) -> Assumption:
        """The same as release 0.1 took it: a softmax by normal noise of the same variance."""
        if not isinstance(self.exploration, Softmax):
            return self
        return replace(self, noise=math.pi * self.exploration.temperature / math.sqrt(6))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        found = {**asdict(self), "exploration": [self.exploration.name, self.exploration.strength]}
        if self.other is not None:
            found["other"] = [self.other.name, self.other.strength]
        for name, usual in (
            ("noise", 0.0),
            ("known", 0.0),
            ("batch", 1),
            ("memory", 1.0),
            ("rate", 0.0),
            ("other", None),
        ):
            if found[name] == usual:
                del found[name]
        return found

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Assumption:
        """Give back what `to_dict` was made of."""
        name, strength = values["exploration"]
        other = values.get("other")
        return cls(
            exploration=FAMILIES[name](strength),
            other=None if other is None else FAMILIES[other[0]](other[1]),
            ridge=as_number(values["ridge"], "ridge", above=0.0),
            precision=as_number(values["precision"], "precision", above=0.0),
            slip=as_number(values["slip"], "slip", least=0.0, most=1.0),
            noise=as_number(values.get("noise", 0.0), "noise", least=0.0),
            known=as_number(values.get("known", 0.0), "known", least=0.0),
            batch=as_whole(values.get("batch", 1), "batch", least=1),
            memory=as_number(values.get("memory", 1.0), "memory", above=0.0, most=1.0),
            rate=as_number(values.get("rate", 0.0), "rate", least=0.0),
        )


@dataclass(frozen=True, eq=False)
class Reference:
    """Blocks of features, one for each arm but the reference: an arm has the round's context in its own block alone.

    The block of the reference goes before all features.

    Examples
    --------
    >>> rows = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
    >>> log = BanditLog(rows, [0, 3, 6], [0, 1])
    >>> coding = Reference.of(log)
    >>> coding.log(log).dense[:3].tolist()
    [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]
    >>> coding.back(2) @ [5.0, 7.0, 1.0]
    array([ 2., -4.])
    """

    blocks: Index
    """Places of the features, shape (arms, p): those of a column are the same feature of the context."""

    @classmethod
    def of(cls, log: BanditLog) -> Reference | None:
        """The blocks of a log; None if it has none, or a block for every arm."""
        varied, found = _candidates(log)
        if len(found) < 1 or not _has_reference(log, found):
            return None
        blocks = _blocks(log, found)
        # A single block among other features is as well one that only some arms have.
        if blocks is None or (len(blocks) == 1 and len(found) < varied):
            return None
        coding = cls(blocks)
        return coding if all(coding._is_shared(part) for part in _parts(log)) else None

    @property
    def width(self) -> int:
        """Features of a block."""
        return int(self.blocks.shape[1])

    def rows(self, features: Features, offsets: Index) -> Features:
        """The rows with the reference's block; it holds what a row's other blocks lack of the round's context."""
        own, context = self._contexts(features, offsets)
        of_reference = np.subtract(np.repeat(context, np.diff(offsets), axis=0), own)
        found: Features = np.concatenate([of_reference, features], axis=1)
        # As those of logs are: kernels are compiled for either.
        found.setflags(write=False)
        return found

    def log(self, log: BanditLog) -> BanditLog:
        """The log with a block for every arm."""
        return finite_log(self.rows(log.dense, log.offsets), log.offsets, log.chosen)

    def back(self, n_features: int) -> Matrix:
        """Weights with a block for every arm, to those without the reference's; shape (d, p + d)."""
        found = np.hstack([np.zeros((n_features, self.width)), np.eye(n_features)])
        for block in self.blocks:
            found[block, np.arange(self.width)] = -1.0
        return found

    def grown(self, n_features: int, count: int) -> Reference:
        """The same after so many features more: levels of a category, which are arms where blocks are one wide."""
        if self.width > 1:
            return self
        return Reference(np.concatenate([self.blocks, np.arange(n_features, n_features + count)[:, None]]))

    def _contexts(self, features: Features, offsets: Index) -> tuple[Features, Features]:
        """The sum of a row's blocks, and the context of every round: that of its first row with a block, else 0."""
        own = np.zeros((len(features), self.width), dtype=features.dtype)
        for block in self.blocks:
            own += features[:, block]
        places = np.where(own.any(axis=1), np.arange(len(own)), len(own))
        first = np.minimum.reduceat(places, offsets[:-1])
        return own, np.vstack([own, np.zeros_like(own[:1])])[first]

    def _is_shared(self, log: BanditLog) -> bool:
        """Whether a row has all of its round's context in one block, or nothing in any."""
        own, context = self._contexts(log.dense, log.offsets)
        return bool(((own == np.repeat(context, log.n_arms, axis=0)).all(axis=1) | ~own.any(axis=1)).all())

    def to_list(self) -> list[list[int]]:
        """Plain values, for JSON."""
        return [[int(place) for place in block] for block in self.blocks]

    @classmethod
    def from_list(cls, values: Any, n_features: int) -> Reference:
        """Give back what `to_list` was made of."""
        found = np.array(values)
        if found.ndim != 2 or found.dtype.kind != "i" or not found.size or found.min() < 0 or found.max() >= n_features:
            raise ValueError("blocks are not places of features")
        if len(np.unique(found)) != found.size:
            raise ValueError("a feature is in two blocks")
        return cls(found.astype(np.int64))


def in_order(rows: Features, places: Index, n_features: int) -> Features:
    """Rows with their features in the order of the weights, where `places` has them; 0 where the log has none.

    Examples
    --------
    >>> in_order(np.array([[1.0, 2.0]]), np.array([2, 0]), 3).tolist()
    [[2.0, 0.0, 1.0]]
    """
    if np.array_equal(places, np.arange(n_features)):
        return rows
    found = np.zeros((len(rows), n_features), dtype=rows.dtype)
    found[:, places] = rows
    found.setflags(write=False)
    return found


def _parts(log: BanditLog) -> Iterator[BanditLog]:
    for start, stop in ragged.blocks(log.offsets, log.n_features):
        yield log[start:stop]


def _candidates(log: BanditLog) -> tuple[int, Index]:
    """How many features vary within rounds, and which of them have in a round one value besides 0."""
    varies, single = np.zeros(log.n_features, dtype=bool), np.ones(log.n_features, dtype=bool)
    for part in _parts(log):
        rows, starts = part.dense, part.offsets[:-1]
        high, low = np.maximum.reduceat(rows, starts), np.minimum.reduceat(rows, starts)
        varies |= (high != low).any(axis=0)
        value = np.repeat(np.where(high > 0, high, low), part.n_arms, axis=0)
        single &= ((rows == 0) | (rows == value)).all(axis=0)
        if not single.any():
            break
    return int(varies.sum()), np.flatnonzero(varies & single)


def _has_reference(log: BanditLog, found: Index) -> bool:
    """Whether an arm has 0 in all of these features where another one of its round has not."""
    for part in _parts(log):
        some = (part.dense[:, found] != 0).any(axis=1)
        starts = part.offsets[:-1]
        if (np.maximum.reduceat(some, starts) & ~np.minimum.reduceat(some, starts)).any():
            return True
    return False


def _blocks(log: BanditLog, found: Index) -> Index | None:
    """Features that some arm has together, in the order of the features; None if blocks differ in size."""
    from scipy.sparse import csr_array, vstack
    from scipy.sparse.csgraph import connected_components

    rows = [csr_array((part.dense[:, found] != 0).astype(np.int64)) for part in _parts(log)]
    present = vstack(rows)
    count, labels = connected_components(present.T @ present, directed=False)
    sizes: NDArray[np.int64] = np.bincount(labels)
    if (sizes != sizes[0]).any():
        return None
    blocks = found[np.argsort(labels, kind="stable")].reshape(count, -1)
    return blocks[np.argsort(blocks[:, 0])]
