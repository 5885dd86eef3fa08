"""`onlooker convert`: a log from any format that is read to any that is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from onlooker.cli import options
from onlooker.cli.console import check_target, print_assumptions, print_json, say
from onlooker.cli.options import FILE, log_argument, open_log, open_scan

if TYPE_CHECKING:
    from onlooker.formats import LogScan
    from onlooker.logs.log import BanditLog


@click.command(short_help="Write a log in another format.")
@log_argument("source", metavar="IN...")
@click.argument("target", metavar="OUT", type=FILE)
@click.option("--long", "as_long", is_flag=True, help="Parquet with one row per offered arm instead of one per round.")
@click.option("--arms", metavar="COLUMN", help="Lists of the arms' features, in a table of one row per round.")
@options.memory_limit
@options.column_options
@options.as_json
def convert(source: str, target: str, as_long: bool, memory_limit: str | None, as_json: bool, **columns: Any) -> None:
    """Write the log IN to OUT, in the format of its suffix.

    IN may be several files, a folder, a pattern such as "logs/*.csv" in quotes, a store, a database or - for the
    standard input. A file larger than memory is converted a part at a time, unless --order-by has to sort it first or
    --missing leaves rounds out.

    Example: onlooker convert trips.csv log.parquet --round trip --chosen taken
    """
    from onlooker.formats import write_parts
    from onlooker.formats.registry import check_writable
    from onlooker.logs.log import BanditLog

    check_writable(target, long=as_long)
    check_target("OUT", target, log=source)
    whole = columns["order_by"] or (columns["missing"] and memory_limit is None)
    opened = open_log(source, columns) if whole else open_scan(source, columns, memory_limit)
    counted = _Counted([opened.log] if isinstance(opened.log, BanditLog) else opened.log)
    write_parts(counted, target, long=as_long)
    if as_json:
        counts = {"rounds": counted.rounds, "arms": counted.rows, "features": counted.features}
        print_json({"in": source, "out": target, "assumed": opened.assumed, **counts})
        return
    say(f"{source} -> {target}: {counted.rounds} rounds, {counted.rows} offered arms, {counted.features} features")
    print_assumptions(opened.assumed)


class _Counted:
    """Counts what passes through."""

    def __init__(self, parts: LogScan | list[BanditLog]) -> None:
        self._parts = parts
        self.rounds = self.rows = self.features = 0

    def __iter__(self) -> Iterator[BanditLog]:
        for log in self._parts:
            self.rounds += log.n_rounds
            self.rows += len(log.features)
            self.features = log.n_features
            yield log
