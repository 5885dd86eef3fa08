"""Checks of what users pass: numbers within bounds, mistyped words, the columns of a table."""

from __future__ import annotations

import math
import operator
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
