"""Check the plain numbers that users pass: a whole number, a real number, within bounds."""

import math
import operator
from numbers import Real
from typing import Any

from onlooker.errors import InputError


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
