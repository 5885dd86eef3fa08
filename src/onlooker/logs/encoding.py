"""From a table's columns to feature rows: numbers as they are, categories one-hot.

Columns are laid into rows in blocks that stay in cache, several at a time, each looked through for missing values while
it is there: a table of a million rows takes about as long to turn as Arrow takes to read it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.checks import counted
from onlooker.base.errors import InputError, UnseenCategoryWarning, warn
from onlooker.base.memory_limit import check_memory
from onlooker.base.numerics import arrow_values
from onlooker.base.threads import ordered_map
from onlooker.base.types import Features
from onlooker.logs.categories import Encoding, Source

_BLOCK_VALUES = 1 << 16
"""Feature values that are laid into rows at once: half a megabyte, which a core's own cache holds."""
_PIECE_ROWS = 1 << 16
"""Rows that a thread takes at a time."""


def is_number(type: Any) -> bool:
    """Whether an Arrow type is that of a number that a feature can be."""
    import pyarrow as pa

    known = (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal)
    return any(test(type) for test in known)


def is_text(type: Any) -> bool:
    """Whether an Arrow type is that of a category: text, or a dictionary of text."""
    import pyarrow as pa

    value = type.value_type if pa.types.is_dictionary(type) else type
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value) or pa.types.is_string_view(value))


def place(row: int) -> str:
    """Describe the position of a row; `row` counts from 0.

    Examples
    --------
    >>> place(41)
    'row 42 (counting from 1, without the header)'
    """
    if row < 0:
        return f"row {-row} from the end of the file before it"
    return f"row {row + 1} (counting from 1, without the header)"


def check_complete(column: Any, name: str, first_row: int = 0, *, part: bool = False) -> None:
    """Refuse a key column that has gaps; `first_row` is the number of its first row in the file.

    Of a `part` of a column the total number of missing values is unknown.
    """
    found = _gaps(column)
    if found is not None:
        raise InputError(f"{_gap_in(name, *found, first_row, part=part)}: fill it in or leave the round out")


def has_gap(column: Any) -> bool:
    """Whether some value is missing, or not a number."""
    return _gaps(column) is not None


def check_gaps(
    table: Any,
    names: Sequence[str],
    first_row: int = 0,
    *,
    part: bool = False,
    free: bool = True,
    rounds: bool = True,
) -> None:
    """Refuse feature columns that have gaps, all in one message.

    Where it is settled which columns are features (not `free`), choosing others is not suggested; where rows are not
    of `rounds`, as in a table of items, leaving them out is not.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"price": [9.5, None], "colour": [None, "blue"]})
    >>> check_gaps(table, table.column_names)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    onlooker.base.errors.InputError: missing values in 'price' (1 row), 'colour' (1 row), first in row 1 ...
    """
    gaps = {name: found for name in names if (found := _gaps(table[name])) is not None}
    if not gaps:
        return
    level = " with a level such as 'none'" if any(is_text(table[name].type) for name in gaps) else ""
    others = ", or name the other columns with `features`"
    others = f", leave the round out (missing='leave-out'){others}" if rounds else others
    remedies = others if free else ", or leave the round out"
    if len(gaps) == 1:
        ((name, found),) = gaps.items()
        raise InputError(f"{_gap_in(name, *found, first_row, part=part)}: fill it in{level}{remedies}")
    level = f", a category{level}" if level else ""
    counts = {name: "" if part else f" ({counted(count, 'row')})" for name, (_, count) in gaps.items()}
    listed = [f"{name!r}{count}" for name, count in counts.items()]
    shown = ", ".join(listed[:12]) + (f" and {counted(len(listed) - 12, 'more column')}" if len(listed) > 12 else "")
    row = place(first_row + min(row for row, _ in gaps.values()))
    raise InputError(f"missing values in {shown}, first in {row}: fill them in{level}{remedies}")


