"""The reproduction: run the missing cells, then write tables, claims, figures and a page from all cells."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from onlooker.base.files import remove_temporaries, write_text
from onlooker.base.version import __version__
from onlooker.experiments import diagnostics, grid
from onlooker.experiments.claim import Claim
from onlooker.experiments.claims import claims, claims_json, claims_markdown, number, tally
from onlooker.experiments.paper import Paper
from onlooker.experiments.paper_figures import PaperFigure, paper_figures
from onlooker.experiments.runner import TaskProgress, run_tasks
from onlooker.experiments.tables import write_csv
from onlooker.experiments.workers import Workers, WorkersOf
from onlooker.report.page import Column, Page, Section, Table, render

LIBRARIES = ("numpy", "scipy", "numba", "matplotlib")
"""Whose versions the provenance names."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Reproduction:
    """The results, and where they were written."""

    claims: tuple[Claim, ...]
    """One by one, with their verdicts."""

    figures: tuple[PaperFigure, ...]
    """Those that the tables have rows for."""

    page: Path
    """The HTML page that shows all of it."""


def reproduce(
    paper: Paper,
    folder: str | os.PathLike[str],
    *,
    figure: str | None = None,
    command: str = "",
    workers: int | None = None,
    progress: TaskProgress | None = None,
    hire: WorkersOf = Workers,
) -> Reproduction:
    """Run the cells that are missing in `folder` and write all outputs again from the cells they need.

    With `figure`, only the cells of that figure are run, and only it is drawn; the claims are judged on them alone.
    """
    tasks = paper.tasks(figure)
    done = run_tasks(paper, tasks, folder, settings=paper.settings(), workers=workers, progress=progress, hire=hire)
    root = Path(folder)
    results = list(_rows(done, "grid-"))
    bins = list(_rows(done, "diagnostics-"))
    write_csv(root / "results.csv", results, grid.COLUMNS)
    write_csv(root / "diagnostics.csv", bins, diagnostics.COLUMNS)
    judged = claims(results, bins)
    write_text(root / "claims.md", claims_markdown(judged))
    write_text(root / "claims.json", claims_json(judged))
    drawn = [one for one in paper_figures(results, bins) if figure is None or one.name.startswith(figure)]
    (root / "figures").mkdir(exist_ok=True)
    remove_temporaries(root / "figures")
    for one in drawn:
        one.save(root / "figures")
    page = root / "index.html"
    write_text(page, render(paper_page(judged, drawn, provenance(paper, command))))
    return Reproduction(claims=judged, figures=tuple(drawn), page=page)


def provenance(paper: Paper, command: str) -> dict[str, object]:
    """What must be the same to get the same numbers."""
    return {
        "command": command,
        "onlooker": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
        "seeds": f"{min(paper.grid.seeds)} to {max(paper.grid.seeds)}",
        **paper.settings()["grid"],
        "environments (d, K)": list(paper.grid.environments),
        "diagnostics (d, K, N)": list(paper.diagnosed),
    }


def _rows(done: Mapping[str, Sequence[dict[str, Any]]], prefix: str) -> Iterator[dict[str, Any]]:
    for key, rows in done.items():
        if key.startswith(prefix):
            yield from rows


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
