"""Logs written with propensities, for tools that need them: tables, obp, Vowpal Wabbit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import did_you_mean
from onlooker.base.errors import InputError
from onlooker.base.text import shown
from onlooker.base.types import Vector
from onlooker.formats import long, obp, vw_dsjson, vw_text
from onlooker.formats.format import file_for, named
from onlooker.logs.log import BanditLog, as_log

COLUMN = "propensity"
"""In tables. Readers leave such a column out of the features."""
GROUP_VALUES = 1 << 22
"""Feature values that are turned into a table at a time."""


def write_propensities(
    log: BanditLog, values: ArrayLike, path: str | os.PathLike[str], *, format: str | None = None
) -> None:
    """Write a log with the probability of every offered arm, one per row; whole or not at all.

    `format` is `"parquet"` or `"csv"` (a long table with a column `propensity`), `"obp"` (an `.npz` file with `pscore`
    and `pi_b`), `"vw"` (text, labels `0:0:propensity`) or `"dsjson"` (with `p`); by default the file's name says it.
    Costs are not known here. Vowpal Wabbit's formats need one, and 0 is written: put yours in its place. obp's `reward`
    is left out: add it before an evaluation.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> log = BanditLog(np.eye(3)[:2], offsets=[0, 2], chosen=[1])
    >>> with TemporaryDirectory() as folder:
    ...     write_propensities(log, [0.25, 0.75], f"{folder}/log.csv")
    ...     print(Path(folder, "log.csv").read_text().splitlines()[1:])
    ['0,0,1,0,0,0.25', '0,1,0,1,0,0.75']
    """
    target = Path(path)
    probabilities = np.asarray(values, dtype=np.float64)
    with named(target, "written"):
        kind = find_format(str(target), format)
        if not as_log(log).n_rounds:
            raise InputError("the log has no rounds: there is nothing to write")
        if probabilities.shape != (int(log.offsets[-1]),):
            raise InputError(f"{probabilities.shape} propensities for {int(log.offsets[-1])} rows: pass one per row")
        if not ((probabilities > 0) & (probabilities <= 1)).all():
            raise InputError("propensities must be above 0 and at most 1: pass probabilities")
    with file_for(target) as file:
        WRITERS[kind](log, probabilities, file)


def write_groups(
    found: Mapping[str, tuple[BanditLog, Vector]], by: str, path: str | os.PathLike[str], *, format: str | None = None
) -> None:
    """Write the logs of many learners with their propensities as one long table; column `by` names the learner."""
    target = Path(path)
    with named(target, "written"):
        kind = find_format(str(target), format)
        if kind not in TABLES:
            raise InputError(f"{kind} has no column for the learner: write {' or '.join(TABLES)}")

    def tables() -> Iterator[Any]:
        import pyarrow as pa

        for name, (log, values) in found.items():
            for table in _tables(log, values, widen=kind == "csv"):
                yield table.add_column(0, by, pa.array([name] * len(table)))

    with file_for(target) as file:
        TABLES[kind](tables(), file)


def find_format(path: str, format: str | None) -> str:
    """What a file is written as: as asked for, or as its name says."""
    if format is not None:
        if format not in WRITERS:
            hint = did_you_mean(format, WRITERS)
            raise InputError(f"format {format!r} is not written: use {', '.join(WRITERS)}" + (hint and f"; {hint}"))
        return format
    for suffix, kind in _SUFFIXES.items():
        if path.lower().endswith(suffix):
            return kind
    raise InputError(f"{shown(Path(path).name)} does not say how to write it: pass format, one of {', '.join(WRITERS)}")


def _tables(log: BanditLog, values: Vector, *, widen: bool) -> Iterator[Any]:
    import pyarrow as pa

    done = 0
    for table in long.long_tables([log], widen=widen, values=GROUP_VALUES):
        yield table.append_column(COLUMN, pa.array(values[done : done + len(table)]))
        done += len(table)


def _write_parquet(tables: Iterator[Any], file: BinaryIO) -> None:
    import pyarrow.parquet as pq

    _write(tables, lambda schema: pq.ParquetWriter(file, schema))


def _write_csv(tables: Iterator[Any], file: BinaryIO) -> None:
    import pyarrow.csv as pc

    _write(tables, lambda schema: pc.CSVWriter(file, schema))


def _write(tables: Iterator[Any], opened: Callable[[Any], Any]) -> None:
    first = next(tables)
    with opened(first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


TABLES: dict[str, Callable[[Iterator[Any], BinaryIO], None]] = {"parquet": _write_parquet, "csv": _write_csv}
"""Formats that are tables."""


def _write_obp(log: BanditLog, values: Vector, file: BinaryIO) -> None:
    n_arms = int(log.n_arms[0])
    even = bool((log.n_arms == n_arms).all())
    more = {
        "pscore": values[log.chosen_rows],
        "position": np.zeros(log.n_rounds, dtype=np.int64),
        # obp has one more axis, for positions of a page.
        **({"pi_b": values.reshape(log.n_rounds, n_arms, 1)} if even else {}),
    }
    obp.write(log, file, more)


WRITERS: dict[str, Callable[[BanditLog, Vector, BinaryIO], None]] = {
    "parquet": lambda log, values, file: _write_parquet(_tables(log, values, widen=False), file),
    "csv": lambda log, values, file: _write_csv(_tables(log, values, widen=True), file),
    "obp": _write_obp,
    "vw": lambda log, values, file: vw_text.write(log, file, propensities=values),
    "dsjson": lambda log, values, file: vw_dsjson.write(log, file, propensities=values),
}
"""By name."""

_SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".npz": "obp",
    ".vw": "vw",
    ".txt": "vw",
    ".dat": "vw",
    ".dsjson": "dsjson",
    ".json": "dsjson",
}
