"""Nested Parquet by row group: many small reads into one array.

Parquet's nesting levels take more memory than the values that they arrange, so a column is never read at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onlooker.errors import InputError
from onlooker.formats import lists
from onlooker.log import BanditLog
from onlooker.threads import ordered_map
from onlooker.types import Features, Ids, Index


@dataclass(frozen=True, eq=False)
class Rounds:
    """The rounds of one row group."""

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


class RowGroups:
    """The row groups of a file, and what its columns mean."""

    def __init__(
        self, path: Path, metadata: Any, *, arms: str, chosen: str, round: str | None, arm: str | None
    ) -> None:
        self._path, self._metadata = path, metadata
        self._arms, self._chosen, self._round, self._arm = arms, chosen, round, arm
        sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        self._first_round = np.cumsum([0, *sizes]).tolist()

    def __len__(self) -> int:
        return len(self._first_round) - 1

    def read(self, i: int) -> Rounds:
        """Read row group `i`; the file is opened anew, so that threads can read side by side."""
        import pyarrow.parquet as pq

        names = [name for name in (self._arms, self._chosen, self._round, self._arm) if name is not None]
        with pq.ParquetFile(self._path, metadata=self._metadata) as file:
            table = file.read_row_group(i, columns=names, use_threads=False)
        columns = {name: table[name].combine_chunks() for name in names}
        first = self._first_round[i]
        features, sizes = lists.feature_rows(columns[self._arms], self._arms, first)
        return Rounds(
            features,
            sizes,
            lists.round_values(columns[self._chosen], self._chosen, first).astype(np.int64, copy=False),
            None if self._round is None else lists.round_values(columns[self._round], self._round, first),
            None if self._arm is None else lists.arm_ids(columns[self._arm], self._arm, sizes, first),
        )


def assemble(groups: RowGroups, n_values: int, dtype: np.dtype[Any], feature_names: Sequence[str] | None) -> BanditLog:
    """Lay the row groups end to end in one array of `n_values` features, which is what the file declares."""
    rows: Features | None = None
    filled = 0
    sizes: list[Index] = []
    chosen: list[Index] = []
    round_ids: list[Ids] = []
    arm_ids: list[Ids] = []
    for part in ordered_map(groups.read, range(len(groups))):
        width = part.features.shape[1]
        if rows is None:
            rows = np.empty((n_values // max(1, width), width), dtype=dtype)
        if width != rows.shape[1]:
            t = sum(map(len, sizes))
            raise InputError(f"round {t} has {width} features, but round 0 has {rows.shape[1]}: make them the same")
        end = filled + len(part.features)
        if end > len(rows):
            break
        rows[filled:end] = part.features
        filled = end
        sizes.append(part.sizes)
        chosen.append(part.chosen)
        if part.round_ids is not None:
            round_ids.append(part.round_ids)
        if part.arm_ids is not None:
            arm_ids.append(part.arm_ids)
    if rows is None or not filled:
        raise InputError("holds no rounds: nothing was offered")
    if filled != len(rows):
        raise InputError("holds other numbers of arms than it declares: write it again")
    return BanditLog(
        rows,
        np.concatenate([[0], np.cumsum(np.concatenate(sizes))]),
        np.concatenate(chosen),
        feature_names=feature_names,
        round_ids=np.concatenate(round_ids) if round_ids else None,
        arm_ids=np.concatenate(arm_ids) if arm_ids else None,
    )
