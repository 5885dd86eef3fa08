"""Times as texts have them, and the order that they put rounds into."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from onlooker.errors import InputError
from onlooker.moments import microseconds
from onlooker.types import Index


def time_order(times: Sequence[tuple[int, Any]], name: str) -> Index:
    """Order of the rounds by time, given as pairs of line and value: numbers, or ISO 8601; equal times stay in order.

    Examples
    --------
    >>> time_order([(1, "2024-05-01T10:00:00.5Z"), (2, "2024-05-01T10:00:00Z")], "Timestamp")
    array([1, 0])
    """
    keys = _known(times)
    for place, (line, value) in enumerate(times):
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            keys[place] = value
        if keys[place] is None:
            raise InputError(
                f"line {line} has {str(value)[:40]!r} as its {name!r}: it must be a number or a time such as "
                "2024-05-01T10:00:00Z"
            )
        if isinstance(value, str) != isinstance(times[0][1], str):
            raise InputError(
                f"line {line} has {str(value)[:40]!r} as its {name!r}: it mixes numbers and times, use one"
            )
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def falls(times: Sequence[tuple[int, Any]]) -> bool:
    """Whether times of ISO 8601, given as pairs of line and value, are out of order; others say nothing.

    Examples
    --------
    >>> falls([(1, "2024-05-02"), (2, "2024-05-01")]), falls([(1, 2), (2, "2024-05-01")])
    (True, False)
    """
    known = _known(times)
    return None not in known and bool((np.diff(known) < 0).any())


def _known(times: Sequence[tuple[int, Any]]) -> list[Any]:
    """Microseconds since 1970, None for what is no time as text."""
    import pyarrow as pa

    texts = [value if isinstance(value, str) and value.isascii() else None for _, value in times]
    known: list[Any] = microseconds(pa.array(texts, pa.large_string())).to_pylist()
    return known
