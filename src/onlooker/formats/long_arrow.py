"""Long tables in Arrow's own files (Feather, IPC): one row per offered arm, one column per feature."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from onlooker.formats.arrow_size import check_arrow
from onlooker.formats.arrow_source import decoded, decoded_schema, gathered
from onlooker.formats.format import arrow_errors, long_format, plain_text
from onlooker.formats.text_lines import LogFile
from onlooker.logs.columns import Columns


class ArrowFile:
    """An Arrow file; only the columns that are needed are read."""

    text_ids = False

    def __init__(self, file: LogFile) -> None:
        self.path, self._file = file.path, file
        file.once(check_arrow)
        with self._opened(None) as reader:
            self._schema = plain_text(decoded_schema(reader.schema))
        self.names: list[str] = self._schema.names

    def table(self, columns: Columns) -> Any:
        """The columns that are needed, as an Arrow table."""
        names = columns.needed or self.names
        return gathered(self._batches(names), [self._schema.field(name) for name in names])

    def schema(self, _columns: Columns) -> Any:
        """Names and types, as the file declares them."""
        return self._schema

    def batches(self, _columns: Columns, names: Sequence[str], rows: int) -> Iterator[Any]:
        """Some columns as Arrow record batches."""
        for batch in self._batches(names):
            for start in range(0, len(batch), rows):
                yield batch.slice(start, rows)

    def _batches(self, names: Sequence[str]) -> Iterator[Any]:
        with self._opened(sorted(self.names.index(name) for name in names)) as reader:
            for number in range(reader.num_record_batches):
                with arrow_errors("Arrow"):
                    batch = reader.get_batch(number)
                    # Arrow's reader takes offsets and lengths as the file has them.
                    batch.validate(full=True)
                    batch = decoded(batch.select(list(names)))
                    batch = batch.cast(plain_text(batch.schema))
                yield batch

    @contextmanager
    def _opened(self, places: list[int] | None) -> Iterator[Any]:
        import pyarrow as pa

        options = pa.ipc.IpcReadOptions(included_fields=places, use_threads=False)
        with self._file.native() as native, arrow_errors("Arrow"):
            native.seek(0)
            yield pa.ipc.open_file(native, options=options)


FORMAT = long_format(name="long Arrow", suffixes=(".feather", ".arrow", ".ipc"), source=ArrowFile)
