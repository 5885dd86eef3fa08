"""The learner's estimate over time, and since when it has been stable."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onlooker.base.checks import as_number, as_whole
from onlooker.base.types import Index, Matrix, Vector

PER_DECADE = 8
"""Checkpoints of the default schedule between a number of rounds and ten times as many."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Checkpoint:
    """The estimate after some rounds, as the picks until then show it."""

    n_rounds: int
    theta: Vector
    """Mean, in units of the reward noise."""
    standard_error: Vector
    """Of each coordinate of its direction."""
    noise: tuple[float, float]
    """Trace of the covariance of theta's direction, features in the units that they were followed in, and of that
    covariance's square."""

    @classmethod
    def of(cls, n_rounds: int, theta: Vector, covariance: Matrix, units: Vector | None = None) -> Checkpoint:
        """From mean and covariance, in which the features are counted in `units`; the noise stays in those."""
        noise = turned = direction_covariance(theta, covariance)
        if units is not None:
            theta, covariance = theta / units, covariance / np.outer(units, units)
            turned = direction_covariance(theta, covariance)
        return cls(
            n_rounds=n_rounds,
            theta=theta,
            standard_error=np.sqrt(np.maximum(np.diag(turned), 0.0)),
            noise=(float(np.trace(noise)), float(np.sum(noise * noise))),
        )

    def grown(self, count: int, deviation: float) -> Checkpoint:
        """The same with so many features more, of which the estimate was 0 but for such a standard deviation."""
        norm = float(np.linalg.norm(self.theta))
        errors = np.full(count, deviation / norm if norm else 1.0)
        return replace(
            self,
            theta=np.append(self.theta, np.zeros(count)),
            standard_error=np.append(self.standard_error, errors),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "n_rounds": self.n_rounds,
            "theta": self.theta.tolist(),
            "standard_error": self.standard_error.tolist(),
            "noise": list(self.noise),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Checkpoint:
        """Give back what `to_dict` was made of."""
        trace, square = values["noise"]
        return cls(
            n_rounds=as_whole(values["n_rounds"], "a checkpoint", least=1),
            theta=np.array(values["theta"], dtype=np.float64),
            standard_error=np.array(values["standard_error"], dtype=np.float64),
            noise=(as_number(trace, "a trace", least=0.0, most=1e150), as_number(square, "a trace", least=0.0)),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Path:
    """Checkpoints of one log, the last at its end."""

    rounds: Index
    """Rounds played before each checkpoint, shape (c,)."""
    theta: Matrix
    """The learner's estimate there, shape (c, d), in units of the reward noise."""
    direction: Matrix
    """The estimate, scaled to length one."""
    standard_error: Matrix
    """Of each coordinate of the direction, shape (c, d)."""

    @classmethod
    def of(cls, checkpoints: Sequence[Checkpoint]) -> Path:
        """Stack them."""
        return cls(
            rounds=np.array([one.n_rounds for one in checkpoints], dtype=np.int64),
            theta=np.array([one.theta for one in checkpoints]),
            direction=np.array([_unit(one.theta) for one in checkpoints]),
            standard_error=np.array([one.standard_error for one in checkpoints]),
        )


def as_checkpoints(values: Sequence[Any] | None) -> tuple[int, ...] | None:
    """Rounds in order, each once; None is the default schedule.

    Examples
    --------
    >>> as_checkpoints([100, 10, 10])
    (10, 100)
    """
    return None if values is None else tuple(sorted({as_whole(one, "a checkpoint", least=1) for one in values}))


def next_checkpoint(n_rounds: int, checkpoints: tuple[int, ...] | None) -> int:
    """The first checkpoint after so many rounds.

    Examples
    --------
    >>> next_checkpoint(9, None), next_checkpoint(10, None), next_checkpoint(10, (5, 20))
    (10, 14, 20)
    """
    if checkpoints is not None:
        place = bisect_right(checkpoints, n_rounds)
        return checkpoints[place] if place < len(checkpoints) else n_rounds + 10**9
    step = math.floor(PER_DECADE * math.log10(max(n_rounds, 1))) if n_rounds else 0
    while (found := math.ceil(round(10 ** (step / PER_DECADE), 9))) <= n_rounds:
        step += 1
    return found


def direction_covariance(theta: Vector, covariance: Matrix) -> Matrix:
    """Covariance of `theta / |theta|`, to first order."""
    norm = float(np.linalg.norm(theta))
    # Without a length there is no direction: any is as good, and none is further than 1 from the middle.
    if norm == 0.0:
        return np.eye(len(theta))
    unit = theta / norm
    projection = (np.eye(len(theta)) - np.outer(unit, unit)) / norm
    turned: Matrix = projection @ covariance @ projection
    return turned


def settled_round(checkpoints: Sequence[Checkpoint], units: Vector | None = None, level: float = 0.95) -> int | None:
    """Rounds after which the estimate's direction no longer differs from its last beyond the noise of both.

    None if it still moved at the last checkpoint before the end. Movement is tested against noise by a chi-square test
    on the squared distance, its degrees of freedom after Satterthwaite. Features are counted in `units`.
    """
    from scipy.special import chdtri

    last, weights = checkpoints[-1], 1.0 if units is None else units
    end = _unit(last.theta * weights)
    settled = None
    for one in reversed(checkpoints[:-1]):
        trace, square = one.noise
        # A direction in one dimension is a sign: it has no noise.
        bound = trace + last.noise[0]
        if square > 0.0:
            freedom = trace**2 / square
            bound *= float(chdtri(freedom, 1 - level)) / freedom
        if float(np.sum((_unit(one.theta * weights) - end) ** 2)) > bound:
            break
        settled = one.n_rounds
    return settled


def _unit(theta: Vector) -> Vector:
    norm = float(np.linalg.norm(theta))
    return theta / norm if norm else theta
