"""Ragged rows: values laid end to end, `offsets` marking where each round begins. Their checks and their arithmetic.

Rounds are never empty, which is what lets `reduceat` be used throughout.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlooker.base.checks import counted
from onlooker.base.errors import InputError
from onlooker.base.types import Features, Ids, Index, Vector

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


def positions(offsets: Index) -> Index:
    """Of every row in its round.

    Examples
    --------
    >>> positions(np.array([0, 2, 5]))
    array([0, 1, 0, 1, 2])
    """
    return np.asarray(np.arange(offsets[0], offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets)))


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


def as_features(features: ArrayLike) -> Features:
    """One row per offered arm, float32 or float64, laid out row by row."""
    try:
        array = np.asarray(features)
    except ValueError as error:
        raise InputError("features has rows of different lengths: every arm needs the same features") from error
    if array.ndim != 2:
        raise InputError(f"features has shape {array.shape}: pass one row per offered arm, shape (rows, features)")
    if array.shape[1] == 0:
        raise InputError("features has no columns: nothing describes the arms")
    if array.dtype in (np.float32, np.float64):
        return np.ascontiguousarray(array)
    if not (np.issubdtype(array.dtype, np.number) or array.dtype == bool) or np.iscomplexobj(array):
        raise InputError(f"features has dtype {array.dtype}: pass real numbers")
    return np.ascontiguousarray(array, dtype=np.float64)


def as_index(values: ArrayLike, name: str) -> Index:
    """Whole numbers in one dimension, as a copy."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}: pass one dimension")
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"{name} has dtype {array.dtype}: pass whole numbers")
    # A copy: the kernels trust these, so nothing else may refer to them.
    return np.array(array, dtype=np.int64)


def as_names(names: Sequence[str] | None, n_features: int) -> tuple[str, ...] | None:
    """Feature names as a tuple: strings, one per feature, all different."""
    if names is None:
        return None
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise InputError("feature_names must be a sequence of strings")
    if len(names) != n_features:
        raise InputError(f"feature_names has {len(names)} names for {n_features} features")
    if len(set(names)) != len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise InputError(f"feature_names has {twice!r} twice: names must differ")
    check_encodable(names, "feature_names")
    return tuple(str(name) for name in names)


def check_encodable(texts: Iterable[str], name: str) -> None:
    """Refuse text with half of a letter (a lone surrogate), which no file can hold."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{name} has {text[:60]!a}, which is not valid Unicode text: rename it") from error


def as_ids(ids: ArrayLike | None, size: int, name: str) -> Ids | None:
    """Ids, kept as they are, as many as are needed."""
    if ids is None:
        return None
    array = np.asarray(ids)
    if array.shape != (size,):
        raise InputError(f"{name} has shape {array.shape}, but {size} ids are needed")
    return array


def check_rounds(n_rows: int, offsets: Index, chosen: Index) -> None:
    """Every round offers an arm, and picks one that it offers."""
    if len(offsets) != len(chosen) + 1:
        raise InputError(f"offsets has {len(offsets)} entries for {len(chosen)} rounds: pass one more than rounds")
    if offsets[0] != 0 or offsets[-1] != n_rows:
        raise InputError(f"offsets runs from {offsets[0]} to {offsets[-1]}, but must run from 0 to {n_rows} rows")
    # Compared, not subtracted: sizes of absurd offsets would overflow and look positive.
    empty = np.flatnonzero(offsets[1:] <= offsets[:-1])
    if len(empty):
        raise InputError(f"round {empty[0]} offers no arm: leave such rounds out")
    sizes = np.diff(offsets)
    wrong = np.flatnonzero((chosen < 0) | (chosen >= sizes))
    if len(wrong):
        t = int(wrong[0])
        raise InputError(
            f"round {t} picks position {chosen[t]}, but offers {counted(int(sizes[t]), 'arm')} (positions count from 0)"
        )


def check_finite(features: Features, offsets: Index, feature_names: tuple[str, ...] | None) -> None:
    """No feature is missing or infinite."""
    for start, stop in blocks(offsets, features.shape[1]):
        first = int(offsets[start])
        block = features[first : offsets[stop]]
        # A sum is finite only if every term is, and needs no second array; overflow falls through to the exact test.
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(block.sum()):
                continue
        bad = np.argwhere(~np.isfinite(block))
        if len(bad):
            row, column = int(bad[0][0]) + first, int(bad[0][1])
            t = int(np.searchsorted(offsets, row, side="right")) - 1
            name = repr(feature_names[column]) if feature_names else str(column)
            raise InputError(
                f"round {t}, arm {row - offsets[t]}, feature {name} is {features[row, column]}: "
                "fill missing values in or leave the round out"
            )


def in_slate(round_ids: Ids | None, n_arms: Index) -> NDArray[np.bool_]:
    """Which rounds, the first aside, continue the slate of the round before: it has the same id and more arms."""
    if round_ids is None or not len(round_ids):
        return np.zeros(0, dtype=bool)
    return np.asarray((round_ids[1:] == round_ids[:-1]) & (n_arms[1:] < n_arms[:-1]))


def slate_positions(round_ids: Ids | None, n_arms: Index) -> Index | None:
    """Position of every round within its slate, from 1; None where there are no slates.

    Examples
    --------
    >>> slate_positions(np.array([7, 7, 8]), np.array([4, 3, 4])), slate_positions(np.array([7, 8]), np.array([4, 4]))
    (array([1, 2, 1]), None)
    """
    slated = in_slate(round_ids, n_arms)
    if not slated.any():
        return None
    begins = np.flatnonzero(np.append(True, ~slated))
    return np.arange(len(slated) + 1) - np.repeat(begins, np.diff(np.append(begins, len(slated) + 1))) + 1


def whole_slates(round_ids: Ids | None, n_arms: Index, starts: Index) -> Index:
    """Move places that cut a slate behind it, or in front of it where nothing would be left.

    Examples
    --------
    >>> whole_slates(np.array([7, 7, 8, 8, 9]), np.array([4, 3, 4, 3, 4]), np.array([0, 1, 2, 3, 4]))
    array([0, 2, 2, 4, 4])
    """
    if round_ids is None or not len(round_ids):
        return starts
    begins = np.flatnonzero(np.append(True, ~in_slate(round_ids, n_arms)))
    after = np.append(begins, len(round_ids))[np.searchsorted(begins, starts)]
    before = begins[np.maximum(np.searchsorted(begins, starts, side="right") - 1, 0)]
    moved = np.where(after < len(round_ids), after, before)
    return np.asarray(np.where(starts < len(round_ids), moved, starts), dtype=np.int64)
