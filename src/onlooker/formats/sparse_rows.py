"""Rows of named features, most of them absent: collected cell by cell into a sparse matrix."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.errors import InputError, UnseenCategoryWarning, warn
from onlooker.base.memory_limit import check_memory
from onlooker.base.types import Index
from onlooker.logs.categories import Categories, level_name, level_order
from onlooker.logs.layouts import stays_sparse

_CELLS = 1 << 16
"""Cells and rows from one check of values and memory to the next."""

Key = str | tuple[str, str]
"""A feature's name, or a category's column and one of its levels."""


class Columns(dict[Key, int]):
    """Number of every feature, given when it first appears; -1 for one that was not requested.

    Examples
    --------
    >>> columns = Columns(["price", "colour"])
    >>> columns["price"], columns["weight"], columns["colour", "red"], columns["price"]
    (0, -1, 1, 0)
    """

    def __init__(self, wanted: Sequence[str] | None = None) -> None:
        super().__init__()
        self.wanted = wanted
        self.count = 0
        self.mixed: dict[str, Key] = {}
        """Columns of numbers and text: the first feature that is of the other kind."""
        self._first: dict[str, Key] = {}
        self._asked = None if wanted is None else frozenset(wanted)

    def __missing__(self, key: Key) -> int:
        number, column = -1, column_of(key)
        if self._asked is None or column in self._asked:
            number, self.count = self.count, self.count + 1
            if type(self._first.setdefault(column, key)) is not type(key):
                self.mixed.setdefault(column, key)
        self[key] = number
        return number

    def names(self) -> list[str]:
        """Columns that appeared, asked for or not; a category once."""
        return list(dict.fromkeys(map(column_of, self)))


def column_of(key: Key) -> str:
    """Name of the column that a feature, or a category's level, belongs to."""
    return key if isinstance(key, str) else key[0]


def name_of(key: Key) -> str:
    """Name of the feature."""
    return key if isinstance(key, str) else level_name(*key)


@dataclass(frozen=True, eq=False)
class Layout:
    """Which column of the matrix each number becomes."""

    names: list[str]
    """One per column of the matrix."""
    places: Index
    """Column of each number, or -1 where it has none, such as a category's reference level."""
    categories: dict[str, tuple[str, ...]]
    """Levels of every category, the reference first; an absent category counts as the empty level."""


