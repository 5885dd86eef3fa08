"""The reproduction: run what is missing, then tables, claims, figures and a page from what is there."""

from __future__ import annotations

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
from onlooker.experiments.claims import claims, claims_json, claims_markdown
from onlooker.experiments.paper import Paper
from onlooker.experiments.paper_figures import PaperFigure, paper_figures
from onlooker.experiments.paper_page import paper_page
from onlooker.experiments.runner import TaskProgress, run_tasks
from onlooker.experiments.tables import write_csv
from onlooker.experiments.workers import Workers, WorkersOf
from onlooker.report.page import render

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
