"""Tables of pandas, polars or pyarrow as Arrow tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onlooker.encoding import place
from onlooker.errors import InputError


def opened(frame: Any) -> tuple[Any, list[str]]:
    """A table by the one interface that all of them have here, and the names of its columns."""
    import narwhals as nw

    try:
        table = nw.from_native(frame, eager_only=True)
        names = table.columns
    except TypeError as error:
        raise InputError(f"a {type(frame).__name__} is not a table: pass pandas, polars or pyarrow") from error
    except nw.exceptions.DuplicateError as error:
        raise InputError("the table has two columns of the same name: rename one of them") from error
    odd = next((name for name in names if not isinstance(name, str)), None)
    if odd is not None:
        raise InputError(f"the table has a column whose name, {odd!r}, is not text: rename it, or all by astype(str)")
    return table, names


def in_arrow(table: Any, names: Sequence[str]) -> Any:
    """Some columns of an opened table as an Arrow table.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table, names = opened(pa.table({"price": [9.0], "speed": [2.0]}))
    >>> names, in_arrow(table, ["speed"]).column_names
    (['price', 'speed'], ['speed'])
    """
    import pyarrow as pa

    native = table.to_native()
    if isinstance(native, pa.Table):
        return native.select(list(names))
    return pa.table({name: _column(table[name], name) for name in names})


def _column(series: Any, name: str) -> Any:
    import pyarrow as pa

    try:
        return series.to_arrow()
    except (pa.ArrowException, TypeError, OverflowError) as error:
        values = series.to_list()
        kinds = [str if isinstance(value, str) else float for value in values]
        row = next((row for row, kind in enumerate(kinds) if kind is not kinds[0] and values[row] is not None), None)
        if row is None:
            raise InputError(f"column {name!r} holds what is neither numbers nor text: leave it out") from error
        raise InputError(
            f"column {name!r}, {place(row)} is {values[row]!r}, but the rows before it are of another kind: "
            "make them all text or all numbers"
        ) from error
