"""Parquet by row group: many small reads into one array, or large groups as a stream.

Parquet's nesting levels take more memory than the values that they arrange, so a column is never read at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.checks import check_plain, is_list
from onlooker.base.errors import InputError
from onlooker.base.numerics import arrow_values
from onlooker.base.threads import ordered_map
from onlooker.base.types import Features, Ids, Index
from onlooker.formats.parquet_size import Footer
from onlooker.logs.categories import Encoded
from onlooker.logs.encoding import is_number


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
    return arrow_values(values).reshape(len(arms), n_features), sizes


def arm_ids(column: Any, name: str, sizes: Index, first: int) -> Ids:
    """Ids of the arms, laid end to end; every round has as many as it has arms."""
    if not is_list(column.type):
        raise InputError(f"column {name!r} holds {str(column.type)[:60]}: it must hold lists, one id per arm")
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
    """Describe the position of a round.

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
    values: NDArray[Any] = arrow_values(column)
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

    return np.asarray(arrow_values(pc.list_value_length(lists)), dtype=np.int64)


def _first_null(array: Any) -> int | None:
    if not array.null_count:
        return None
    return int(np.flatnonzero(arrow_values(array.is_null()))[0])


def _arm(row: int, sizes: Index, first: int) -> str:
    """Describe the position of a row."""
    ends = np.cumsum(sizes)
    t = int(np.searchsorted(ends, row, side="right"))
    return f"{round_place(first + t)}, arm {row - (ends[t] - sizes[t])}"


@dataclass(frozen=True, kw_only=True)
class NestedColumns:
    """Which columns of a nested table mean what."""

    arms: str = "arms"
    """Features of the arms on offer: a list of lists."""
    chosen: str = "chosen"
    """Position of the pick."""
    round: str | None = None
    """Id of the round."""
    arm: str | None = None
    """Ids of the arms: a list."""
    order_by: str | None = None
    """Time of the round."""
    like: Encoded | None = None
    """Put features in the order that this has."""
    by: str | None = None
    """Which of several learners or restarts the round belongs to."""

    @property
    def meanings(self) -> dict[str, str | None]:
        """Columns by what they mean."""
        return {name: getattr(self, name) for name in ("arms", "chosen", "round", "arm", "order_by", "by")}

    @property
    def names(self) -> list[str]:
        """Columns that are read, each once."""
        return list(dict.fromkeys(name for name in self.meanings.values() if name is not None))


@dataclass(frozen=True, eq=False)
class Rounds:
    """Some rounds of a nested table."""

    features: Features
    """One row per offered arm, shape (rows, d)."""
    sizes: Index
    """How many arms each round offers."""
    chosen: Index
    """Position of the pick within its round."""
    round_ids: Ids | None
    """One id per round, or None."""
    arm_ids: Ids | None
    """One id per row, or None."""
    times: NDArray[Any] | None
    """Time of every round, or None."""
    by: Ids | None
    """What each round belongs to, or None."""

    @classmethod
    def of_table(cls, table: Any, columns: NestedColumns, first: int) -> Rounds:
        """Take an Arrow table apart whose first row is round `first`."""
        arrays = {name: _combined(table[name]) for name in columns.names}
        features, sizes = feature_rows(arrays[columns.arms], columns.arms, first)

        def values(name: str | None) -> NDArray[Any] | None:
            return None if name is None else round_values(arrays[name], name, first)

        return cls(
            features,
            sizes,
            round_values(arrays[columns.chosen], columns.chosen, first).astype(np.int64, copy=False),
            values(columns.round),
            None if columns.arm is None else arm_ids(arrays[columns.arm], columns.arm, sizes, first),
            values(columns.order_by),
            values(columns.by),
        )

    @property
    def offsets(self) -> Index:
        """Where each round's rows begin."""
        return np.concatenate([[0], np.cumsum(self.sizes)])


class RowGroups:
    """The row groups of a file, and what its columns mean."""

    def __init__(self, footer: Footer, columns: NestedColumns) -> None:
        self._footer, self._columns = footer, columns
        sizes = [footer.metadata.row_group(i).num_rows for i in range(footer.metadata.num_row_groups)]
        self._first_round = np.cumsum([0, *sizes]).tolist()

    def __len__(self) -> int:
        return len(self._first_round) - 1

    def read(self, i: int) -> Rounds:
        """Read row group `i`; threads may read side by side."""
        with self._footer.opened() as file:
            table = file.read_row_group(i, columns=self._columns.names, use_threads=False)
        return Rounds.of_table(table, self._columns, self._first_round[i])


def assemble(groups: RowGroups, n_values: int, dtype: np.dtype[Any]) -> Rounds:
    """Lay the row groups end to end in one array of `n_values` features, which is what the file declares."""
    rows: Features | None = None
    filled = 0
    parts: list[Rounds] = []
    for part in ordered_map(groups.read, range(len(groups))):
        width = part.features.shape[1]
        if rows is None:
            rows = np.empty((n_values // max(1, width), width), dtype=dtype)
        if width != rows.shape[1]:
            place = round_place(sum(len(part.sizes) for part in parts))
            raise InputError(f"{place} has {width} features, but round 0 has {rows.shape[1]}: make them the same")
        end = filled + len(part.features)
        if end > len(rows):
            break
        rows[filled:end] = part.features
        filled = end
        parts.append(Rounds(rows[:0], part.sizes, part.chosen, part.round_ids, part.arm_ids, part.times, part.by))
    if rows is None or not filled:
        raise InputError("holds no rounds: nothing was offered")
    if filled != len(rows):
        raise InputError("holds other numbers of arms than it declares: write it again")
    return Rounds(
        rows,
        np.concatenate([part.sizes for part in parts]),
        np.concatenate([part.chosen for part in parts]),
        _joined([part.round_ids for part in parts]),
        _joined([part.arm_ids for part in parts]),
        _joined([part.times for part in parts]),
        _joined([part.by for part in parts]),
    )


def _joined(arrays: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    known = [array for array in arrays if array is not None]
    return np.concatenate(known) if known else None


def _combined(column: Any) -> Any:
    import pyarrow as pa

    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
