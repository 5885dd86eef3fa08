"""Reading and writing logs: the suffix narrows the formats down, the content decides.

Every format is one module with a `FORMAT` at its end; `FORMATS` lists them.
"""

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onlooker.errors import InputError
from onlooker.files import atomic_path
from onlooker.formats import long_csv, long_parquet, nested_parquet
from onlooker.formats.format import Format, one_line
from onlooker.log import BanditLog

__all__ = ["FORMATS", "read_log", "write_log"]

FORMATS: tuple[Format, ...] = (nested_parquet.FORMAT, long_parquet.FORMAT, long_csv.FORMAT)
"""In the order in which they are asked; the first that can write a suffix writes it."""

_COLUMNS = ("round", "chosen", "arm", "arms", "order_by")
_LISTS = ("features", "categories")


def read_log(path: str | os.PathLike[str], **columns: Any) -> BanditLog:
    r"""Read a log, its format found by suffix and content.

    Parameters
    ----------
    path
        A Parquet file (one row a round with list columns, or one row per offered arm) or a CSV file (one row per
        offered arm).
    **columns
        Which columns mean what, where they are not called as `write_log` calls them: `round`, `chosen`, `arm`,
        `features` and `order_by` for long tables (see `BanditLog.from_frame`), `round`, `chosen`, `arm` and `arms` for
        nested ones. In a long table `features` defaults to every numeric column that is none of these, nor a reward
        or a propensity by its name.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "trips.csv"
    ...     _ = path.write_text("trip,taken,price,hours\n7,0,9.5,2\n7,1,7.25,3\n8,1,4,1\n8,0,5,1\n")
    ...     log = read_log(path, round="trip", chosen="taken")
    >>> log.feature_names, log.chosen, log.round_ids
    (('price', 'hours'), array([1, 0]), array([7, 8]))
    """
    source = Path(path)
    with _named(source, "read"):
        found = _found(source)
        _check_options(found, columns)
        return found.read(source, **columns)


def write_log(log: BanditLog, path: str | os.PathLike[str]) -> None:
    """Write a log, whole or not at all: `.parquet` as it is, one row a round; `.csv` as a long table.

    Parquet keeps everything. CSV keeps every value exactly, but has no place for types: float32 comes back as float64,
    ids that are all whole numbers as int64, and unnamed rounds and features with the names that they were given there.

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
    with _named(target, "written"):
        write = _writer(target, log)
    with atomic_path(target) as temporary, _named(target, "written"):
        write(log, temporary)


@contextmanager
def _named(path: Path, done: str) -> Iterator[None]:
    """Put the file's name in front of what went wrong with it."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be {done} ({one_line(error)})") from error


def _found(path: Path) -> Format:
    """The format that a file or folder is in."""
    if path.is_dir():
        holds = next((one for one in FORMATS if one.folder and one.recognises(path)), None)
        if holds is None:
            raise InputError("is a folder: name a file in it")
        return holds
    candidates = _candidates(path)
    if not path.exists():
        raise InputError("there is no such file: check the path")
    if path.is_file() and not path.stat().st_size:
        raise InputError("is empty: it should hold a log")
    return next((one for one in candidates[:-1] if one.recognises(path)), candidates[-1])


def _candidates(path: Path) -> list[Format]:
    name = path.name.lower()
    candidates = [one for one in FORMATS if name.endswith(one.suffixes)]
    if not candidates:
        known = sorted({suffix for one in FORMATS for suffix in one.suffixes})
        raise InputError(f"has none of the known suffixes {', '.join(known)}: convert or rename it")
    return candidates


def _writer(path: Path, log: BanditLog) -> Callable[[BanditLog, Path], None]:
    if not log.n_rounds:
        raise InputError("the log has no rounds: there is nothing to write")
    write = next((one.write for one in _candidates(path) if one.write is not None), None)
    if write is None:
        raise InputError("is of a format that is only read: write .parquet, .csv or .jsonl")
    return write


def _check_options(found: Format, columns: dict[str, Any]) -> None:
    taken = [name for name in inspect.signature(found.read).parameters if name != "path"]
    for name, value in columns.items():
        if name not in taken:
            raise InputError(f"{found.name} has no option {name!r}: it takes {', '.join(taken)}")
        if name in _LISTS and isinstance(value, str):
            raise InputError(f"option {name!r} is {value!r}: pass a list of columns")
        if name in _COLUMNS and not isinstance(value, str | None):
            raise InputError(f"option {name!r} is {value!r}: name a column")
