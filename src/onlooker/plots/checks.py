"""What every number on a chart is held to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from onlooker.errors import InputError
from onlooker.types import Vector


def vector(values: ArrayLike, name: str, *, gaps: bool = True) -> Vector:
    """Give the values as a read-only array of their own: finite, or NaN where `gaps` are allowed."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not made of numbers: pass one number for each point") from error
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}: pass one dimension")
    bad = np.flatnonzero(np.isinf(array) if gaps else ~np.isfinite(array))
    if len(bad):
        needed = "finite numbers, or NaN for a gap" if gaps else "finite numbers"
        raise InputError(f"{name} is {array[bad[0]]} at position {bad[0]}: pass {needed}")
    array.flags.writeable = False
    return array


def band(
    low: ArrayLike | None, high: ArrayLike | None, where: str, *, gaps: bool = True
) -> tuple[Vector | None, Vector | None]:
    """Give both ends of a band, or neither."""
    if low is None and high is None:
        return None, None
    if low is None or high is None:
        raise InputError(f"{where} has one end of a band: pass both low and high")
    lower, upper = vector(low, f"{where}: low", gaps=gaps), vector(high, f"{where}: high", gaps=gaps)
    if len(lower) != len(upper):
        raise InputError(f"{where}: low has {len(lower)} values, but high has {len(upper)}: pass one for each point")
    crossed = np.flatnonzero(lower > upper)
    if len(crossed):
        raise InputError(f"{where}: low lies above high at position {crossed[0]}: swap them")
    return lower, upper


def for_names(names: Iterable[str], columns: Mapping[str, Vector | None], where: str) -> dict[str, object]:
    """Give names, and columns that have one value for each of them, as the fields of a chart."""
    rows = tuple(names)
    if not rows:
        raise InputError(f"{where} has no names: nothing would be drawn")
    for name, values in columns.items():
        if values is not None and len(values) != len(rows):
            raise InputError(f"{where}: {name} has {len(values)} values for {len(rows)} names: pass one for each")
    return {"names": rows, **columns}
