"""From a long table, one row per offered arm, to the parts of a log."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onlooker.errors import ColumnsLeftOutWarning, InputError
from onlooker.types import Features, Ids, Index

if TYPE_CHECKING:
    import narwhals as nw

OUTCOMES = frozenset({"reward", "rewards", "propensity", "propensity_score", "pscore"})
"""Columns that an observer does not see, so they are no features unless asked for."""

ROW_NUMBER = re.compile(r"|Unnamed: 0|__index_level_\d+__")
"""What pandas calls the row numbers that it saves with a table."""


def parts_of_frame(
    frame: Any,
    *,
    round: str,
    chosen: str,
    arm: str | None,
    features: Sequence[str] | None,
    order_by: str | None,
) -> dict[str, Any]:
    """What `BanditLog` is made of, by the names of its parameters; see `BanditLog.from_frame`."""
    import narwhals as nw

    try:
        table = nw.from_native(frame, eager_only=True)
        columns = table.columns
    except TypeError as error:
        raise InputError(f"a {type(frame).__name__} is not a table: pass pandas, polars or pyarrow") from error
    except nw.exceptions.DuplicateError as error:
        raise InputError("the table has two columns of the same name: rename one of them") from error
    meanings = {"round": round, "chosen": chosen, "arm": arm, "order_by": order_by}
    check_columns(columns, meanings)
    keys = [name for name in meanings.values() if name is not None]
    if features is None:
        types = {name: table[name].dtype for name in columns}
        names = default_features({name: t.is_numeric() or t == nw.Boolean for name, t in types.items()}, keys)
    else:
        names = _as_list(features)
    for name in names:
        check_columns(columns, {"features": name})
        if name in keys:
            raise InputError(f"column {name!r} cannot be a feature too: leave it out of the features")
    for name in [*keys, *names]:
        _check_complete(table, name)
    if not len(table):
        raise InputError("the table has no rows: nothing was offered")

    ids, first, group = _group_rounds(table[round].to_numpy())
    rank = np.argsort(first, kind="stable") if order_by is None else _rounds_in_time(table, order_by, group, first)
    place = np.empty(len(ids), dtype=np.int64)
    place[rank] = np.arange(len(ids))
    group = place[group]
    order = np.argsort(group, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=len(ids)))]).astype(np.int64)
    round_ids = ids[rank]
    in_order = None if np.array_equal(order, np.arange(len(order))) else order
    picks = _picks(table[chosen], chosen, order, offsets, round_ids)
    return {
        "features": _feature_rows(table, names, in_order),
        "offsets": offsets,
        "chosen": picks,
        "feature_names": names,
        "round_ids": round_ids,
        "arm_ids": None if arm is None else table[arm].to_numpy()[order],
    }


def default_features(numeric: Mapping[str, bool], keys: Sequence[str | None]) -> list[str]:
    """Columns that describe the arms unless the user names them: numbers that are no key, no outcome, no row number.

    `numeric` says of every column whether it holds numbers. Text that is left out is named in a warning.
    """
    others = [name for name in numeric if name not in {*keys, *OUTCOMES} and not ROW_NUMBER.fullmatch(name)]
    names = [name for name in others if numeric[name]]
    text = [name for name in others if not numeric[name]]
    if not names:
        found = f" (not numbers: {some(text)})" if text else ""
        known = some([key for key in keys if key])
        raise InputError(f"the table has no numeric column besides {known}{found}: name the features")
    if text:
        message = f"not numbers, so not taken for features: {some(text)}; encode them, or name the features"
        warnings.warn(message, ColumnsLeftOutWarning, stacklevel=2)
    return names


def check_columns(names: Sequence[str], wanted: Mapping[str, str | None]) -> None:
    """Every wanted column is there; `wanted` maps what a column means to its name."""
    for meaning, name in wanted.items():
        if name is not None and name not in names:
            folded = {other.strip().lower(): other for other in names}
            near = get_close_matches(name.strip().lower(), folded, n=1)
            hint = f"did you mean {folded[near[0]]!r}? " if near else ""
            raise InputError(f"the table has no column {name!r}: it has {some(names)}; {hint}name it as `{meaning}`")


def some(names: Sequence[str]) -> str:
    """The first few names, quoted."""
    shown = ", ".join(repr(name) for name in names[:12])
    return shown if len(names) <= 12 else f"{shown} and {len(names) - 12} more"


def _as_list(features: Sequence[str]) -> list[str]:
    if isinstance(features, str):
        raise InputError(f"features is {features!r}: pass a list of columns")
    return list(features)


def _check_complete(table: nw.DataFrame[Any], name: str) -> None:
    column = table[name]
    # Not every library takes NaN for missing, and NaN differs from itself: no id, and no time.
    gaps = column.is_null() | column.is_nan() if column.dtype.is_float() else column.is_null()
    missing = np.flatnonzero(gaps.to_numpy())
    if len(missing):
        raise InputError(f"column {name!r}, row {missing[0]} is missing: fill it in or leave the round out")


def _group_rounds(values: Ids) -> tuple[Ids, Index, Index]:
    """Distinct round ids, the row where each first appears, and the round of every row."""
    changes = np.flatnonzero(values[1:] != values[:-1]) + 1
    starts = np.concatenate([[0], changes])
    try:
        ids, first, group = np.unique(values[starts], return_index=True, return_inverse=True)
    except TypeError as error:
        raise InputError("the round column mixes text and numbers: make its ids one kind") from error
    runs = np.diff(np.concatenate([starts, [len(values)]]))
    return ids, starts[first], np.repeat(group, runs)


def _rounds_in_time(table: nw.DataFrame[Any], order_by: str, group: Index, first: Index) -> Index:
    """Rounds by falling age; ties keep the order of appearance."""
    times = table[order_by].to_numpy()
    differs = np.flatnonzero(times != times[first][group])
    if len(differs):
        row = int(differs[0])
        raise InputError(
            f"column {order_by!r}, row {row} is {times[row]}, but the same round has {times[first[group[row]]]} "
            f"in row {first[group[row]]}: a round happens at one time"
        )
    by_appearance = np.argsort(first, kind="stable")
    return np.asarray(by_appearance[np.argsort(times[first][by_appearance], kind="stable")])


def _picks(series: nw.Series[Any], name: str, order: Index, offsets: Index, round_ids: Ids) -> Index:
    values = series.to_numpy()
    flags = values.astype(bool) if values.dtype != object else np.array([bool(value) for value in values])
    odd = np.flatnonzero(values != flags)
    if len(odd):
        raise InputError(
            f"column {name!r}, row {odd[0]} is {values.tolist()[odd[0]]!r}: use 1 for the pick and 0 for the others"
        )
    flags = flags[order]
    counts = np.add.reduceat(flags.astype(np.int64), offsets[:-1])
    wrong = np.flatnonzero(counts != 1)
    if len(wrong):
        t = int(wrong[0])
        found = "no pick" if counts[t] == 0 else f"{counts[t]} picks"
        raise InputError(
            f"round {round_ids.tolist()[t]!r} has {found} in column {name!r}: exactly one row of a round is 1"
        )
    return np.asarray(np.flatnonzero(flags) - offsets[:-1], dtype=np.int64)


def _feature_rows(table: nw.DataFrame[Any], names: Sequence[str], order: Index | None) -> Features:
    columns: list[NDArray[Any]] = []
    for name in names:
        values = table[name].to_numpy()
        if not (np.issubdtype(values.dtype, np.number) or values.dtype == bool):
            raise InputError(f"column {name!r} holds {table[name].dtype}, not numbers: encode it or leave it out")
        columns.append(values)
    single = all(values.dtype == np.float32 for values in columns)
    shape = (len(table), len(names))
    rows: Features = np.empty(shape, dtype=np.float32) if single else np.empty(shape, dtype=np.float64)
    for j, values in enumerate(columns):
        rows[:, j] = values if order is None else values[order]
    return rows
