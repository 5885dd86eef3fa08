"""Items of the Open Bandit Dataset: a number and hashed labels each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlooker.categories import level_order
from onlooker.columns import check_columns, check_once
from onlooker.errors import InputError
from onlooker.formats.compressed import LogFile
from onlooker.formats.format import arrow_errors
from onlooker.memory_limit import check_memory, limit_in_force
from onlooker.types import Vector

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
    numbers: dict[str, Vector]
    """Columns of numbers."""
    labels: dict[str, list[str]]
    """Columns of labels that differ between items."""

    def levels(self) -> dict[str, tuple[str, ...]]:
        """Levels of every column of labels, the reference first."""
        return {name: level_order(set(values)) for name, values in self.labels.items()}

    def feature(self, column: str, level: str | None) -> Vector:
        """Value of every item: a number, or 1 where the label is `level`."""
        if level is None:
            return self.numbers[column]
        return np.array([float(label == level) for label in self.labels[column]])

    def finer(self) -> list[str]:
        """Columns of labels that only subdivide another: beside it, nothing could tell their weights from its own."""
        found: list[str] = []
        for name, own in self.labels.items():
            others = [labels for other, labels in self.labels.items() if other != name and other not in found]
            if any(len(set(zip(own, labels, strict=True))) == len(set(own)) for labels in others):
                found.append(name)
        return found


def read_items(source: LogFile) -> Items:
    """Read `item_context.csv`."""
    import pyarrow as pa
    import pyarrow.csv as pc

    types = {"item_id": pa.string(), _NUMBER: pa.float64()} | dict.fromkeys(_LABELS, pa.string())
    with arrow_errors("CSV"), source.stream() as file:
        reading = pc.ReadOptions(use_threads=limit_in_force() is None)
        table = pc.read_csv(file, reading, convert_options=pc.ConvertOptions(column_types=types))
        check_columns(table.column_names, {"item_id": "item_id"})
        check_once([name for name in table.column_names if name in types])
        check_memory(100 * table.num_rows * table.num_columns)
        columns = {name: table[name].to_pylist() for name in table.column_names if name in types}
    for name, values in columns.items():
        _check_complete(values, name)
    ids = columns.pop("item_id")
    if not ids:
        raise InputError("has no items: list what could be recommended")
    for name, times in Counter(ids).items():
        if times > 1:
            raise InputError(f"has item {name!r} {'twice' if times == 2 else f'{times} times'}: leave all but one out")
    numbers = {name: np.array(columns.pop(name)) for name in (_NUMBER,) if name in columns}
    return Items(ids, numbers, {name: labels for name, labels in columns.items() if len(set(labels)) > 1})


def _check_complete(values: list[Any], name: str) -> None:
    for row, value in enumerate(values):
        if value in {None, ""} or (isinstance(value, float) and not np.isfinite(value)):
            raise InputError(f"column {name!r}, line {row + 2} is missing: fill it in")
