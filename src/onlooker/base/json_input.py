"""JSON of unknown origin: refused before a parser runs out of stack, and without text that could never be written."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from onlooker.base.errors import InputError

DEEPEST = 100
"""Levels of brackets within brackets: a log, a policy or a state has fewer than ten, and some ten thousand overrun the
stack of a parser."""
_STRING = re.compile(rb'"(?:[^"\\\n]|\\[^\n])*+"?')
"""A string, or the start of one that the end of the line cuts short, which no parser continues on the next."""
_OPENING, _CLOSING = np.frombuffer(b"[{", np.uint8), np.frombuffer(b"]}", np.uint8)
_LONGEST = 1 << 23
"""Bytes of an object in JSON lines."""
_BETWEEN = b"}\n{"
"""Ends one object of a file of JSON lines and begins the next, wherever it stands: within an object it is no JSON."""


def parsed(text: bytes, **options: Any) -> Any:
    r"""The value of a JSON text in UTF-8; `ValueError` where it is none, `InputError` where it would do harm.

    Examples
    --------
    >>> parsed(b'{"caf\xc3\xa9": [1, 2.5]}')
    {'café': [1, 2.5]}
    >>> parsed(b'"\\ud800"')
    Traceback (most recent call last):
    onlooker.base.errors.InputError: has an unpaired surrogate (\ud800) in its text: write it as UTF-8
    """
    if _brackets(text) > DEEPEST:
        check_nesting(text)
    value = json.loads(text.decode(), **options)
    if rb"\ud" in text or rb"\uD" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = ascii(error.object[error.start])[1:-1]
            raise InputError(f"has an unpaired surrogate ({half}) in its text: write it as UTF-8") from error
    return value


def check_nesting(text: bytes) -> int:
    """Refuse JSON that is nested too deeply, by its brackets outside of strings; gives how many are open at its end."""
    letters = np.frombuffer(_STRING.sub(b"", text), np.uint8)
    steps = np.isin(letters, _OPENING).astype(np.int8) - np.isin(letters, _CLOSING)
    depth = np.cumsum(steps[steps != 0], dtype=np.int64)
    # What is closed too often takes nothing from what is opened later.
    depth -= np.minimum.accumulate(np.minimum(depth, 0))
    if len(depth) and int(depth.max()) > DEEPEST:
        raise InputError(f"is nested too deeply, in more than {DEEPEST} levels: write flat values")
    return int(depth[-1]) if len(depth) else 0


class NestedLines:
    """Refuses nesting in JSON lines that come in blocks; where lines are flat, brackets are counted and no more."""

    def __init__(self) -> None:
        self._rest = b""

    def see(self, block: bytes) -> None:
        """Look at the next block."""
        text = (self._rest + block).replace(b"\r\n", b"\n")
        # Every other object has a bracket of its own, so that this is the most that one of them can have.
        if _brackets(text) - text.count(_BETWEEN) > DEEPEST and _most_brackets(text) > DEEPEST:
            check_nesting(text)
        between, line = text.rfind(_BETWEEN), text.rfind(b"\n")
        if between >= 0:
            self._rest = text[between + 2 :]
        elif line >= 0 and not check_nesting(text[:line]):
            self._rest = text[line + 1 :]
        elif len(text) > _LONGEST:
            raise InputError(f"has more than {_LONGEST >> 20} MB that are no whole object: write one object a line")
        else:
            self._rest = text


def _brackets(text: bytes) -> int:
    return text.count(b"{") + text.count(b"[")


def _most_brackets(text: bytes) -> int:
    """Opening brackets between two ends of objects, at most; those in strings count too."""
    letters = np.frombuffer(text, np.uint8)
    opening = np.flatnonzero((letters == ord("{")) | (letters == ord("[")))
    ends = np.flatnonzero((letters[:-2] == ord("}")) & (letters[1:-1] == ord("\n")) & (letters[2:] == ord("{")))
    return int(np.diff(np.searchsorted(opening, ends + 1), prepend=0, append=len(opening)).max())
