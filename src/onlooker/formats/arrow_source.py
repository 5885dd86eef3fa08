"""Tables of other libraries as a log: whatever gives its rows as a stream of Arrow's, by `__arrow_c_stream__`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from onlooker.base.errors import InputError
from onlooker.base.memory_limit import check_memory
from onlooker.base.text import one_line
from onlooker.formats.format import TABLE, named, plain_text
from onlooker.logs.columns import Columns


class SupportsArrowStream(Protocol):
    """A table of any library that can hand its rows to another as Arrow does."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def arrow_source(given: object) -> ArrowSource | None:
    """A table that can be read, or None where `given` is something else.

    Examples
    --------
    >>> import pyarrow as pa
    >>> arrow_source(pa.table({"round": [1], "chosen": [1], "price": [9.0]})).names
    ['round', 'chosen', 'price']
    >>> arrow_source("log.csv")
    """
    with named(TABLE, "read"), _arrow_errors():
        if type(given).__name__ == "LazyFrame" and hasattr(given, "collect"):
            # A query of polars that has not run yet.
            given = given.collect()
        return ArrowSource(given) if hasattr(given, "__arrow_c_stream__") else None


class ArrowSource:
    """A table of pyarrow, polars, pandas, DuckDB or another library, or a stream that can be read once."""

    path = TABLE
    text_ids = False

    def __init__(self, given: Any) -> None:
        self._given = given
        # A stream may be asked for only once: the first reader is kept.
        self._reader = _reader(given)
        self._schema = plain_text(decoded_schema(self._reader.schema))
        self.names: list[str] = self._schema.names
        self._rows: int | None = None

    def kept(self) -> ArrowSource:
        """The same, held in memory, so that it can be read again."""
        return ArrowSource(gathered(self._batches(self.names), self._schema))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_reader": None}

    def table(self, columns: Columns) -> Any:
        """The columns that are needed, as an Arrow table."""
        names = columns.needed or self.names
        return gathered(self._batches(names), [self._schema.field(name) for name in names])

    @property
    def again(self) -> bool:
        """Whether it can be read more than once."""
        return hasattr(self._given, "__len__")

    def stream(self) -> Any:
        """All of it as a stream of Arrow's, to be read once."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self._schema, self._batches(self.names))

    def schema(self, _columns: Columns) -> Any:
        """Names and types, as the table declares them."""
        return self._schema

    def batches(self, _columns: Columns, names: Sequence[str], rows: int) -> Iterator[Any]:
        """Some columns as Arrow record batches."""
        count = 0
        for batch in self._batches(names):
            count += len(batch)
            for start in range(0, len(batch), rows):
                yield batch.slice(start, rows)
        if self._rows not in {None, count}:
            raise InputError(f"{TABLE} gave {self._rows} rows at first and {count} rows later: write it to a file")
        self._rows = count

    def _batches(self, names: Sequence[str]) -> Iterator[Any]:
        reader, self._reader = self._reader or _reader(self._given), None
        batches = iter(reader)
        while True:
            with _arrow_errors():
                batch = next(batches, None)
                if batch is None:
                    return
                batch = decoded(batch.select(list(names)))
                batch = batch.cast(plain_text(batch.schema))
            yield batch


def gathered(batches: Iterable[Any], fields: Iterable[Any]) -> Any:
    """Record batches of these fields as a table, as long as they fit into memory."""
    import pyarrow as pa

    held, kept = 0, []
    for batch in batches:
        held += batch.nbytes
        # Once as columns and once as rows.
        check_memory(held)
        kept.append(batch)
    return pa.Table.from_batches(kept, pa.schema(fields))


def decoded_schema(schema: Any) -> Any:
    """The schema of what `decoded` gives."""
    import pyarrow as pa

    views = [pa.types.is_dictionary(one.type) and one.type.value_type == pa.string_view() for one in schema]
    fields = [one.with_type(pa.string()) if view else one for one, view in zip(schema, views, strict=True)]
    return pa.schema(fields, schema.metadata)


def decoded(batch: Any) -> Any:
    """With plain values in the place of dictionaries of views (polars' categories), which Arrow cannot cast."""
    import pyarrow as pa

    columns = [
        column.dictionary.cast(pa.string()).take(column.indices)
        if pa.types.is_dictionary(column.type) and column.type.value_type == pa.string_view()
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _reader(given: Any) -> Any:
    import pyarrow as pa

    with _arrow_errors():
        return pa.RecordBatchReader.from_stream(given)


@contextmanager
def _arrow_errors() -> Iterator[None]:
    """Turn what the other library or Arrow raises into `InputError`, in one line."""
    try:
        yield
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(f"{TABLE} does not fit into memory: read a part of it") from error
    except Exception as error:  # any library may be behind it
        raise InputError(
            f"{TABLE} cannot be read as Arrow data ({one_line(error)}): give columns different names, and each one kind"
        ) from error
