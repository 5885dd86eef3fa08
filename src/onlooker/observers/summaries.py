"""What `summary()` gives: weights with their intervals, and how a tracked learner explores, as values and in print."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.base.checks import as_level
from onlooker.base.notebook import InHtml, Pictured, as_frame
from onlooker.base.numerics import normal_reach
from onlooker.base.text import text_table
from onlooker.base.types import Vector
from onlooker.logs.crossing import Crossing
from onlooker.observers.tracking.assumptions import FAMILIES
from onlooker.observers.tracking.contest import LEAST, Verdict

if TYPE_CHECKING:
    from onlooker.observers.tracking.monitor import Monitor
    from onlooker.observers.tracking.proof import Lead

NO_INTERVALS = "none"
"""In the place of a covariance: the loss has no intervals of the usual kind."""
MOST_SHOWN = 40
"""Arms, or weights without intervals, that a printed summary shows."""
COLUMNS_SHOWN = 6
"""Features of the context side by side."""
UNPROVED = "none of the known learners explains the picks better than a model-free one"
"""What is said where no family is ahead of the model-free observer."""
UNSURE = "none of the known learners is proved to have made the picks"
"""What is said where one is, but lacks something else."""
FEW = f"too few rounds to name a learner: that takes {LEAST} or more"
"""What is said where nothing was compared."""
LACKING = {
    "rounds": "",
    "model-free": "",
    "fixed": ": a fixed policy, which does not learn, predicts them about as well",
    "families": ": two of them explain the picks about as well",
    "batches": ": the learner seems to update in batches, which blurs the differences between families",
    "gradient": ": a learner that makes gradient steps explains the picks about as well",
    "turns": ": two learners that take turns explain the picks about as well",
    "forgetting": ": a learner that forgets old rounds explains them better",
    "noise": ": there is noise in the scores, as of a feature that is not in the log",
    "residual": ": the nearest one leaves something in the picks unexplained",
}
"""What is missing for a proof, in words."""


def unproved(verdict: Verdict | None) -> str:
    """What is said where no family is named, of what was compared."""
    if verdict is None or "rounds" in verdict.lacking:
        return FEW
    return UNPROVED if "model-free" in verdict.lacking else UNSURE


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


@dataclass(frozen=True, kw_only=True)
class Family:
    """One kind of exploration, with the evidence for it."""

    name: str
    """UCB, TS, Lapse or Softmax."""
    words: str
    """What it is."""
    strength: float
    """Its most probable constant."""
    low: float
    """Smallest plausible constant."""
    high: float
    """Largest plausible constant."""
    evidence: float
    """Log-probability of the picks that decided, averaged over the constant; of one that was left early, at most."""
    batch: int = 1
    """Rounds after which the learner is taken to update."""
    age: float = 0.0
    """Rounds that the learner is taken to have learned from before the log, very roughly."""


def families_of(monitor: Monitor) -> tuple[Family, ...]:
    """The families that were compared: the nearest, then the others by falling evidence."""
    best = monitor.best
    # What a round adds to the learner's V, in a typical direction.
    varied = np.diag(monitor.identification.information)
    units = monitor.follower.own_units
    of_round = float((varied if units is None else varied / units**2).mean()) / max(monitor.n_rounds, 1)
    return tuple(
        Family(
            name=one.assumption.exploration.name,
            words=one.assumption.exploration.words,
            strength=one.assumption.exploration.strength,
            low=one.range[0],
            high=one.range[1],
            evidence=one.evidence,
            batch=one.assumption.batch,
            age=one.assumption.known / of_round if one.assumption.known and of_round else 0.0,
        )
        for one in sorted(monitor.tuned, key=lambda one: (one is not best, -one.evidence))
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class TrackingSummary(OfCoefficients):
    """A tracked learner in figures; printing it says them.

    Coefficients are those of theta's direction, of length one: their signs and ratios are what the learner values.
    """

    coefficients: tuple[Coefficient, ...]
    """In the order of the features."""
    level: float
    """Coverage that the intervals aim for."""
    n_rounds: int
    """Rounds followed."""
    decided_on: int
    """How many of them decided on the family."""
    families: tuple[Family, ...]
    """The nearest first, the others by falling evidence; empty where none were compared."""
    named: bool
    """Whether the first of them was given or is proved; if not, the coefficients are the model-free observer's."""
    preferring: bool
    """Whether the learner was found to prefer anything."""
    verdict: Verdict | None
    """What the picks prove, and by how much; None if the exploration was given, or there are too few rounds."""
    fits: bool
    """Whether the first of them is proved, or predicts shares of picks that are borne out if it was given."""
    misfit: float
    """Mean distance between predicted and observed shares of picks, beyond chance; NaN where none were compared."""
    foreseen: float
    """Share of picks that were the likeliest arm, given the picks before."""
    settled_round: int | None
    """Since when the estimate is stable, to within its noise; None if it still moves, or nothing can be compared."""
    n_checkpoints: int
    """How many estimates were compared."""
    scale: float
    """Length of theta in units of the reward noise; picks identify it only roughly, so it has no interval."""
    units: tuple[float, ...] | None = None
    """What the features were counted in while they were followed; None if that was as they are."""
    warnings: tuple[str, ...]
    """What to know before reading on."""

    @property
    def margin(self) -> float:
        """By how much the first family's evidence exceeds the second's."""
        return self.families[0].evidence - self.families[1].evidence if len(self.families) > 1 else math.inf

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "margin": self.margin}

    @property
    def words(self) -> tuple[str, ...]:
        """The answers, a sentence each: how it explores, whether it has settled, what it was taken to see."""
        if not self.named:
            return (self._exploring(), *self._following())
        return (self._exploring(), self._settling(), *self._counting())

    def __repr__(self) -> str:
        # Without a preference all arms are as likely, and which of them comes first says nothing.
        known = self.preferring and self.named
        predicted = f"; {self.foreseen:.1%} of the picks were the arm predicted as likeliest" if known else ""
        percent, form = f"{100 * self.level:g}%", ".4f" if self.units is None else ".4g"
        lines = [
            f"{self.n_rounds} rounds followed" + predicted,
            *self.words,
            *coefficients_table(self.coefficients, form, "direction", f"{percent} interval"),
        ]
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])

    def _exploring(self) -> str:
        if not self.preferring:
            explained = f"explain the picks of the first {self.decided_on} rounds"
            return f"No preference was found: no weights for the features {explained}."
        if not self.named:
            said = unproved(self.verdict)
            return f"{said[0].upper()}{said[1:]}{self._lacking()}."
        best = self.families[0]
        about = _described(best)
        if len(self.families) == 1:
            return f"It was assumed to explore by {about}{'' if self.fits else ', which does not fit'}."
        if self.verdict is None:
            return f"It explores by {about}, as a state of an earlier release has it."
        past = f"; at the log's first round it is about {best.age:.1g} rounds old" if best.age else ""
        return (
            f"It explores by {about}{past}. One step ahead, the log-probability of its picks is "
            f"{_lead(self.verdict.model_free)} above the model-free observer's, and {_lead(self.verdict.over)} above "
            f"that of {FAMILIES[self.verdict.runner_up].words}."
        )

    def _lacking(self) -> str:
        """What is missing for a proof."""
        return LACKING[self.verdict.lacking[0]] if self.verdict is not None and self.verdict.lacking else ""

    def _following(self) -> list[str]:
        if not self.preferring:
            return []
        return [
            "The weights are those of the model-free observer at the end of the log, in logits; they may still move."
        ]

    def _settling(self) -> str:
        if self.n_checkpoints < 2:
            return "There is no earlier checkpoint to compare its estimate with."
        if self.settled_round is None:
            return "Its estimate was not stable yet at the end."
        if self.settled_round <= 1:
            return "Its estimate is stable from the start, within the noise of the picks."
        return f"Its estimate is stable since about round {self.settled_round}."

    def _counting(self) -> list[str]:
        if self.units is None:
            return []
        sizes = {c.name: unit for c, unit in zip(self.coefficients, self.units, strict=True)}
        least, most = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
        ends = f"{least!r} in units of {sizes[least]:g}, {most!r} of {sizes[most]:g}"
        return [f"It was taken to count each feature in units of its own ({ends})."]


def _described(family: Family) -> str:
    """A family with its constant, and the constants that are plausible too."""
    ranged = family.low < family.high
    every = f", updated every {family.batch} rounds" if family.batch > 1 else ""
    if family.name == "Lapse":
        plausible = f"; {100 * family.low:.3g}% to {100 * family.high:.3g}% are plausible" if ranged else ""
        return f"{family.words} (random in {100 * family.strength:.3g}% of rounds{plausible}){every}"
    plausible = f" ({family.low:.3g} to {family.high:.3g} are plausible)" if ranged else ""
    of = FAMILIES[family.name]
    return f"{family.words}, {of.constant} about {family.strength:.3g}{of.unit}{plausible}{every}"


def _lead(lead: Lead) -> str:
    return f"{lead.total:.1f} (standard error {lead.error:.1f})"
