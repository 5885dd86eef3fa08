"""The analysis behind a report on one log."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from onlooker.base.defaults import BURN_IN, L2
from onlooker.base.errors import OnlookerWarning
from onlooker.base.types import Vector
from onlooker.diagnosis import Diagnosis, Estimate, diagnose
from onlooker.diagnosis.predictability import proportion
from onlooker.evaluation.study import Watch
from onlooker.imitation.burn_in import HeldOut, HeldOutCurve
from onlooker.imitation.score_models import LINEAR
from onlooker.logs.log import BanditLog, as_log
from onlooker.logs.policy import LinearPolicy, Policy, as_linear
from onlooker.observers import SuffixImitation, Summary, TrackingObserver
from onlooker.observers.base import about_shrinkage
from onlooker.report.curves import CurvedFit, curved_fit

SAMPLED_VALUES = 1 << 22
"""Feature values from which typical differences are estimated: 32 MB, for an accuracy of some hundredths."""
STRETCHES, LEAST_STRETCH = 20, 50
"""Most parts of the log for which agreement is given, and fewest rounds with a choice in each."""


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """A part of the log, and how well the recovered policy agrees with it."""

    start: int
    """First round."""
    stop: int
    """Round after the last."""
    chance: float
    """Agreement of random guessing."""
    agreement: Estimate
    """Part of the picks that the policy makes too; only rounds with a choice count."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LogAnalysis:
    """What was found in a log, before it is put on a page."""

    log: BanditLog
    """The log."""
    diagnosis: Diagnosis
    """Whether and since when the learner has settled."""
    policy: LinearPolicy
    """What suffix imitation recovered, with its burn-in chosen by held-out picks unless one was asked for."""
    summary: Summary
    """Its coefficients with their intervals."""
    curve: HeldOutCurve | None
    """What a burn-in is chosen by; None where the log is too short."""
    agreement: tuple[Stretch, ...]
    """The policy's agreement over time."""
    tracking: TrackingObserver
    """How the learner explores, and how its estimate moved."""
    differences: Vector
    """How much each feature typically differs between the arms of a round, shape (d,)."""
    curved: CurvedFit | None = None
    """A score that is not linear, where one was asked for."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Caveats, each sentence once."""
        said = [*self.diagnosis.notes, *self.summary.warnings]
        changed, burn_in = self.diagnosis.changed, self.summary.burn_in
        if changed is not None and burn_in < changed.round:
            said.append(
                f"the weights mix two policies: they come from the rounds after {burn_in:,}, and the learner changed "
                f"at about round {changed.round:,}. Fit with a burn-in of {changed.round} for the new one alone"
            )
        if self.summary.shrinkage > 0.05:
            said.append(about_shrinkage(self.summary.shrinkage))
        return tuple(dict.fromkeys(said))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        curve = self.curve
        return {
            "diagnosis": self.diagnosis.to_dict(),
            "fit": self.summary.to_dict(),
            "burn_in_curve": None
            if curve is None
            else {
                "burn_ins": curve.burn_ins.tolist(),
                "losses": curve.losses.tolist(),
                "errors": curve.errors.tolist(),
                "start": curve.start,
            },
            "agreement": [asdict(part) for part in self.agreement],
            "tracking": self.tracking.summary().to_dict(),
            **({} if self.curved is None else {"score": self.curved.to_dict()}),
        }


def analyse(
    log: BanditLog,
    *,
    burn_in: str | float = BURN_IN,
    l2: float = L2,
    score: Any = LINEAR,
    watch: Watch = lambda _: nullcontext(),
) -> LogAnalysis:
    """Diagnose a log, recover the policy behind it, follow its learner.

    Warnings are kept in what is found, not given. `burn_in`, `l2` and `score` are those of `SuffixImitation`; a score
    that is not linear is fitted beside the linear one.

    Examples
    --------
    >>> from onlooker.simulation.environment import Environment
    >>> from onlooker.simulation.learners import LinUCB
    >>> from onlooker.simulation.play import simulate
    >>> found = analyse(simulate(Environment(5, 10), LinUCB(), n_rounds=2000).log)
    >>> found.diagnosis.verdict, found.summary.burn_in == found.curve.start
    ('stable', True)
    """
    rounds = as_log(log, "a report")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnlookerWarning)
        with watch("choosing the burn-in") as progress:
            curve = HeldOut(l2=l2, progress=progress).curve(rounds)
        asked = burn_in
        if burn_in == "auto":
            # Its candidates were fitted a moment ago.
            burn_in = 0 if curve is None else curve.start
        observer = SuffixImitation(burn_in=burn_in, l2=l2).fit(rounds)
        curved = None
        if score not in (LINEAR, "linear"):
            with watch("fitting curves"):
                curved = curved_fit(rounds, score, burn_in=asked, l2=l2)
        with watch("diagnosing"):
            diagnosis = diagnose(rounds)
        with watch("tracking") as progress:
            tracking = TrackingObserver().fit(rounds, progress=progress)
    return LogAnalysis(
        log=rounds,
        diagnosis=diagnosis,
        policy=as_linear(observer.policy_, "a report"),
        summary=observer.summary(),
        curve=curve,
        agreement=_agreement(rounds, observer.policy_, diagnosis.level),
        tracking=tracking,
        differences=typical_differences(rounds),
        curved=curved,
    )


def typical_differences(log: BanditLog) -> Vector:
    """Standard deviation of each feature between the arms of a round, in an even sample of the rounds, shape (d,).

    Ones if there are too many features to write out even a few rounds.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.array([[[0.0, 1.0], [2.0, 1.0]]]), chosen=[0])
    >>> typical_differences(log)
    array([1., 0.])
    """
    choices = np.flatnonzero(log.n_arms > 1)
    if not len(choices):
        return np.zeros(log.n_features)
    rounds = int(SAMPLED_VALUES / (log.n_features * float(log.n_arms[choices].mean())))
    if rounds < LEAST_STRETCH and rounds < len(choices):
        return np.ones(log.n_features)
    part = log[choices[:: -(-len(choices) // rounds)]]
    rows, sizes = part.dense.astype(np.float64, copy=False), part.n_arms[:, None]
    means = np.add.reduceat(rows, part.offsets[:-1]) / sizes
    squares = (rows - np.repeat(means, part.n_arms, axis=0)) ** 2
    return np.asarray(np.sqrt((np.add.reduceat(squares, part.offsets[:-1]) / sizes).mean(axis=0)))


def _agreement(log: BanditLog, policy: Policy, level: float) -> tuple[Stretch, ...]:
    """Equal parts of the rounds that offer a choice."""
    choices = np.flatnonzero(log.n_arms > 1)
    hits = log.may_be(policy.choose(log))[choices]
    chance = 1 / log.n_arms[choices]
    count = min(STRETCHES, max(1, len(choices) // LEAST_STRETCH))
    parts = np.array_split(np.arange(len(choices)), count)
    return tuple(
        Stretch(
            start=int(choices[part[0]]),
            stop=int(choices[part[-1]]) + 1,
            chance=float(chance[part].mean()),
            agreement=proportion(hits[part], level),
        )
        for part in parts
    )
