"""Checks of what is passed: numbers within bounds, mistyped words, the columns of a table, JSON of any origin."""

from __future__ import annotations

import json
import math
import operator
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

from onlooker.base.errors import InputError
from onlooker.base.text import some_of


def as_whole(value: Any, name: str, *, least: int = 0) -> int:
    """Return `value` as an int of at least `least`.

    Examples
    --------
    >>> as_whole(3, "batch", least=1)
    3
    """
    try:
        whole = operator.index(value)
    except TypeError:
        raise InputError(f"{name} is {value!r}: pass a whole number of at least {least}") from None
    if whole < least:
        raise InputError(f"{name} is {whole}: pass a whole number of at least {least}")
    return whole


def as_number(
    value: Any, name: str, *, above: float = -math.inf, least: float = -math.inf, most: float = math.inf
) -> float:
    """Return `value` as a finite float that is larger than `above`, at least `least` and at most `most`.

    Examples
    --------
    >>> as_number(1, "ridge", above=0)
    1.0
    """
    number = float(value) if isinstance(value, Real) else math.nan
    if not (math.isfinite(number) and number > above and least <= number <= most):
        bounds = [f"above {above:g}"] if above > -math.inf else []
        bounds += [f"at least {least:g}"] if least > -math.inf else []
        bounds += [f"at most {most:g}"] if most < math.inf else []
        raise InputError(f"{name} is {value!r}: pass a finite number {' and '.join(bounds)}".rstrip())
    return number


def as_level(level: Any) -> float:
    """Return the nominal coverage of intervals: a number strictly between 0 and 1.

    Examples
    --------
    >>> as_level(0.95)
    0.95
    """
    number = as_number(level, "level")
    if not 0 < number < 1:
        raise InputError(f"level is {level}: it must lie between 0 and 1")
    return number


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Suggest the known word nearest to a mistyped one; empty if none is near.

    Examples
    --------
    >>> did_you_mean("digagnose", ["diagnose", "fit"]), did_you_mean("PRICE ", ["price"]), did_you_mean("x", ["price"])
    ("did you mean 'diagnose'?", "did you mean 'price'?", '')
    """
    from difflib import get_close_matches

    folded = {other.strip().lower(): other for other in known}
    near = get_close_matches(word.strip().lower(), folded, n=1)
    return f"did you mean {folded[near[0]]!r}?" if near else ""


def counted(number: int, thing: str) -> str:
    """A count with its noun, in the singular or the plural.

    Examples
    --------
    >>> counted(1, "arm"), counted(2000, "round")
    ('1 arm', '2000 rounds')
    """
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def check_columns(names: Sequence[str], wanted: Mapping[str, str | None], otherwise: str = "") -> None:
    """Refuse a table that lacks a column; `wanted` maps meanings to column names, `otherwise` ends the message."""
    missing = {meaning: name for meaning, name in wanted.items() if name is not None and name not in names}
    hints = []
    for meaning, name in missing.items():
        parts = [part.strip() for part in name.split(",")]
        if len(parts) > 1 and all(part in names for part in parts):
            raise InputError(f"the table has no column {name!r}: name {some_of(parts)} one by one")
        # A default name was not mistyped.
        alike = [one for one in names if name in one.lower()] if name == meaning else names
        hints.append(did_you_mean(name, alike))
    if missing:
        what, them = ("columns", "them") if len(missing) > 1 else ("column", "it")
        hints.append(f"name {them} as {' and '.join(f'`{meaning}`' for meaning in missing)}")
        raise InputError(
            f"the table has no {what} {' and '.join(map(repr, missing.values()))}: it has {some_of(names)}; "
            + " ".join(filter(None, hints))
            + otherwise
        )


def check_once(names: Sequence[str]) -> None:
    """Refuse a table that has two columns of one name."""
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(f"the table has the column {name!r} twice: rename one of them")


def is_list(kind: Any) -> bool:
    """Whether an Arrow type is a list, of any of the three kinds."""
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def check_plain(column: Any, name: str) -> None:
    """Refuse a column, or a field of a schema, that holds lists, structs or maps."""
    import pyarrow as pa

    if pa.types.is_nested(column.type):
        raise InputError(f"column {name!r} holds {str(column.type)[:60]}: it must hold one value per row")
    if pa.types.is_float16(column.type) or pa.types.is_time(column.type):
        raise InputError(f"column {name!r} holds {column.type}: write it as whole numbers, text or full times")


DEEPEST = 100
"""Levels of brackets within brackets: a log, a policy or a state has fewer than ten, and some ten thousand overrun the
stack of a parser."""
_STRING = re.compile(rb'"(?:[^"\\\n]|\\[^\n])*+"?')
"""A string, or the start of one that the end of the line cuts short, which no parser continues on the next."""
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
    import numpy as np

    letters = np.frombuffer(_STRING.sub(b"", text), np.uint8)
    opening, closing = np.frombuffer(b"[{", np.uint8), np.frombuffer(b"]}", np.uint8)
    steps = np.isin(letters, opening).astype(np.int8) - np.isin(letters, closing)
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
    import numpy as np

    letters = np.frombuffer(text, np.uint8)
    opening = np.flatnonzero((letters == ord("{")) | (letters == ord("[")))
    ends = np.flatnonzero((letters[:-2] == ord("}")) & (letters[1:-1] == ord("\n")) & (letters[2:] == ord("{")))
    return int(np.diff(np.searchsorted(opening, ends + 1), prepend=0, append=len(opening)).max())