def _gaps(column: Any) -> tuple[int, int] | None:
    """First row of a column that is missing, and how many are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    gaps = column.is_null() if column.null_count else None
    if pa.types.is_floating(column.type):
        # NaN differs from itself: it is not a number, an id or a time.
        gaps = pc.is_null(column, nan_is_null=True)
    row = -1 if gaps is None else pc.index(gaps, value=True).as_py()
    return None if row < 0 else (row, pc.sum(gaps).as_py())


def _gap_in(name: str, row: int, count: int, first_row: int, *, part: bool) -> str:
    others = f", one of {count:,} such rows" if count > 1 and not part else ""
    return f"column {name!r}, {place(first_row + row)} is missing{others}"


def level_counts(column: Any, name: str) -> Counter[str]:
    """How many rows have each level of a column without gaps.

    Examples
    --------
    >>> import pyarrow as pa
    >>> sorted(level_counts(pa.chunked_array([[1, 2, 1]]), "size").items())
    [('1', 2), ('2', 1)]
    """
    counts: Counter[str] = Counter()
    for chunk in column.chunks:
        levels, codes = column_levels(chunk, name)
        for level, count in zip(levels, np.bincount(codes, minlength=len(levels)).tolist(), strict=True):
            if count:
                counts[level] += count
    return counts


def feature_rows(
    table: Any, encoding: Encoding, *, first_row: int = 0, whole: bool = True, free: bool = True
) -> Features:
    """One row of features per row of an Arrow table; float32 where every number is, else float64.

    Levels that the encoding does not know are listed in a warning, if the table is the `whole` log; for `free` see
    `check_gaps`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"price": [9.5, 7.0], "colour": ["red", "blue"]})
    >>> feature_rows(table, Encoding(("price", "colour=red"), {"colour": ("blue", "red")}))
    array([[9.5, 1. ],
           [7. , 0. ]])
    """
    found: list[Features] = []

    def fill(pieces: Pieces, dtype: np.dtype[Any]) -> Counter[tuple[str, str]]:
        check_memory(dtype.itemsize * len(table) * len(encoding.feature_names))
        rows: Features = np.empty((len(table), len(encoding.feature_names)), dtype=dtype)
        found.append(rows)
        unseen: Counter[tuple[str, str]] = Counter()
        for new in ordered_map(_Filler(encoding, rows, first_row).fill, pieces):
            unseen.update(new)
        return unseen

    fill_checked(table, encoding, fill, first_row=first_row, whole=whole, free=free)
    return found[0]


Pieces = Iterable[tuple[Any, int]]
"""Some rows of a table at a time, and the number of the first of them."""


def fill_checked(
    table: Any,
    encoding: Encoding,
    fill: Callable[[Pieces, np.dtype[Any]], Counter[tuple[str, str]]],
    *,
    first_row: int,
    whole: bool,
    free: bool,
) -> None:
    """Have the pieces of a table laid into rows of a type, between the checks of its columns.

    `fill` gives the levels that the encoding does not know, with their rows.
    """
    import pyarrow as pa

    needed = table.select(list(encoding.columns))
    kinds = []
    for field in needed.schema:
        if field.name not in encoding.categories:
            if not is_number(field.type):
                raise InputError(
                    f"column {field.name!r} holds {str(field.type)[:60]}, not numbers: name it as a category"
                )
            kinds.append(field.type)
    if any(column.null_count for column in needed.columns):
        check_gaps(needed, needed.column_names, first_row, part=not whole, free=free)
    single = bool(kinds) and all(pa.types.is_float32(kind) for kind in kinds)
    pieces = needed.to_batches(max_chunksize=_PIECE_ROWS)
    starts = np.cumsum([0, *map(len, pieces)]).tolist()
    try:
        unseen = fill(zip(pieces, starts, strict=False), np.dtype(np.float32 if single else np.float64))
    except InputError:
        # Not a number is one more way of being missing, of which a piece knows its own only.
        check_gaps(needed, needed.column_names, first_row, part=not whole, free=free)
        raise
    if whole:
        warn_unseen(unseen, encoding)


@dataclass(frozen=True, eq=False)
class _Filler:
    """Lays pieces of a table into `rows`."""

    encoding: Encoding
    rows: Features
    first_row: int

    def fill(self, piece: tuple[Any, int]) -> Counter[tuple[str, str]]:
        """Fill in the rows of one piece; return the levels that the encoding does not know, with their rows."""
        batch, start = piece
        sources, names, products = self.encoding.sources, self.encoding.feature_names, self.encoding.products
        numbers = {
            j: column_numbers(batch.column(batch.schema.get_field_index(column)))
            for j, (column, level) in enumerate(sources)
            if level is None and names[j] not in products
        }
        hot: list[NDArray[np.int64]] = []
        unseen: Counter[tuple[str, str]] = Counter()
        for column in self.encoding.categories:
            codes = self._features_of(batch.column(batch.schema.get_field_index(column)), column, unseen)
            hot.append(codes)
        factors = self._factors(batch, dict.fromkeys(one for pair in products.values() for one in pair))
        height = max(1, _BLOCK_VALUES // len(sources))
        for first in range(0, len(batch), height):
            stop = min(first + height, len(batch))
            block = self.rows[start + first : start + stop]
            if hot:
                block[:] = 0
            for j, values in numbers.items():
                block[:, j] = values[first:stop]
            for codes in hot:
                here = codes[first:stop]
                at = np.flatnonzero(here >= 0)
                block[at, here[at]] = 1
            for j, name in enumerate(names):
                if name in products:
                    left, right = (factors[one][first:stop] for one in products[name])
                    with np.errstate(over="ignore", invalid="ignore"):
                        block[:, j] = left * right
            self._check_finite(block, start + first)
        return unseen

    def _factors(self, batch: Any, sources: Iterable[Source]) -> dict[Source, NDArray[np.float64]]:
        """What each side of a product is in every row: a number, or 1 where a category has the level."""
        found: dict[Source, NDArray[np.float64]] = {}
        coded: dict[str, tuple[list[str], NDArray[np.int64]]] = {}
        for column, level in sources:
            array = batch.column(batch.schema.get_field_index(column))
            if level is None:
                found[column, None] = column_numbers(array).astype(np.float64)
                continue
            if column not in coded:
                coded[column] = column_levels(array, column)
            levels, codes = coded[column]
            found[column, level] = (codes == (levels.index(level) if level in levels else -1)).astype(np.float64)
        return found

    def _features_of(self, array: Any, column: str, unseen: Counter[tuple[str, str]]) -> NDArray[np.int64]:
        """Which feature is 1 in every row; -1 for the reference level and for those that are not known."""
        levels, codes = column_levels(array, column)
        known = set(self.encoding.categories[column])
        feature = {level: j for j, (name, level) in enumerate(self.encoding.sources) if name == column}
        new = [code for code, level in enumerate(levels) if level not in known]
        if new:
            counts = np.bincount(codes, minlength=len(levels))
            unseen.update({(column, levels[code]): int(counts[code]) for code in new if counts[code]})
        return np.array([feature.get(level, -1) for level in levels], dtype=np.int64)[codes]

    def _check_finite(self, block: Features, start: int) -> None:
        # A sum is finite only if every term is, and needs no second array; overflow falls through to the exact test.
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(block.sum()):
                return
        bad = np.argwhere(~np.isfinite(block))
        if len(bad):
            row, j = bad[0].tolist()
            name, at = self.encoding.feature_names[j], place(self.first_row + start + row)
            found = "missing" if np.isnan(block[row, j]) else str(block[row, j])
            raise InputError(f"column {name!r}, {at} is {found}: fill it in or leave the round out")


def column_numbers(array: Any) -> NDArray[Any]:
    """Numbers of an Arrow array."""
    import pyarrow as pa

    if pa.types.is_decimal(array.type):
        array = array.cast(pa.float64())
    values: NDArray[Any] = arrow_values(array)
    return values


def column_levels(array: Any, name: str) -> tuple[list[str], NDArray[np.int64]]:
    """Levels of an Arrow array as text, and the position of every row's level among them."""
    import pyarrow as pa

    coded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    try:
        levels = coded.dictionary.cast(pa.string()).to_pylist()
    except pa.ArrowException as error:
        raise InputError(
            f"column {name!r} holds {str(array.type)[:60]}, which is not a category: leave it out"
        ) from error
    return levels, arrow_values(coded.indices).astype(np.int64)


def warn_unseen(unseen: Mapping[tuple[str, str], int], encoding: Encoding) -> None:
    """Warn of levels, by column and level with their rows, that the encoding does not know."""
    for column in dict.fromkeys(column for column, _ in unseen):
        found = [(level, rows) for (name, level), rows in unseen.items() if name == column]
        shown = ", ".join(f"{level!r} in {rows} row{'s' * (rows != 1)}" for level, rows in found[:3])
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        warn(
            f"column {column!r} has {shown}{more}, which the encoding does not know: "
            f"scored as the reference level {encoding.categories[column][0]!r}",
            UnseenCategoryWarning,
        )
