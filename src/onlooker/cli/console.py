"""What a command gives: text in the words of the command line, progress, JSON for machines, and files to write."""

from __future__ import annotations

import math
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from onlooker.base.errors import InputError
from onlooker.base.files import check_replaceable
from onlooker.base.text import json_text, safe, shown
from onlooker.base.threads import preparation

if TYPE_CHECKING:
    from onlooker.base.types import Progress
import ast
import re
import shlex
from typing import TYPE_CHECKING

CHARTS = (".png", ".svg")
"""What a chart can be written as."""
TABLES = (".csv",)
"""What a table can be written as."""
INTERRUPTED = 130
"""Exit code after Ctrl-C."""


def say(text: str, *, err: bool = False) -> None:
    """Print text: nothing in it can command a terminal, and on one long sentences end at its edge, between words.

    A message that cannot be written because stderr is full or closed is dropped without an error.
    """
    printed = safe(text)
    stream = sys.stderr if err else sys.stdout
    with suppress(OSError) if err else nullcontext():
        if stream is not None and stream.isatty():
            width = _width(stream)
            printed = "\n".join(wrapped(line, width) for line in printed.split("\n"))
        click.echo(printed, err=err)


def _width(terminal: TextIO) -> int:
    """Columns of a terminal, which is not always that of the standard output."""
    try:
        return os.get_terminal_size(terminal.fileno()).columns or shutil.get_terminal_size().columns
    except (OSError, ValueError):
        return shutil.get_terminal_size().columns


def wrapped(line: str, width: int) -> str:
    r"""Break a sentence that is longer than a line; a table's row, which has gaps in it, is left alone.

    Examples
    --------
    >>> wrapped("  the rounds cannot tell a from b", 24)
    '  the rounds cannot tell\n    a from b'
    >>> wrapped("price      0.125      2.31", 20)
    'price      0.125      2.31'
    """
    text = line.lstrip(" ")
    if len(line) <= width or "  " in text:
        return line
    indent = " " * (len(line) - len(text))
    return textwrap.fill(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
        expand_tabs=False,
        replace_whitespace=False,
    )


@contextmanager
def progress_bar(what: str) -> Iterator[Progress | None]:
    """Yield a function that reports progress, drawn on stderr; None without a terminal."""
    with _kernels_watched():
        if sys.stderr is None or not sys.stderr.isatty():
            yield None
            return
        with _drawn_bar(what) as report:
            yield report


@contextmanager
def _drawn_bar(what: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def _kernels_watched() -> Iterator[None]:
    """Report once that kernels are being compiled, and exit at once on Ctrl-C while they are loaded or compiled.

    Code that is being loaded or compiled may swallow the exception that Ctrl-C raises.
    """
    import signal
    import threading

    done, before = threading.Event(), preparation.compiled

    def announce() -> None:
        wait = 3.0
        while not done.wait(wait):
            if preparation.compiled > before:
                say("compiling once, some ten seconds …", err=True)
                return
            wait = 1.0

    def stop(number: int, frame: object) -> None:
        if _kernels_busy():
            say("onlooker: stopped", err=True)
            os._exit(INTERRUPTED)
        signal.default_int_handler(number, frame)  # type: ignore[arg-type]

    watcher = threading.Thread(target=announce, daemon=True)
    watcher.start()
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    handled = usual and threading.current_thread() is threading.main_thread()
    if handled:
        signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        done.set()
        watcher.join()
        if handled:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _kernels_busy() -> bool:
    """Whether the compiler is being imported, or a kernel loaded or compiled."""
    importing = "numba" in sys.modules and "onlooker.kernels.cached_njit" not in sys.modules
    return importing or bool(preparation.busy)


def print_json(document: Any) -> None:
    """Print one JSON document; what is not a number becomes null."""
    click.echo(json_text(_plain(document)))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def check_target(flag: str, path: str | None, suffixes: tuple[str, ...] = (), *, log: str | None = None) -> None:
    """Refuse a file that could not be written, or not in the format of its name, before any computation.

    Nor may it be one of the files of `log`, which is a path or a pattern.

    Examples
    --------
    >>> check_target("--chart", "chart.svg", CHARTS)
    >>> check_target("--chart", "chart.txt", CHARTS)
    Traceback (most recent call last):
    onlooker.base.errors.InputError: --chart chart.txt: is written as .png or .svg, name such a file
    """
    if path is None:
        return
    if Path(path).is_dir() or not Path(path).parent.is_dir():
        raise InputError(f"{flag} {shown(path)}: cannot be written, name a file in a folder that exists")
    if suffixes and Path(path).suffix.lower() not in suffixes:
        raise InputError(f"{flag} {shown(path)}: is written as {' or '.join(suffixes)}, name such a file")
    check_replaceable(path)
    if log is not None and Path(path).exists() and any(Path(path).samefile(one) for one in _files(log)):
        raise InputError(f"{flag} {shown(path)}: is the log itself, which would be lost: name another file")


def _files(log: str) -> list[str]:
    """The files that a log consists of, as far as they are here."""
    from onlooker.formats.places import matching

    names: list[str] = getattr(log, "given", [log])
    found = [[name] if Path(name).is_file() else [str(path) for path in matching(name)] for name in names]
    return [file for files in found for file in files]


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
