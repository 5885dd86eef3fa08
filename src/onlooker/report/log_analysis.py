"""The analysis behind a report on one log, and the sections that show it."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from onlooker.base.checks import counted
from onlooker.base.defaults import BURN_IN, L2
from onlooker.base.errors import OnlookerWarning
from onlooker.base.text import p_words
from onlooker.base.types import Index, Matrix, Vector
from onlooker.diagnosis import Diagnosis, Estimate, Test, diagnose
from onlooker.diagnosis.predictability import proportion
from onlooker.diagnosis.result import span_of
from onlooker.evaluation.study import Watch
from onlooker.imitation.burn_in import TOLERANCE, HeldOut, HeldOutCurve
from onlooker.imitation.choice_model import LINEAR
from onlooker.logs.log import BanditLog, as_log
from onlooker.logs.policy import LinearPolicy, Policy, as_linear
from onlooker.observers import Coefficient, SuffixImitation, Summary, TrackingObserver
from onlooker.observers.summaries import about_shrinkage
from onlooker.report.curves import CurvedFit, curved_fit
from onlooker.report.page import Column, Section, Table
from onlooker.report.plots import Chart, HeatChart, IntervalChart, Level, Mark, Series, diagnosis_charts

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


DRAWN = 30
"""Effects that are drawn: the largest; the table has all."""

ARMS, FEATURES = 30, 20
"""Arms and features of the context in a coloured table: those with the largest weights."""

LONG = 15
"""A table of more coefficients stands behind a line to click."""


@dataclass(frozen=True)
class Effect:
    """A weight, and what it does where its feature differs between arms as much as it typically does."""

    coefficient: Coefficient
    difference: float
    """Standard deviation of the feature between the arms of a round."""

    @property
    def size(self) -> float:
        """Change in log-odds for a typical difference."""
        return self.coefficient.estimate * self.difference


def by_effect(found: LogAnalysis) -> list[Effect]:
    """The largest effect first, whatever its sign; of equal ones the larger weight."""
    pairs = zip(found.summary.coefficients, found.differences.tolist(), strict=True)
    return sorted((Effect(*pair) for pair in pairs), key=lambda e: (-abs(e.size), -abs(e.coefficient.estimate)))


def values_section(found: LogAnalysis) -> Section:
    """What the learner values."""
    summary = found.summary
    ranked = by_effect(found)
    percent = f"{100 * summary.level:g}%"
    text = (
        "A weight is the change in the log-odds of a pick for one unit of the feature, all else alike: above zero the "
        "learner likes more of it, below zero less. Its effect is the weight times the standard deviation of the "
        "feature between the arms of a round, so that features on different scales compare; the largest effect comes "
        f"first. Intervals are meant to cover {percent}, by {summary.covariance} standard errors."
    )
    for column, levels in (found.policy.categories or {}).items():
        text += f" Weights of the levels of {column!r} are relative to {levels[0]!r}."
    if len(ranked) > DRAWN:
        text += f" Drawn are the {DRAWN} largest of {len(ranked)} effects; the table has all."
    heat = weights_by_arm(found.policy)
    if heat is not None:
        text += " The coloured table has the weights of every arm: only differences between arms decide a pick."
    return Section(
        title="What the learner values",
        text=text,
        charts=(*([] if heat is None else [heat]), effects_chart(ranked[:DRAWN], percent)),
        table=Table(
            (
                Column("feature", wrap=True),
                Column("effect", align="right"),
                Column("weight", align="right"),
                Column("standard error", align="right"),
                Column("from", align="right"),
                Column("to", align="right"),
                Column("z", ".2f", align="right"),
            ),
            tuple(_row(one) for one in ranked),
            caption=f"All {len(ranked)} weights, the largest effect first",
        ),
        folded=len(ranked) > LONG,
    )


def _row(effect: Effect) -> tuple[str | float | None, ...]:
    c = effect.coefficient
    return c.name, *map(_finite, (effect.size, c.estimate, c.standard_error, c.low, c.high, c.z))


def effects_chart(effects: list[Effect], percent: str) -> IntervalChart:
    """Effects one under the other."""
    ends = np.array([(e.coefficient.low * e.difference, e.coefficient.high * e.difference) for e in effects])
    ends[~np.isfinite(ends).all(axis=1)] = np.nan
    return IntervalChart(
        title="Effects of the features",
        x_label=f"typical effect, {percent} interval",
        y_label="feature",
        names=tuple(e.coefficient.name for e in effects),
        estimates=np.array([e.size for e in effects]),
        low=ends[:, 0],
        high=ends[:, 1],
    )


def weights_by_arm(policy: LinearPolicy) -> HeatChart | None:
    """Weights as a table of arms by features of the context, where each arm has its own: the largest of them."""
    crossing = policy.crossing
    if crossing is None or crossing.arms is None:
        return None
    names = crossing.context or ("weight",)
    weights = policy.theta[len(crossing.own) :].reshape(len(crossing.arms), len(names))
    arms, columns = (_largest(weights, axis, most) for axis, most in ((1, ARMS), (0, FEATURES)))
    left = f", the {len(arms)} largest of {len(weights)} arms" if len(arms) < len(weights) else ""
    return HeatChart(
        title=f"Weights by arm{left}",
        x_label="feature of the context",
        y_label="arm",
        columns=tuple(names[j] for j in columns),
        names=tuple(str(crossing.arms[k]) for k in arms),
        values=weights[np.ix_(arms, columns)],
    )


def _largest(weights: Matrix, axis: int, most: int) -> Index:
    """Rows or columns that hold the largest weights, in their own order."""
    sizes = np.abs(weights).max(axis=axis)
    return np.sort(np.argsort(-sizes, kind="stable")[:most])


def time_sections(found: LogAnalysis) -> tuple[Section, Section]:
    """When it settled, and how far the policy agrees with the picks over time."""
    charts, tests = _dated(diagnosis_charts(found.diagnosis), found), found.diagnosis.tests
    final = charts[1:2]
    settled = Section(
        title="Whether and since when it is stable",
        text=(
            "Predictability: the share of picks that a policy fitted to other rounds of the same stretch predicts; it "
            "rises while a learner explores less and less. Fit: how well the policy of the last 30% of the log fits "
            "each stretch, relative to the end; where that is level with the end, one policy explains the picks. The "
            "learner's own estimate may go on moving a little: the round since which the estimate is stable is another "
            "one, marked where its path is drawn."
            if charts
            else "There is too little evidence in the log."
        ),
        charts=(*charts[:1], *charts[2:]),
        table=Table(
            (
                Column("hypothesis", wrap=True),
                Column("p-value", align="right"),
                Column("statistic", ".2f", align="right"),
                Column("compared with"),
            ),
            tuple((test.hypothesis, _p(test), test.statistic, test.distribution) for test in tests),
            caption="A small p-value is evidence against the hypothesis",
        )
        if tests
        else None,
    )
    agreement = Section(
        title="Agreement over time",
        text=(
            "How many picks the recovered policy makes too, and how many random guessing gets. It was fitted to the "
            "rounds after the burn-in, where its agreement is a little too good."
            + (
                " The final policy is fitted to the last 30% of the log, always without the rounds that it predicts."
                if final
                else ""
            )
        ),
        charts=(*_dated((agreement_chart(found, charts[0].marks if charts else ()),), found), *final),
    )
    return settled, agreement


def _dated(charts: tuple[Chart, ...], found: LogAnalysis) -> tuple[Chart, ...]:
    """The same, with the dates that the rounds on the axis are between."""
    if not found.log.dated:
        return charts
    return tuple(replace(one, x_label=f"{one.x_label}, {span_of(found.log)}") for one in charts)


def agreement_chart(found: LogAnalysis, marks: tuple[Mark, ...]) -> Chart:
    """The recovered policy's agreement with the picks, part by part, with the end of the burn-in among the marks."""
    parts = found.agreement
    middle = np.array([(part.start + part.stop) / 2 for part in parts])
    value, low, high = (
        np.array([getattr(part.agreement, name) for part in parts]) for name in ("value", "low", "high")
    )
    burn_in = found.summary.burn_in
    return Chart(
        title="Agreement of the recovered policy",
        x_label="round",
        y_label="share of picks predicted",
        series=(
            Series("recovered policy", middle, value, low=low, high=high),
            Series("random guessing", middle, np.array([part.chance for part in parts])),
        ),
        marks=(*((Mark("burn-in", float(burn_in)),) if burn_in else ()), *marks),
    )


