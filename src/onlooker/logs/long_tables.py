"""A log as a long table whose metadata says how to read it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.base.errors import InputError
from onlooker.base.notebook import as_frame
from onlooker.base.types import Features
from onlooker.logs.categories import Encoding
from onlooker.logs.columns import OFFER_PROBABILITY, POSSIBLE, Columns, understood
from onlooker.logs.partial import marks_of
from onlooker.logs.ragged import slate_positions

if TYPE_CHECKING:
    from onlooker.logs.log import BanditLog

_MEANING = b"onlooker.columns"
"""The metadata key under which a table stores the meaning of its columns."""


def frame_of(log: BanditLog) -> Any:
    """See `BanditLog.to_frame`."""
    table = table_of(log)
    frame = as_frame(table)
    if frame is not table:
        frame.attrs[_MEANING.decode()] = table.schema.metadata[_MEANING].decode()
    return frame


def table_of(log: BanditLog) -> Any:
    """The log as a long Arrow table."""
    import pyarrow as pa

    names = tuple(f"x{j}" for j in range(log.n_features)) if log.weight_names is None else log.weight_names
    rounds = np.arange(log.n_rounds) if log.round_ids is None else log.round_ids
    keys: dict[str, Any] = {"round": np.repeat(rounds, log.n_arms), **known_picks(log, sets=log.possible is not None)}
    if log.arm_ids is not None:
        keys["arm"] = log.arm_ids
    if log.times is not None:
        keys["time"] = np.repeat(log.times, log.n_arms)
    positions = slate_positions(log.round_ids, log.n_arms)
    if positions is not None:
        keys["position"] = np.repeat(positions, log.n_arms)
    rows = log.dense
    encoding = _as_text(rows, Encoding(names, log.categories or {}))
    features = _feature_columns(rows, encoding)
    taken = next((name for name in features if name in keys), None)
    if taken is not None:
        raise InputError(f"a table cannot hold a feature called {taken!r} beside the column of that name: rename it")
    meaning = {
        "arm": "arm" if "arm" in keys else None,
        "order_by": "time" if "time" in keys else None,
        "slate": "position" if "position" in keys else None,
        "feature_names": names,
        "categories": dict(encoding.categories),
    }
    try:
        table = pa.table({name: pa.array(values) for name, values in keys.items()} | features)
    except (pa.ArrowException, OverflowError) as error:
        raise InputError("ids or times are of several kinds: make them all text or all whole numbers") from error
    return table.replace_schema_metadata({_MEANING: json.dumps(meaning).encode()})


def known_picks(log: BanditLog, *, sets: bool) -> dict[str, Any]:
    """Columns of what is known of picks and offers: `chosen`, or `possible` of `sets`, and `offer_probability`."""
    marks = marks_of(log.chosen, log.offsets) if log.possible is None else log.possible
    found: dict[str, Any] = {POSSIBLE if sets else "chosen": marks.astype(np.int8)}
    if log.offer_probability is not None:
        found[OFFER_PROBABILITY] = np.asarray(log.offer_probability)
    return found


def _as_text(rows: Features, encoding: Encoding) -> Encoding:
    """The same with those categories only that every row has one level of."""
    own: dict[str, list[int]] = {}
    for j, (column, level) in enumerate(encoding.sources):
        if level is not None:
            own.setdefault(column, []).append(j)
    kept = {
        column: encoding.categories[column]
        for column, places in own.items()
        if ((rows[:, places] == 0) | (rows[:, places] == 1)).all() and (rows[:, places].sum(axis=1) <= 1).all()
    }
    return Encoding(encoding.feature_names, kept)


def _feature_columns(rows: Features, encoding: Encoding) -> dict[str, Any]:
    """Columns behind the features: numbers as they are, categories as text where a row has one level at most."""
    import pyarrow as pa

    found: dict[str, Any] = {}
    for column in encoding.columns:
        places = {level: j for j, (name, level) in enumerate(encoding.sources) if name == column}
        if None in places:
            found[column] = pa.array(rows[:, places[None]])
            continue
        levels = encoding.categories[column]
        codes = np.zeros(len(rows), dtype=np.int32)
        for level, j in places.items():
            codes[rows[:, j] != 0] = levels.index(str(level))
        found[column] = pa.array(levels).take(pa.array(codes))
    return found


def as_written(table: Any, columns: Columns) -> Columns:
    """What the columns of a table mean that `table_of` made, where the caller says nothing else."""
    import pyarrow as pa

    if isinstance(table, pa.Table):
        saved, names = (table.schema.metadata or {}).get(_MEANING), table.column_names
    else:
        saved = getattr(table, "attrs", {}).get(_MEANING.decode()) if hasattr(table, "attrs") else None
        names = [] if saved is None else [str(name) for name in table.columns]
    if saved is None or columns.wide is not None or columns.candidates is not None:
        return columns
    meaning = json.loads(saved)
    columns = understood(names, columns)
    given: dict[str, Any] = {
        option: meaning[option]
        for option in ("arm", "order_by", "slate")
        if getattr(columns, option) is None and meaning[option] in names
    }
    levels = {name: tuple(all_) for name, all_ in meaning["categories"].items()}
    known = Encoding(tuple(meaning["feature_names"]), levels)
    free = columns.like is None and columns.features is None and not columns.categories and not columns.cross
    # Columns that were added since are features as in any table.
    if free and {*known.columns} == {*names} - {*columns.keys, *given.values()}:
        given["like"] = known
    return replace(columns, **given)