@dataclass(eq=False)
class SparseRows:
    """Cells of rows, in the order of the rows. Add cells, then end the row.

    Examples
    --------
    >>> rows = SparseRows(Columns())
    >>> rows.add("price", 2.5)
    >>> rows.add(("colour", "red"), 1.0)
    >>> rows.end_row(line=1)
    >>> rows.add(("colour", "blue"), 1.0)
    >>> rows.end_row(line=2)
    >>> layout = rows.layout()
    >>> layout.names, layout.categories
    (['price', 'colour=red'], {'colour': ('blue', 'red')})
    >>> rows.matrix(layout).toarray()
    array([[2.5, 1. ],
           [0. , 0. ]])
    """

    columns: Columns
    n_rows: int = 0
    numbers: array[int] = field(default_factory=lambda: array("i"))
    """Column of each cell."""
    values: array[float] = field(default_factory=lambda: array("d"))
    _ends: array[int] = field(default_factory=lambda: array("q", [0]))
    _lines: array[int] = field(default_factory=lambda: array("q"))
    _checked: int = 0

    def add(self, key: Key, value: float) -> None:
        """Add a value to the current row, unless its feature was not requested."""
        number = self.columns[key]
        if number >= 0:
            self.numbers.append(number)
            self.values.append(value)

    def extend(self, numbers: Collection[int], values: Iterable[float]) -> None:
        """The same for several cells, given by the numbers of their features."""
        if self.columns.wanted is not None:
            values = [value for number, value in zip(numbers, values, strict=True) if number >= 0]
            numbers = [number for number in numbers if number >= 0]
        self.numbers.extend(numbers)
        self.values.extend(values)

    def end_row(self, line: int) -> None:
        """Close the current row, which `line` of the file describes."""
        self.n_rows += 1
        self._ends.append(len(self.numbers))
        self._lines.append(line)
        if len(self.numbers) - self._checked > _CELLS or not self.n_rows % _CELLS:
            self._check()

    def layout(self) -> Layout:
        """Columns in the order asked for, or else of appearance; a category's levels sorted, the first left out."""
        kept = [key for key, number in self.columns.items() if number >= 0]
        levels: dict[str, list[str]] = {}
        for key in kept:
            if not isinstance(key, str):
                levels.setdefault(key[0], []).append(key[1])
        categories = self._ordered(levels)
        keys: list[Key] = []
        for column in dict.fromkeys(map(column_of, kept) if self.columns.wanted is None else self.columns.wanted):
            if self.columns.get(column, -1) >= 0:
                keys.append(column)
            keys += [(column, level) for level in categories.get(column, ())[1:]]
        places = np.full(self.columns.count, -1, dtype=np.int64)
        places[[self.columns[key] for key in keys]] = np.arange(len(keys))
        # A category of one level in every row says nothing.
        varied = {column: known for column, known in categories.items() if len(known) > 1}
        return Layout([*map(name_of, keys)], places, varied)

    def mixed(self) -> dict[str, tuple[int, str]]:
        """Features that are numbers here and text there: the first line that differs, and what it has."""
        self._check()
        if not self.columns.mixed:
            return {}
        numbers, cells = np.unique(np.asarray(self.numbers), return_index=True)
        first = dict(zip(numbers.tolist(), cells.tolist(), strict=True))
        return {
            column: (self._line(first[self.columns[key]]), "a number" if isinstance(key, str) else repr(key[1][:40]))
            for column, key in self.columns.mixed.items()
        }

    def layout_like(self, names: Sequence[str], categories: Categories) -> Layout:
        """These columns and categories, whatever appeared."""
        where = {name: place for place, name in enumerate(names)}
        places = np.full(self.columns.count, -1, dtype=np.int64)
        for key, number in self.columns.items():
            if number >= 0:
                places[number] = where.get(name_of(key), -1)
            if not isinstance(key, str) and key[1] not in categories.get(key[0], (key[1],)):
                warn(
                    f"category {key[0]!r} has the level {key[1]!r}, which was not there before: it is scored as the "
                    f"reference level {categories[key[0]][0]!r}",
                    UnseenCategoryWarning,
                )
        return Layout([*names], places, dict(categories))

    def matrix(self, layout: Layout) -> Any:
        """One row each as a sparse matrix (CSR), absent features left out, repeated ones added up; takes the cells."""
        matrix = self._cells() @ _one_in_each_row(layout.places, len(layout.names))
        matrix.sort_indices()
        # Cells and matrix together, or matrix and table, are the most that is ever held.
        self.numbers, self.values = array("i"), array("d")
        return matrix

    def _cells(self) -> Any:
        """All cells as they came, a column for every number."""
        from scipy.sparse import csr_array

        self._check()
        parts = np.asarray(self.values), np.asarray(self.numbers), np.asarray(self._ends)
        return csr_array(parts, shape=(self.n_rows, self.columns.count))

    def _check(self) -> None:
        """Refuse values since the last check that are not numbers or do not fit into memory."""
        wrong = np.flatnonzero(~np.isfinite(np.asarray(self.values)[self._checked :]))
        if len(wrong):
            cell = self._checked + int(wrong[0])
            name = next(name_of(key) for key, number in self.columns.items() if number == self.numbers[cell])
            where = f"line {self._line(cell)}, feature {name!r}"
            raise InputError(f"{where} is {self.values[cell]}: fill it in or leave the round out")
        self._checked = len(self.numbers)
        check_fits(self.n_rows, self.columns.count, len(self.numbers))

    def _line(self, cell: int) -> int:
        """Line of the file that a cell comes from."""
        return self._lines[int(np.searchsorted(np.asarray(self._ends), cell, side="right")) - 1]

    def _ordered(self, levels: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
        """Levels of each category, the reference first; a row has one, or none, which is the empty level."""
        columns = list(levels)
        if not columns:
            return {}
        # All categories in one pass: a hostile file has as many of them as words.
        owner = np.full(self.columns.count, -1, dtype=np.int64)
        for place, (column, known) in enumerate(levels.items()):
            owner[[self.columns[column, level] for level in known]] = place
        cells = self._cells()
        cells.data = np.ones(cells.nnz, dtype=np.int32)
        given = cells @ _one_in_each_row(owner, len(columns))
        given.sort_indices()
        if given.data.max(initial=0) > 1:
            twice = int((given.data > 1).argmax())
            line = self._lines[int(np.searchsorted(given.indptr, twice, side="right")) - 1]
            column = columns[given.indices[twice]]
            raise InputError(f"line {line} gives the category {column!r} two values: leave one of them out")
        complete = np.bincount(given.indices, minlength=len(columns)) == self.n_rows
        return {
            column: level_order(known) if complete[place] else ("", *level_order(known))
            for place, (column, known) in enumerate(levels.items())
        }


NAME = 100
"""Bytes that a feature's name takes in lists, sets and the log; tests/fuzz/test_bombs.py has a file of a million."""


def check_fits(n_rows: int, width: int, n_values: int) -> None:
    """Refuse rows that would not fit into memory, sparse or as an array, beside the cells that they are made of."""
    cells = 12 * n_values
    rows = cells if stays_sparse(n_rows, width, n_values) else max(cells, 8 * n_rows * width)
    try:
        check_memory(cells + rows + NAME * width)
    except InputError as error:
        raise InputError(
            f"has {width:,} features and {n_rows:,} offered arms so far, too many for memory as a table: "
            "choose some with features=[...]"
        ) from error


def _one_in_each_row(places: Index, width: int) -> Any:
    """Sparse matrix with a 1 at `places` of its rows, where they are not negative: it takes or adds up columns."""
    from scipy.sparse import csr_array

    rows = np.flatnonzero(places >= 0)
    return csr_array((np.ones(len(rows), dtype=np.int32), (rows, places[rows])), shape=(len(places), width))


def as_ids(names: list[str]) -> NDArray[Any]:
    """Ids as whole numbers where every one is written as such ("01" is not), else as text.

    Examples
    --------
    >>> as_ids(["7", "10"]), as_ids(["7", "010"])
    (array([ 7, 10]), array(['7', '010'], dtype=object))
    """
    text = np.array(names, dtype=object)
    try:
        whole = np.array([int(name) for name in names])
    except ValueError:
        return text
    return whole if whole.dtype.kind in "iu" and list(map(str, whole.tolist())) == names else text
