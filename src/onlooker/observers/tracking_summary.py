"""What tracking found, as values and in words."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from onlooker.observers.summaries import Coefficient, OfCoefficients, coefficients_table
from onlooker.observers.tracking.assumptions import FAMILIES
from onlooker.observers.tracking.contest import LEAST, Verdict
from onlooker.observers.tracking.monitor import Monitor
from onlooker.observers.tracking.proof import Lead

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
    """The families that were compared, by falling evidence."""
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
        for one in sorted(monitor.tuned, key=lambda one: -one.evidence)
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
    """By falling evidence; empty where none were compared."""
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
            return f"No preference was found: the picks of the first {self.decided_on} rounds look uniform."
        if not self.named:
            return f"{UNPROVED[0].upper()}{UNPROVED[1:]}{self._lacking()}."
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
        if self.verdict is None or self.n_rounds < LEAST:
            return f"; that takes {LEAST} rounds or more"
        return LACKING[self.verdict.lacking[0]] if self.verdict.lacking else ""

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


UNPROVED = "none of the known learners explains the picks better than a model-free one"
"""What is said where no family is named."""


def _lead(lead: Lead) -> str:
    return f"{lead.total:.1f} (standard error {lead.error:.1f})"
