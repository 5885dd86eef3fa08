"""A report as a page."""

from __future__ import annotations

import hashlib
import math
import os
import platform
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from onlooker.base.checks import counted
from onlooker.base.errors import InputError
from onlooker.base.files import write_text
from onlooker.base.version import __version__
from onlooker.diagnosis import Diagnosis
from onlooker.diagnosis.sentences import date_of, dates_of
from onlooker.evaluation.study import Watch
from onlooker.imitation.score_models import LINEAR
from onlooker.logs.log import BanditLog
from onlooker.report.log_findings import LogAnalysis, analyse
from onlooker.report.log_sections import by_effect, sections_of, terms_section, using_section
from onlooker.report.page import Card, Column, Page, Section, Table, render
from onlooker.report.plots.style import ends_of


@dataclass(frozen=True, kw_only=True)
class Input:
    """A file that was read."""

    file: str
    """Its name."""
    sha256: str
    """Hash of its content, in hexadecimal digits."""
    size: int
    """Bytes."""

    @classmethod
    def of(cls, path: str | os.PathLike[str], name: str | None = None) -> Input:
        """Read a file for its hash; `name` is what it is called, where it is a copy.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     _ = Path(folder, "log.csv").write_bytes(b"abc")
        ...     found = Input.of(Path(folder, "log.csv"))
        >>> found.file, found.size, found.sha256[:8]
        ('log.csv', 3, 'ba7816bf')
        """
        try:
            with open(path, "rb") as content:
                digest = hashlib.file_digest(content, "sha256").hexdigest()
                size = content.tell()
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror})") from error
        return cls(file=name or Path(path).name, sha256=digest, size=size)


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a report says about where its log came from."""

    name: str = "the log"
    """What to call it."""
    by: str | None = None
    """The column that names the learner of a row, where there are several."""
    inputs: tuple[Input, ...] = ()
    """Files that were read."""
    assumed: tuple[str, ...] = ()
    """What was assumed about them, a line each."""
    warnings: tuple[str, ...] = ()
    """Warnings while they were read."""
    command: str = ""
    """The command that made the report, as it was typed."""
    saving: str = (
        'from onlooker import SuffixImitation\n\nSuffixImitation(burn_in="auto").fit(log).policy_.save("policy.json")'
    )
    """Lines that save the policy."""


def versions() -> Iterable[tuple[str, str]]:
    """What the figures were made with."""
    return ("onlooker", __version__), ("numpy", np.__version__), ("Python", platform.python_version())


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
    return f"{found.diagnosis.sentence} {dates_of(found.diagnosis, found.log)}".strip()


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
    date = None if log is None or place is None else date_of(log, place)
    dated = "" if date is None else f", {date}"
    details = {
        "moving": "no fixed policy explains the picks at the end of the log",
        "no preference": "the picks look uniformly random",
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


def provenance(source: Source, logs: Mapping[str, BanditLog] | None = None) -> Section:
    """What the page was made from, and with what."""
    rows: list[tuple[str, str]] = []
    for one in source.inputs:
        rows += [("file", one.file), ("its size", f"{one.size:,} bytes"), ("its SHA-256", one.sha256)]
    rows += [("assumed", line) for line in source.assumed]
    rows += [(name or "log", _counted(log)) for name, log in (logs or {}).items()]
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
