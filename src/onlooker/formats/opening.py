"""Opening a log, once: the log itself, its format, and what was assumed about it."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from onlooker.base.checks import as_whole, counted
from onlooker.base.errors import InputError
from onlooker.base.memory_limit import as_bytes, check_held, check_resident, memory_limited
from onlooker.formats.format import TABLE, Format, named
from onlooker.formats.long import Source, long_format
from onlooker.formats.open_bandit import ITEMS
from onlooker.formats.registry import FORMATS, SOURCES, suffixes_of
from onlooker.formats.scan import LogScan, WholeFiles
from onlooker.formats.text_lines import LogFile
from onlooker.formats.unchanged import UnchangedFiles
from onlooker.logs.categories import Encoding
from onlooker.logs.columns import is_outcome
from onlooker.logs.log import BanditLog

Held = TypeVar("Held", BanditLog, dict[str, BanditLog], LogScan)

BATCH_ROWS = 100_000
"""About how many offered arms a part of a scan holds by default."""
_TABLE = long_format(name=TABLE, suffixes=(), source=None)
"""What is no file, but one of the `SOURCES`."""
_COLUMNS = ("round", "chosen", "arm", "arms", "order_by", "by")
_LISTS = ("features", "categories")
_SAVED = re.compile(rb'\s*\{\s*"schema":\s*"onlooker\.(policy|tracking)/')


@dataclass(frozen=True, eq=False)
class Opened(Generic[Held]):
    """A log that was opened, and all that is known of how."""

    log: Held
    """The log, the logs by name where a column tells them apart, or a scan."""
    format: Format
    """What it was taken to be."""
    assumed: list[str]
    """What was assumed about it, a line each: format, columns, features, categories."""
    files: list[Path]
    """The files that it is read from: itself, those of its folder, or the one that stands beside it."""

    @classmethod
    def of(cls, log: Held, found: Format, file: LogFile | Source, options: dict[str, Any]) -> Opened[Held]:
        """Say what was assumed about a log while what it is read from is at hand."""
        first = next(iter(log.values())) if isinstance(log, dict) else log
        files = _behind(found, file.path) if isinstance(file, LogFile) else []
        return cls(log, found, _assumed(found, file, options, first), files)


def open_log(source: object, options: dict[str, Any], *, memory_limit: int | str | None = None) -> Opened[BanditLog]:
    """See `read_log`."""
    with memory_limited(_as_limit(memory_limit)), _found(source) as (found, file):
        check_options(found, options)
        log = found.read(file, **options)
        check_held(log.dense.nbytes)
        return Opened.of(log, found, file, options)


def open_logs(
    source: object, by: str, options: dict[str, Any], *, memory_limit: int | str | None = None
) -> Opened[dict[str, BanditLog]]:
    """See `read_logs`."""
    with memory_limited(_as_limit(memory_limit)), _found(source) as (found, file):
        if found.read_by is None:
            raise InputError(f"{found.name} has no columns to tell logs apart: split the file")
        check_options(found, options | {"by": by}, besides=("by",))
        logs = found.read_by(file, by=by, **options)
        check_held(sum(log.dense.nbytes for log in logs.values()))
        return Opened.of(logs, found, file, options)


def open_scan(
    source: object, options: dict[str, Any], *, batch_rows: int = BATCH_ROWS, memory_limit: int | str | None = None
) -> Opened[LogScan]:
    """See `scan_log`."""
    table = _as_source(source)
    paths, pattern = ([], None) if table is not None else _paths(source)
    unchanged, limit = UnchangedFiles(paths, pattern), _as_limit(memory_limit)
    rows = as_whole(batch_rows, "batch_rows", least=1)
    files = [LogFile(path) for path in paths]
    first: Any = files[0] if table is None else table
    with unchanged.checked(), nullcontext() if table is not None else first:
        found = _TABLE if table is not None else _one_format(files)
        with named(first.path, "read"):
            check_options(found, options)
        with memory_limited(limit):
            if found.scan is None:
                scanned: Any = WholeFiles(found, files, rows, options)
            else:
                scanned = found.scan(files if table is None else [table], batch_rows=rows, **options)
        return Opened.of(LogScan(paths, scanned, unchanged, limit), found, first, options)


@contextmanager
def _found(source: object) -> Iterator[tuple[Format, Any]]:
    """What a log is read from, and its format; what goes wrong is said with its name."""
    table = _as_source(source)
    if table is not None:
        with named(table.path, "read"):
            yield _TABLE, table
        return
    path = _as_path(source)
    with UnchangedFiles([path]).checked(), named(path, "read"), LogFile(path) as file:
        yield find_format(file), file


def _as_source(source: object) -> Source | None:
    if isinstance(source, str | os.PathLike):
        return None
    return next((one for one in (take(source) for take in SOURCES) if one is not None), None)


def _one_format(files: list[LogFile]) -> Format:
    """The format that all files are in."""
    first = files[0].path
    with named(first, "read"):
        found = find_format(files[0])
    for other in files[1:]:
        with named(other.path, "read"), other:
            if find_format(other) is not found:
                raise InputError(f"is not in the format of {first}, {found.name}: scan them apart")
    return found


def find_format(file: LogFile) -> Format:
    """The format that a file or folder is in: the suffix narrows them down, the content decides."""
    path = file.path
    if path.is_dir():
        holds = next((one for one in FORMATS if one.folder and one.recognises(file)), None)
        if holds is None:
            raise InputError("is a folder: name a file in it")
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


def _assumed(found: Format, file: Any, options: dict[str, Any], log: BanditLog | LogScan) -> list[str]:
    """What a log was taken to be: its format, its columns, its features and its categories."""
    defaults = {name: default for name, default in found.takes.items() if name in {"round", "chosen"}}
    given = defaults | {name: value for name, value in options.items() if value}
    meanings = {"round": "rounds", "chosen": "picks", "arm": "arms", "order_by": "time"}
    known = ", ".join(f"{word} from {given[name]!r}" for name, word in meanings.items() if given.get(name))
    guessed = found.guessed(file) if found.guessed is not None else []
    written = f" with {' and '.join(guessed)}" if guessed else ""
    lines = [f"read as {found.name}{written}" + (f": {known}" if known else "")]
    # Columns that were taken for rewards or propensities by their names.
    every = found.columns(file) if found.columns and not (given.get("features") or given.get("like")) else []
    used = {*given.get("categories", ()), *map(given.get, meanings)}
    past = [name for name in every if is_outcome(name) and name not in used]
    if past:
        lines.append(f"ignored: {', '.join(map(repr, past))}")
    if given.get("like") and found.columns is not None:
        roles = {*used, "arm", *Encoding.of(given["like"]).columns}
        new = [name for name in found.columns(file) if name not in roles and not is_outcome(name)]
        if new:
            lines.append(f"ignored, as the rounds before did not have them: {', '.join(map(repr, new[:6]))}")
    if log.feature_names is not None:
        # One that is left out would take no more room than saying so.
        few = 5 if len(log.feature_names) > 6 else 6
        shown = ", ".join(map(repr, log.feature_names[:few]))
        more = f" and {len(log.feature_names) - few} more" if len(log.feature_names) > few else ""
        lines.append(f"{counted(log.n_features, 'feature')}: {shown}{more}")
    else:
        lines.append(f"{counted(log.n_features, 'feature')} without names")
    for column, levels in (log.categories or {}).items():
        lines.append(f"category {column!r}: {len(levels)} levels, the reference {levels[0]!r}")
    return lines


def check_options(found: Format, options: dict[str, Any], *, besides: tuple[str, ...] = ()) -> None:
    """Every option is one that the format's `read` takes, or one of those besides."""
    taken = found.takes
    for name, value in options.items():
        if name not in (*taken, *besides):
            raise InputError(f"{found.name} has no option {name!r}: it takes {', '.join(taken)}")
        if name in _LISTS and isinstance(value, str):
            raise InputError(f"option {name!r} is {value!r}: pass a list of columns")
        if name in _COLUMNS and not isinstance(value, str | None):
            raise InputError(f"option {name!r} is {value!r}: name a column")


