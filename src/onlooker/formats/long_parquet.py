"""Long Parquet: one row per offered arm, one column per feature."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

from onlooker.base.memory_limit import check_memory
from onlooker.formats import long
from onlooker.formats.format import arrow_errors, long_format, plain_text
from onlooker.formats.parquet_size import Footer, check_size, text_entries
from onlooker.formats.text_lines import LogFile
from onlooker.logs.columns import Columns, feature_columns, time_columns
from onlooker.logs.frames import warn_times
from onlooker.logs.log import BanditLog

_GROUP_VALUES = 1 << 21
"""Feature values in a row group: 16 MB, so that a part of a scan makes few of them."""


class ParquetSource:
    """A Parquet file; only the columns that are needed are read."""

    text_ids = False

    def __init__(self, file: LogFile) -> None:
        self.path = file.path
        with arrow_errors("Parquet"):
            self._footer = file.once(Footer)
        self._schema = plain_text(self._footer.schema)
        self.names: list[str] = self._schema.names
        self._checked: set[tuple[str | int, ...]] = set()

    def table(self, columns: Columns) -> Any:
        """The columns that are needed, as an Arrow table."""
        named = columns.named
        names = feature_columns(self._schema, columns)[0] if named is None else named
        wanted = list(dict.fromkeys([*columns.keys, *names, *columns.crossed]))
        # Once as columns and once as rows.
        plain = [name for name in wanted if name != columns.offered]
        check_memory(2 * 8 * self._footer.metadata.num_rows * len(wanted) + text_entries(self._footer, plain))
        times = [name for name in time_columns(self._schema, columns) if name not in wanted]
        check_size(self._footer, [*wanted, *times])
        with arrow_errors("Parquet"), self._footer.opened() as file:
            if times:
                keys = [name for name in (columns.by, columns.round) if name is not None]
                table = file.read(columns=[*keys, *times])
                warn_times(table.cast(plain_text(table.schema)), columns)
            table = file.read(columns=wanted)
            return table.cast(plain_text(table.schema))

    def schema(self, _columns: Columns) -> Any:
        """Names and types, as the file declares them."""
        return self._schema

    def batches(self, _columns: Columns, names: Sequence[str], rows: int) -> Iterator[Any]:
        """Some columns as Arrow record batches."""
        if (*names, rows) not in self._checked:
            check_size(self._footer, names, rows)
            self._checked.add((*names, rows))
        with arrow_errors("Parquet"), self._footer.opened(streamed=True) as file:
            # Group by group: asked for all at once, Arrow keeps those that are done with.
            for group in range(file.num_row_groups):
                for batch in file.iter_batches(batch_size=rows, row_groups=[group], columns=list(names)):
                    yield batch.cast(plain_text(batch.schema))


def write_parts(logs: Iterable[BanditLog], file: BinaryIO) -> None:
    """Write logs one after the other, row groups of whole rounds."""
    import pyarrow.parquet as pq

    writer = None
    try:
        for table in long.long_tables(logs, widen=False, values=_GROUP_VALUES):
            if writer is None:
                # Most feature values differ: dictionaries would be filled and thrown away again.
                keys = [name for name in table.column_names if name in {long.ROUND, long.ARM}]
                writer = pq.ParquetWriter(file, table.schema, use_dictionary=keys)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


FORMAT = long_format(name="long Parquet", suffixes=(".parquet", ".pq"), source=ParquetSource, write_parts=write_parts)
