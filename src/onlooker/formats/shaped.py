"""Sources with one row per round, read as long tables a batch at a time: wide columns and lists of candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from onlooker.base.checks import check_once
from onlooker.base.errors import InputError
from onlooker.base.memory_limit import check_memory
from onlooker.formats.arrow_source import ArrowSource
from onlooker.formats.format import Source, named
from onlooker.formats.joined import Joined
from onlooker.logs.columns import Columns
from onlooker.logs.encoding import is_text, place
from onlooker.logs.row_shape import RowShape
from onlooker.logs.shapes import HEAD_ROWS, find_shape, flattened, may_be_rounds


def shaped(source: Source, columns: Columns) -> Source:
    """The same source where its table is long, else one that gives its rows as those of a long table."""
    _FOUND.pop(_key(source), None)
    if not may_be_rounds(source.names, columns):
        return source
    check_once(source.names)
    again = source.kept() if isinstance(source, ArrowSource) and not source.again else source
    head = _head(again, columns)
    shape = find_shape(head, columns)
    if shape is None:
        return again
    _FOUND[_key(source)] = shape.assumed
    return ShapedSource(again, shape, shape.time_among(head.schema))


_FOUND: dict[str, str] = {}
"""Descriptions of how rows represent rounds, by path, as last opened."""


def _key(source: Source) -> str:
    """Several files go by the first of them."""
    return str(source.first if isinstance(source, Joined) else source.path)


def shape_in_words(source: Source) -> str | None:
    """How rows of a source that was opened describe rounds; None where each describes an offered arm."""
    return _FOUND.get(_key(source))


def columns_of(source: Source, columns: Columns) -> Columns:
    """What the columns of a source mean, which is another thing where its rows were rounds."""
    return source.columns if isinstance(source, ShapedSource) else columns


def shaped_files(sources: Sequence[Source], columns: Columns) -> list[Source]:
    """The same for files that hold one log, one after the other: they have one shape, decided by the first."""
    found: list[Source] = []
    for source in sources:
        with named(source.path, "read"):
            found.append(shaped(source, columns))
            if len(found) > 1:
                first, last = found[0], found[-1]
                if isinstance(first, ShapedSource) and isinstance(last, ShapedSource):
                    last.rows = first.rows
                    last.number_after(found[-2])  # type: ignore[arg-type]
                elif type(first) is not type(last) and ShapedSource in {type(first), type(last)}:
                    raise InputError(f"has another shape than {first.path}: scan it alone")
    return found


def _head(source: Source, columns: Columns) -> Any:
    """First rows of a source, all columns."""
    import pyarrow as pa

    reading = _reading(source.names, columns, source.names)
    schema = source.schema(reading)
    for batch in source.batches(reading, source.names, HEAD_ROWS):
        if len(batch):
            return _as_numbers(pa.Table.from_batches([batch.slice(0, HEAD_ROWS)]), columns)
    return schema.empty_table()


def _as_numbers(table: Any, columns: Columns) -> Any:
    """With numbers in the column that stood in for picks where there are none, and was read as text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    name = table.column_names[0]
    if {columns.chosen, columns.round} & {*table.column_names} or not is_text(table[name].type):
        return table
    try:
        values = pc.if_else(pc.equal(table[name], ""), None, table[name]).cast(pa.float64())
    except pa.ArrowInvalid:
        return table
    return table.set_column(0, name, values)


def _reading(names: Sequence[str], columns: Columns, wanted: Sequence[str]) -> Columns:
    """How the source reads its columns: picks as ids, all others as they are."""
    pick = columns.chosen if columns.chosen in names else names[0]
    id_ = columns.round if columns.round in names else pick
    keys = {id_, pick, columns.order_by, columns.by}
    return Columns(
        round=id_,
        chosen=id_,
        arm=pick,
        order_by=columns.order_by,
        by=columns.by,
        decimal=columns.decimal,
        features=[name for name in wanted if name not in keys],
    )


class ShapedSource:
    """A source with one row per round, as a long table."""

    def __init__(self, source: Source, shape: RowShape, watched: str | None) -> None:
        self._source, self.rows = source, shape
        self.path, self.text_ids = source.path, source.text_ids
        self.names, self.columns = shape.names, shape.columns
        tops = [next(top for top in source.names if name == top or name.startswith(f"{top}.")) for name in shape.reads]
        self._reads = list(dict.fromkeys(tops))
        self._reading = _reading(source.names, shape.given, self._reads)
        # What looks like a time is read as one where the table is read whole, to see whether it falls.
        self._watching = replace(self._reading, order_by=watched or self._reading.order_by)
        self._told = False
        self._first_round = 0

    def table(self, columns: Columns) -> Any:
        """The long table, of the columns that are needed."""
        rows = flattened(self._source.table(self._watching))
        self.warn(rows)
        long = self.rows.long(rows)
        check_memory(2 * long.nbytes)
        return long.select(columns.needed or self.names)

    def schema(self, columns: Columns) -> Any:  # noqa: ARG002  the protocol's shape
        """Names and types that `batches` gives."""
        head = _head(self._source, self.rows.given)
        return self._text(self.rows.long(flattened(head))).schema

    def batches(self, columns: Columns, names: Sequence[str], rows: int) -> Iterator[Any]:
        """Some columns as Arrow record batches."""
        import pyarrow as pa

        schema, row, last = self.schema(columns), 0, None
        for batch in self._source.batches(self._reading, self._reads, max(1, rows // self.rows.most_arms)):
            table = flattened(_as_numbers(pa.Table.from_batches([batch]), self.rows.given))
            if not len(table):
                continue
            self.warn(table)
            last = self._in_order(table, row, last)
            long = self._text(self.rows.long(table, row, self._first_round)).select(list(names))
            row += len(table)
            wanted = pa.schema([schema.field(name) for name in names])
            yield from long.cast(wanted).to_batches()

    def number_after(self, before: ShapedSource) -> None:
        """Have rounds without ids numbered after those of the file before."""
        if self.columns.round not in self.rows.keys:
            column = before._reads[:1]
            rows = sum(map(len, before._source.batches(before._reading, column, HEAD_ROWS)))
            self._first_round = before._first_round + rows

    def warn(self, table: Any) -> None:
        """Warn once about what is not used."""
        if not self._told:
            self._told = True
            self.rows.warn_left_out()
            self.rows.warn_times(table)

    def _text(self, long: Any) -> Any:
        """Ids as text where the source has them so."""
        import pyarrow as pa

        if self.text_ids:
            for name in filter(None, (self.columns.round, self.columns.arm, self.columns.by)):
                long = long.set_column(long.schema.get_field_index(name), name, long[name].cast(pa.string()))
        return long

    def _in_order(self, table: Any, row: int, last: set[Any] | None) -> set[Any] | None:
        """Refuse a round that comes back from the batch before, by its place in the file."""
        name = self.columns.round
        if name not in table.column_names:
            return None
        ids = table[name].to_pylist()
        again = next((at for at, one in enumerate(ids) if last is not None and one in last), None)
        if again is not None:
            raise InputError(
                f"column {name!r}, {place(row + again)} is {ids[again]!r} again: a row is a round, so give every row "
                "an id of its own"
            )
        return set(ids)
