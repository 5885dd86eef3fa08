"""From Arrow columns to arrays, one per round or one per arm: sizes and missing entries checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.columns import check_plain
from onlooker.encoding import is_number
from onlooker.errors import InputError
from onlooker.types import Features, Ids, Index


def is_list(type: Any) -> bool:
    """Whether an Arrow type is a list, of any of the three kinds."""
    import pyarrow as pa

    return bool(pa.types.is_list(type) or pa.types.is_large_list(type) or pa.types.is_fixed_size_list(type))


def feature_type(type: Any, name: str) -> np.dtype[Any]:
    """What to keep the features of column `name` in: float32 as it is, any other number as float64."""
    import pyarrow as pa

    if not (is_list(type) and is_list(type.value_type)):
        raise InputError(f"column {name!r} holds {str(type)[:60]}: it must hold lists (of arms) of lists (of features)")
    value = type.value_type.value_type
    if pa.types.is_float32(value):
        return np.dtype(np.float32)
    if is_number(value):
        return np.dtype(np.float64)
    raise InputError(f"column {name!r} holds lists of lists of {str(value)[:60]}: features must be numbers")


def check_whole(type: Any, name: str) -> None:
    """Refuse a column of picks that does not hold whole numbers."""
    import pyarrow as pa

    if not pa.types.is_integer(type):
        raise InputError(f"column {name!r} holds {str(type)[:60]}: it must hold the pick's position, a whole number")


def feature_rows(column: Any, name: str, first: int) -> tuple[Features, Index]:
    """One row per offered arm, a view where Arrow holds plain numbers, and how many arms each round offers.

    `first` is the number of the first round, for messages.

    Examples
    --------
    >>> import pyarrow as pa
    >>> feature_rows(pa.array([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]]), "arms", first=0)
    (array([[1., 2.], [3., 4.], [5., 6.]]), array([1, 2]))
    """
    sizes = _list_sizes(column, name, first)
    arms = column.flatten()
    missing = _first_null(arms)
    if missing is not None:
        raise InputError(f"{_arm(missing, sizes, first)} is missing: leave it out")
    widths = _lengths(arms)
    uneven = np.flatnonzero(widths != widths[:1])
    if len(uneven):
        place, odd, usual = _arm(int(uneven[0]), sizes, first), widths[uneven[0]], widths[0]
        raise InputError(f"{place} has {odd} features, but {round_place(first)}, arm 0 has {usual}: make them the same")
    values = arms.flatten()
    n_features = len(values) // max(1, len(arms))
    missing = _first_null(values)
    if missing is not None:
        row, feature = divmod(missing, n_features)
        raise InputError(f"{_arm(row, sizes, first)}, feature {feature} is missing: fill it in or leave the round out")
    return values.to_numpy(zero_copy_only=False).reshape(len(arms), n_features), sizes


def arm_ids(column: Any, name: str, sizes: Index, first: int) -> Ids:
    """Ids of the arms, laid end to end; every round has as many as it has arms."""
    if not is_list(column.type):
        raise InputError(f"column {name!r} holds {str(column.type)[:60]}: it must hold lists, one id an arm")
    found = _list_sizes(column, name, first)
    wrong = np.flatnonzero(found != sizes)
    if len(wrong):
        t = int(wrong[0])
        raise InputError(
            f"{round_place(first + t)} has {found[t]} ids in column {name!r}, but offers {sizes[t]} arms: give one each"
        )
    ids = _decoded(column.flatten())
    missing = _first_null(ids)
    if missing is not None:
        raise InputError(f"{_arm(missing, sizes, first)} has no id in column {name!r}: name every arm")
    return _plain(ids)


def round_values(column: Any, name: str, first: int) -> NDArray[Any]:
    """One value per round, none missing."""
    check_plain(column, name)
    column = _decoded(column)
    missing = _first_null(column)
    if missing is not None:
        raise InputError(
            f"{round_place(first + missing)} has nothing in column {name!r}: fill it in or leave the round out"
        )
    return _plain(column)


def round_place(t: int) -> str:
    """Where a round stands, in words.

    Examples
    --------
    >>> round_place(41)
    'round 41 (counting from 0)'
    """
    return f"round {t} (counting from 0)"


def _decoded(column: Any) -> Any:
    """A column's own values: those of a dictionary may be missing too."""
    import pyarrow as pa

    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _plain(column: Any) -> NDArray[Any]:
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values


def _list_sizes(column: Any, name: str, first: int) -> Index:
    missing = _first_null(column)
    if missing is not None:
        raise InputError(f"{round_place(first + missing)} has nothing in column {name!r}: leave such rounds out")
    sizes = _lengths(column)
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        raise InputError(
            f"{round_place(first + int(empty[0]))} offers no arm in column {name!r}: leave such rounds out"
        )
    return sizes


def _lengths(lists: Any) -> Index:
    import pyarrow.compute as pc

    return np.asarray(pc.list_value_length(lists).to_numpy(zero_copy_only=False), dtype=np.int64)


def _first_null(array: Any) -> int | None:
    if not array.null_count:
        return None
    return int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0])


def _arm(row: int, sizes: Index, first: int) -> str:
    """Where a row stands, in words."""
    ends = np.cumsum(sizes)
    t = int(np.searchsorted(ends, row, side="right"))
    return f"{round_place(first + t)}, arm {row - (ends[t] - sizes[t])}"
