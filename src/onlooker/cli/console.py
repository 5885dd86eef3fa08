"""What a person sees: progress on a terminal and nothing in a pipe, tables, JSON for machines."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from onlooker.comparison import Comparison, Row
    from onlooker.observers import Observer
    from onlooker.types import Progress


@contextmanager
def progress_bar(what: str) -> Iterator[Progress | None]:
    """Give a function to report progress to, drawn on stderr; None where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def prepare_kernels(dtype: str = "float32", observers: Iterable[Observer] = ()) -> None:
    """Compile before anything is timed; only the first time is slow enough to be mentioned."""
    from threading import Timer

    from onlooker.compiling import compile_kernels

    notice = Timer(3.0, click.echo, ["getting ready, some ten seconds the first time …"], {"err": True})
    notice.start()
    try:
        compile_kernels(dtype, observers)
    finally:
        notice.cancel()


def print_json(document: Any) -> None:
    """Print one JSON document; what is not a number becomes null."""
    click.echo(json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False))


_TRUTH_KNOWN = """
direction error: distance to the true direction; predictive regret: reward missed per round on fresh offers;
agreement: with the learner's own picks over the last tenth of the log, which the observers saw.
Small errors and regrets are good, and large agreements."""

_TRUTH_UNKNOWN = """
agreement: with the learner's own picks over the last tenth of the log, which the observers saw.
What the learner should have learned is not known, so errors cannot be given."""


_MEMORY = "peak MB: memory that the fit took at its most, beyond the log itself."


def print_comparison(found: Comparison) -> None:
    """Print the table, what its columns mean, and what the observers said of their answers."""
    known = any(row.direction_error is not None for row in found.rows)
    click.echo(f"{found}\n{_TRUTH_KNOWN if known else _TRUTH_UNKNOWN}")
    if any(row.peak_mb is not None for row in found.rows):
        click.echo(_MEMORY)
    _print_warnings(found.rows)


def _print_warnings(rows: Sequence[Row]) -> None:
    """Print what the observers said of their answers, each sentence once."""
    said: dict[str, list[str]] = {}
    for row in rows:
        for text in row.warnings:
            said.setdefault(text, []).append(row.name)
    for text, names in said.items():
        click.echo(f"warning ({'; '.join(names)}): {text}", err=True)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
