"""What a person sees: progress on a terminal and nothing in a pipe, tables, JSON for machines."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from onlooker.comparison import Row
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


def prepare_kernels(dtype: str = "float32") -> None:
    """Compile before anything is timed; only the first time is slow enough to be mentioned."""
    from threading import Timer

    from onlooker.compiling import compile_kernels

    notice = Timer(3.0, click.echo, ["compiling once, some ten seconds …"], {"err": True})
    notice.start()
    try:
        compile_kernels(dtype)
    finally:
        notice.cancel()


def print_json(document: Any) -> None:
    """Print one JSON document; what is not a number becomes null."""
    click.echo(json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False))


def print_rows(rows: Sequence[Row]) -> None:
    """Print a comparison as a table of plain text."""
    cells = [("observer", "burn-in", "direction error", "predictive regret", "agreement", "seconds")]
    cells += [
        (
            row.name,
            _shown(row.burn_in, "d"),
            _shown(row.direction_error, ".4f"),
            _shown(row.predictive_regret, ".6f"),
            _shown(row.agreement, ".3f"),
            _shown(row.seconds, ".2f"),
        )
        for row in rows
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    for number, (name, *numbers) in enumerate(cells):
        padded = [text.rjust(width) for text, width in zip(numbers, widths[1:], strict=True)]
        click.echo("  ".join([name.ljust(widths[0]), *padded]).rstrip())
        if number == 0:
            click.echo("  ".join("-" * width for width in widths))


def print_warnings(rows: Sequence[Row]) -> None:
    """Print what the observers said of their answers, each sentence once."""
    said: dict[str, list[str]] = {}
    for row in rows:
        for text in row.warnings:
            said.setdefault(text, []).append(row.name)
    for text, names in said.items():
        click.echo(f"warning ({'; '.join(names)}): {text}", err=True)


def _shown(value: float | None, style: str) -> str:
    return "" if value is None else format(value, style)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
