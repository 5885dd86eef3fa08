"""The sections of a report, each made of what was found on one log."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from onlooker.base.checks import counted
from onlooker.base.text import p_words
from onlooker.base.types import Index, Matrix
from onlooker.diagnosis import Test
from onlooker.diagnosis.sentences import span_of
from onlooker.imitation.burn_in import TOLERANCE, HeldOutCurve
from onlooker.logs.categories import Encoding
from onlooker.logs.policy import LinearPolicy
from onlooker.observers import Coefficient
from onlooker.report.curves import curves_sections
from onlooker.report.log_findings import LogAnalysis
from onlooker.report.page import Column, Section, Table
from onlooker.report.plots import Chart, HeatChart, IntervalChart, Level, Mark, Series, diagnosis_charts
from onlooker.report.tracking_page import tracking_section

DRAWN = 30
"""Effects that are drawn: the largest; the table has all."""

ARMS, FEATURES = 30, 20
"""Arms and features of the context in a coloured table: those with the largest weights."""

LONG = 15
"""A table of more coefficients stands behind a line to click."""


def sections_of(found: LogAnalysis) -> tuple[Section, ...]:
    """Everything about one learner, in reading order."""
    curves = () if found.curved is None else curves_sections(found.curved)
    tracked = tracking_section(found.tracking, found.diagnosis)
    return values_section(found), *curves, *time_sections(found), burn_in_section(found), tracked


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
    span = span_of(found.log)
    return charts if span is None else tuple(replace(one, x_label=f"{one.x_label}, {span}") for one in charts)


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


_LOADING = """

from onlooker import LinearPolicy

policy = LinearPolicy.load("policy.json")
position = policy.pick(offers)"""


def using_section(policy: LinearPolicy, saving: str) -> Section:
    """How to save, load and use the policy."""
    width = len(policy.theta)
    offers = f"an array of shape (arms, {width})"
    if policy.feature_names is not None:
        columns = [repr(column) for column in Encoding.of(policy).columns]
        shown = ", ".join(columns[:8]) + (f" and {len(columns) - 8} more" if len(columns) > 8 else "")
        offers = (
            f"a table (pandas, polars, pyarrow) with the columns {shown}, or {offers} in the order of "
            "policy.feature_names"
        )
    return Section(
        title="How to use the policy",
        text=(
            f"Save it once, load it anywhere. The offers have one row for each arm of a round: {offers}. The answer "
            "is the position of the best arm, counted from 0. The file is JSON: loading it runs no code."
        ),
        code=saving + _LOADING,
    )


_TERMS = {
    "agreement": "The share of rounds in which a policy picks what the learner picked.",
    "burn-in": (
        "The rounds at the beginning of the log that are discarded before a fit, because the learner was still "
        "exploring."
    ),
    "evidence": "The probability of the picks under a model, averaged over what is unknown about it.",
    "log-odds": "The logarithm of p / (1 - p).",
    "predictability": (
        "The share of picks that a policy predicts correctly when it was fitted to other rounds of the same period."
    ),
    "sandwich covariance": (
        "An estimate of the covariance of the weights from the scatter of the rounds' gradients, which stays valid "
        "where the model is not exactly right."
    ),
}
"""As the glossary in `docs/` explains them."""


def terms_section() -> Section:
    """The terms of the page, a sentence each.

    Examples
    --------
    >>> [term for term, _ in terms_section().table.rows][:2]
    ['agreement', 'burn-in']
    """
    return Section(
        title="Terms", table=Table((Column("term"), Column("meaning", wrap=True)), tuple(_TERMS.items())), folded=True
    )


def _p(test: Test) -> str:
    return p_words(test.p_value, test.least_p).removeprefix("= ")


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
