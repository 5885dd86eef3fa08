"""Opening the log that a command names, and saying what was assumed about it."""

from __future__ import annotations

import glob
import inspect
import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onlooker.checks import counted
from onlooker.cli.console import say
from onlooker.cli.wording import in_flags
from onlooker.errors import ColumnsLeftOutWarning, InputError, OnlookerWarning

if TYPE_CHECKING:
    from onlooker.formats import LogScan
    from onlooker.formats.format import Format
    from onlooker.log import BanditLog
    from onlooker.policy import LinearPolicy


def open_log(path: str, columns: dict[str, Any]) -> tuple[BanditLog, list[str]]:
    """Read a log with the column options that were given; say what was assumed about the rest, a line each."""
    from onlooker.formats import read_log

    _check_one(path)
    with _left_out() as told:
        log = read_log(path, **given(columns))
    return log, [*assumptions(path, columns, log), *told]


def open_logs(path: str, by: str, columns: dict[str, Any]) -> tuple[dict[str, BanditLog], list[str]]:
    """Read the logs that column `by` tells apart; say what was assumed, a line each."""
    from onlooker.formats import read_logs

    _check_one(path)
    with _left_out() as told:
        logs = read_logs(path, by, **given(columns))
    return logs, [*assumptions(path, columns, next(iter(logs.values()))), *told]


def open_scan(path: str, columns: dict[str, Any], memory_limit: str | None = None) -> tuple[LogScan, list[str]]:
    """Open a log without loading it; say what was assumed, a line each."""
    from onlooker.formats import scan_log

    with _left_out() as told:
        scan = scan_log(path, memory_limit=memory_limit, **given(columns))
    return scan, [*assumptions(str(scan.paths[0]), columns, scan), *told]


def _check_one(path: str) -> None:
    """Refuse a pattern where one file is read, and say where several are."""
    if Path(path).exists() or not glob.has_magic(path):
        return
    takes = {parameter.name for parameter in click.get_current_context().command.params}
    ways = ["add --memory-limit 2GB to go through its files one after the other"] if "memory_limit" in takes else []
    ways.append(f"make one file of them: onlooker convert {shlex.quote(path)} log.parquet")
    raise InputError(f"{path}: is a pattern, but one file is read here: {', or '.join(ways)}")


def given(columns: dict[str, Any]) -> dict[str, Any]:
    """The options that were given, as `read_log` takes them."""
    found: dict[str, Any] = {}
    for name, value in columns.items():
        if value or (name == "position" and value is not None):
            found[name] = list(value) if isinstance(value, tuple) else value
    if isinstance(found.get("like"), str):
        from onlooker.policy import LinearPolicy

        found["like"] = LinearPolicy.load(found["like"])
    return found


def like_before(path: str, columns: dict[str, Any], policy: LinearPolicy, state: str) -> list[str]:
    """Have a log encoded as those before it were, in place of options that say so again; what these say in vain."""
    from onlooker.categories import Encoding, Growing
    from onlooker.formats.registry import find_format

    files = [path] if Path(path).exists() else sorted(glob.glob(path))  # noqa: PTH207  a pattern may be absolute
    if columns["like"] is not None or policy.feature_names is None or not files:
        return []
    if "like" not in inspect.signature(find_format(Path(files[0])).read).parameters:
        return []
    kept = Encoding.of(policy).columns
    named = [*(columns["features"] or ()), *(columns["categories"] or ())]
    absent = [name for name in kept if name not in named]
    if columns["features"] and absent and not columns["cross"]:
        raise InputError(
            f"--feature: {state} has the feature {absent[0]!r} too: name all of its features, or none to have them all"
        )
    columns |= {"like": Growing(policy.feature_names, policy.categories), "features": (), "categories": ()}
    past = [] if columns["cross"] else [name for name in dict.fromkeys(named) if name not in kept]
    return [f"ignored, as {state} does not have it: {name!r}" for name in past]


def assumptions(path: str, columns: dict[str, Any], log: BanditLog | LogScan) -> list[str]:
    """What a log was taken to be: its format, its columns, its features and its categories."""
    from onlooker.formats.registry import find_format

    found = find_format(Path(path))
    taken = inspect.signature(found.read).parameters
    meanings = {
        "rounds": columns.get("round") or _default(taken, "round"),
        "picks": columns.get("chosen") or _default(taken, "chosen"),
        "arms": columns.get("arm"),
        "time": columns.get("order_by"),
    }
    known = ", ".join(f"{meaning} from {name!r}" for meaning, name in meanings.items() if name)
    guessed = found.guessed(Path(path)) if found.guessed is not None else []
    written = f" with {' and '.join(guessed)}" if guessed else ""
    lines = [f"read as {found.name}{written}" + (f": {known}" if known else "")]
    past = _outcomes(found, path, columns)
    if past:
        lines.append(f"read past: {', '.join(map(repr, past))}")
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


def _outcomes(found: Format, path: str, columns: dict[str, Any]) -> list[str]:
    """Columns that were taken for rewards or propensities by their names."""
    from onlooker.columns import is_outcome

    if found.columns is None or columns.get("features") or columns.get("like"):
        return []
    used = {*(columns.get("categories") or ()), *map(columns.get, ("round", "chosen", "arm", "order_by"))}
    return [name for name in found.columns(Path(path)) if is_outcome(name) and name not in used]


def _default(taken: Any, name: str) -> str | None:
    default = taken[name].default if name in taken else None
    return default if isinstance(default, str) else None


@contextmanager
def _left_out() -> Iterator[list[str]]:
    """Gather what is said about columns that were left out; other warnings go their way."""
    told: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OnlookerWarning)
        yield told
    for warning in caught:
        if issubclass(warning.category, ColumnsLeftOutWarning):
            told.append(in_flags(str(warning.message)))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def print_assumptions(lines: list[str]) -> None:
    """Say on the terminal what was assumed."""
    for line in lines:
        say(f"  {line}")
