"""JSON documents that onlooker saved, read back by schema.

Nothing in a document is executed.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from onlooker.base.checks import parsed
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
