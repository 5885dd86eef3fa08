"""Weights with their intervals, as values and as printed tables: what `summary()` gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from onlooker.base.checks import as_level
from onlooker.base.notebook import InHtml, Pictured, as_frame
from onlooker.base.numerics import normal_reach
from onlooker.base.text import text_table
from onlooker.base.types import Vector
from onlooker.logs.crossing import Crossing

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


class OfCoefficients(Pictured, InHtml):
    """What has weights with intervals."""

    coefficients: tuple[Coefficient, ...]

    def to_frame(self) -> Any:
        """A table with a row for every weight: of pandas where that is installed, else of pyarrow."""
        fields = {"feature": "name"} | {n: n for n in ("estimate", "standard_error", "low", "high", "z")}
        return as_frame({head: [getattr(one, of) for one in self.coefficients] for head, of in fields.items()})


@dataclass(frozen=True, kw_only=True, repr=False)
class WeightSummary(OfCoefficients):
    """The weights that an observer found; printing it shows the table."""

    observer: str
    """Which, in words."""
    coefficients: tuple[Coefficient, ...]
    """In the order of the features."""
    level: float
    """Coverage that the intervals aim for, where there are any."""
    warnings: tuple[str, ...]
    """What to know before reading on."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        known = any(math.isfinite(one.standard_error) for one in self.coefficients)
        table = coefficients_table(self.coefficients, ".6g", "estimate", f"{100 * self.level:g}% interval")
        if not known:
            rows = [["feature", "estimate"], *([c.name, f"{c.estimate:.6g}"] for c in self.coefficients)]
            table = text_table(rows, "< >12")
        return "\n".join([self.observer, *table, *(f"warning: {text}" for text in self.warnings)])


@dataclass(frozen=True, kw_only=True, repr=False)
class Summary(OfCoefficients):
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
    crossing: Crossing | None = None
    """Which arm each weight belongs to, where every arm has its own."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        found = asdict(self)
        crossing = found.pop("crossing")
        if crossing is not None and crossing["arms"] is not None:
            found["arms"] = [str(arm) for arm in crossing["arms"]]
            found["context_features"] = list(crossing["context"])
        return found

    def __repr__(self) -> str:
        percent = f"{100 * self.level:g}%"
        rounds = f"{self.n_rounds} rounds imitated after a burn-in of {self.burn_in}"
        agreement = f"agreement with them {self.agreement:.3f}"
        if self.crossing is not None and self.crossing.arms is not None and not math.isnan(self.log_likelihood):
            return "\n".join([f"{rounds}; {agreement}", *self._by_arm(), *(f"warning: {w}" for w in self.warnings)])
        if self.covariance == NO_INTERVALS and not math.isnan(self.log_likelihood):
            most = sorted(self.coefficients, key=lambda one: -abs(one.estimate))[:MOST_SHOWN]
            rows = [["feature", "estimate"], *([c.name, f"{c.estimate:.6g}"] for c in most)]
            lines = [f"{rounds}; {agreement}", *text_table(rows, "< >12")]
            left = len(self.coefficients) - len(most)
            lines += [f"and {left} smaller weights"] if left > 0 else []
            return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])
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
        if self._shrinks:
            lines.append(about_shrinkage(self.shrinkage))
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])

    @property
    def _shrinks(self) -> bool:
        """Whether intervals are there, and noticeably those of shrunken weights."""
        return self.shrinkage > 0.05 and any(math.isfinite(one.standard_error) for one in self.coefficients)

    def _by_arm(self) -> list[str]:
        """Weights with their standard errors, an arm a row."""
        assert self.crossing is not None
        assert self.crossing.arms is not None
        own, names = len(self.crossing.own), self.crossing.context or ("weight",)
        found, arms = self.coefficients[own:], [str(arm) for arm in self.crossing.arms]
        lines = text_table([["feature", "estimate"], *([c.name, _cell(c)] for c in self.coefficients[:own])], "< >18")
        lines = lines if own else []
        for first in range(0, len(names), COLUMNS_SHOWN):
            places = range(first, min(first + COLUMNS_SHOWN, len(names)))
            rows = [["arm", *(names[j] for j in places)]]
            rows += [
                [arm, *(_cell(found[k * len(names) + j]) for j in places)] for k, arm in enumerate(arms[:MOST_SHOWN])
            ]
            lines += text_table(rows, " ".join(["<", *[">18"] * len(places)]))
        if len(arms) > MOST_SHOWN:
            lines.append(f"and {len(arms) - MOST_SHOWN} more arms")
        errors = "" if self.covariance == NO_INTERVALS else f" with standard errors ({self.covariance})"
        lines.append(f"weights{errors} are differences to the mean over the arms that are offered together")
        if self._shrinks:
            lines.append(about_shrinkage(self.shrinkage))
        return lines


MOST_SHOWN = 40
"""Arms, or weights without intervals, that a printed summary shows."""


COLUMNS_SHOWN = 6
"""Features of the context side by side."""


def _cell(found: Coefficient) -> str:
    error = "" if math.isnan(found.standard_error) else f" ({found.standard_error:.3g})"
    return f"{found.estimate:.4g}{error}"


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
