"""JSON documents: parsed safely whatever their origin, and read back by schema where onlooker saved them.

Nothing in a document is executed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from onlooker.base.errors import InputError
from onlooker.base.memory_limit import check_memory
from onlooker.base.text import one_line, shown
from onlooker.base.types import Matrix, Vector

_CHUNK = 1 << 20
_LETTERS = 4
"""Bytes of memory for each of the file: read, decoded, and kept as values."""
_ENTRY = 100
"""Bytes of memory for each bracket, comma and colon: a list or an object around little, or a number."""


def read_document(path: str | os.PathLike[str], schemas: Sequence[str], kind: str, *, writer: str) -> dict[str, Any]:
    """Read a JSON object of one of these schemas; what would not fit into memory is refused before it is loaded."""
    try:
        check_fits(Path(path))
        document = parsed(Path(path).read_bytes(), object_pairs_hook=_once)
    except OSError as error:
        raise InputError(f"{shown(path)}: cannot be read ({one_line(error)}): check the path") from error
    except InputError as error:
        raise InputError(f"{shown(path)}: {error}") from error
    except ValueError as error:
        raise InputError(f"{shown(path)}: is not a {kind}, its JSON does not parse ({one_line(error)})") from error
    if not isinstance(document, dict) or document.get("schema") not in schemas:
        known = " or ".join(map(repr, schemas))
        raise InputError(f"{shown(path)}: is not a {kind} of schema {known}, as written by {writer}")
    return document


def sealed(document: dict[str, Any]) -> str:
    """A document as JSON, with a digest of its content.

    Examples
    --------
    >>> document = json.loads(sealed({"schema": "example/1", "rounds": 5}))
    >>> check_seal(document)
    >>> check_seal({**document, "rounds": 6})
    Traceback (most recent call last):
    onlooker.base.errors.InputError: the content was changed: its digest does not match
    """
    return json.dumps({**document, "digest": _digest(document)}, allow_nan=False) + "\n"


def check_seal(document: dict[str, Any]) -> None:
    """Refuse a document whose digest is not that of its content."""
    content = {name: value for name, value in document.items() if name != "digest"}
    if document.get("digest") != _digest(content):
        raise InputError("the content was changed: its digest does not match")


def _digest(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, allow_nan=False).encode()).hexdigest()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object with a repeated name: it would be ambiguous."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"{one_line(twice, 40)!r} stands there twice")
    return found


@contextmanager
def within(name: str) -> Iterator[None]:
    """Name the part of a document in which a value is wrong, in any error.

    Examples
    --------
    >>> try:
    ...     with within("monitor"), within("ridge"):
    ...         float("wide")
    ... except InputError as error:
    ...     print(error)
    monitor.ridge: could not convert string to float: 'wide'
    """
    try:
        yield
    except _PlaceError as error:
        raise _PlaceError(f"{name}.{error.place}", error.reason) from error
    except KeyError as error:
        raise _PlaceError(f"{name}.{one_line(str(error.args[0]), 40)}", "is not there") from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise _PlaceError(name, one_line(error)) from error


class _PlaceError(InputError):
    """What is wrong, and where in the document."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place, self.reason = place, reason


def check_fits(path: Path) -> None:
    """Refuse a JSON file whose values would not fit into memory, counted without building them."""
    state = path.stat()
    if not (stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode)):
        raise InputError("is a device or a pipe: name a file")
    size = state.st_size
    check_memory(_LETTERS * size)
    entries = 0
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            entries += sum(map(chunk.count, (b"[", b"{", b",", b":")))
    check_memory(_LETTERS * size + _ENTRY * entries)


def numbers(values: Any, name: str) -> Vector:
    """A list of finite numbers in a file."""
    if not isinstance(values, list) or not values:
        raise InputError(f"{name!r} must be a list of numbers")
    for value in values:
        if type(value) not in (int, float) or not abs(value) < 1e300:
            raise InputError(f"{name!r} has {one_line(repr(value), 40)}: it must be a list of finite numbers")
    return np.array(values, dtype=np.float64)


def table(values: Any, name: str) -> Matrix:
    """A list of lists of finite numbers in a file, all equally long."""
    if not isinstance(values, list) or not values:
        raise InputError(f"{name!r} must be a list of lists of numbers")
    rows = [numbers(row, name) for row in values]
    if any(len(row) != len(rows[0]) for row in rows):
        raise InputError(f"the lists of {name!r} must be equally long")
    return np.array(rows)


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
    r"""The value of a JSON text in UTF-8; `ValueError` if it is not JSON, `InputError` if it is malicious.

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
    """Refuse JSON that is nested too deeply, by its brackets outside of strings; returns how many stay open."""
    letters = np.frombuffer(_STRING.sub(b"", text), np.uint8)
    steps = np.isin(letters, _OPENING).astype(np.int8) - np.isin(letters, _CLOSING)
    depth = np.cumsum(steps[steps != 0], dtype=np.int64)
    # What is closed too often takes nothing from what is opened later.
    depth -= np.minimum.accumulate(np.minimum(depth, 0))
    if len(depth) and int(depth.max()) > DEEPEST:
        raise InputError(f"is nested too deeply, in more than {DEEPEST} levels: write flat values")
    return int(depth[-1]) if len(depth) else 0


class NestedLines:
    """Refuses nesting in JSON lines that come in blocks; where lines are flat, it only counts brackets."""

    def __init__(self) -> None:
        self._rest = b""

    def see(self, block: bytes) -> None:
        """Check the next block."""
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
            raise InputError(f"has more than {_LONGEST >> 20} MB without a complete object: write one object per line")
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
