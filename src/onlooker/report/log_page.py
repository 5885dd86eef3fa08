"""The report on a log, or on several learners, as a page."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from onlooker.base.errors import InputError
from onlooker.base.files import write_text
from onlooker.base.text import ends_of
from onlooker.diagnosis import Diagnosis
from onlooker.diagnosis.result import date_of, dates_of
from onlooker.evaluation.study import Watch
from onlooker.imitation.choice_model import LINEAR
from onlooker.logs.categories import Encoding
from onlooker.logs.log import BanditLog
from onlooker.logs.policy import LinearPolicy
from onlooker.observers import TrackingObserver
from onlooker.observers.summaries import TrackingSummary
from onlooker.observers.tracking import FAMILIES
from onlooker.report.curves import curves_sections
from onlooker.report.log_analysis import LogAnalysis, analyse, burn_in_section, by_effect, time_sections, values_section
from onlooker.report.page import Card, Column, Page, Section, Source, Table, provenance, render, terms_section
from onlooker.report.plots.results import tracking_charts


def report_page(
    log: BanditLog | Mapping[str, BanditLog],
    source: Source | None = None,
    *,
    score: Any = LINEAR,
    watch: Watch = lambda _: nullcontext(),
) -> Page:
    """Put what a log shows on a page; several logs by name are analysed separately.

    With a `score` that is not linear (see `SuffixImitation`) the page also has curves of the features, and what they
    gain on picks that were held out.

    The page holds names, weights and counts, but no row of features. The same log gives the same page.

    Examples
    --------
    >>> from onlooker.simulation.environment import Environment
    >>> from onlooker.simulation.learners import LinUCB
    >>> from onlooker.simulation.play import simulate
    >>> page = report_page(simulate(Environment(5, 10), LinUCB(), n_rounds=2000).log)
    >>> page.lead.startswith("What it values is stable")
    True
    """
    logs = log if isinstance(log, Mapping) else {"": log}
    return page_of({name: analyse(one, score=score, watch=watch) for name, one in logs.items()}, source or Source())


def write_report(page: Page, path: str | os.PathLike[str]) -> None:
    """Write a page as one HTML file, whole or not at all."""
    write_text(path, render(_as_page(page)))


def _as_page(page: object) -> Page:
    if not isinstance(page, Page):
        kind = type(page).__name__
        raise InputError(f"a {kind} is not a page: pass what report_page(log) gives, as in write_report(page, path)")
    return page


def page_of(found: Mapping[str, LogAnalysis], source: Source) -> Page:
    """Put what was found on a page; a single learner is named by its log alone."""
    first = next(iter(found.values()))
    ending = (
        using_section(first.policy, source.saving),
        provenance(source, {name: one.log for name, one in found.items()}),
        terms_section(),
    )
    if source.by is None:
        return Page(
            title=f"What the learner behind {source.name} values",
            cards=cards_of(first.diagnosis, first.log),
            lead="\n\n".join(filter(None, (_in_words(first), _most_certain(first)))),
            warnings=(*source.warnings, *first.warnings),
            sections=(*sections_of(first), *ending),
        )
    sections = [_verdicts(found, source.by)]
    warnings = list(source.warnings)
    for name, one in found.items():
        named = f"{source.by} {name}"
        warnings += [f"{named}: {text}" for text in one.warnings]
        sections += [replace(section, title=f"{named}: {section.title}") for section in sections_of(one)]
    return Page(
        title=f"What the learners behind {source.name} value",
        lead=f"{len(found):,} learners, one for each value of {source.by!r}. Each was analysed separately.",
        warnings=tuple(warnings),
        sections=(*sections, *ending),
    )


def _in_words(found: LogAnalysis) -> str:
    """The verdict, with the dates of its rounds where they are known."""
    dates = [dates_of(found.diagnosis, found.log)] if found.log.dated else []
    return " ".join([found.diagnosis.sentence, *dates])


def cards_of(found: Diagnosis, log: BanditLog | None = None) -> tuple[Card, ...]:
    """What the learner values and how it picks, at a glance; rounds have their dates where the log knows them.

    Examples
    --------
    >>> from onlooker import Environment, EpsilonGreedy, diagnose, simulate
    >>> found = diagnose(simulate(Environment(5, 10), EpsilonGreedy(0.2), n_rounds=2000).log)
    >>> [(card.question, card.answer) for card in cards_of(found)][0]
    ('What it values', 'Stable')
    """
    values, exploration = found.values, found.exploration
    place = values.changed_at or values.since
    dated = "" if log is None or place is None or not log.dated else f", {date_of(log, place)}"
    details = {
        "moving": "no fixed policy explains the picks",
        "no preference": "no weights for the features explain the picks",
        "not enough evidence": "too few rounds, or none that a policy predicts",
        "changed": f"at about round {values.changed_at or 0:,}{dated}",
        "stable": f"since about round {values.since:,}{dated}" if values.since else "from the start",
    }
    state = values.state
    cards = [
        Card(
            question="What it values",
            answer=state.capitalize(),
            detail=details[state],
            alert=state in {"moving", "changed"},
        )
    ]
    if exploration.share is not None:
        ends = f"{found.level:.0%} interval {exploration.low:.1%} to {exploration.high:.1%}"
        cards.append(
            Card(
                question="How it picks",
                answer=f"{exploration.share:.1%} exploring",
                detail=f"recent picks that are not its best guess; {ends}; {exploration.trend}",
                alert=exploration.trend == "rising",
            )
        )
    return tuple(cards)


def _most_certain(found: LogAnalysis) -> str:
    """The weights that stand out most from their errors, in a sentence; the largest where no error is known."""
    summary = found.summary
    known = [c for c in summary.coefficients if math.isfinite(c.z)]
    ranked = sorted(known, key=lambda c: -abs(c.z)) if known else [one.coefficient for one in by_effect(found)]
    most = "Most certain" if known else "Largest"
    shown = ", ".join(f"{ends_of(c.name, 40)} ({c.estimate:+.3g})" for c in ranked[:3])
    rounds = f"Recovered from {summary.n_rounds:,} rounds after a burn-in of {summary.burn_in:,}"
    return f"{rounds}. {most} of its {len(summary.coefficients):,} preferences: {shown}."


def _verdicts(found: Mapping[str, LogAnalysis], by: str) -> Section:
    return Section(
        title="The verdicts",
        table=Table(
            (Column(by), Column("verdict"), Column("rounds", align="right"), Column("in words", wrap=True)),
            tuple((name, f.diagnosis.verdict, f.log.n_rounds, _in_words(f)) for name, f in found.items()),
        ),
    )


def sections_of(found: LogAnalysis) -> tuple[Section, ...]:
    """Everything about one learner, in reading order."""
    curves = () if found.curved is None else curves_sections(found.curved)
    tracked = tracking_section(found.tracking, found.diagnosis)
    return values_section(found), *curves, *time_sections(found), burn_in_section(found), tracked


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


_ABOUT = (
    "Every round was used: the observer follows the learner's estimate from pick to pick. Constants are in units of "
    "the reward noise. The evidence is the log-probability of the picks that decided; three more is twenty times as "
    "likely."
)

_ABOUT_MODEL_FREE = (
    "Every round was used: the weights walk from pick to pick, whatever the learner is. The chart has them at "
    "checkpoints, from the picks until then."
)


def tracking_section(observer: TrackingObserver, verdict: Diagnosis | None = None) -> Section:
    """How the learner explores and whether it has settled, the way its estimate went, and what else was considered.

    A `verdict` adds what holds whatever the family: what the learner values over time, and how it picks.

    Examples
    --------
    >>> from onlooker.simulation.environment import Environment
    >>> from onlooker.simulation.learners import LinUCB
    >>> from onlooker.simulation.play import simulate
    >>> section = tracking_section(TrackingObserver().fit(simulate(Environment(5, 20), LinUCB(), n_rounds=2500).log))
    >>> section.title, len(section.charts), len(section.table.rows)
    ('How it explores, and where its estimate went', 1, 4)
    """
    summary = observer.summary()
    about = _ABOUT if summary.named else _ABOUT_MODEL_FREE
    answers = [] if verdict is None else [f"Whatever the family: {verdict.sentence}"]
    found = [" ".join(summary.words), *answers, *(f"Warning: {text}." for text in summary.warnings), about]
    return Section(
        title="How it explores, and where its estimate went" if summary.named else "Where its weights went",
        text="\n\n".join(found),
        charts=tracking_charts(observer),
        table=families_table(summary) if summary.named else None,
    )


def families_table(summary: TrackingSummary) -> Table:
    """The kinds of exploration that were considered, the nearest first; it stands out if it fits.

    Examples
    --------
    >>> from onlooker import UCB, Environment, LinUCB, simulate
    >>> log = simulate(Environment(5, 20), LinUCB(), n_rounds=500).log
    >>> families_table(TrackingObserver(exploration=UCB(1.0)).fit(log).summary()).rows[0][:3]
    ('optimism (upper confidence bounds)', 'alpha', 1.0)
    """
    best = max(one.evidence for one in summary.families)
    return Table(
        (
            Column("kind of exploration"),
            Column("constant"),
            Column("best guess", ".3g", "right"),
            Column("plausible", None, "right"),
            Column("log-evidence", ".1f", "right"),
            Column("behind by", ".1f", "right"),
        ),
        tuple(
            (
                one.words,
                FAMILIES[one.name].constant,
                one.strength,
                f"{one.low:.3g} to {one.high:.3g}" if one.low < one.high else None,
                one.evidence,
                best - one.evidence,
            )
            for one in summary.families
        ),
        highlight=0 if summary.fits else None,
    )
