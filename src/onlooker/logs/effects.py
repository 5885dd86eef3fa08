"""What a feature adds to the score, as a curve with a band: a plain value that prints, plots and becomes a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.errors import InputError
from onlooker.base.notebook import as_frame
from onlooker.base.types import Vector

POINTS = 101
"""Points of a curve, unless they are given."""


# eq=False: `==` on arrays is elementwise, so a generated __eq__ would raise.
@dataclass(frozen=True, kw_only=True, eq=False)
class Effect:
    """What a feature adds to the score at each of its values, less the mean over the rows that were fitted.

    Differences count: a difference of 1 between two arms of a round multiplies the odds of the pick by 2.7. The band is
    pointwise. It is NaN where there is none.

    Examples
    --------
    >>> from onlooker import LinearPolicy
    >>> effect = LinearPolicy([2.0], feature_names=["price"]).effect("price", [0.0, 1.0])
    >>> effect.effect
    array([0., 2.])
    """

    name: str
    """The feature."""
    x: Vector
    """Its values, shape (n,)."""
    effect: Vector
    """What they add to the score, shape (n,)."""
    low: Vector
    """Lower end of the band, shape (n,)."""
    high: Vector
    """Upper end of the band, shape (n,)."""
    level: float = 0.95
    """Coverage that the band aims for, point by point and on average over the range."""

    @property
    def has_band(self) -> bool:
        """Whether it is known how certain the curve is."""
        return bool(np.isfinite(self.low).all())

    def to_frame(self) -> Any:
        """A table with the columns x, effect, low and high: of pandas where that is installed, else of pyarrow."""
        return as_frame({"x": self.x, "effect": self.effect, "low": self.low, "high": self.high})

    def plot(self, path: str | None = None) -> Any:
        """Draw the curve and its band. Returns the chart as data; `path` also writes it to a file (.png or .svg)."""
        # Imported by name: charts belong to a higher layer.
        from importlib import import_module

        return import_module("onlooker.report.plots.results").plot_effect(self, path)

    def __repr__(self) -> str:
        span = f"x from {self.x.min():.6g} to {self.x.max():.6g}"
        return f"Effect({self.name!r}, {span}, effect from {self.effect.min():.4g} to {self.effect.max():.4g})"


def grid(values: Vector) -> Vector:
    """Evenly spaced points from the smallest to the largest of some values.

    Examples
    --------
    >>> grid(np.array([0.0, 50.0]))[:3]
    array([0. , 0.5, 1. ])
    """
    return np.linspace(values.min(), values.max(), POINTS)


def as_curve(x: ArrayLike) -> Vector:
    """Points of a curve, as numbers."""
    try:
        points = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        points = np.full(1, np.nan)
    if points.ndim != 1 or not len(points) or not np.isfinite(points).all():
        raise InputError("x must be a list of finite numbers")
    return points
