"""Which shape a table has: long, or one row per round with wide columns or lists of candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onlooker.base.checks import check_plain
from onlooker.logs.candidates import LIKELY, find_candidates
from onlooker.logs.columns import Columns
from onlooker.logs.row_shape import RowShape
from onlooker.logs.wide import distinct_picks, find_wide

HEAD_ROWS = 1000
"""Rows by which the shape of a table is decided, and whether picks are positions or ids; all others must agree."""


def may_be_rounds(names: Sequence[str], columns: Columns) -> bool:
    """Whether a row of the table may be a round, by the names of its columns and what the caller says.

    Examples
    --------
    >>> may_be_rounds(["round", "chosen", "price"], Columns())
    False
    >>> may_be_rounds(["chosen", "arm1_price", "arm2_price"], Columns())
    True
    """
    if columns.per_round:
        return False
    if columns.wide is not None or columns.candidates is not None:
        return True
    if len({*names}) < len(names):
        return False
    likely = any(name.lower() in LIKELY for name in names if name not in columns.keys)
    return (columns.round not in names and columns.chosen in names) or likely or find_wide_names(names, columns)


def find_wide_names(names: Sequence[str], columns: Columns) -> bool:
    """Whether names speak of several arms with numbers."""
    from onlooker.logs.wide import numbered

    return numbered([name for name in names if name not in columns.keys]) is not None


def find_shape(head: Any, columns: Columns) -> RowShape | None:
    """The shape of a table by its first rows; None where it is long, or nothing that is known."""
    flat = flattened(head)
    told = columns.wide is not None or columns.candidates is not None
    if not told and is_long(flat, columns):
        return None
    shape: RowShape | None = None
    if columns.wide is None:
        shape = find_candidates(flat, columns)
    if shape is None:
        shape = _wide(flat, columns)
    if shape is not None:
        shape.see_picks(flat)
    return shape


def _wide(flat: Any, columns: Columns) -> RowShape | None:
    """The arms that the columns' names speak of, unless the picks speak against it."""
    names = flat.column_names
    picks = distinct_picks(flat[columns.chosen], columns.chosen) if columns.chosen in names else []
    shape = find_wide(names, columns, picks)
    if shape is None or columns.wide is not None:
        return shape
    # Flags of a long table whose rows are not in order of rounds.
    flags = columns.round in names and {*picks} <= {"0", "1"} and "0" not in shape.arms
    return None if flags or not (shape.sure or shape.knows(picks)) else shape


def is_long(head: Any, columns: Columns) -> bool:
    """Whether a round has several rows, as in a long table."""
    import pyarrow.compute as pc

    names = head.column_names
    if columns.round not in names or columns.chosen not in names:
        return False
    keys = [name for name in (columns.by, columns.round) if name is not None and name in names]
    for name in keys:
        check_plain(head.schema.field(name), name)
    counts = head.select(keys).group_by(keys).aggregate([([], "count_all")])["count_all"]
    return bool((pc.max(counts).as_py() or 0) > 1)


def flattened(table: Any) -> Any:
    """With a column for every field of columns that hold objects, called `outer.inner`."""
    import pyarrow as pa

    while any(pa.types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
    return table


def long_table(table: Any, columns: Columns) -> tuple[Any, Columns]:
    """A whole table as a long one, and what its columns mean; as it is where it is long already."""
    shape = find_shape(table.slice(0, HEAD_ROWS), columns)
    if shape is None:
        return table, columns
    flat = flattened(table)
    shape.warn_left_out()
    shape.warn_times(flat)
    return shape.long(flat), shape.columns
