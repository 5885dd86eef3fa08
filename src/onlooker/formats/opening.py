"""Opening a log, once: the log itself, its format, and what was assumed about it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from onlooker.base.checks import as_whole, counted
from onlooker.base.errors import InputError
from onlooker.base.memory_limit import as_bytes, check_held, check_resident, memory_limited
from onlooker.base.text import shown, some_of
from onlooker.formats.format import TABLE, Format, long_format, named
from onlooker.formats.joined import Chained, LogFiles, below_common_folder
from onlooker.formats.open_bandit import ITEMS
from onlooker.formats.places import Place, UnchangedFiles, files_of_folder, find_place
from onlooker.formats.registry import FORMATS, SOURCES, suffixes_of
from onlooker.formats.round_tables import assumed_rounds, item_columns
from onlooker.formats.scan import LogScan, WholeFiles
from onlooker.formats.text_lines import LogFile
from onlooker.formats.users import user_columns
from onlooker.logs.categories import Encoding, products_of
from onlooker.logs.columns import Columns, is_outcome, understood
from onlooker.logs.log import BanditLog
from onlooker.logs.partial import known_in_part
from onlooker.logs.ragged import in_slate
from onlooker.logs.slates import ASSUMED as SLATES

Held = TypeVar("Held", BanditLog, dict[str, BanditLog], LogScan)

BATCH_ROWS = 100_000
"""About how many offered arms a part of a scan holds by default."""
_TABLE = long_format(name=TABLE, suffixes=(), source=None)
"""A source that is not a file: one of the `SOURCES`."""
_IN_PART = ("possible", "picked_group", "offer_probability")
_COLUMNS = (
    *("round", "chosen", "arm", "arms", "order_by", "by", "offered", "slate", "wide", "candidates", "user"),
    *_IN_PART,
)
_LISTS = ("features", "categories", "context")
_SAVED = re.compile(rb'\s*\{\s*"schema":\s*"onlooker\.(policy|tracking)/')


@dataclass(frozen=True, eq=False)
class Opened(Generic[Held]):
    """An opened log, its format and the assumptions."""

    log: Held
    """The log, the logs by name where a column separates them, or a scan."""
    format: Format
    """The recognised format."""
    assumed: list[str]
    """The assumptions, one line each: format, columns, features, categories."""
    files: dict[Path, str]
    """The files that it is read from, or copies of them, with one that stands beside it; and what they are called."""

    @classmethod
    def of(
        cls,
        log: Held,
        found: Format,
        place: Place,
        file: Any,
        options: dict[str, Any],
        beside: dict[Path, str],
    ) -> Opened[Held]:
        """Collect the assumptions about a log while its source is open; `beside` are further files."""
        logs = list(log.values()) if isinstance(log, dict) else [log]
        files = {path: place.called(path) for one in place.paths for path in _behind(found, one)}
        what, *more = _assumed(found, file[0] if isinstance(file, LogFiles) else file, options, logs)
        return cls(log, found, [what, *_order(place), *more], files | beside)


def locate(source: object, options: dict[str, Any], *, again: bool = False) -> tuple[Place, dict[str, Any]]:
    """Where a log is, and the other options; `again` requires a place that can be read more than once."""
    place = find_place(source, options.get("sql"), SOURCES, again=again)
    with place.said():
        if len(place.paths) == 1 and place.paths[0].is_dir() and _folder_format(place.files[0]) is None:
            place = files_of_folder(place)
    return place, {name: value for name, value in options.items() if name != "sql"}


def open_log(source: object, options: dict[str, Any], *, memory_limit: int | str | None = None) -> Opened[BanditLog]:
    """See `read_log`."""
    with memory_limited(_as_limit(memory_limit)), _found(source, options) as (place, found, file, given):
        check_options(found, given)
        more, read = _with_tables(given)
        log = _read_each(found, file, read) if isinstance(file, LogFiles) else found.read(file, **read)
        check_held(log.nbytes)
        return Opened.of(log, found, place, file, read, more)


def open_logs(
    source: object, by: str, options: dict[str, Any], *, memory_limit: int | str | None = None
) -> Opened[dict[str, BanditLog]]:
    """See `read_logs`."""
    with memory_limited(_as_limit(memory_limit)), _found(source, options) as (place, found, file, given):
        if found.read_by is None:
            raise InputError(f"{found.name} has no column that could separate logs: split the file")
        if isinstance(file, LogFiles) and found.columns is None:
            raise InputError(f"{found.name} is separated by a column in one file only: read them one by one")
        check_options(found, given | {"by": by}, besides=("by",))
        more, read = _with_tables(given)
        logs = found.read_by(file, by=by, **read)
        check_held(sum(log.nbytes for log in logs.values()))
        return Opened.of(logs, found, place, file, read, more)


def open_scan(
    source: object, options: dict[str, Any], *, batch_rows: int = BATCH_ROWS, memory_limit: int | str | None = None
) -> Opened[LogScan]:
    """See `scan_log`."""
    limit, rows = _as_limit(memory_limit), as_whole(batch_rows, "batch_rows", least=1)
    place, given = locate(source, options, again=True)
    table, files = place.table, place.files
    first: Any = files[0] if table is None else table
    with _closed_on_error(place, source), place.said():
        unchanged = UnchangedFiles(place.paths, place.pattern)
        with unchanged.checked(), nullcontext() if table is not None else first:
            found = _TABLE if table is not None else _one_format(files)
            with named(first.path, "read"):
                check_options(found, given)
            with memory_limited(limit):
                more, read = _with_tables(given)
                if found.scan is None:
                    scanned: Any = WholeFiles(found, files, rows, given)
                else:
                    scanned = found.scan(files if table is None else [table], batch_rows=rows, **read)
            return Opened.of(LogScan(place, scanned, unchanged, limit), found, place, first, read, more)


@contextmanager
def _closed_on_error(place: Place, source: object) -> Iterator[None]:
    """Delete the copies of a place if the block fails."""
    try:
        yield
    except BaseException:
        if place is not source:
            place.close()
        raise


@contextmanager
def _found(source: object, options: dict[str, Any]) -> Iterator[tuple[Place, Format, Any, dict[str, Any]]]:
    """Where a log is, its format, what it is read from, and the options; errors name the log."""
    place, given = locate(source, options)
    with ExitStack() as held:
        if place is not source:
            held.callback(place.close)
        held.enter_context(place.said())
        if place.table is not None:
            with named(place.table.path, "read"):
                yield place, _TABLE, place.table, given
            return
        several = LogFiles(place.files)
        with UnchangedFiles(place.paths, place.pattern).checked():
            if len(several) == 1:
                with named(place.paths[0], "read"), several[0] as file:
                    yield place, find_format(file), file, given
                return
            found = _one_format(several)
            with _named_together(several):
                yield place, found, several, given


def _with_tables(options: dict[str, Any]) -> tuple[dict[Path, str], dict[str, Any]]:
    """Files of the tables of items and users, and the options with the tables in their place."""
    files: dict[Path, str] = {}
    for name, columns_of in _BESIDE.items():
        if options.get(name) is None:
            continue
        with _found(options[name], {}) as (place, found, file, _):
            if found.source is None:
                raise InputError(
                    f"is {found.name}, but {name} are a table of one row per {name[:-1]}: pass CSV, JSONL or Parquet"
                )
            table = found.source(file)
            files |= {path: place.called(path) for path in place.paths}
            options = options | {name: table.table(columns_of(table.names, options))}
    return files, options


_BESIDE = {"items": item_columns, "users": user_columns}
"""Tables beside a log, and what their columns mean."""


@contextmanager
def _named_together(files: LogFiles) -> Iterator[None]:
    """Put the names of the first and the last file before errors that do not concern a single file."""
    try:
        yield
    except InputError as error:
        if str(error).startswith(tuple(f"{shown(file.path)}: " for file in files)):
            raise
        raise InputError(f"{files.path}: {error}") from error


def _read_each(found: Format, files: LogFiles, options: dict[str, Any]) -> BanditLog:
    """One log of several files: long tables and files of lines are joined, others are read one by one."""
    if found.columns is not None:
        return found.read(files, **options)
    if found.by_name:
        with Chained(files) as lines, lines.named():
            return found.read(lines, **options)
    log = BanditLog.concat(list(WholeFiles(found, files, sys.maxsize, options)))
    if not options.get("order_by") or log.times is None:
        return log
    order = np.argsort(log.times, kind="stable")
    return log if np.array_equal(order, np.arange(len(order))) else log[order]


def _one_format(files: Sequence[LogFile]) -> Format:
    """The format that all files are in."""
    first = files[0].path
    with named(first, "read"), files[0]:
        found = find_format(files[0])
    for other in files[1:]:
        with named(other.path, "read"), other:
            if find_format(other) is not found:
                raise InputError(f"is not in the format of {shown(first)}, {found.name}: scan them apart")
    return found


def _folder_format(file: LogFile) -> Format | None:
    """The format of a folder that is a log itself, or None."""
    return next((one for one in FORMATS if one.folder and one.recognises(file)), None)


def _order(place: Place) -> list[str]:
    """Describe the order of several files, and the columns that their folders are named for."""
    if len(place.files) < 2:
        return []
    names = below_common_folder([place.called(path) for path in place.paths])
    shown_names = names if len(names) <= 4 else [*names[:2], "...", names[-1]]
    lines = [f"{counted(len(names), 'file')}, in this order: {', '.join(shown_names)}"]
    if place.files[0].partitions:
        named_for = ", ".join(map(repr, place.files[0].partitions))
        lines.append(f"columns of the folders: {named_for}; they are features only where an option names them")
    return lines


def find_format(file: LogFile) -> Format:
    """The format that a file or folder is in: the suffix narrows them down, the content decides."""
    path = file.path
    if path.is_dir():
        holds = _folder_format(file)
        if holds is None:
            raise InputError("is a folder: name it by itself, or the files in it")
        return holds
    if not path.exists():
        raise InputError("there is no such file: check the path")
    candidates = _candidates(path)
    if not path.is_file():
        raise InputError("is a device or a pipe, which cannot be read more than once: name a file")
    if not file.size:
        raise InputError("is empty: it should hold a log")
    _check_log(file)
    return next((one for one in candidates[:-1] if one.recognises(file)), candidates[-1])


def _behind(found: Format, path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(one for one in path.iterdir() if one.is_file())
    return [path, path.parent / ITEMS] if found.folder else [path]


def _assumed(found: Format, file: Any, options: dict[str, Any], logs: Sequence[BanditLog | LogScan]) -> list[str]:
    """The assumptions about a log, or several of one file: format, columns, features and categories."""
    log = logs[0]
    if found.columns is not None and Columns(**options).per_round:
        return assumed_rounds(found, file, Columns(**options), log)
    defaults = {name: default for name, default in found.takes.items() if name in {"round", "chosen"}}
    given = defaults | {name: value for name, value in options.items() if value}
    meanings = {"round": "rounds", "chosen": "picks", "arm": "arms", "order_by": "time"}
    shape = found.shape(file) if found.shape is not None else None
    if shape is not None and found.columns is not None and given["round"] not in found.columns(file):
        del given["round"]
    if given.get("slate") and found.columns is not None and given["chosen"] not in found.columns(file):
        del given["chosen"]
    known = ", ".join(f"{word} from {given[name]!r}" for name, word in meanings.items() if given.get(name))
    guessed = found.guessed(file) if found.guessed is not None else []
    written = f" with {' and '.join(guessed)}" if guessed else ""
    name = found.name if shape is None else found.name.removeprefix("long ")
    lines = [f"read as {name}{written}" + (f": {known}" if known else "")]
    lines += [] if shape is None else [shape]
    if given.get("slate"):
        lines.append(f"slates by {given['slate']!r}: {SLATES}")
    elif isinstance(log, BanditLog) and in_slate(log.round_ids, log.n_arms).any():
        lines.append(f"slates: {SLATES}")
    columns = None if found.columns is None else understood(found.columns(file), Columns(**options))
    # A scan has to be read for it, which is done where a column says that there is something to count.
    held = [one for one in logs if isinstance(one, BanditLog)]
    maybe = () if held else _IN_PART
    if any(one.partial or one.round_ids is not None for one in held) or any(getattr(columns, of, None) for of in maybe):
        lines += known_in_part(*logs)
    # Columns that were taken for rewards or propensities by their names.
    every = found.columns(file) if found.columns and not (given.get("features") or given.get("like")) else []
    used = {*given.get("categories", ()), *map(given.get, [*meanings, "slate", "picked_group", "offer_probability"])}
    past = [name for name in every if is_outcome(name) and name not in used]
    if past:
        lines.append(f"ignored: {', '.join(map(repr, past))}")
    if given.get("like") and found.columns is not None:
        products = products_of(given["like"], found.columns(file))
        roles = {*used, "arm", *Encoding.of(given["like"], products).columns}
        new = [name for name in found.columns(file) if name not in roles and not is_outcome(name)]
        if new:
            lines.append(f"ignored, as the rounds before did not have them: {', '.join(map(repr, new[:6]))}")
    if log.feature_names is not None:
        lines.append(f"{counted(log.n_features, 'feature')}: {some_of(log.feature_names, 5)}")
    else:
        lines.append(f"{counted(log.n_features, 'feature')} without names")
    for column, levels in (log.categories or {}).items():
        lines.append(f"category {column!r}: {len(levels)} levels, the reference {levels[0]!r}")
    return lines


def check_options(found: Format, options: dict[str, Any], *, besides: tuple[str, ...] = ()) -> None:
    """Refuse options that neither the format's `read` nor the caller knows."""
    taken = found.takes
    for name, value in options.items():
        if name not in (*taken, *besides):
            raise InputError(f"{found.name} has no option {name!r}: it takes {', '.join(taken)}")
        if name in _LISTS and isinstance(value, str):
            raise InputError(f"option {name!r} is {value!r}: pass a list of columns")
        if name in _COLUMNS and not isinstance(value, str | None):
            raise InputError(f"option {name!r} is {value!r}: name a column")


def _candidates(path: Path) -> list[Format]:
    # Whatever may be compressed with gzip may be with these.
    name = re.sub(r"\.(zst|zstd|bz2)$", ".gz", path.name.lower())
    candidates = [one for one in FORMATS if name.endswith(one.suffixes)]
    if not candidates:
        known = f"{suffixes_of(FORMATS)}, or .zst or .bz2 for .gz"
        raise InputError(f"has none of the known suffixes {known}: convert or rename it")
    return candidates


def _check_log(file: LogFile) -> None:
    """Refuse what onlooker saved besides logs."""
    saved = _SAVED.match(file.head(200)) if file.path.suffix.lower() == ".json" else None
    if saved is not None:
        kind = "policy" if saved[1] == b"policy" else "state of tracking"
        raise InputError(f"this is a {kind} saved by onlooker, not a log: name the log that it came from")


def _as_limit(memory_limit: int | str | None) -> int | None:
    """A limit in bytes that the process has not used up yet."""
    if memory_limit is None:
        return None
    limit = as_bytes(memory_limit)
    check_resident(limit)
    return limit
