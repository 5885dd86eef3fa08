"""`onlooker reproduce`: the paper's experiments, and whether its claims hold."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import click

from onlooker.cli import options
from onlooker.cli.console import print_json, say
from onlooker.cli.options import FOLDER, check_engine, engine_options, words

if TYPE_CHECKING:
    from onlooker.experiments.paper import Paper
    from onlooker.experiments.runner import TaskProgress
    from onlooker.experiments.workers import WorkersOf


@click.command(short_help="Run the paper's experiments and judge its claims.")
@click.option(
    "--figure",
    metavar="NAME",
    shell_complete=words("figure1", "figure2", "appendixA"),
    help="Only this one: figure1, figure2, appendixA, or as figure1-d50-K200.",
)
@click.option("--seeds", default=20, show_default=True, type=click.IntRange(min=1), help="How many, from 0.")
@click.option("--quick", is_flag=True, help="A small grid, to see that everything works.")
@click.option(
    "--tracking", is_flag=True, help="Put the tracking observer beside the paper's; takes about twice as long."
)
@click.option(
    "--out", default="onlooker-paper", show_default=True, type=FOLDER, metavar="DIR", help="Where results are kept."
)
@click.option("--workers", type=click.IntRange(min=1), help="Number of processes; by default one per core.")
@engine_options
@click.option("--dry-run", is_flag=True, help="Say what would be run, and about how long it takes.")
@options.as_json
def reproduce(
    figure: str | None,
    seeds: int,
    quick: bool,
    tracking: bool,
    out: str,
    workers: int | None,
    engine: str,
    address: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Run every experiment of the paper and judge its claims; stop and start again as you like.

    Example: onlooker reproduce --seeds 20 --out onlooker-paper
    """
    from onlooker.experiments.paper import full_paper, quick_paper
    from onlooker.experiments.reproduce import reproduce as run

    check_engine(engine, address)
    paper = (quick_paper if quick else full_paper)(seeds, tracking=tracking)
    if dry_run:
        _estimate(paper, figure, workers, as_json=as_json)
        return
    command = (
        f"onlooker reproduce --seeds {seeds}" + (" --quick" if quick else "") + (" --tracking" if tracking else "")
    )
    command += f" --figure {figure}" if figure else ""
    with _cells_bar() as progress:
        found = run(
            paper,
            out,
            figure=figure,
            command=command,
            workers=workers,
            progress=progress,
            hire=_workers_of(engine, address),
        )
    whole = [claim for claim in found.claims if claim.part_of is None]
    if as_json:
        rows = [
            {"key": c.key, "claim": c.text, "ours": c.ours, "verdict": c.verdict, "detail": c.detail} for c in whole
        ]
        print_json({"out": out, "page": str(found.page), "figures": [f.name for f in found.figures], "claims": rows})
        return
    for claim in whole:
        say(f"{claim.verdict:>13}  {claim.text}")
    tally = Counter(claim.verdict for claim in whole)
    say(f"\n{', '.join(f'{verdict}: {count}' for verdict, count in sorted(tally.items()))}")
    say(f"claims: {out}/claims.md; figures: {out}/figures; all on one page: {found.page}")


def _workers_of(engine: str, address: str | None) -> WorkersOf:
    from onlooker.experiments.cluster_workers import ClusterWorkers
    from onlooker.experiments.workers import Workers

    return Workers if engine == "local" else partial(ClusterWorkers, address=address)


def _estimate(paper: Paper, figure: str | None, workers: int | None, *, as_json: bool) -> None:
    from onlooker.experiments.paper import estimate

    plan = estimate(paper, figure=figure, workers=workers)
    if as_json:
        print_json(plan)
        return
    minutes = "less than a minute" if plan["minutes"] < 1 else f"about {plan['minutes']:.0f} minutes"
    say(f"{plan['cells']} cells on {plan['workers']} workers: {minutes}, if the machine stays as busy as it is")
    say(f"memory: about {plan['memory_mb']:.0f} MB; disk: about {plan['disk_mb']:.0f} MB")


@contextmanager
def _cells_bar() -> Iterator[TaskProgress | None]:
    """A bar with the runner's estimate of the time left, on a terminal only."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("cells"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("cells", total=None, left="")

        def show(done: int, total: int, seconds: float | None) -> None:
            left = "" if seconds is None else f"{seconds / 60:.1f} min left"
            bar.update(task, completed=done, total=total, left=left)

        yield show
