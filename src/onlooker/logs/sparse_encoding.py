"""From a table's columns to rows that stay sparse: a category of many levels costs one value a row."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.errors import InputError
from onlooker.base.memory_limit import check_memory
from onlooker.base.threads import ordered_map
from onlooker.base.types import Features
from onlooker.logs.categories import Encoding, Source
from onlooker.logs.encoding import Pieces, column_levels, column_numbers, feature_rows, fill_checked, place
from onlooker.logs.layouts import SparseRows, stays_sparse


def encoded_rows(
    table: Any, encoding: Encoding, *, first_row: int = 0, whole: bool = True, free: bool = True
) -> Features | SparseRows:
    """One row of features per row of an Arrow table, as `feature_rows` has them: an array, unless `stays_sparse`.

    Of a part of a file (`whole` is false) the number of rows does not count: all parts are alike.

    Examples
    --------
    >>> import pyarrow as pa
    >>> encoding = Encoding.of_columns(["id"], {"id": tuple(map(str, range(1000)))})
    >>> rows = encoded_rows(pa.table({"id": ["0", "7", "999"]}), encoding)
    >>> rows.shape, rows.matrix.indices
    ((3, 999), array([  6, 998], dtype=int32))
    """
    n_bytes = sparse_row_bytes(encoding, len(table) if whole else 1)
    if n_bytes is None:
        return feature_rows(table, encoding, first_row=first_row, whole=whole, free=free)
    # Beside what they are put together from.
    check_memory(3 * n_bytes * len(table))
    found: list[SparseRows] = []

    def fill(pieces: Pieces, dtype: np.dtype[Any]) -> Counter[tuple[str, str]]:
        filler = _Filler(encoding, first_row, dtype)
        cells = list(ordered_map(filler.fill, pieces))
        found.append(filler.joined(cells))
        return sum((one.unseen for one in cells), start=Counter())

    fill_checked(table, encoding, fill, first_row=first_row, whole=whole, free=free)
    return found[0]


def sparse_row_bytes(encoding: Encoding, n_rows: int = 1) -> int | None:
    """Memory that a row takes at most where so many rows stay sparse: a value for every column. None where they do not.

    Examples
    --------
    >>> sparse_row_bytes(Encoding.of_columns(["id"], {"id": tuple(map(str, range(1000)))}))
    20
    """
    n_columns = len(encoding.columns) + len(encoding.cross)
    sparse = stays_sparse(n_rows, len(encoding.feature_names), n_rows * n_columns)
    return 8 + 12 * n_columns if sparse else None


@dataclass(frozen=True, eq=False)
class _Cells:
    """Values of some rows that are not 0."""

    sizes: NDArray[np.int64]
    """How many each row has."""
    columns: NDArray[np.int32]
    values: NDArray[Any]
    unseen: Counter[tuple[str, str]]


@dataclass(frozen=True, eq=False)
class _Filler:
    """Makes cells of pieces of a table."""

    encoding: Encoding
    first_row: int
    dtype: np.dtype[Any]

    @cached_property
    def features(self) -> dict[str, dict[str | None, int]]:
        """Which feature each level of a column is; None stands for a number."""
        found: dict[str, dict[str | None, int]] = {column: {} for column in self.encoding.columns}
        products = self.encoding.products
        for j, (column, level) in enumerate(self.encoding.sources):
            if self.encoding.feature_names[j] not in products:
                found[column][level] = j
        return found

    @cached_property
    def products(self) -> dict[tuple[Source, Source], int]:
        """Which feature is the product of two sources."""
        known = self.encoding.products
        return {known[name]: j for j, name in enumerate(self.encoding.feature_names) if name in known}

    def fill(self, piece: tuple[Any, int]) -> _Cells:
        """Cells of one piece."""
        batch, start = piece
        unseen: Counter[tuple[str, str]] = Counter()
        shape = len(batch), len(self.features) + len(self.encoding.cross)
        columns, values = np.empty(shape, dtype=np.int32), np.empty(shape, dtype=self.dtype)
        for k, column in enumerate(self.features):
            array = batch.column(batch.schema.get_field_index(column))
            if column in self.encoding.categories:
                columns[:, k], values[:, k] = self._hot(array, column, unseen), 1
            else:
                columns[:, k], values[:, k] = self.features[column].get(None, -1), column_numbers(array)
                self._check_finite(values[:, k], column, start)
        for k, pair in enumerate(self.encoding.cross, start=len(self.features)):
            columns[:, k], values[:, k] = self._product(batch, pair)
            self._check_finite(values[:, k], ":".join(pair), start)
        kept = (columns >= 0) & (values != 0)
        return _Cells(kept.sum(axis=1), columns[kept], values[kept], unseen)

    def _hot(self, array: Any, column: str, unseen: Counter[tuple[str, str]]) -> NDArray[np.int32]:
        """Which feature is 1 in every row; -1 for the reference level and for those that are not known."""
        levels, codes = column_levels(array, column)
        features, known = self.features[column], {*self.encoding.categories[column]}
        places = np.array([features.get(level, -1) for level in levels], dtype=np.int32)
        new = [code for code in np.flatnonzero(places < 0).tolist() if levels[code] not in known]
        if new:
            counts = np.bincount(codes, minlength=len(levels))
            unseen.update({(column, levels[code]): int(counts[code]) for code in new if counts[code]})
        return places[codes]

    def _product(self, batch: Any, pair: tuple[str, str]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Which product of two columns is not 0 in every row, if one is, and its value."""
        values = np.ones(len(batch))
        sides: list[tuple[list[Source], NDArray[np.int64]]] = []
        for column in pair:
            array = batch.column(batch.schema.get_field_index(column))
            if column in self.encoding.categories:
                levels, codes = column_levels(array, column)
                sides.append(([(column, level) for level in levels], codes))
            else:
                with np.errstate(over="ignore", invalid="ignore"):
                    values *= column_numbers(array)
                sides.append(([(column, None)], np.zeros(len(batch), dtype=np.int64)))
        (left, rows), (right, others) = sides
        places = np.array([[self.products.get((a, b), -1) for b in right] for a in left], dtype=np.int32)
        return places[rows, others], values

    def _check_finite(self, values: NDArray[Any], column: str, start: int) -> None:
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            found = "missing" if np.isnan(values[bad[0]]) else str(values[bad[0]])
            at = place(self.first_row + start + int(bad[0]))
            raise InputError(f"column {column!r}, {at} is {found}: fill it in or leave the round out")

    def joined(self, cells: list[_Cells]) -> SparseRows:
        """All rows."""
        from scipy.sparse import csr_array

        sizes = np.concatenate([np.zeros(1, dtype=np.int64), *(one.sizes for one in cells)])
        values = np.concatenate([np.empty(0, dtype=self.dtype), *(one.values for one in cells)])
        columns = np.concatenate([np.empty(0, dtype=np.int32), *(one.columns for one in cells)])
        shape = len(sizes) - 1, len(self.encoding.feature_names)
        matrix = csr_array((values, columns, np.cumsum(sizes)), shape=shape)
        # Levels that came later stand behind all columns.
        matrix.sort_indices()
        return SparseRows.of(matrix)
