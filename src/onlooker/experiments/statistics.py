"""Statistics over a few seeds: means, paired comparisons, slopes and ranks, each with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.errors import InputError
from onlooker.base.types import Vector

LEVEL = 0.95
"""Of every interval, two-sided."""

_FLIPS = 10_000
"""Ways to flip signs: all of them up to 13 seeds, this many drawn at random beyond."""


@dataclass(frozen=True)
class Estimate:
    """An estimate with its 95% interval and the p-values of a test against a value."""

    value: float
    """Point estimate."""
    low: float
    """Lower end of the interval; NaN for a single seed."""
    high: float
    """Upper end of the interval."""
    p_below: float
    """One-sided p: small where the number is significantly below the value tested."""
    p_above: float
    """One-sided p: small where it is significantly above."""

    def exp(self) -> Estimate:
        """Go from a difference of logarithms to a ratio."""
        value, low, high = (math.exp(end) for end in (self.value, self.low, self.high))
        return Estimate(value, low, high, self.p_below, self.p_above)


def mean(values: ArrayLike, *, against: float = 0.0) -> Estimate:
    """Mean over seeds with its t-interval, tested against a value.

    Examples
    --------
    >>> estimate = mean([1.0, 2.0, 3.0])
    >>> round(estimate.value, 3), round(estimate.low, 3), round(estimate.high, 3)
    (2.0, -0.484, 4.484)
    """
    from scipy.stats import t

    sample = _sample(values)
    centre, freedom = float(sample.mean()), len(sample) - 1
    if not freedom:
        return Estimate(centre, math.nan, math.nan, math.nan, math.nan)
    error = float(sample.std(ddof=1)) / math.sqrt(len(sample))
    reach = error * float(t.ppf((1 + LEVEL) / 2, freedom))
    distance = centre - against
    # Seeds that all agree leave no doubt: the limit of an ever smaller error.
    score = distance / error if error else math.copysign(math.inf, distance) if distance else 0.0
    return Estimate(centre, centre - reach, centre + reach, float(t.cdf(score, freedom)), float(t.sf(score, freedom)))


def paired_difference(first: ArrayLike, second: ArrayLike) -> Estimate:
    """Mean of first minus second, seed by seed, tested against no difference.

    Examples
    --------
    >>> estimate = paired_difference([1.0, 2.0, 4.0], [2.0, 3.5, 5.0])
    >>> round(estimate.value, 3), estimate.p_below < 0.05
    (-1.167, True)
    """
    one, other = _pair(first, second)
    return mean(one - other)


def paired_ratio(first: ArrayLike, second: ArrayLike) -> Estimate:
    """Geometric mean of first / second, seed by seed, tested against 1.

    Examples
    --------
    >>> round(paired_ratio([1.0, 2.0], [2.0, 4.0]).value, 3)
    0.5
    """
    one, other = _pair(first, second)
    return paired_difference(_log(one), _log(other)).exp()


def spread_ratio(first: ArrayLike, second: ArrayLike, *, means: int = 1) -> Estimate:
    """Standard deviation of first over that of second where both were measured on the same seeds, tested against 1.

    Pitman and Morgan's test: it allows for the two being correlated.

    Parameters
    ----------
    first, second
        One value of each per seed; or deviations from the means of several groups, one group after the other.
    means
        How many groups' means were taken out.

    Examples
    --------
    >>> round(spread_ratio([0.0, 2.0, 4.0, 1.0], [0.0, 1.0, 2.0, 2.0]).value, 3)
    1.784
    """
    from scipy.stats import t

    one, other = _pair(first, second)
    freedom = len(one) - means - 1
    spreads = one.std(ddof=1) if freedom > 0 else 0.0, other.std(ddof=1) if freedom > 0 else 0.0
    if not all(spreads):
        return Estimate(math.nan, math.nan, math.nan, math.nan, math.nan)
    ratio = float(spreads[0] / spreads[1])
    shared = min(1.0, float(np.corrcoef(one, other)[0, 1]) ** 2)
    centre = 1 + 2 * (1 - shared) * float(t.ppf((1 + LEVEL) / 2, freedom)) ** 2 / freedom
    reach = math.sqrt(centre**2 - 1)
    doubt = 2 * math.sqrt(1 - shared) * ratio
    distance = (ratio**2 - 1) * math.sqrt(freedom)
    score = distance / doubt if doubt else math.copysign(math.inf, distance) if distance else 0.0
    ends = ratio * math.sqrt(centre - reach), ratio * math.sqrt(centre + reach)
    return Estimate(ratio, *ends, float(t.cdf(score, freedom)), float(t.sf(score, freedom)))


def p_of_chosen(differences: ArrayLike, chosen: int) -> float:
    """One-sided p that a column's mean is below 0, where the column was chosen among all for looking best.

    Westfall and Young's correction: signs are flipped seed by seed, and the chosen column's t is compared with the
    lowest t of any column. Unlike Bonferroni's it takes into account that neighbouring columns are alike.

    Parameters
    ----------
    differences
        One row per seed, one column per candidate, shape (seeds, m).
    chosen
        Position of the column.

    Examples
    --------
    >>> differences = np.array([[-1.0, 0.2], [-1.2, -0.1], [-0.9, 0.1], [-1.1, 0.0], [-0.8, -0.3]])
    >>> p_of_chosen(differences, 0)  # one of the 32 ways to flip five signs
    0.03125
    """
    rows = np.asarray(differences, dtype=np.float64)
    if rows.ndim != 2 or len(rows) < 2 or not np.isfinite(rows).all():
        raise InputError(f"differences have shape {rows.shape}: pass finite numbers for at least two seeds")
    seeds = len(rows)
    if 2**seeds <= _FLIPS:
        signs = 1 - 2.0 * (np.arange(2**seeds)[:, None] >> np.arange(seeds) & 1)
    else:
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(_FLIPS, seeds))
        signs[0] = 1
    means = signs @ rows / seeds
    # A flip leaves the squares as they are, so the mean alone decides each column's t.
    left = (np.square(rows).mean(axis=0) - np.square(means)).clip(min=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where(means == 0, 0.0, means / np.sqrt(left))
    # The first is the data itself. Sums in another order differ in their last digits.
    return float(np.mean(scores.min(axis=1) <= scores[0, chosen] * (1 + 1e-9 * np.sign(scores[0, chosen]))))


def power_slope(sizes: ArrayLike, values: ArrayLike, *, against: float = 0.0) -> Estimate:
    """Mean over seeds of the slope of log(value) in log(size), tested against a slope.

    Parameters
    ----------
    sizes
        At least two that differ, shape (m,).
    values
        Positive, one row per seed, shape (seeds, m).
    against
        The slope to test against.

    Examples
    --------
    >>> round(power_slope([100, 400], [[1.0, 0.5], [2.0, 1.0]]).value, 3)
    -0.5
    """
    steps = _log(_sample(sizes))
    steps = steps - steps.mean()
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != len(steps) or not (steps @ steps):
        raise InputError(f"values of shape {rows.shape} have no slope in {len(steps)} sizes: pass (seeds, sizes)")
    return mean(_log(rows) @ steps / (steps @ steps), against=against)


def spearman(first: ArrayLike, second: ArrayLike) -> tuple[float, float]:
    """Rank correlation and its two-sided p; both NaN where one of them does not vary.

    Examples
    --------
    >>> r, p = spearman([0, 1, 2, 3, 4], [0.1, 0.3, 0.2, 0.4, 0.5])
    >>> round(r, 3), round(p, 4)
    (0.9, 0.0374)
    """
    from scipy.stats import spearmanr

    one, other = _pair(first, second)
    if len(one) < 3 or not np.ptp(one) or not np.ptp(other):
        return math.nan, math.nan
    found = spearmanr(one, other)
    return float(found.statistic), float(found.pvalue)


def _sample(values: ArrayLike) -> Vector:
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or not len(sample) or not np.isfinite(sample).all():
        raise InputError("a sample needs at least one value, one dimension and finite numbers only")
    return sample


def _pair(first: ArrayLike, second: ArrayLike) -> tuple[Vector, Vector]:
    one, other = _sample(first), _sample(second)
    if len(one) != len(other):
        raise InputError(f"{len(one)} values cannot be paired with {len(other)}: pass one of each for every seed")
    return one, other


def _log(values: Vector) -> Vector:
    if (values <= 0).any():
        raise InputError(f"{values.min():g} has no logarithm: pass positive numbers")
    return np.log(values)
