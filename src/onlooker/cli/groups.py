"""Many learners in one log on the command line: `--by`, one table of the answers, and that table as a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from onlooker.base.checks import counted
from onlooker.base.errors import InputError
from onlooker.base.text import text_table
from onlooker.cli.console import progress_bar, say

if TYPE_CHECKING:
    from onlooker.logs.log import BanditLog

Found = TypeVar("Found")

TABLES = (".csv", ".parquet", ".jsonl")
"""What a table of all groups is written as, by the file's name."""
SHOWN = 50
"""Groups that are printed; a file has them all."""

by = click.option("--by", metavar="COLUMN", help="Column that names the learner or restart; each stands alone.")
workers = click.option("--workers", type=click.IntRange(min=1), help="Processes for --by; by default one a core.")


def refuse(by: str, **given: object) -> None:
    """Refuse options that are about one learner; each by its flag, with underscores for hyphens."""
    for name, value in given.items():
        if value not in {None, "local", False}:
            flag = f"--{name.replace('_', '-')}"
            raise InputError(f"{flag}: is for the log of one learner, so leave it or --by {by} out")


def for_each(
    text: str, work: Callable[[BanditLog], Found], logs: Mapping[str, BanditLog], workers: int | None
) -> dict[str, Found | InputError]:
    """What some work finds in each log, or why it found nothing."""
    from onlooker.observers.groups import each_group

    with progress_bar(text) as progress:
        return each_group(work, logs, workers=n_workers(workers, len(logs)), progress=progress)


def check_some(log: str, by: str, found: Sized, failed: Mapping[str, str]) -> None:
    """Refuse a log of which no group has an answer."""
    if failed and not len(found):
        raise InputError(f"{log}: no {by} has an answer: {next(iter(failed.values()))}")


def n_workers(asked: int | None, n_groups: int) -> int:
    """Processes to use: as many as there are cores, unless there is too little to do."""
    from onlooker.base.threads import n_threads
    from onlooker.observers.groups import AT_ONCE

    return asked if asked is not None else min(n_threads(), max(1, n_groups // AT_ONCE))


def print_table(by: str, headings: Sequence[str], rows: Mapping[str, Sequence[str]], where: str) -> None:
    """Print one row per group, up to a limit; `where` says where all of them are."""
    shown = [[name, *cells] for name, cells in list(rows.items())[:SHOWN]]
    for line in text_table([[by, *headings], *shown], "<  " + "  ".join(">" for _ in headings), rule=True):
        say(line)
    if len(rows) > SHOWN:
        say(f"... and {counted(len(rows) - SHOWN, 'group')} more: {where}")


def print_failed(by: str, failed: Mapping[str, object]) -> None:
    """Print which groups have no answer, and why."""
    for name, why in list(failed.items())[:SHOWN]:
        say(f"warning ({by} {name}): no answer: {why}", err=True)
    if len(failed) > SHOWN:
        say(f"warning: {counted(len(failed) - SHOWN, 'group')} more without an answer: --json lists them", err=True)


def write_table(rows: Sequence[Mapping[str, Any]], path: str) -> None:
    """Write rows as a table, by the file's name; whole or not at all."""
    import json

    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    from onlooker.base.files import atomic_file

    table = pa.Table.from_pylist([dict(row) for row in rows])
    with atomic_file(Path(path)) as file:
        if path.lower().endswith(".jsonl"):
            for row in rows:
                file.write((json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace"))
            return
        writer = pq.ParquetWriter if path.lower().endswith(".parquet") else pc.CSVWriter
        with writer(file, table.schema) as written:
            written.write_table(table)
