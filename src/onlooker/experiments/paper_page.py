"""The reproduction on one page: the verdicts, the figures with the numbers behind them, and how it was made."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from onlooker.experiments.claims import Claim, number, tally
from onlooker.experiments.paper_figures import PaperFigure
from onlooker.report.page import Column, Page, Section, Table

_MARKS = {"holds": "\u2713 holds", "does not hold": "\u2717 does not hold", "inconclusive": "? inconclusive"}


def paper_page(claims: Sequence[Claim], figures: Sequence[PaperFigure], provenance: Mapping[str, object]) -> Page:
    """Put the reproduction on a page.

    Parameters
    ----------
    claims
        Each claim, and its parts.
    figures
        In the order of the page.
    provenance
        What it was made with, by name: versions, seeds, settings, the command.

    Examples
    --------
    >>> claim = Claim(key="5-rate", text="It falls", paper="-1/2", ours=-0.91, low=-1.0, high=-0.8, verdict="holds")
    >>> page = paper_page([claim], [], {"command": "onlooker reproduce", "seeds": [0, 1]})
    >>> [section.title for section in page.sections]
    ['Does it hold?', 'How this was made']
    """
    whole = [claim for claim in claims if claim.part_of is None]
    parts = [claim for claim in claims if claim.part_of is not None]
    sections = []
    if whole:
        sections.append(Section(title="Does it hold?", text=_HOW, table=_verdicts(whole)))
    sections += [Section(title=figure.title, text=figure.caption, charts=figure.charts) for figure in figures]
    if parts:
        text = "The same claims for every setting and metric: a claim holds where all of its panels do."
        sections.append(Section(title="The claims panel by panel", text=text, table=_verdicts(parts), folded=True))
    made = Table((Column("what"), Column("value", wrap=True)), tuple((k, _plain(v)) for k, v in provenance.items()))
    sections.append(Section(title="How this was made", table=made))
    return Page(title="The paper's figures and claims, reproduced", lead=_lead(claims), sections=tuple(sections))


_HOW = (
    "Every verdict is computed from the tables. Comparisons are paired over seeds and made on logarithms, so a ratio "
    "is one of geometric means; intervals are 95%. A comparison holds if it is significant at 5%, one-sided, does not "
    "hold if it is significant the other way round, and is inconclusive otherwise. A U-shape that is not significant "
    "counts as not holding."
)


def _lead(claims: Sequence[Claim]) -> str:
    if not claims:
        return "No claim could be judged from what was run."
    return (
        f"{tally(claims)} A claim about several settings holds only if it holds in each of them; the exceptions are "
        "named beside it."
    )


def _verdicts(claims: Sequence[Claim]) -> Table:
    columns = (
        Column("claim", wrap=True),
        Column("verdict"),
        Column("ours", wrap=True),
        Column("paper", wrap=True),
        Column("detail", wrap=True),
    )
    rows = ((claim.text, _MARKS[claim.verdict], _ours(claim), claim.paper, claim.detail) for claim in claims)
    return Table(columns, tuple(rows))


def _ours(claim: Claim) -> str:
    """The number with its interval, in the paper's form."""
    if claim.low is None or claim.high is None:
        return number(claim.ours)
    # The interval stays on one line.
    return f"{number(claim.ours)} [{number(claim.low)},\u00a0{number(claim.high)}]"


def _plain(value: object) -> str:
    """Text as it is; everything else as JSON, which the same value always gives the same."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
