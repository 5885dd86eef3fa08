"""`onlooker diagnose`: whether and since when the learner behind a log has settled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from onlooker.base.errors import InputError
from onlooker.cli import options
from onlooker.cli.console import print_json, progress_bar, say
from onlooker.cli.opening import open_logs, open_scan, print_assumptions
from onlooker.cli.options import FILE, LEVEL

if TYPE_CHECKING:
    from onlooker.formats import LogScan
    from onlooker.logs.log import BanditLog


@click.command(short_help="Test whether the learner behind LOG has settled, and when.")
@click.argument("log", type=FILE)
@click.option(
    "--bins",
    default=10,
    show_default=True,
    type=click.IntRange(min=2),
    help="Number of equal parts of the log to compare.",
)
@click.option("--level", default=0.95, show_default=True, type=LEVEL, help="Nominal coverage of the intervals.")
@click.option("--by", metavar="COLUMN", help="Column that names the learner or restart; each is diagnosed separately.")
@options.memory_limit
@options.column_options
@options.as_json
def diagnose(
    log: str, bins: int, level: float, by: str | None, memory_limit: str | None, as_json: bool, **columns: Any
) -> None:
    """Test whether the learner behind LOG has settled, and since when, or explores, drifts or picks at random.

    Examples: onlooker diagnose log.parquet; onlooker diagnose log.csv --by shop --order-by time
    """
    from onlooker import diagnosis

    logs: Mapping[str, BanditLog | LogScan]
    if memory_limit is None:
        opened = open_logs(log, by, columns)
        logs, assumed = opened.log, opened.assumed
    elif by is None:
        scanned = open_scan(log, columns, memory_limit)
        logs, assumed = {"": scanned.log}, scanned.assumed
    else:
        raise InputError(f"--memory-limit {memory_limit}: --by sorts the whole file, so give one of the two")
    found = {}
    with progress_bar("diagnosing") as progress:
        for name, rounds in logs.items():
            found[name] = diagnosis.diagnose(rounds, bins, level=level)
            if progress is not None:
                progress(len(found), len(logs))
    if as_json and by is None:
        print_json({"log": log, "assumed": assumed, **found[""].to_dict()})
        return
    if as_json:
        diagnoses = {name: one.to_dict() for name, one in found.items()}
        print_json({"log": log, "by": by, "assumed": assumed, "diagnoses": diagnoses})
        return
    for name, one in found.items():
        say(f"{one!r}\n" if by is None else f"{by} {name}: {one!r}\n")
    for name, rounds in logs.items():
        say(f"{log}: {rounds!r}" if by is None else f"{log}, {by} {name}: {rounds!r}")
    print_assumptions(assumed)
