"""Cubic splines of one feature, as columns: B-splines between the outer knots, straight lines beyond them.

Values that lie far out, as one in a thousand may, are taken as the limit beyond which values lie far out: a line
through them would rest on a handful of rounds, and give those rounds the largest scores of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from onlooker.base.errors import InputError
from onlooker.base.types import Matrix, Vector

DEGREE = 3
"""Cubic: the curvature of the curve is continuous."""

FEWEST_VALUES = 3
"""A feature with fewer distinct values has nothing that a straight line could not say."""

MOST_SAMPLED = 20_000
"""Rows that knots are chosen by: an even sample, where there are more."""

FAR_OUT = 3.0
"""Values further beyond the quartiles than so many times their distance lie far out (Tukey, 1977)."""

FEW = 0.002
"""At most this share of the rows lies far out on either side: more are no outliers, but a part of the offers."""

COMMON = 0.1
"""A value that so many of the rows share, as 0 often is, never lies far out, and does not count for the quartiles."""


@dataclass(frozen=True, eq=False)
class Spline:
    """All cubic splines with these knots, which continue as straight lines beyond the first and the last knot.

    Examples
    --------
    >>> spline = Spline(np.array([0.0, 1.0, 3.0]))
    >>> spline.columns(np.array([0.5, 2.0])).sum(axis=1)
    array([1., 1.])
    >>> spline.values(np.array([-10.0, 0.5, 99.0]), spline.line)
    array([-10. ,   0.5,  99. ])
    """

    knots: Vector
    """Distinct and increasing, two or more; the outer ones are the range of the feature."""
    reach: tuple[float, float] = (-np.inf, np.inf)
    """Values beyond these are taken as these."""

    def __post_init__(self) -> None:
        if self.knots.ndim != 1 or len(self.knots) < 2 or not np.isfinite(self.knots).all():
            raise InputError("a spline needs two knots or more, all finite")
        width = self.knots[-1] - self.knots[0]
        if not np.isfinite(width) or not (np.diff(self.knots) > 1e-12 * width).all():
            raise InputError("the knots of a spline must increase")
        if not (self.reach[0] <= self.knots[0] and self.knots[-1] <= self.reach[1]):
            raise InputError("the knots of a spline must lie within its reach")

    def within(self, x: NDArray[np.floating]) -> Vector:
        """The values as the spline takes them: those far out as its reach."""
        return np.clip(np.asarray(x, dtype=np.float64), *self.reach)

    @property
    def n_columns(self) -> int:
        """How many B-splines there are."""
        return len(self.knots) + DEGREE - 1

    @cached_property
    def _padded(self) -> Vector:
        ends = np.repeat(self.knots[[0, -1]], DEGREE)
        return np.concatenate([ends[:DEGREE], self.knots, ends[DEGREE:]])

    @cached_property
    def _slopes(self) -> Matrix:
        """Slope of every B-spline at the first and at the last knot, shape (2, columns)."""
        from scipy.interpolate import BSpline

        slope = BSpline(self._padded, np.eye(self.n_columns), DEGREE).derivative()
        return np.asarray(slope(self.knots[[0, -1]]), dtype=np.float64)

    @cached_property
    def line(self) -> Vector:
        """Coefficients of the straight line `f(x) = x`."""
        t = self._padded
        return np.asarray((t[1:-3] + t[2:-2] + t[3:-1]) / 3)

    def columns(self, x: Vector, coefficients: Matrix | None = None) -> Matrix:
        """Every B-spline at `x`, shape (n, columns), whose rows sum to one; or the splines with these coefficients."""
        from scipy.interpolate import BSpline

        wanted = np.eye(self.n_columns) if coefficients is None else np.ascontiguousarray(coefficients)
        x = self.within(x)
        inside = np.clip(x, self.knots[0], self.knots[-1])
        found = BSpline(self._padded, wanted, DEGREE)(inside)
        beyond = np.flatnonzero(inside != x)
        if len(beyond):
            slopes = self._slopes @ wanted
            found[beyond] += (x - inside)[beyond, None] * slopes[(x[beyond] > self.knots[-1]).astype(np.int64)]
        return np.asarray(found)

    def slopes(self, x: Vector) -> Matrix:
        """Slope of every B-spline at `x`, shape (n, columns)."""
        from scipy.interpolate import BSpline

        inside = np.clip(x, self.knots[0], self.knots[-1])
        found = BSpline(self._padded, np.eye(self.n_columns), DEGREE).derivative()(inside)
        found[(x < self.reach[0]) | (x > self.reach[1])] = 0.0
        return np.asarray(found)

    def values(self, x: Vector, coefficients: Vector) -> Vector:
        """The spline with these coefficients at `x`."""
        from scipy.interpolate import BSpline

        x = self.within(x)
        inside = np.clip(x, self.knots[0], self.knots[-1])
        found = BSpline(self._padded, coefficients, DEGREE)(inside)
        slopes = self._slopes @ coefficients
        return np.asarray(found + (x - inside) * slopes[(x > self.knots[-1]).astype(np.int64)])

    def wiggles(self) -> Matrix:
        """Coefficients of splines that are no straight lines, as columns.

        A ridge on the weights of these columns penalises the integrated squared curvature of the curve.
        """
        from scipy.interpolate import BSpline

        # On the unit interval, so that the numbers do not depend on the feature's unit.
        unit = Spline((self.knots - self.knots[0]) / (self.knots[-1] - self.knots[0]))
        bend = BSpline(unit._padded, np.eye(self.n_columns), DEGREE).derivative(2)
        left, width = unit.knots[:-1], np.diff(unit.knots)
        # Two points of Gauss in every interval: exact, since curvatures are straight lines there.
        points = [bend(left + width * (0.5 + side / np.sqrt(12))) for side in (-1, 1)]
        penalty = sum(p.T @ (p * (width / 2)[:, None]) for p in points)
        sizes, directions = np.linalg.eigh(penalty)
        # The two smallest belong to constants and lines.
        return np.asarray(directions[:, 2:] / np.sqrt(sizes[2:]))

    def steps(self) -> Matrix:
        """Coefficients of increasing splines, as columns: their sums with weights of at least 0 increase everywhere."""
        return np.tril(np.ones((self.n_columns, self.n_columns)))[:, 1:]


def spline_of(values: NDArray[np.floating], n_knots: int) -> Spline | None:
    """A spline with knots at quantiles of the distinct values; None for fewer than three of those.

    Examples
    --------
    >>> spline_of(np.arange(101.0), 5).knots
    array([  0.,  25.,  50.,  75., 100.])
    >>> spline_of(np.array([0.0, 1.0, 1.0]), 5) is None
    True
    """
    some = values[:: max(1, len(values) // MOST_SAMPLED)].astype(np.float64)
    distinct, counts = np.unique(some, return_counts=True)
    if len(distinct) < FEWEST_VALUES:
        return None
    if not np.isfinite(distinct[-1] / 2 - distinct[0] / 2) or distinct[-1] / 2 - distinct[0] / 2 > 1e300:
        return None
    # Beyond a sample's range curves are lines; the outer knots are those of all values.
    distinct[0], distinct[-1] = min(distinct[0], values.min()), max(distinct[-1], values.max())
    low, high = _fences(distinct, counts)
    reach = (low if low > distinct[0] else -np.inf, high if high < distinct[-1] else np.inf)
    distinct = np.unique(np.clip(distinct, *reach))
    # By the distinct values: a value that most rows share, as 0 often is, shall not have all knots.
    knots = np.quantile(distinct, np.linspace(0, 1, min(n_knots, len(distinct))))
    kept = np.concatenate([[True], np.diff(knots) > 1e-9 * (knots[-1] - knots[0])])
    kept[-1] = True
    found = knots[kept]
    if len(found) >= 2 and found[-1] - found[-2] <= 1e-9 * (found[-1] - found[0]):
        found = np.delete(found, -2)
    if len(found) < FEWEST_VALUES or not np.isfinite(found[-1] - found[0]):
        return None
    return Spline(found, reach)


def _fences(distinct: Vector, counts: NDArray[np.integer]) -> tuple[float, float]:
    """Limits beyond which values lie far out, given the distinct values and how often each occurs.

    Examples
    --------
    >>> _fences(np.array([0.0, *range(1, 101), 9000.0]), np.array([500, *[1] * 101]))
    (-124.0, 226.0)
    """
    common = counts >= COMMON * counts.sum()
    rest, times = distinct[~common], np.cumsum(counts[~common])
    if not len(rest):
        return -np.inf, np.inf
    first, third = rest[np.searchsorted(times, [0.25 * times[-1], 0.75 * times[-1]])]
    if not third > first:
        return -np.inf, np.inf
    apart, held, below = FAR_OUT * (third - first), distinct[common], np.cumsum(counts)
    low, high = distinct[np.searchsorted(below, [FEW * below[-1], (1 - FEW) * below[-1]])]
    return float(min(first - apart, low, held.min(initial=np.inf))), float(
        max(third + apart, high, held.max(initial=-np.inf))
    )