def burn_in_section(found: LogAnalysis) -> Section:
    """How much of the beginning was discarded, and why."""
    title, curve, n_rounds = "How much of the beginning to discard", found.curve, found.log.n_rounds
    burn_in = found.summary.burn_in
    left = counted(burn_in, "round") if burn_in else "nothing"
    asked = f" The weights above discard {left}, as requested."
    if curve is None:
        kept = asked if burn_in else " All of it was kept."
        return Section(title=title, text=f"The log is too short to choose a burn-in.{kept}")
    kept = "to keep everything" if not curve.start else f"{curve.start:,} of {n_rounds:,} rounds"
    text = (
        "Early picks are exploration. A policy was fitted to what follows each of these burn-ins, without some late "
        "rounds, which it then predicted: a small loss is good. The shortest burn-in is best whose loss is not "
        f"clearly above the smallest ({TOLERANCE:g} standard errors, drawn as a band): {kept}. No reward is needed."
        f"{asked if burn_in != curve.start else ''}"
    )
    return Section(title=title, text=text, charts=(burn_in_chart(curve, burn_in),))


def burn_in_chart(curve: HeldOutCurve, burn_in: int) -> Chart:
    """Loss on the held-out rounds after each burn-in; `burn_in` is the one that the weights come from."""
    reach = TOLERANCE * curve.errors
    low, high = curve.losses - reach, curve.losses + reach
    return Chart(
        title="Loss on late rounds that were held out",
        x_label="burn-in (rounds discarded)",
        y_label="mean loss of a pick",
        series=(Series("after this burn-in", curve.burn_ins.astype(np.float64), curve.losses, low=low, high=high),),
        levels=(Level("smallest", float(curve.losses[curve.best])),),
        marks=(Mark("chosen", float(burn_in)),),
    )


def _p(test: Test) -> str:
    return p_words(test.p_value, test.least_p).removeprefix("= ")


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
