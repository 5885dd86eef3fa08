"""Tails and quantiles of the usual distributions."""

from __future__ import annotations


def chi_square_p(statistic: float, freedom: int) -> float:
    """Chance of a chi-square statistic at least as large; 1 without degrees of freedom, where there is nothing to test.

    Examples
    --------
    >>> round(chi_square_p(3.84, 1), 3), chi_square_p(0.0, 0)
    (0.05, 1.0)
    """
    from scipy.special import chdtrc

    return float(chdtrc(freedom, statistic)) if freedom else 1.0


def normal_reach(level: float) -> float:
    """Standard errors to each side of an estimate that an interval of this coverage spans.

    Examples
    --------
    >>> round(normal_reach(0.95), 4)
    1.96
    """
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))
