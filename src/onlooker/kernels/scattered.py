"""Rows that lie far apart in memory, as picks or a sample do: each is fetched some rows before its turn."""

import numpy as np

from onlooker.base.types import Features, Index, Vector
from onlooker.kernels.cached_njit import cached_njit
from onlooker.kernels.softmax import prefetch

_AHEAD = 24
"""How many rows before."""
_LINE = 64
"""Bytes of a cache line."""

_compiled = cached_njit()


@_compiled
def _fetch(features: Features, row: int) -> None:
    d = features.shape[1]
    for j in range(0, d, _LINE // features.itemsize):
        prefetch(features, row * d + j)
    prefetch(features, row * d + d - 1)


@_compiled
def row_ranges(features: Features, rows: Index) -> tuple[Features, Features, Features]:
    """Least value, largest value and mean of every column, over one row or more, each of shape (d,)."""
    d = features.shape[1]
    low, high, mean = features[rows[0]].copy(), features[rows[0]].copy(), np.zeros(d, features.dtype)
    for i in range(len(rows)):
        if i + _AHEAD < len(rows):
            _fetch(features, rows[i + _AHEAD])
        row = rows[i]
        for j in range(d):
            value = features[row, j]
            low[j] = min(low[j], value)
            high[j] = max(high[j], value)
            mean[j] += value
    for j in range(d):
        mean[j] /= len(rows)
    return low, high, mean


@_compiled
def row_sums(features: Features, rows: Index, weights: Vector) -> Vector:
    """Weighted sum of every row, the same to the last bit wherever the row stands and on any machine."""
    d, sums = features.shape[1], np.empty(len(rows))
    fours = d - d % 4
    for i in range(len(rows)):
        if i + _AHEAD < len(rows):
            _fetch(features, rows[i + _AHEAD])
        row = rows[i]
        one, two, three, four = 0.0, 0.0, 0.0, 0.0
        for j in range(0, fours, 4):
            one += features[row, j] * weights[j]
            two += features[row, j + 1] * weights[j + 1]
            three += features[row, j + 2] * weights[j + 2]
            four += features[row, j + 3] * weights[j + 3]
        for j in range(fours, d):
            one += features[row, j] * weights[j]
        sums[i] = (one + two) + (three + four)
    return sums
