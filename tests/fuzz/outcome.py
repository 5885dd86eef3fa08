"""What may come of an input: a result, or a refusal in one line that names the file. Everything else is a finding."""

import os
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from onlooker.base.errors import InputError, OnlookerWarning

DEADLINE = 10.0
"""Seconds that a small file may take; the slowest takes a hundredth of that."""
LONGEST = 700
"""Letters of a refusal beside the file's name."""


class TookTooLong(BaseException):
    """The deadline has passed; no reader catches it."""


def complaint(load: Callable[[Path], Any], path: Path, folder: Path) -> str | None:
    """What is wrong with how `load` takes the file at `path`, or None where nothing is; `folder` is all that it has."""
    before = _files(folder)
    try:
        with warnings.catch_warnings(record=True) as caught, _deadline():
            warnings.simplefilter("always")
            load(path)
    except InputError as error:
        found = _of_message(str(error), path)
    except TookTooLong:
        found = f"took more than {DEADLINE:g} s"
    except Exception as error:  # noqa: BLE001  any other is what is looked for
        found = f"{type(error).__name__}: {str(error)[:200]}"
    else:
        found = None
    for warning in caught:
        if not issubclass(warning.category, OnlookerWarning):
            found = found or f"{warning.category.__name__} leaked: {str(warning.message)[:200]}"
        elif not str(warning.message).isprintable():
            found = found or f"a warning is not one line: {str(warning.message)[:200]!r}"
    if _files(folder) != before:
        found = found or "a file was written"
    return found


def _files(folder: Path) -> list[str]:
    return sorted(os.path.join(place, name) for place, _, names in os.walk(folder) for name in names)  # noqa: PTH118


def _of_message(text: str, path: Path) -> str | None:
    """What is wrong with a refusal."""
    rest = text.removeprefix(str(path))
    if rest == text:
        return f"the refusal does not begin with the file: {text[:200]!r}"
    if not rest.isprintable():
        return f"the refusal is not one line: {rest[:200]!r}"
    if len(rest) > LONGEST:
        return f"the refusal has {len(rest)} letters: {rest[:200]!r}"
    return None


@contextmanager
def _deadline() -> Iterator[None]:
    """Raise `TookTooLong` in the block when its time is over."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, DEADLINE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
