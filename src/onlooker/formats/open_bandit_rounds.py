"""Rounds of the Open Bandit Dataset: which item was recommended, and how close the user is to each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.columns import check_columns, check_once
from onlooker.encoding import is_number
from onlooker.errors import InputError
from onlooker.formats.compressed import LogFile
from onlooker.formats.open_bandit_items import ITEMS, Items
from onlooker.memory_limit import check_memory
from onlooker.types import Index, Matrix

AFFINITY = "user-item_affinity"
"""What the columns of affinities are called before the item's id, and the feature that they make."""


@dataclass(frozen=True, eq=False)
class Rounds:
    """What was recommended, round by round."""

    chosen: Index
    """Position of the pick among the items."""
    affinity: Matrix | None
    """Affinity of the round's user to every item, or None where the log has none."""
    times: NDArray[Any] | None
    """When, if that was asked for."""


def read_rounds(source: LogFile, items: Items, position: int | None, order_by: str | None) -> Rounds:
    """Read batch by batch: the rest of a log's many columns is never held."""
    import pyarrow as pa
    import pyarrow.csv as pc

    names = source.head().partition(b"\n")[0].decode(errors="replace").strip().replace('"', "").split(",")
    affinities = [f"{AFFINITY}_{name}" for name in items.ids]
    given = any(name.startswith(AFFINITY) for name in names)
    wanted = ["item_id", *(affinities if given else ()), *(["position"] if position is not None else ())]
    for name in wanted:
        check_columns(names, {name: name})
    if order_by is not None:
        check_columns(names, {"order_by": order_by})
        wanted.append(order_by)
    asked = {*wanted}
    check_once([name for name in names if name in asked])
    types = {"item_id": pa.string(), "position": pa.int64()} | dict.fromkeys(affinities, pa.float64())
    options = pc.ConvertOptions(include_columns=wanted, column_types=types)
    chosen: list[Index] = []
    affinity: list[Matrix] = []
    times: list[NDArray[Any]] = []
    line = 2
    with source.stream() as file, pc.open_csv(file, convert_options=options) as batches:
        for batch in batches:
            kept = _kept(batch, wanted, position, line)
            chosen.append(_picks(batch["item_id"], items.ids, line)[kept])
            if given:
                affinity.append(np.column_stack([batch[name].to_numpy()[kept] for name in affinities]))
            if order_by is not None:
                times.append(_times(batch[order_by], order_by)[kept])
            line += len(batch)
            check_memory(8 * sum(map(len, chosen)) * len(items.ids))
    if not sum(map(len, chosen)):
        which = "" if position is None else f" of position {position}"
        raise InputError(f"has no rounds{which}: nothing was recommended")
    return Rounds(
        np.concatenate(chosen),
        np.concatenate(affinity) if given else None,
        None if order_by is None else np.concatenate(times),
    )


def _kept(batch: Any, wanted: Sequence[str], position: int | None, line: int) -> Index:
    """Rows of the position that was asked for, every cell of them there."""
    for name in wanted:
        column = batch[name]
        gaps = column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        if gaps.any():
            row = int(gaps.argmax())
            raise InputError(f"column {name!r}, line {line + row} is missing: fill it in or leave the line out")
    return np.arange(len(batch)) if position is None else np.flatnonzero(batch["position"].to_numpy() == position)


def _picks(column: Any, ids: Sequence[str], line: int) -> Index:
    import pyarrow as pa
    import pyarrow.compute as pc

    places = pc.index_in(column, value_set=pa.array(ids))
    if places.null_count:
        row = int(places.is_null().to_numpy(zero_copy_only=False).argmax())
        item = column[row].as_py()[:40]
        raise InputError(f"line {line + row} recommends item {item!r}, which {ITEMS} does not list: add it there")
    return np.asarray(places.to_numpy(), dtype=np.int64)


def _times(column: Any, name: str) -> NDArray[Any]:
    import pyarrow as pa

    if not (pa.types.is_temporal(column.type) or is_number(column.type)):
        raise InputError(f"column {name!r} holds {column.type}, not times: name a column of times, or none")
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values
