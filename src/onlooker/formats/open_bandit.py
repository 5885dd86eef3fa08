"""The Open Bandit Dataset: a folder with a campaign's log and the items that could be recommended."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.categories import Encoded, Encoding, level_name
from onlooker.encoding import is_number, some
from onlooker.errors import ColumnsLeftOutWarning, InputError, OnlookerWarning, UnseenCategoryWarning
from onlooker.formats.compressed import head, open_bytes
from onlooker.formats.format import Format, arrow_errors, check_memory
from onlooker.formats.open_bandit_items import ITEMS, Items, read_items
from onlooker.formats.sparse_rows import as_ids
from onlooker.frames import check_columns
from onlooker.log import BanditLog
from onlooker.types import Index, Matrix

_AFFINITY = "user-item_affinity"


def recognises(path: Path) -> bool:
    """Whether a folder has a table of items in it, or a log one beside it."""
    folder = path if path.is_dir() else path.parent
    if not (folder / ITEMS).is_file():
        return False
    return path.is_dir() or (path.name != ITEMS and b"item_id" in head(path).partition(b"\n")[0])


def read(
    path: Path,
    *,
    features: Sequence[str] | None = None,
    position: int | None = None,
    order_by: str | None = None,
    like: Encoded | None = None,
) -> BanditLog:
    """Read a campaign's log; every item of `item_context.csv` is on offer in every round. Clicks are read past.

    Features are those of the items, the hashed ones as categories, and the item's own `user-item_affinity`; a category
    that only subdivides another is left out with a warning unless `features` names it. `position` keeps one position of
    the page, `order_by` names a column of times; by default rounds are in the file's order.
    """
    if features is not None and like is not None:
        raise InputError("options 'features' and 'like' both say which features to take: pass one of them")
    file = _log_file(path) if path.is_dir() else path
    with _about(ITEMS):
        items = read_items(file.parent / ITEMS)
    with _about(file.name):
        with arrow_errors("CSV"):
            rounds = _read_rounds(file, items, position, order_by)
        encoding, warned = _encoding(items, features, like, with_affinity=rounds.affinity is not None)
    n_rounds, n_items, width = len(rounds.chosen), len(items.ids), len(encoding.feature_names)
    check_memory(8 * n_rounds * n_items * width)
    table = np.empty((n_rounds, n_items, width))
    for j, (column, level) in enumerate(encoding.sources):
        table[:, :, j] = rounds.affinity if column == _AFFINITY else items.feature(column, level)
    log = BanditLog(
        table.reshape(n_rounds * n_items, width),
        np.arange(n_rounds + 1) * n_items,
        rounds.chosen,
        feature_names=encoding.feature_names,
        arm_ids=np.tile(as_ids(items.ids), n_rounds),
        categories=encoding.categories,
    )
    for warning in warned:
        warnings.warn(warning, stacklevel=3)
    return log if rounds.times is None else log[np.argsort(rounds.times, kind="stable")]


def _encoding(
    items: Items, features: Sequence[str] | None, like: Encoded | None, *, with_affinity: bool
) -> tuple[Encoding, list[OnlookerWarning]]:
    """Which features there are, and what to say about the others."""
    levels = items.levels()
    columns = [*items.numbers, *items.labels, *([_AFFINITY] if with_affinity else [])]
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
        text = f"not there when the encoding was made, so scored as the reference level: {some(unseen)}"
        return encoding, [UnseenCategoryWarning(text)] if unseen else []
    for column in features or ():
        check_columns(columns, {"features": column})
    left_out = items.finer() if features is None else []
    text = (
        f"only subdivides another category, so that the two could not be told apart: {some(left_out)}; left out, "
        "name the features to have it"
    )
    kept = [column for column in columns if column not in left_out] if features is None else features
    chosen = {column: levels[column] for column in kept if column in levels}
    return Encoding.of_columns(kept, chosen), [ColumnsLeftOutWarning(text)] if left_out else []


@dataclass(frozen=True, eq=False)
class _Rounds:
    """What was recommended, round by round."""

    chosen: Index
    """Position of the pick among the items."""
    affinity: Matrix | None
    """Affinity of the round's user to every item, or None where the log has none."""
    times: NDArray[Any] | None
    """When, if that was asked for."""


def _log_file(folder: Path) -> Path:
    """The log of a folder: called as the folder is, or else the only other table."""
    tables = sorted({*folder.glob("*.csv"), *folder.glob("*.csv.gz")} - {folder / ITEMS})
    named = [path for path in tables if path.name.partition(".")[0] == folder.name]
    if len(named or tables) != 1:
        found = ", ".join(path.name for path in tables[:5]) or "none"
        raise InputError(f"should hold one log beside {ITEMS}, called {folder.name}.csv or .csv.gz (found: {found})")
    return (named or tables)[0]


def _read_rounds(path: Path, items: Items, position: int | None, order_by: str | None) -> _Rounds:
    """Read batch by batch: the rest of a log's many columns is never held."""
    import pyarrow as pa
    import pyarrow.csv as pc

    names = head(path).partition(b"\n")[0].decode(errors="replace").strip().replace('"', "").split(",")
    affinities = [f"{_AFFINITY}_{name}" for name in items.ids]
    given = any(name.startswith(_AFFINITY) for name in names)
    wanted = ["item_id", *(affinities if given else ()), *(["position"] if position is not None else ())]
    for name in wanted:
        check_columns(names, {name: name})
    if order_by is not None:
        check_columns(names, {"order_by": order_by})
        wanted.append(order_by)
    types = {"item_id": pa.string(), "position": pa.int64()} | dict.fromkeys(affinities, pa.float64())
    options = pc.ConvertOptions(include_columns=wanted, column_types=types)
    chosen: list[Index] = []
    affinity: list[Matrix] = []
    times: list[NDArray[Any]] = []
    line = 2
    with open_bytes(path) as file, pc.open_csv(file, convert_options=options) as batches:
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
    return _Rounds(
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
