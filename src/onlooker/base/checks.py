"""Check the plain values that users pass: numbers within bounds, words that were mistyped; and say them."""

import math
import operator
from collections.abc import Iterable
from numbers import Real
from typing import Any

from onlooker.base.errors import InputError


def as_whole(value: Any, name: str, *, least: int = 0) -> int:
    """Give `value` as an int of at least `least`.

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
    """Give `value` as a finite float that is larger than `above`, at least `least` and at most `most`.

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
    """Give the coverage that intervals aim for: a number between 0 and 1, neither of them.

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
    """Ask for the known word that is nearest to a mistyped one; say nothing where none is near.

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
    """How many of a thing there are.

    Examples
    --------
    >>> counted(1, "arm"), counted(2000, "round")
    ('1 arm', '2000 rounds')
    """
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
