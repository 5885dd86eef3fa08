"""Open the log that a command names, and report the assumptions about it with the names of flags."""

from __future__ import annotations

import ast
import re
import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from onlooker.base.errors import ColumnsLeftOutWarning, InputError, MissingValuesWarning, OnlookerWarning
from onlooker.cli.console import say
from onlooker.cli.options import ALL_PRODUCTS, LogName, check_engine

if TYPE_CHECKING:
    from onlooker.clusters import RayParts
    from onlooker.formats import LogScan
    from onlooker.formats.opening import Opened
    from onlooker.formats.places import Place
    from onlooker.logs.log import BanditLog
    from onlooker.logs.policy import LinearPolicy

FLAGS = {"features": "--feature", "categories": "--category"}
"""Options whose flags are not their names."""
_PARTIAL = ("possible", "picked_group", "offer_probability", "missing")
_ROUNDS = ("context", "offered", "items", "users", "user", "slate", "wide", "candidates", *_PARTIAL)
_COLUMNS = ("round", "chosen", "arm", "arms", "order_by", "by", "features", "categories", *_ROUNDS)
_OPTIONS = (*_COLUMNS, "like", "cross", "position", "decimal", "sql")
_QUOTED = re.compile(rf"`({'|'.join(_OPTIONS)})`")
_NAMED = re.compile(rf"(?<=option )'({'|'.join(_OPTIONS)})'")
_BOTH = re.compile(rf"(?<=options )'({'|'.join(_OPTIONS)})' and '({'|'.join(_OPTIONS)})'")
_CALL = re.compile(r"read_log\(\.\.\., context=\[(.*?)(, \.\.\.)?\], arm=('[^']*'|\"[^\"]*\")\)")
_TAKEN = re.compile(r"(?<=: it takes )[\w, ]+$")
_PASSED = {
    "option 'cross' is True, but": "--cross stands alone, but",
    "pass pairs such as ('age', 'price')": "pass them as --cross age:price",
    "pass cross=True": "pass --cross",
    ": pass True or False": ": pass it alone, without columns",
    "cross=True": "--cross",
    "features=[...]": "--feature",
    "memory_limit is": "--memory-limit is",
    "loss 'zero_one'": "--loss zero_one",
    "loss='softmax'": "--loss softmax",
    "pass sql='SELECT ...', or sql='name' of a table": "add --sql 'SELECT ...', or --sql with the name of a table",
    "pass decimal=','": "pass --decimal ,",
    "pass decimal='.'": "pass --decimal .",
    "repeated='follow'": "--repeated follow",
    "gaps='ids'": "--gaps ids",
    "gaps='times'": "--gaps times",
    "missing='leave-out'": "--missing leave-out",
}


def open_log(path: str, columns: dict[str, Any]) -> Opened[BanditLog]:
    """Read a log with the column options that were given."""
    from onlooker.formats import opening

    with _left_out() as left_out:
        found = opening.open_log(located(path, columns), asked(columns))
    found.assumed.extend(left_out)
    return found


def open_logs(path: str, by: str | None, columns: dict[str, Any]) -> Opened[dict[str, BanditLog]]:
    """Read the logs that column `by` separates, or a single one without a name."""
    from onlooker.formats import opening

    if by is None:
        one = open_log(path, columns)
        return opening.Opened({"": one.log}, one.format, one.assumed, one.files)
    with _left_out() as left_out:
        found = opening.open_logs(located(path, columns), by, asked(columns))
    found.assumed.extend(left_out)
    return found


def open_scan(path: str, columns: dict[str, Any], memory_limit: str | None = None) -> Opened[LogScan]:
    """Open a log without loading it."""
    from onlooker.formats import opening

    with _left_out() as left_out:
        found = opening.open_scan(located(path, columns), asked(columns), memory_limit=memory_limit)
    found.assumed.extend(left_out)
    return found


@contextmanager
def opened(
    path: str, columns: dict[str, Any], engine: str, address: str | None, memory_limit: str | None = None
) -> Iterator[tuple[BanditLog | LogScan | RayParts, list[str]]]:
    """The log that a command names, where it is to be worked on, and what was assumed about it; kernels are ready."""
    check_engine(engine, address)
    if memory_limit is not None and engine != "local":
        raise InputError(f"--memory-limit {memory_limit}: a cluster keeps the log in its workers, so leave it out")
    if engine == "local":
        found = open_log(path, columns) if memory_limit is None else open_scan(path, columns, memory_limit)
        yield found.log, found.assumed
        return
    from onlooker.clusters import RayParts

    scan = open_scan(path, columns)
    with RayParts(scan.log, address=address) as parts:
        yield parts, scan.assumed


