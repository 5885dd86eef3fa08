"""Coefficients with their intervals, as values and as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from onlooker.base.checks import as_level
from onlooker.base.p_values import normal_reach
from onlooker.base.text_table import text_table
from onlooker.base.types import Vector

NO_INTERVALS = "none"
"""In the place of a covariance: the loss has no intervals of the usual kind."""


@dataclass(frozen=True, kw_only=True)
class Coefficient:
    """What the learner gives for one unit of a feature."""

    name: str
    """The feature's name."""
    estimate: float
    """Weight in theta."""
    standard_error: float
    """NaN where the weight is not identified."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    z: float
    """Estimate divided by its standard error; NaN where that is 0 or not known."""


def coefficients(names: Sequence[str], estimates: Vector, errors: Vector, level: float) -> tuple[Coefficient, ...]:
    """Estimates with the intervals that their standard errors give them.

    Examples
    --------
    >>> import numpy as np
    >>> (price,) = coefficients(["price"], np.array([1.0]), np.array([0.5]), level=0.95)
    >>> round(price.low, 2), round(price.high, 2), price.z
    (0.02, 1.98, 2.0)
    """
    reach = normal_reach(as_level(level))
    return tuple(
        Coefficient(
            name=name,
            estimate=value,
            standard_error=error,
            low=value - reach * error,
            high=value + reach * error,
            z=value / error if error else math.nan,
        )
        for name, value, error in zip(names, estimates.tolist(), errors.tolist(), strict=True)
    )


def coefficients_table(found: Sequence[Coefficient], form: str, estimate: str, interval: str) -> list[str]:
    """Lines of text, one a coefficient below the headings; `form` is how numbers are written."""
    rows = [["feature", estimate, "std. error", "z", interval]]
    for c in found:
        interval = f"[{c.low:{form}}, {c.high:{form}}]"
        rows.append([c.name, f"{c.estimate:{form}}", f"{c.standard_error:{form}}", f"{c.z:.2f}", interval])
    return text_table(rows, "< >12 >12 >8   <")


@dataclass(frozen=True, kw_only=True, repr=False)
class Summary:
    """A fit in figures; printing it shows the table.

    Estimates are changes in log-odds for one unit of a feature; see `SuffixImitation` for what the intervals cover.
    """

    coefficients: tuple[Coefficient, ...]
    """In the order of the features."""
    level: float
    """Coverage that the intervals aim for."""
    covariance: str
    """How the standard errors were made; `"none"` with the 0-1 loss, which has none."""
    n_rounds: int
    """Rounds with a choice that were imitated."""
    burn_in: int
    """Rounds discarded before them."""
    log_likelihood: float
    """Of the picks under theta; this and the next three are NaN with the 0-1 loss, which finds a direction only."""
    null_log_likelihood: float
    """Of the picks under uniform choice."""
    likelihood_ratio: float
    """Twice the difference of the two."""
    p_value: float
    """Chance of such a ratio if nothing were preferred."""
    agreement: float
    """Fraction of the imitated rounds where theta's best arm was picked."""
    shrinkage: float
    """By about how much regularisation shrinks the weights; NaN with the 0-1 loss."""
    warnings: tuple[str, ...]
    """What to know before reading on."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        percent = f"{100 * self.level:g}%"
        rounds = f"{self.n_rounds} rounds imitated after a burn-in of {self.burn_in}"
        agreement = f"agreement with them {self.agreement:.3f}"
        if self.covariance == NO_INTERVALS:
            rows = [["feature", "estimate"], *([c.name, f"{c.estimate:.6g}"] for c in self.coefficients)]
            lines = [f"{rounds}; {agreement}", *text_table(rows, "< >12")]
            lines.append(
                "the 0-1 loss identifies the direction of theta only and has no intervals of the usual kind: its "
                "minimiser converges at the cube root of the rounds and is not normal; the softmax loss has intervals"
            )
            return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])
        likelihood = f"log-likelihood {self.log_likelihood:.4f} (uniform {self.null_log_likelihood:.4f})"
        heading = f"{percent} interval ({self.covariance})"
        table = coefficients_table(self.coefficients, ".6g", "estimate", heading)
        lines = [f"{rounds}; {agreement}; {likelihood}", *table]
        if self.shrinkage > 0.05:
            lines.append(about_shrinkage(self.shrinkage))
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])


def about_shrinkage(shrinkage: float) -> str:
    """What to know where regularisation shrinks the weights noticeably.

    Examples
    --------
    >>> about_shrinkage(0.3)[:52]
    'regularisation shrinks the weights by about 30%, and'
    """
    return (
        f"regularisation shrinks the weights by about {shrinkage:.0%}, and the intervals are for the shrunken weights. "
        "Compare directions only, or turn it off (l2=0, on the command line --l2 0)"
    )
