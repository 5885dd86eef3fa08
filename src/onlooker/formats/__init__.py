"""Reading and writing logs: the suffix narrows the formats down, the content decides.

Every format is one module with a `FORMAT` at its end; `registry.py` lists them.
"""

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from onlooker.base.errors import InputError
from onlooker.formats.arrow_source import SupportsArrowStream
from onlooker.formats.format import file_for, named
from onlooker.formats.opening import BATCH_ROWS, open_log, open_logs, open_scan
from onlooker.formats.registry import FORMATS, find_writer
from onlooker.formats.scan import LogScan
from onlooker.logs.log import BanditLog, as_log

__all__ = ["FORMATS", "LogScan", "read_log", "read_logs", "scan_log", "write_log", "write_parts"]


LogSource = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | SupportsArrowStream
"""What a log can be read from."""


def _with_sql(columns: dict[str, Any], sql: str | None) -> dict[str, Any]:
    return columns if sql is None else {**columns, "sql": sql}


def read_log(
    source: LogSource, *, sql: str | None = None, memory_limit: int | str | None = None, **columns: Any
) -> BanditLog:
    r"""Read a log, its format found by suffix and content.

    Parameters
    ----------
    source
        A Parquet file (one row per round with list columns, or one row per offered arm), an Arrow or Feather file, a
        CSV or JSONL file (one row per offered arm; `.gz`, `.zst` or `.bz2` too), or one of the formats that the
        documentation lists. Or several: a list in its own order, a folder, or a pattern such as `logs/*.parquet`, by
        name with numbers as numbers. Or `-` for the standard input, or the address of a store (`s3://bucket/logs`) or
        of a database (`sqlite:///file.db`, `postgresql://host/name`, `duckdb:///file.db`): copied here once. Or a long
        table of pyarrow, polars, pandas, DuckDB or another library, or a stream of one: any object with
        `__arrow_c_stream__`.
    sql
        Which rows of a database: a query, or the name of a table.
    memory_limit
        Peak memory that the process may take, in bytes or as text such as "800MB": a file that would take more is
        refused. By default that is the machine's memory.
    **columns
        Which columns mean what, where they are not called as `write_log` calls them. Long tables take `round`,
        `chosen`, `arm`, `features`, `categories`, `order_by`, `like`, `cross` and `slate` (see `BanditLog.from_frame`),
        tables of one row per round `wide` or `candidates` besides, or `context`, `offered`, `items` and `users` (tables
        of the arms and of the users by id; `user` is the column of their ids), nested ones `round`, `chosen`, `arm`,
        `arms`, `order_by` and `like`. In a long table `features` defaults to every column of numbers or of text with
        few levels that is none of these, nor a reward, a propensity or an id by its name and values. CSV takes
        `decimal` besides, its decimal mark: `","` in much of Europe; without it, numbers with commas are refused.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "trips.csv"
    ...     _ = path.write_text("trip,taken,price,hours\n7,0,9.5,2\n7,1,7.25,3\n8,1,4,1\n8,0,5,1\n")
    ...     log = read_log(path, round="trip", chosen="taken")
    >>> log.feature_names, log.chosen, log.round_ids
    (('price', 'hours'), array([1, 0]), array([7, 8]))

    >>> import pyarrow as pa
    >>> read_log(pa.table({"round": [7, 7, 8], "chosen": [0, 1, 1], "price": [9.5, 7.25, 4.0]})).chosen
    array([1, 0])
    """
    return open_log(source, _with_sql(columns, sql), memory_limit=memory_limit).log


def read_logs(
    source: LogSource,
    by: str,
    *,
    sql: str | None = None,
    memory_limit: int | str | None = None,
    **columns: Any,
) -> dict[str, BanditLog]:
    r"""Read several logs out of one file or table: column `by` separates the learners, in order of first appearance.

    Learners may be restarts of one, and each may number its rounds from the start: rounds of the same id under
    different values are different rounds. All logs are encoded alike. `memory_limit` and `columns` are those of
    `read_log`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "shops.csv"
    ...     _ = path.write_text("shop,round,chosen,price\nb,1,1,9\nb,1,0,8\na,1,1,5\na,2,1,4\n")
    ...     logs = read_logs(path, by="shop")
    >>> {shop: log.n_rounds for shop, log in logs.items()}
    {'b': 1, 'a': 2}
    """
    return open_logs(source, by, _with_sql(columns, sql), memory_limit=memory_limit).log


