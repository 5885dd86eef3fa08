"""Files that a command is asked to write: looked at before any work is done for them, and charts as they say."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from onlooker.errors import InputError
from onlooker.files import check_replaceable
from onlooker.one_line import shown

if TYPE_CHECKING:
    from onlooker.plots import AnyChart

CHARTS = (".png", ".svg")
"""What a chart can be written as."""
TABLES = (".csv",)
"""What a table can be written as."""


def check_target(flag: str, path: str | None, suffixes: tuple[str, ...] = (), *, log: str | None = None) -> None:
    """Refuse what could not be written, or would not be what its name says, before minutes are spent on it.

    Nor may it be one of the files of `log`, which is a path or a pattern.

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
        raise InputError(f"{flag} {shown(path)}: cannot be written, name a file in a folder that exists")
    if suffixes and Path(path).suffix.lower() not in suffixes:
        raise InputError(f"{flag} {shown(path)}: is written as {' or '.join(suffixes)}, name such a file")
    check_replaceable(path)
    if log is not None and Path(path).exists() and any(Path(path).samefile(one) for one in _files(log)):
        raise InputError(f"{flag} {shown(path)}: is the log itself, which would be lost: name another file")


def _files(log: str) -> list[str]:
    """The files that a path or a pattern stands for, as far as they exist."""
    return [log] if Path(log).exists() else glob.glob(log)  # noqa: PTH207  a pattern may be absolute


def write_charts(charts: Sequence[AnyChart], path: str) -> None:
    """Draw charts side by side, as SVG or PNG by the file's name."""
    from onlooker.files import write_text
    from onlooker.plots import to_png, to_svg

    if Path(path).suffix.lower() == ".svg":
        write_text(path, to_svg(charts) + "\n")
    else:
        to_png(charts, path)
