"""Files that a command is asked to write, looked at before any work is done for them."""

from __future__ import annotations

from pathlib import Path

from onlooker.errors import InputError

CHARTS = (".png", ".svg")
"""What a chart can be written as."""
TABLES = (".csv",)
"""What a table can be written as."""


def check_target(flag: str, path: str | None, suffixes: tuple[str, ...] = ()) -> None:
    """Refuse what could not be written, or would not be what its name says, before minutes are spent on it.

    Examples
    --------
    >>> check_target("--chart", "chart.svg", CHARTS)
    >>> check_target("--chart", "chart.txt", CHARTS)
    Traceback (most recent call last):
    onlooker.errors.InputError: --chart chart.txt: is written as .png or .svg, name such a file
    """
    if path is None:
        return
    if Path(path).is_dir() or not Path(path).parent.is_dir():
        raise InputError(f"{flag} {path}: cannot be written, name a file in a folder that exists")
    if suffixes and Path(path).suffix.lower() not in suffixes:
        raise InputError(f"{flag} {path}: is written as {' or '.join(suffixes)}, name such a file")
