"""Rows of named features, most of them absent: collected cell by cell, made dense at the end."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.categories import Categories, level_name, level_order
from onlooker.errors import InputError, UnseenCategoryWarning
from onlooker.memory_limit import check_memory
from onlooker.types import Index, Matrix

_CELLS = 1 << 16
"""Cells that are kept as Python numbers before they become arrays."""

Key = str | tuple[str, str]
"""A feature's name, or a category's column and one of its levels."""


class Columns(dict[Key, int]):
    """Number of every feature, given when it first appears; -1 for one that nobody asked for.

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
        self._asked = None if wanted is None else frozenset(wanted)

    def __missing__(self, key: Key) -> int:
        number = -1
        if self._asked is None or column_of(key) in self._asked:
            number, self.count = self.count, self.count + 1
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
    """Which column of the table each number becomes."""

    names: list[str]
    """One per column of the table."""
    places: Index
    """Column of each number, or -1 where it has none, such as a category's reference level."""
    categories: dict[str, tuple[str, ...]]
    """Levels of every category, the reference first; an absent category counts as the empty level."""


@dataclass(eq=False)
class SparseRows:
    """Cells of rows, in the order of the rows. Append to `numbers` and `values`, then end the row.

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
    >>> rows.table(layout)
    array([[2.5, 1. ],
           [0. , 0. ]])
    """

    columns: Columns
    numbers: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    n_rows: int = 0
    _ends: list[int] = field(default_factory=list)
    _lines: list[int] = field(default_factory=list)
    _parts: list[tuple[Index, NDArray[np.int32], NDArray[np.float64], Index]] = field(default_factory=list)
    _cells: int = 0

    def add(self, key: Key, value: float) -> None:
        """Add a cell to the row in hand."""
        self.numbers.append(self.columns[key])
        self.values.append(value)

    def end_row(self, line: int) -> None:
        """Close the row in hand, which `line` of the file describes."""
        self.n_rows += 1
        self._ends.append(len(self.numbers))
        self._lines.append(line)
        if len(self.numbers) > _CELLS or len(self._ends) > _CELLS:
            self._pack()

    def layout(self) -> Layout:
        """Columns in the order asked for, or else of appearance; a category's levels sorted, the first left out."""
        self._pack()
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
        told = {column: known for column, known in categories.items() if len(known) > 1}
        return Layout([*map(name_of, keys)], places, told)

    def mixed(self) -> dict[str, tuple[int, str]]:
        """Features that are numbers here and text there: the first line that differs, and what it has."""
        self._pack()
        text: dict[str, bool] = {}
        others: dict[str, dict[int, str]] = {}
        for key, number in self.columns.items():
            column, is_text = column_of(key), not isinstance(key, str)
            if number >= 0 and text.setdefault(column, is_text) != is_text:
                others.setdefault(column, {})[number] = "a number" if isinstance(key, str) else repr(key[1][:40])
        columns, owner = list(others), self._owners(map(list, others.values()))
        found: dict[str, tuple[int, str]] = {}
        for sizes, numbers, _, lines in self._parts if columns else ():
            cells = np.flatnonzero(owner[numbers] >= 0)
            seen, first = np.unique(owner[numbers[cells]], return_index=True)
            for place, cell in zip(seen.tolist(), cells[first].tolist(), strict=True):
                row = int(np.searchsorted(np.cumsum(sizes), cell, side="right"))
                found.setdefault(columns[place], (int(lines[row]), others[columns[place]][int(numbers[cell])]))
        return found

    def layout_like(self, names: Sequence[str], categories: Categories) -> Layout:
        """These columns and categories, whatever appeared."""
        self._pack()
        where = {name: place for place, name in enumerate(names)}
        places = np.full(self.columns.count, -1, dtype=np.int64)
        for key, number in self.columns.items():
            if number >= 0:
                places[number] = where.get(name_of(key), -1)
            if not isinstance(key, str) and key[1] not in categories.get(key[0], (key[1],)):
                warnings.warn(
                    f"category {key[0]!r} has the level {key[1]!r}, which was not there before: it is scored as the "
                    f"reference level {categories[key[0]][0]!r}",
                    UnseenCategoryWarning,
                    stacklevel=2,
                )
        return Layout([*names], places, dict(categories))

    def table(self, layout: Layout, *, width: int | None = None) -> Matrix:
        """One row each, absent features 0, repeated ones added up; `width` columns, the first ones filled."""
        self._pack()
        width = len(layout.names) if width is None else width
        table = np.zeros((self.n_rows, width))
        cells = table.reshape(-1)
        first = 0
        # Parts are let go as they are used: cells and table together are the most that is ever held.
        while self._parts:
            sizes, numbers, values, _ = self._parts.pop(0)
            places = layout.places[numbers]
            rows = np.repeat(np.arange(first, first + len(sizes)), sizes)
            kept = places >= 0
            np.add.at(cells, (rows * width + places)[kept], values[kept])
            first += len(sizes)
        return table

    def _pack(self) -> None:
        """Turn the cells in hand into arrays."""
        if not self._ends:
            return
        numbers, values = np.array(self.numbers, dtype=np.int32), np.array(self.values, dtype=np.float64)
        ends, lines = np.array(self._ends, dtype=np.int64), np.array(self._lines, dtype=np.int64)
        for kept in (self.numbers, self.values, self._ends, self._lines):
            kept.clear()
        wanted = numbers >= 0
        rows = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))[wanted]
        numbers, values = numbers[wanted], values[wanted]
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            cell = int(wrong[0])
            name = next(name_of(key) for key, number in self.columns.items() if number == numbers[cell])
            line = lines[rows[cell]]
            raise InputError(f"line {line}, feature {name!r} is {values[cell]}: fill it in or leave the round out")
        self._parts.append((np.bincount(rows, minlength=len(ends)), numbers, values, lines))
        self._cells += len(numbers)
        self.check_fits(self.columns.count)

    def check_fits(self, width: int) -> None:
        """Refuse a table that would not fit into memory beside the cells that it is made of."""
        try:
            check_memory(8 * self.n_rows * width + 12 * self._cells)
        except InputError as error:
            raise InputError(
                f"has {width:,} features and {self.n_rows:,} offered arms so far, too many for memory as a table: "
                "choose some with features=[...]"
            ) from error

    def _ordered(self, levels: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
        """Levels of each category, the reference first; a row has one, or none, which is the empty level."""
        columns, width = list(levels), len(levels)
        # All categories in one pass: a hostile file has as many of them as words.
        owner = self._owners([self.columns[column, level] for level in known] for column, known in levels.items())
        complete = np.ones(width, dtype=bool)
        for sizes, found, _, lines in self._parts if columns else ():
            rows = np.repeat(np.arange(len(sizes)), sizes)
            kept = owner[found] >= 0
            pairs, times = np.unique(rows[kept] * width + owner[found[kept]], return_counts=True)
            if times.max(initial=0) > 1:
                row, place = divmod(int(pairs[int((times > 1).argmax())]), width)
                column = columns[place]
                raise InputError(f"line {lines[row]} gives the category {column!r} two values: leave one of them out")
            complete &= np.bincount(pairs % width, minlength=width) == len(sizes)
        return {
            column: level_order(known) if complete[place] else ("", *level_order(known))
            for place, (column, known) in enumerate(levels.items())
        }

    def _owners(self, groups: Iterable[list[int]]) -> Index:
        """Place of the group that each feature's number is in, or -1."""
        owner = np.full(self.columns.count, -1, dtype=np.int64)
        for place, numbers in enumerate(groups):
            owner[numbers] = place
        return owner


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