def scan_log(
    source: LogSource,
    *,
    sql: str | None = None,
    batch_rows: int = BATCH_ROWS,
    memory_limit: int | str | None = None,
    **columns: Any,
) -> LogScan:
    r"""Open a log without loading it.

    Parameters
    ----------
    source, sql
        As for `read_log`. A stream, which can be read only once, is copied to a temporary file, as the rows of a
        database are: every pass sees the same.
    batch_rows
        How many offered arms a part holds, about; a round is never split.
    memory_limit
        Peak memory that the process may take while it works on the scan, in bytes or as text such as "800MB". It
        decides how much is held at a time, in place of `batch_rows`. Up to 450 MB of it go to interpreter and
        libraries, so it is at least "500MB"; what does not fit is refused.
    **columns
        As for `read_log`.

    Notes
    -----
    Long tables must have the rows of a round next to each other; rounds that straddle batches, row groups or files are
    put together. A round that comes back is refused if the batch before it shows it, but not if it returns later
    still. `order_by` checks that times never fall, it does not sort. Levels of categories are gathered in a first pass
    over those columns, unless `like` has them. Formats without batches are read one file at a time, each of which has
    to fit. Files that change while they are read are refused: with an error in the pass that notices.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for day in (1, 2):
    ...         _ = Path(folder, f"day{day}.csv").write_text(f"round,chosen,price\n{day},1,9\n{day},0,8\n")
    ...     scan = scan_log(f"{folder}/*.csv")
    ...     scan.feature_names, sum(log.n_rounds for log in scan), scan.read().n_rounds
    (('price',), 2, 2)
    """
    return open_scan(source, _with_sql(columns, sql), batch_rows=batch_rows, memory_limit=memory_limit).log


def write_log(log: BanditLog, path: str | os.PathLike[str]) -> None:
    """Write a log, whole or not at all: `.parquet` as it is, one row per round; `.csv` and `.jsonl` as a long table.

    Parquet keeps everything. The others keep every value exactly, but have no place for types: float32 comes back as
    float64, categories as the numbers that they became, unnamed rounds and features with the names that they were given
    there, and in CSV ids that are all whole numbers as int64. Names are written as they are, also those that a
    spreadsheet would take for a formula: open logs from others in another program.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> log = BanditLog(np.eye(3), offsets=[0, 1, 3], chosen=[0, 1], round_ids=["01", "02"])
    >>> with TemporaryDirectory() as folder:
    ...     write_log(log, f"{folder}/log.parquet")
    ...     again = read_log(f"{folder}/log.parquet")
    >>> again, again.round_ids.tolist()
    (BanditLog(2 rounds, 1 to 2 arms, 3 features, float64), ['01', '02'])
    """
    target = Path(path)
    with named(target, "written"):
        if not as_log(log).n_rounds:
            raise InputError("the log has no rounds: there is nothing to write")
        write = find_writer(target, long=log.partial).write
        assert write is not None
    with file_for(target) as file:
        write(log, file)


def write_parts(logs: Iterable[BanditLog], path: str | os.PathLike[str], *, long: bool = False) -> None:
    """Write a log that comes in parts, whole or not at all; with `long` Parquet has one row per offered arm.

    No more than a part is held in memory where the format allows that.
    """
    target, parts = Path(path), iter(logs)
    first = next(parts, None)
    with named(target, "written"):
        # What is known in part has its columns in long tables only.
        found = find_writer(target, long=long or (first is not None and first.partial))
    logs = itertools.chain([] if first is None else [first], parts)
    try:
        with file_for(target) as file:
            if found.write_parts is not None:
                found.write_parts(_guarded(logs), file)
            else:
                assert found.write is not None
                found.write(BanditLog.concat(list(_guarded(logs))), file)
    except _ReadingError as error:
        raise error.error from error


class _ReadingError(Exception):
    """What went wrong with the parts themselves, not with the file that they are written to."""

    def __init__(self, error: InputError) -> None:
        super().__init__(str(error))
        self.error = error


def _guarded(logs: Iterable[BanditLog]) -> Iterator[BanditLog]:
    try:
        yield from logs
    except InputError as error:
        raise _ReadingError(error) from error