def _candidates(path: Path) -> list[Format]:
    name = path.name.lower()
    candidates = [one for one in FORMATS if name.endswith(one.suffixes)]
    if not candidates:
        raise InputError(f"has none of the known suffixes {suffixes_of(FORMATS)}: convert or rename it")
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


def _as_path(source: Any) -> Path:
    try:
        return Path(source)
    except TypeError:
        kind = type(source).__name__
        raise InputError(f"a {kind} is not a path: pass a file's name, or a table to BanditLog.from_frame") from None


def _paths(source: Any) -> tuple[list[Path], str | None]:
    """Files that a path, a pattern or a list stands for, and the pattern."""
    if not isinstance(source, str | os.PathLike):
        paths = [Path(one) for one in source]
        if not paths:
            raise InputError("there are no files to scan: name at least one")
        return paths, None
    name = os.fspath(source)
    if Path(name).exists() or not glob.has_magic(name):
        return [Path(name)], None
    found = sorted(map(Path, glob.glob(name, recursive=True)), key=_by_number)  # noqa: PTH207  it may begin at the root
    if not found:
        raise InputError(f"{name}: no file matches: check the pattern")
    return found, name


def _by_number(path: Path) -> list[tuple[str, int]]:
    """Key to sort files by, numbers in their names as numbers: day 2 before day 10."""
    pieces = re.split(r"(\d+)", str(path))
    return [(text, int(number)) for text, number in zip(pieces[::2], [*pieces[1::2], "0"], strict=True)]
