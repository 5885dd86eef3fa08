"""Items of the Open Bandit Dataset: a number and hashed labels each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.categories import level_name, level_order
from onlooker.errors import InputError
from onlooker.formats.compressed import open_bytes
from onlooker.formats.format import arrow_errors
from onlooker.frames import check_columns

ITEMS = "item_context.csv"
"""What the table of items is called."""
_NUMBER = "item_feature_0"
_LABELS = tuple(f"item_feature_{k}" for k in range(1, 100))
"""Hashed, so they are categories even if a hash looks like a number."""


@dataclass(frozen=True, eq=False)
class Items:
    """What can be recommended."""

    ids: list[str]
    """One per item, as the file has them."""
    columns: dict[str, dict[str, NDArray[np.float64]]]
    """Features of each column by their names, one value an item; a category has one feature a level but the first."""
    levels: dict[str, tuple[str, ...]]
    """Levels of the categories."""


def read_items(path: Path) -> Items:
    """Read `item_context.csv`."""
    import pyarrow as pa
    import pyarrow.csv as pc

    types = {"item_id": pa.string(), _NUMBER: pa.float64()} | dict.fromkeys(_LABELS, pa.string())
    with arrow_errors("CSV"), open_bytes(path) as file:
        table = pc.read_csv(file, convert_options=pc.ConvertOptions(column_types=types))
    check_columns(table.column_names, {"item_id": "item_id"})
    columns = {name: table[name].to_pylist() for name in table.column_names if name in types}
    for name, values in columns.items():
        _check_complete(values, name)
    ids = columns.pop("item_id")
    if not ids:
        raise InputError("has no items: list what could be recommended")
    twice = next((name for k, name in enumerate(ids) if name in ids[:k]), None)
    if twice is not None:
        raise InputError(f"has item {twice!r} twice: leave one of them out")
    levels = {name: level_order(set(values)) for name, values in columns.items() if name != _NUMBER}
    features = {
        name: _one_hot(name, values, levels[name]) if name in levels else {name: np.array(values)}
        for name, values in columns.items()
    }
    return Items(ids, features, {name: known for name, known in levels.items() if len(known) > 1})


def finer(items: Items) -> list[str]:
    """Categories that only subdivide another one: beside it, nothing could tell their weights from its own."""
    labels = {name: [tuple(row) for row in np.column_stack([*items.columns[name].values()])] for name in items.levels}
    found: list[str] = []
    for name, own in labels.items():
        others = [other for other in labels if other != name and other not in found]
        if any(len(set(zip(own, labels[other], strict=True))) == len(set(own)) for other in others):
            found.append(name)
    return found


def _one_hot(name: str, values: list[str], levels: tuple[str, ...]) -> dict[str, NDArray[np.float64]]:
    return {level_name(name, level): np.array([float(value == level) for value in values]) for level in levels[1:]}


def _check_complete(values: list[Any], name: str) -> None:
    for row, value in enumerate(values):
        if value in {None, ""} or (isinstance(value, float) and not np.isfinite(value)):
            raise InputError(f"column {name!r}, line {row + 2} is missing: fill it in")