def located(log: str, columns: dict[str, Any]) -> Place:
    """Where a log is; what is elsewhere is copied once in a command."""
    from onlooker.formats.opening import locate

    name = log if isinstance(log, LogName) else LogName.of([log])
    if name.place is None:
        name.place, _ = locate(name.source, given(columns))
    place: Place = name.place
    return place


def asked(columns: dict[str, Any]) -> dict[str, Any]:
    """The options about the meaning of rows, without those that select them."""
    return {name: value for name, value in given(columns).items() if name != "sql"}


def given(columns: dict[str, Any]) -> dict[str, Any]:
    """The options that were given, as `read_log` takes them."""
    found: dict[str, Any] = {}
    for name, value in columns.items():
        if value or (name == "position" and value is not None):
            found[name] = list(value) if isinstance(value, tuple) else value
    if ALL_PRODUCTS in found.get("cross", ()):
        if len(found["cross"]) > 1:
            raise InputError("--cross: give pairs of columns, or none to have all products, not both")
        found["cross"] = True
    if isinstance(found.get("like"), str):
        from onlooker.logs.policy import LinearPolicy

        found["like"] = LinearPolicy.load(found["like"])
    return found


def like_before(path: str, columns: dict[str, Any], policy: LinearPolicy, state: str) -> list[str]:
    """Encode a log as those before it; return notes about the options that this overrides."""
    from onlooker.formats.opening import find_format
    from onlooker.logs.categories import Encoding, Growing

    if columns["like"] is not None or policy.feature_names is None:
        return []
    if policy.crossing is not None:
        columns |= {"like": policy, "categories": (), "features": ()} if policy.crossing.named else {}
        return []
    place = located(path, columns)
    with place.said():
        if "like" not in find_format(place.files[0]).takes:
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


@contextmanager
def _left_out() -> Iterator[list[str]]:
    """Collect the warnings about columns and rounds that were left out; others are shown as usual."""
    left_out: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OnlookerWarning)
        yield left_out
    for warning in caught:
        if issubclass(warning.category, (ColumnsLeftOutWarning, MissingValuesWarning)):
            left_out.append(in_flags(str(warning.message)))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def print_assumptions(lines: list[str]) -> None:
    """Print the assumptions."""
    for line in lines:
        say(f"  {line}")


def flag(option: str) -> str:
    """What an option is called on the command line.

    Examples
    --------
    >>> flag("order_by"), flag("features")
    ('--order-by', '--feature')
    """
    return FLAGS.get(option, f"--{option.replace('_', '-')}")


def _as_options(call: re.Match[str]) -> str:
    """A call of `read_log` in a message, in the words of the command line."""
    context, arm = ast.literal_eval(f"[{call[1]}]"), ast.literal_eval(call[3])
    words = [word for column in context for word in ("--context", column)]
    return f"add {shlex.join(words)}{' ...' if call[2] else ''} {shlex.join(['--arm', arm])}"


def in_flags(text: str) -> str:
    """Name the options in a message as the command line does.

    Examples
    --------
    >>> in_flags("the table has no column 'trip': name it as `round`")
    "the table has no column 'trip': name it as --round"
    >>> in_flags("VW text has no option 'round': it takes features, cross, like")
    'VW text has no option --round: it takes --feature, --cross, --like'
    >>> in_flags("if a row is a round: read_log(..., context=['age', 'hour'], arm='action')")
    'if a row is a round: add --context age --context hour --arm action'
    """
    text = _CALL.sub(_as_options, text)
    for python, typed in _PASSED.items():
        text = text.replace(python, typed)
    text = _QUOTED.sub(lambda found: flag(found[1]), text)
    text = _NAMED.sub(lambda found: flag(found[1]), text)
    text = _BOTH.sub(lambda found: f"{flag(found[1])} and {flag(found[2])}", text)
    return _TAKEN.sub(lambda found: ", ".join(flag(name) for name in found[0].split(", ")), text)
