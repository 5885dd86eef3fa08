"""Parquet by row group: many small reads into one array, or large groups as a stream.

Parquet's nesting levels take more memory than the values that they arrange, so a column is never read at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.categories import Encoded
from onlooker.errors import InputError
from onlooker.formats import lists
from onlooker.formats.parquet_headers import Footer
from onlooker.threads import ordered_map
from onlooker.types import Features, Ids, Index

_BUFFER = 1 << 20
"""Bytes that are read from a streamed file at a time, of every column."""


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
        features, sizes = lists.feature_rows(arrays[columns.arms], columns.arms, first)

        def values(name: str | None) -> NDArray[Any] | None:
            return None if name is None else lists.round_values(arrays[name], name, first)

        return cls(
            features,
            sizes,
            lists.round_values(arrays[columns.chosen], columns.chosen, first).astype(np.int64, copy=False),
            values(columns.round),
            None if columns.arm is None else lists.arm_ids(arrays[columns.arm], columns.arm, sizes, first),
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
        with open_parquet(self._footer) as file:
            table = file.read_row_group(i, columns=self._columns.names, use_threads=False)
        return Rounds.of_table(table, self._columns, self._first_round[i])


@contextmanager
def open_parquet(footer: Footer, *, streamed: bool = False) -> Iterator[Any]:
    """A Parquet file whose footer is known; with `streamed` a large row group is not read at once."""
    import pyarrow.parquet as pq

    options: dict[str, Any] = {"buffer_size": _BUFFER, "pre_buffer": False} if streamed else {}
    with footer.file.native() as native, pq.ParquetFile(native, metadata=footer.metadata, **options) as file:
        yield file


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
            place = lists.round_place(sum(len(part.sizes) for part in parts))
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
