"""The Open Bandit Dataset: a folder with a campaign's log and the items that could be recommended."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from onlooker.categories import Encoded, Encoding, level_name
from onlooker.columns import check_columns
from onlooker.encoding import some
from onlooker.errors import ColumnsLeftOutWarning, InputError, OnlookerWarning, UnseenCategoryWarning
from onlooker.formats.compressed import LogFile
from onlooker.formats.format import Format, arrow_errors
from onlooker.formats.open_bandit_items import ITEMS, Items, read_items
from onlooker.formats.open_bandit_rounds import AFFINITY, read_rounds
from onlooker.formats.sparse_rows import as_ids
from onlooker.log import BanditLog
from onlooker.memory_limit import check_memory


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
    """Read a campaign's log; every item of `item_context.csv` is on offer in every round. Clicks are read past.

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
        warnings.warn(warning, stacklevel=4)
    return log if rounds.times is None else log[np.argsort(rounds.times, kind="stable")]


def _encoding(
    items: Items, features: Sequence[str] | None, like: Encoded | None, *, with_affinity: bool
) -> tuple[Encoding, list[OnlookerWarning]]:
    """Which features there are, and what to say about the others."""
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
