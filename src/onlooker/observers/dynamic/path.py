"""The weights over time, with bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlooker.base.checks import as_number, as_whole
from onlooker.base.types import Index, Matrix

POINTS = 60
"""Checkpoints of the default schedule."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightPath:
    """Weights at checkpoints, given the picks before and after them.

    Examples
    --------
    >>> path = WeightPath(rounds=np.array([9]), theta=np.array([[1.0]]), standard_error=np.array([[0.5]]))
    >>> [side.round(2).tolist() for side in path.band()]
    [[[0.02]], [[1.98]]]
    """

    rounds: Index
    """Rounds played before each checkpoint, shape (c,)."""
    theta: Matrix
    """Weight of each feature there, shape (c, d)."""
    standard_error: Matrix
    """Of each of them; NaN for a feature that never differed within a round."""

    def band(self, level: float = 0.95) -> tuple[Matrix, Matrix]:
        """Lower and upper end of an interval for each weight at each checkpoint."""
        from scipy.special import ndtri

        reach = float(ndtri(0.5 + as_number(level, "level", above=0.0, most=1 - 1e-12) / 2)) * self.standard_error
        return self.theta - reach, self.theta + reach

    def joined(self, later: WeightPath, wanted: Sequence[int] | None) -> WeightPath:
        """Add the path of the rounds after these, thinned out where it has many more checkpoints than wanted."""
        parts = [(getattr(self, name), getattr(later, name)) for name in ("rounds", "theta", "standard_error")]
        rounds, theta, errors = (np.concatenate(pair) for pair in parts)
        kept = np.ones(len(rounds), dtype=bool)
        if wanted is not None:
            kept = np.isin(rounds, wanted)
        elif len(rounds) > 4 * POINTS:
            kept[-2::-2] = False
        kept[-1] = True
        return WeightPath(rounds=rounds[kept], theta=theta[kept], standard_error=errors[kept])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        errors = [[None if np.isnan(one) else one for one in row] for row in self.standard_error.tolist()]
        return {"rounds": self.rounds.tolist(), "theta": self.theta.tolist(), "standard_error": errors}

    @classmethod
    def from_dict(cls, values: dict[str, Any], n_features: int) -> WeightPath:
        """Give back what `to_dict` was made of."""
        rounds = np.array([as_whole(one, "a checkpoint", least=1) for one in values["rounds"]], dtype=np.int64)
        theta = np.array(values["theta"], dtype=np.float64).reshape(len(rounds), n_features)
        errors = np.array(values["standard_error"], dtype=np.float64).reshape(len(rounds), n_features)
        if not np.isfinite(theta).all() or (errors < 0).any():
            raise ValueError("a weight is not finite, or an error negative")
        return cls(rounds=rounds, theta=theta, standard_error=errors)


def checkpoints_between(start: int, stop: int, wanted: Sequence[int] | None) -> list[int]:
    """Those of the wanted checkpoints after round `start` up to `stop`, or evenly spread ones; `stop` is always one.

    Examples
    --------
    >>> checkpoints_between(100, 250, [50, 200]), checkpoints_between(0, 6000, None)[:3]
    ([200, 250], [100, 200, 300])
    """
    if wanted is not None:
        return sorted({one for one in wanted if start < one < stop} | {stop})
    count = min(POINTS, stop - start)
    return [start + round((stop - start) * (i + 1) / count) for i in range(count)]
