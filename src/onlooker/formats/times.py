"""Times as texts have them, and the order that they put rounds into."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

import numpy as np

from onlooker.errors import InputError
from onlooker.moments import moment
from onlooker.types import Index


def time_order(times: Sequence[tuple[int, Any]], name: str) -> Index:
    """Order of the rounds by time, given as pairs of line and value: numbers, or ISO 8601; equal times stay in order.

    Examples
    --------
    >>> time_order([(1, "2024-05-01T10:00:00.5Z"), (2, "2024-05-01T10:00:00Z")], "Timestamp")
    array([1, 0])
    """
    keys = [_key(line, value, name) for line, value in times]
    for (line, value), key in zip(times, keys, strict=True):
        if isinstance(key, datetime) != isinstance(keys[0], datetime):
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
    try:
        known = [moment(value) for _, value in times]
    except (TypeError, ValueError):
        return False
    return any(later < earlier for earlier, later in pairwise(known))


def _key(line: int, value: Any, name: str) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return value
    try:
        return moment(value)
    except (TypeError, ValueError):
        raise InputError(
            f"line {line} has {str(value)[:40]!r} as its {name!r}: it must be a number or a time such as "
            "2024-05-01T10:00:00Z"
        ) from None
