"""The Open Bandit Dataset: a folder with a campaign's log and the items that could be recommended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.checks import check_columns, check_once
from onlooker.base.errors import ColumnsLeftOutWarning, InputError, OnlookerWarning, UnseenCategoryWarning, warn
from onlooker.base.memory_limit import check_memory, limit_in_force
from onlooker.base.numerics import arrow_values
from onlooker.base.text import some_of
from onlooker.base.types import Index, Matrix, Vector
from onlooker.formats.format import Format, arrow_errors
from onlooker.formats.sparse_rows import as_ids
from onlooker.formats.text_lines import LogFile
from onlooker.logs.categories import Encoded, Encoding, level_name, level_order
from onlooker.logs.encoding import is_number
from onlooker.logs.log import BanditLog

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
        """Columns of labels that only subdivide another: beside it, their weights would not be identifiable."""
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
        gaps = arrow_values(column.is_null(nan_is_null=True))
        if gaps.any():
            row = int(gaps.argmax())
            raise InputError(f"column {name!r}, line {line + row} is missing: fill it in or leave the line out")
    return np.arange(len(batch)) if position is None else np.flatnonzero(batch["position"].to_numpy() == position)


def _picks(column: Any, ids: Sequence[str], line: int) -> Index:
    import pyarrow as pa
    import pyarrow.compute as pc

    places = pc.index_in(column, value_set=pa.array(ids))
    if places.null_count:
        row = int(arrow_values(places.is_null()).argmax())
        item = column[row].as_py()[:40]
        raise InputError(f"line {line + row} recommends item {item!r}, which {ITEMS} does not list: add it there")
    return np.asarray(places.to_numpy(), dtype=np.int64)


def _times(column: Any, name: str) -> NDArray[Any]:
    import pyarrow as pa

    if not (pa.types.is_temporal(column.type) or is_number(column.type)):
        raise InputError(f"column {name!r} holds {column.type}, not times: name a column of times, or none")
    values: NDArray[Any] = arrow_values(column)
    return values


def recognises(file: LogFile) -> bool:
    """Whether a folder has a table of items in it, or a log one beside it."""
    path = file.path
    folder = path if path.is_dir() else path.parent
    if not (folder / ITEMS).is_file():
        return False
    return path.is_dir() or (path.name != ITEMS and b"item_id" in file.head().partition(b"\n")[0])


def read(
    file: LogFile,
    *,
    features: Sequence[str] | None = None,
    position: int | None = None,
    order_by: str | None = None,
    like: Encoded | None = None,
) -> BanditLog:
    """Read a campaign's log; every item of `item_context.csv` is on offer in every round. Clicks are ignored.

    Features are those of the items, the hashed ones as categories, and the item's own `user-item_affinity`; a category
    that only subdivides another is left out with a warning unless `features` names it. `position` keeps one position of
    the page, `order_by` names a column of times; by default rounds are in the file's order.
    """
    if features is not None and like is not None:
        raise InputError("options 'features' and 'like' both say which features to take: pass one of them")
    if file.path.is_dir():
        file = LogFile(_log_file(file.path))
    with _about(ITEMS), LogFile(file.path.parent / ITEMS) as listed:
        items = read_items(listed)
    with _about(file.path.name), file:
        with arrow_errors("CSV"):
            rounds = read_rounds(file, items, position, order_by)
        encoding, warned = _encoding(items, features, like, with_affinity=rounds.affinity is not None)
    n_rounds, n_items, width = len(rounds.chosen), len(items.ids), len(encoding.feature_names)
    check_memory(8 * n_rounds * n_items * width)
    table = np.empty((n_rounds, n_items, width))
    for j, (column, level) in enumerate(encoding.sources):
        table[:, :, j] = rounds.affinity if column == AFFINITY else items.feature(column, level)
    log = BanditLog(
        table.reshape(n_rounds * n_items, width),
        np.arange(n_rounds + 1) * n_items,
        rounds.chosen,
        feature_names=encoding.feature_names,
        arm_ids=np.tile(as_ids(items.ids), n_rounds),
        times=rounds.times,
        categories=encoding.categories,
    )
    for warning in warned:
        warn(warning)
    return log if rounds.times is None else log[np.argsort(rounds.times, kind="stable")]


def _encoding(
    items: Items, features: Sequence[str] | None, like: Encoded | None, *, with_affinity: bool
) -> tuple[Encoding, list[OnlookerWarning]]:
    """The features, with a warning about the columns that are left out."""
    levels = items.levels()
    columns = [*items.numbers, *items.labels, *([AFFINITY] if with_affinity else [])]
    if like is not None:
        encoding = Encoding.of(like)
        for column in encoding.columns:
            check_columns(columns, {"like": column})
        unseen = [
            level_name(column, level)
            for column, known in encoding.categories.items()
            for level in levels.get(column, ())
            if level not in known
        ]
        text = f"not there when the encoding was made, so scored as the reference level: {some_of(unseen)}"
        return encoding, [UnseenCategoryWarning(text)] if unseen else []
    for column in features or ():
        check_columns(columns, {"features": column})
    left_out = items.finer() if features is None else []
    text = (
        f"only subdivides another category, so that the two are not identifiable separately: {some_of(left_out)}; "
        "left out, name the features to have it"
    )
    kept = [column for column in columns if column not in left_out] if features is None else features
    chosen = {column: levels[column] for column in kept if column in levels}
    return Encoding.of_columns(kept, chosen), [ColumnsLeftOutWarning(text)] if left_out else []


def _log_file(folder: Path) -> Path:
    """The log of a folder: called as the folder is, or else the only other table."""
    tables = sorted({*folder.glob("*.csv"), *folder.glob("*.csv.gz")} - {folder / ITEMS})
    named = [path for path in tables if path.name.partition(".")[0] == folder.name]
    if len(named or tables) != 1:
        found = ", ".join(path.name for path in tables[:5]) or "none"
        raise InputError(f"should hold one log beside {ITEMS}, called {folder.name}.csv or .csv.gz (found: {found})")
    return (named or tables)[0]


@contextmanager
def _about(name: str) -> Iterator[None]:
    """Say which of the two files is meant."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


FORMAT = Format(
    name="Open Bandit Dataset",
    suffixes=(".csv", ".csv.gz"),
    recognises=recognises,
    read=read,
    folder=True,
)
