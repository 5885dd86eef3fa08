"""Whether picks prove a family: ahead of its rivals by more than chance, and nothing left that it cannot explain.

Log-probabilities are summed over blocks of rounds, so that a lead has a standard error that does not take one round for
evidence of its own. Blocks are grouped in epochs, each as long as all before it: leads are large while the learner
still learns, and small later, so that blocks are compared with those of their own epoch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onlooker.base.checks import as_whole
from onlooker.base.types import Vector
from onlooker.logs.log import BanditLog

FIRST = 125
"""Rounds of the first epoch."""
SHORTEST, MOST = 5, 128
"""Rounds of the shortest block, and about how many blocks an epoch has at most."""
JOINED = (1, 2, 4, 8, 16)
"""How many blocks are joined to one, the first for which neighbours are uncorrelated."""
FEW = 4
"""An epoch with fewer blocks is taken together with the next."""


SURE = 3.0
"""Most that a block counts for, odds of twenty to one: a few picks that surprise another family prove nothing."""


@dataclass(frozen=True)
class Lead:
    """By how much one forecast is ahead of another in log-probability, and the standard error of that."""

    total: float
    error: float

    @property
    def errors(self) -> float:
        """The lead in standard errors."""
        if self.error > 0.0:
            return self.total / self.error
        return math.copysign(math.inf, self.total) if self.total else 0.0


@dataclass(eq=False)
class Scores:
    """Log-probabilities of picks, one step ahead, summed over blocks of rounds.

    Examples
    --------
    >>> one, other = Scores(), Scores()
    >>> one.add(np.full(1000, -1.0))
    >>> other.add(np.tile([-1.5, -0.9], 500))
    >>> lead = one.lead(other)
    >>> round(lead.total), 1 < lead.error < 10
    (200, True)
    """

    n_rounds: int = 0
    blocks: list[Vector] = field(default_factory=list)
    """One array per epoch; the last block may not be full yet."""

    def add(self, values: Vector) -> None:
        """Take in the next rounds."""
        done = 0
        while done < len(values):
            epoch, start, stop, size = _epoch(self.n_rounds)
            if epoch == len(self.blocks):
                self.blocks.append(np.zeros(-(-(stop - start) // size)))
            count = min(len(values) - done, stop - self.n_rounds)
            places = (np.arange(count) + (self.n_rounds - start)) // size
            # One after the other, so that parts add up to exactly what the whole does.
            np.add.at(self.blocks[epoch], places, values[done : done + count])
            done += count
            self.n_rounds += count

    def copy(self) -> Scores:
        """Another one that knows the same."""
        return Scores(self.n_rounds, [one.copy() for one in self.blocks])

    @property
    def total(self) -> float:
        """Over all rounds."""
        return float(sum(one.sum() for one in self.blocks))

    def lead(self, other: Scores) -> Lead:
        """Over another forecast, in the rounds that both have."""
        n_rounds = min(self.n_rounds, other.n_rounds)
        epochs, total = [], 0.0
        for place, (own, theirs) in enumerate(zip(self.blocks, other.blocks, strict=False)):
            start, stop, size = _epoch_at(place)
            full = max(0, min(stop, n_rounds) - start) // size
            difference = np.minimum(own - theirs, SURE)
            if self.n_rounds != other.n_rounds:
                difference = difference[:full]
            total += float(difference.sum())
            epochs.append(difference[:full])
        return Lead(total, _error(epochs))

    def gained(self, other: Scores) -> Vector:
        """What it is ahead of another forecast in each epoch that both have."""
        pairs = zip(self.blocks, other.blocks, strict=False)
        return np.array([float(np.minimum(own - theirs, SURE).sum()) for own, theirs in pairs])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; floats keep every digit."""
        return {"n_rounds": self.n_rounds, "blocks": [one.tolist() for one in self.blocks]}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Scores:
        """Give back what `to_dict` was made of."""
        found = cls(as_whole(values["n_rounds"], "n_rounds"), [np.array(one, dtype=float) for one in values["blocks"]])
        expected = 0 if not found.n_rounds else _epoch(found.n_rounds - 1)[0] + 1
        if len(found.blocks) != expected or not all(np.isfinite(one).all() for one in found.blocks):
            raise ValueError("scores were kept for other rounds")
        for place, one in enumerate(found.blocks):
            start, stop, size = _epoch_at(place)
            if one.shape != (-(-(stop - start) // size),):
                raise ValueError("scores were kept for other rounds")
        return found


def _epoch_at(place: int) -> tuple[int, int, int]:
    """First round of an epoch, the one after its last, and the length of its blocks."""
    start, stop = (0 if not place else FIRST << (place - 1)), FIRST << place
    return start, stop, max(SHORTEST, (stop - start) // MOST)


def _epoch(n_rounds: int) -> tuple[int, int, int, int]:
    """Number of the epoch of a round, and what `_epoch_at` gives."""
    place = (n_rounds // FIRST).bit_length()
    return place, *_epoch_at(place)


def _error(epochs: list[Vector]) -> float:
    """Standard error of the sum of all blocks.

    From the differences of neighbouring blocks, so that a lead that slowly grows or shrinks is not taken for chance.
    Blocks are uncorrelated if those two apart differ no more than neighbours do.
    """
    error = 0.0
    for joined in JOINED:
        groups = _groups(epochs, joined)
        if not groups:
            break
        near = np.concatenate([np.diff(one) for one in groups])
        far = np.concatenate([one[2:] - one[:-2] for one in groups])
        count = sum(map(len, groups))
        error = math.sqrt(float(near @ near) / 2.0 * count / len(near))
        if not len(far) or far @ far / len(far) <= near @ near / len(near) * (1.0 + 1.64 * math.sqrt(2.0 / len(far))):
            break
    return error


def _groups(epochs: list[Vector], joined: int) -> list[Vector]:
    """Sums of so many neighbouring blocks, by epoch."""
    groups: list[Vector] = []
    short = np.zeros(0)
    for one in epochs:
        whole = len(one) // joined * joined
        sums = np.concatenate([short, one[:whole].reshape(-1, joined).sum(axis=1)])
        if len(sums) < FEW:
            short = sums
            continue
        groups.append(sums)
        short = np.zeros(0)
    if len(short) and groups:
        groups[-1] = np.concatenate([groups[-1], short])
    elif len(short) > 1:
        groups.append(short)
    return groups


POSITIONS = 16
"""Positions within a round that are looked at one by one."""
BINS = 10
"""Of the cumulative probability of the picks."""
OWN = ("sharpness", "best arm", "improbable arms", "last position")
"""Quantities of a forecast itself, in the kernel's order."""


@dataclass(eq=False)
class Residuals:
    """What the picks show beyond the probabilities that a family gave them, one step ahead.

    If the probabilities are right, any quantity that is known before the pick averages over the picks to what they
    predict. Each such quantity gives a standard normal deviate: how sharp the probabilities are, the best arm and the
    improbable ones, what other forecasts say, the position of an arm, each feature, and staying where the last pick
    was. A family is not proved where one of them is far out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> features, even = rng.standard_normal((2000 * 4, 2)), np.full(2000 * 4, 0.25)
    >>> log = BanditLog(features, np.arange(0, 8001, 4), rng.integers(0, 4, 2000))
    >>> found = Residuals.start(2)
    >>> found.add(log, even, {})
    >>> abs(found.worst()[1]) < 4
    True
    >>> pinned, found = BanditLog(features, log.offsets, np.zeros(2000, dtype=int)), Residuals.start(2)
    >>> found.add(pinned, even, {})
    >>> found.deviates()["position"] > 10
    True
    """

    features: Vector
    """Shape (3, d): surplus and variance of each feature, and its covariance with the sharpness."""
    positions: Vector
    """Shape (2, POSITIONS): surplus and variance."""
    shares: Vector
    """Picks by cumulative probability, shape (BINS,)."""
    named: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    """Surplus, variance and covariance with the sharpness of every other quantity."""
    last: int = -1
    """Position of the last pick."""
    n_rounds: int = 0

    @classmethod
    def start(cls, n_features: int) -> Residuals:
        """Nothing seen yet."""
        return cls(np.zeros((3, n_features)), np.zeros((2, POSITIONS)), np.zeros(BINS))

    def grow(self, count: int) -> None:
        """Have so many features more."""
        self.features = np.pad(self.features, ((0, 0), (0, count)))

    def add(self, log: BanditLog, probabilities: Vector, others: Mapping[str, Vector]) -> None:
        """Take in rounds, with the probabilities of all their arms in this forecast and in others."""
        from onlooker.kernels.residuals import add_residuals

        names = [*OWN, *(one for name in others for one in (f"{name}, log", name))]
        sums = np.array([self.named.get(name, (0.0, 0.0, 0.0)) for name in names])
        add_residuals(
            log.dense, log.offsets, log.chosen, np.stack([probabilities, *others.values()]), self.last, self.n_rounds,
            sums, self.positions, self.features, self.shares,
        )  # fmt: skip
        self.named |= {name: (one[0], one[1], one[2]) for name, one in zip(names, sums.tolist(), strict=True)}
        self.last = int(log.chosen[-1])
        self.n_rounds += log.n_rounds

    def deviates(self) -> dict[str, float]:
        """Of every quantity; the largest for positions and features, and one for how probable picks were as a whole.

        How sharp the forecast is follows from constants that earlier rounds tuned, with an error: what goes with it is
        taken off.
        """
        from onlooker.kernels.residuals import MOST

        names = [name for name in self.named if name != "sharpness"]
        sums = np.array([self.named[name] for name in names]).reshape(-1, 3)
        surplus, variance = self._beyond(*sums.T)
        # A few rare picks make most of the sum of ratios, which is far from normal: Freedman's bound for such steps.
        ratios = np.array([name not in OWN and not name.endswith(", log") for name in names], dtype=bool)
        variance = variance + np.where(ratios, np.maximum(surplus, 0.0) * MOST / 3.0, 0.0)
        # Less than one pick's worth of variance says nothing.
        found: dict[str, float] = dict(zip(names, (surplus / np.sqrt(np.maximum(variance, 1.0))).tolist(), strict=True))
        found["position"] = _largest(*self.positions)
        found["feature"] = _largest(*self._beyond(*self.features))
        even = max(self.shares.sum() / BINS, 1e-9)
        square = float(((self.shares - even) ** 2).sum() / even)
        # Picks that were nearly certain are spread over the bins, more evenly than by chance: that says nothing.
        found["probability"] = max(0.0, _as_normal(square, BINS - 1))
        return found

    def _beyond(self, surplus: Vector, variance: Vector, shared: Vector) -> tuple[Vector, Vector]:
        """Surplus and variance of what does not go with the sharpness."""
        level, spread, _ = self.named.get("sharpness", (0.0, 0.0, 0.0))
        if spread <= 0.0:
            return surplus, variance
        left = np.where(variance > 0.0, np.maximum(variance - shared**2 / spread, 0.01 * variance), 0.0)
        return surplus - shared / spread * level, left

    def worst(self) -> tuple[str, float]:
        """The quantity that is furthest out, and by how many standard deviations."""
        found = self.deviates()
        name = max(found, key=lambda one: abs(found[one]))
        return name, found[name]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; floats keep every digit."""
        return {
            "features": self.features.tolist(),
            "positions": self.positions.tolist(),
            "shares": self.shares.tolist(),
            "named": {name: list(pair) for name, pair in self.named.items()},
            "last": self.last,
            "n_rounds": self.n_rounds,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any], n_features: int) -> Residuals:
        """Give back what `to_dict` was made of."""
        found = cls.start(n_features)
        for name in ("features", "positions", "shares"):
            kept = np.array(values[name], dtype=np.float64)
            if kept.shape != getattr(found, name).shape or not np.isfinite(kept).all():
                raise ValueError(f"{name} were kept in another shape")
            setattr(found, name, kept)
        found.named = {str(name): _three(one) for name, one in values["named"].items()}
        if not np.isfinite(list(found.named.values())).all():
            raise ValueError("a sum is not finite")
        found.last, found.n_rounds = int(values["last"]), as_whole(values["n_rounds"], "n_rounds")
        return found


def _as_normal(square: float, freedom: int) -> float:
    """The normal deviate that is exceeded as often as a sum of squares, by Wilson and Hilferty's cube root.

    >>> round(_as_normal(27.88, 9), 2)  # exceeded once in a thousand times: 3.09
    3.07
    """
    part = 2.0 / (9.0 * freedom)
    return (math.cbrt(square / freedom) - (1.0 - part)) / math.sqrt(part)


def _three(values: list[float]) -> tuple[float, float, float]:
    surplus, variance, shared = values
    return float(surplus), float(variance), float(shared)


def _largest(surplus: Vector, variance: Vector) -> float:
    """The deviate that is furthest out, less what the largest of so many is by chance."""
    known = variance > 0.0
    if not known.any():
        return 0.0
    found = surplus[known] / np.sqrt(variance[known])
    worst = float(found[np.argmax(np.abs(found))])
    expected = math.sqrt(2.0 * math.log(max(len(found), 1)))
    return math.copysign(max(abs(worst) - expected, 0.0), worst)
