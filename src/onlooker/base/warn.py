"""Warnings that point at the caller's line, however deep in the library they arise."""

import os
import sys
import warnings
from contextvars import Context, ContextVar, copy_context
from pathlib import Path

from onlooker.base.errors import OnlookerWarning

_PACKAGE = str(Path(__file__).parent.parent) + os.sep
_CALLER: ContextVar[tuple[str, int] | None] = ContextVar("_CALLER", default=None)
"""File and line that a thread of this package works for."""


def warn(message: OnlookerWarning | str, category: type[OnlookerWarning] = OnlookerWarning) -> None:
    """Warn at the innermost line outside this package; at the outermost line where all are inside.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("look here")
    >>> caught[0].filename.startswith("<doctest")
    True
    """
    place = _CALLER.get()
    if place is None:
        warnings.warn(message, category, stacklevel=_outside()[0])
    else:
        kind = category if isinstance(message, str) else type(message)
        warnings.warn_explicit(message, kind, *place)


def context_of_caller() -> Context:
    """A context for a thread: what it warns of points at the line that called this package."""
    context = copy_context()
    if _CALLER.get() is None:
        context.run(_CALLER.set, _outside()[1:])
    return context


def _outside() -> tuple[int, str, int]:
    """The line outside this package that led to the caller of this: its stack level there, its file and its number."""
    level, frame = 1, sys._getframe(1)  # noqa: SLF001  the documented way to the caller's frame
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level, frame.f_code.co_filename, frame.f_lineno
