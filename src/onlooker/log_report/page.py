"""A report as a page."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace

from onlooker.checks import counted
from onlooker.errors import InputError
from onlooker.files import write_text
from onlooker.log import BanditLog
from onlooker.log_report.findings import Found, look_at
from onlooker.log_report.sections import by_size, sections_of, using_section
from onlooker.log_report.source import Source, versions
from onlooker.plots.text import ends_of
from onlooker.report import Column, Page, Section, Table, render
from onlooker.study import Watch


def report_page(
    log: BanditLog | Mapping[str, BanditLog], source: Source | None = None, *, watch: Watch = lambda _: nullcontext()
) -> Page:
    """Put what a log tells on a page; several logs by name are looked at apart.

    The page holds names, weights and counts, but no row of features. The same log gives the same page.

    Examples
    --------
    >>> from onlooker.environment import Environment
    >>> from onlooker.learners import LinUCB
    >>> from onlooker.simulation import simulate
    >>> page = report_page(simulate(Environment(5, 10), LinUCB(), n_rounds=2000).log)
    >>> page.lead.startswith("Settled")
    True
    """
    logs = log if isinstance(log, Mapping) else {"": log}
    return page_of({name: look_at(one, watch=watch) for name, one in logs.items()}, source or Source())


def write_report(page: Page, path: str | os.PathLike[str]) -> None:
    """Write a page as one HTML file, whole or not at all."""
    write_text(path, render(_as_page(page)))


def _as_page(page: object) -> Page:
    if not isinstance(page, Page):
        kind = type(page).__name__
        raise InputError(f"a {kind} is not a page: pass what report_page(log) gives, as in write_report(page, path)")
    return page


def page_of(found: Mapping[str, Found], source: Source) -> Page:
    """Put what was found on a page; a single learner is named by its log alone."""
    first = next(iter(found.values()))
    ending = (using_section(first.policy, source.saving), _provenance(found, source))
    if source.by is None:
        return Page(
            title=f"What the learner behind {source.name} values",
            lead=f"{first.diagnosis.sentence}\n\n{_surest(first)}",
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
        lead=f"{len(found):,} learners, told apart by {source.by!r}. Each was looked at on its own.",
        warnings=tuple(warnings),
        sections=(*sections, *ending),
    )


def _surest(found: Found) -> str:
    """The weights that stand out most from their errors, in a sentence; the largest where no error is known."""
    summary = found.summary
    known = [c for c in summary.coefficients if math.isfinite(c.z)]
    ranked = sorted(known, key=lambda c: -abs(c.z)) if known else by_size(summary.coefficients)
    most = "surest" if known else "largest"
    shown = ", ".join(f"{ends_of(c.name, 40)} ({c.estimate:+.3g})" for c in ranked[:3])
    rounds = f"Recovered from {summary.n_rounds:,} rounds after a burn-in of {summary.burn_in:,}"
    return f"{rounds}. The {most} of its {len(summary.coefficients):,} weights: {shown}."


def _verdicts(found: Mapping[str, Found], by: str) -> Section:
    return Section(
        title="The verdicts",
        table=Table(
            (Column(by), Column("verdict"), Column("rounds", align="right"), Column("in words", wrap=True)),
            tuple((name, f.diagnosis.verdict, f.log.n_rounds, f.diagnosis.sentence) for name, f in found.items()),
        ),
    )


def _provenance(found: Mapping[str, Found], source: Source) -> Section:
    """What the page was made from, and with what."""
    rows: list[tuple[str, str]] = []
    for one in source.inputs:
        rows += [("file", one.file), ("its size", f"{one.size:,} bytes"), ("its SHA-256", one.sha256)]
    rows += [("assumed", line) for line in source.assumed]
    rows += [(name or "log", _counted(one.log)) for name, one in found.items()]
    rows += [("command", source.command)] if source.command else []
    rows += list(versions())
    return Section(
        title="Where this comes from",
        text="Nothing in it is random: the same files, command and versions give the same page.",
        table=Table((Column("what"), Column("value", wrap=True)), tuple(rows)),
    )


def _counted(log: BanditLog) -> str:
    fewest, most = int(log.n_arms.min()), int(log.n_arms.max())
    arms = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
    return f"{log.n_rounds:,} rounds of {arms} {'arm' if most == 1 else 'arms'}, {counted(log.n_features, 'feature')}"
