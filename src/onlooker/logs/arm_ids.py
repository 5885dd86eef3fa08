"""Ids of arms: of one type, unique, with the position of each."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from onlooker.base.errors import InputError
from onlooker.base.numerics import arrow_values
from onlooker.base.types import Ids, Index
from onlooker.logs.ragged import check_encodable


def key_of(arm: object) -> str:
    """The key by which ids are compared: 3, 3.0 and '3' are equal, as a table may have any of them.

    Examples
    --------
    >>> key_of(3), key_of(3.0), key_of("3"), key_of(np.int64(3)), key_of(2.5)
    ('3', '3', '3', '3', '2.5')
    """
    value = arm.item() if isinstance(arm, np.generic) else arm
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def keys_of(arms: Iterable[object]) -> tuple[str, ...]:
    """Keys of several ids."""
    return tuple(map(key_of, arms))


def as_arms(arms: Any) -> Ids:
    """Ids of all arms, in order, each once; two at least.

    Examples
    --------
    >>> as_arms(["b", "a"])
    array(['b', 'a'], dtype='<U1')
    """
    distinct, codes = encoded(arms, "arms")
    twice = np.flatnonzero(np.bincount(codes, minlength=len(distinct)) > 1)
    if len(twice):
        raise InputError(f"arms has {_shown(distinct[twice[0]])} twice: name every arm once")
    return check_arms(_array([distinct[code] for code in codes.tolist()]))


def check_arms(arms: Ids) -> Ids:
    """Refuse fewer than two arms, and ids that read the same."""
    seen: dict[str, object] = {}
    for arm in arms.tolist():
        if key_of(arm) in seen:
            raise InputError(f"the arms {seen[key_of(arm)]!r} and {arm!r} read the same: rename one of them")
        seen[key_of(arm)] = arm
    if len(arms) < 2:
        only = f"one arm, {_shown(arms[0])}" if len(arms) else "no arm"
        raise InputError(f"there is {only}: a choice needs two at least; pass arms= with all of them")
    check_encodable([arm for arm in arms.tolist() if isinstance(arm, str)], "arms")
    return arms


def in_order(distinct: Sequence[Any]) -> Ids:
    """Ids sorted, by value where they have an order, else as text."""
    try:
        return _array(sorted(distinct))
    except TypeError:
        return _array(sorted(distinct, key=str))


def encoded(values: Any, name: str, *, unit: str = "") -> tuple[list[Any], Index]:
    """Distinct ids as they first appear, and the number of each value among them.

    Examples
    --------
    >>> encoded(["b", "a", "b"], "chosen")
    (['b', 'a'], array([0, 1, 0]))
    """
    import pyarrow as pa

    # What Arrow has already; text in NumPy's own form may end in zeros that it drops.
    column = values if isinstance(values, pa.Array | pa.ChunkedArray) else _one_dimension(values, name)
    try:
        column = column if not isinstance(column, np.ndarray) else pa.array(column, from_pandas=True)
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    except (pa.ArrowException, TypeError, OverflowError):
        return _encoded_objects(column, name)
    if column.null_count or column.dictionary.null_count:
        number = column.is_null(nan_is_null=True).index(True).as_py()
        raise InputError(f"{name}{_at(unit, number)} is missing: fill it in or leave the round out")
    return column.dictionary.to_pylist(), arrow_values(column.indices).astype(np.int64)


def places(distinct: Sequence[Any], arms: Ids) -> Index:
    """Position of each id among the arms; -1 for unknown ids."""
    where = {key: place for place, key in enumerate(keys_of(arms.tolist()))}
    return np.array([where.get(key_of(arm), -1) for arm in distinct], dtype=np.int64)


def _one_dimension(values: Any, name: str) -> Ids:
    """Values as an array of one dimension, in which numbers and text do not mix."""
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise InputError(f"{name} is a {type(values).__name__}: pass a list of arm ids")
    if isinstance(values, list | tuple | range | dict | set):
        listed = list(values)
        array = np.empty(len(listed), dtype=object)
        array[:] = listed if not any(isinstance(one, list | tuple | np.ndarray) for one in listed) else None
        if listed and array[0] is None and listed[0] is not None:
            raise InputError(f"{name} holds lists: pass one arm id for each")
        return array
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}: pass one dimension")
    return array


def _encoded_objects(array: Any, name: str) -> tuple[list[Any], Index]:
    """The same for ids that Arrow does not know, all of one kind."""
    listed = array.tolist()
    kinds = {type(one) for one in listed}
    if len(kinds) > 1 or not all(isinstance(one, Hashable) for one in listed):
        shown = " and ".join(sorted(kind.__name__ for kind in kinds)[:3])
        raise InputError(f"{name} mixes ids of different kinds ({shown}): make all of them numbers, or all text")
    numbers: dict[Any, int] = {}
    codes = [numbers.setdefault(one, len(numbers)) for one in listed]
    return list(numbers), np.array(codes, dtype=np.int64)


def _array(ids: Sequence[Any]) -> Ids:
    """Ids as an array of whole numbers or text where all of them are, else as they are."""
    if all(type(one) is int for one in ids) or all(type(one) is str and not one.endswith("\0") for one in ids):
        return np.array(ids)
    found = np.empty(len(ids), dtype=object)
    found[:] = ids
    return found


def _shown(arm: object) -> str:
    return repr(arm.item() if isinstance(arm, np.generic) else arm)[:60]


def _at(unit: str, number: int) -> str:
    return f", {unit} {number}," if unit else f"[{number}]"
