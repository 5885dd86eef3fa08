"""Arithmetic on ragged rows: values laid end to end, `offsets` marking where each round begins.

Rounds are never empty, which is what lets `reduceat` be used throughout.
"""

from collections.abc import Iterator

import numpy as np

from onlooker.base.types import Index, Vector

BLOCK_VALUES = 1 << 18
"""How many feature values a block holds: 2 MB as float64, so that it stays in cache."""


def blocks(offsets: Index, n_features: int, values: int = BLOCK_VALUES) -> Iterator[tuple[int, int]]:
    """Split the rounds into consecutive ranges of about `values` feature values.

    The split depends on the log alone, so sums taken block by block are the same whatever the number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> list(blocks(np.array([0, 2, 5, 9]), n_features=100_000))
    [(0, 1), (1, 2), (2, 3)]
    """
    rows = max(1, values // max(1, n_features))
    n_rounds = len(offsets) - 1
    start = 0
    while start < n_rounds:
        stop = int(np.searchsorted(offsets, offsets[start] + rows, side="right")) - 1
        stop = min(max(stop, start + 1), n_rounds)
        yield start, stop
        start = stop


def argmax(values: Vector, offsets: Index) -> Index:
    """Position of the first largest value in every round.

    Examples
    --------
    >>> import numpy as np
    >>> argmax(np.array([1.0, 3.0, 3.0, 5.0, 2.0]), np.array([0, 3, 5]))
    array([1, 0])
    """
    starts = offsets[:-1]
    best = np.maximum.reduceat(values, starts)
    hits = np.flatnonzero(values == np.repeat(best, np.diff(offsets)))
    first = hits[np.searchsorted(hits, starts)]
    return np.asarray(first - starts, dtype=np.int64)


def softmax(values: Vector, offsets: Index) -> Vector:
    """Softmax within every round, safe for large values.

    Examples
    --------
    >>> import numpy as np
    >>> softmax(np.array([1000.0, 1000.0, 7.0]), np.array([0, 2, 3]))
    array([0.5, 0.5, 1. ])
    """
    starts, sizes = offsets[:-1], np.diff(offsets)
    weights = np.exp(values - np.repeat(np.maximum.reduceat(values, starts), sizes))
    probabilities: Vector = weights / np.repeat(np.add.reduceat(weights, starts), sizes)
    return probabilities
