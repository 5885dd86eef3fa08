"""Long tables in Arrow's own files (Feather, IPC): one row per offered arm, one column per feature.

What a file unpacks to is computed before it is unpacked: a few kilobytes may hold gigabytes.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from onlooker.base.errors import InputError
from onlooker.base.memory_limit import check_memory
from onlooker.formats.arrow_source import decoded, decoded_schema, gathered
from onlooker.formats.format import arrow_errors, long_format, plain_text
from onlooker.formats.text_lines import FLOOR, RATIO, LogFile
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


_MAGIC = b"ARROW1"
_DICTIONARIES, _BATCHES = 2, 3
_HEADER = 2
_LENGTH, _BUFFERS, _COMPRESSION = 0, 2, 3
_DATA = 1
"""Numbers of fields of the footer, a message, a record batch and a dictionary, as Arrow's specification has them."""
_MOST = 1 << 28
"""Bytes of a footer or of a message's header, at most."""


class Table:
    """A table of a flatbuffer: where it begins in the bytes, and its fields by number."""

    def __init__(self, data: bytes, place: int) -> None:
        self._data, self._place = data, place
        self._fields = place - _number("<i", data, place)

    @classmethod
    def root(cls, data: bytes) -> Table:
        """The outermost."""
        return cls(data, _number("<I", data, 0))

    def at(self, field: int) -> int | None:
        """Where a field is, or None where it has none."""
        size = _number("<H", self._data, self._fields)
        offset = _number("<H", self._data, self._fields + 4 + 2 * field) if 4 + 2 * field < size else 0
        return self._place + offset if offset else None

    def table(self, field: int) -> Table | None:
        """A field that is a table."""
        place = self.at(field)
        return None if place is None else Table(self._data, place + _number("<I", self._data, place))

    def rows(self, field: int, form: str) -> Iterator[tuple[int, ...]]:
        """A field that is a vector of structs."""
        place = self.at(field)
        if place is None:
            return
        start = place + _number("<I", self._data, place)
        count, size = _number("<I", self._data, start), struct.calcsize(form)
        if start < 0 or start + 4 + count * size > len(self._data):
            raise _damaged()
        yield from struct.iter_unpack(form, self._data[start + 4 : start + 4 + count * size])

    def whole(self, field: int) -> int:
        """A field that is a whole number of 64 bits."""
        place = self.at(field)
        return 0 if place is None else _number("<q", self._data, place)


def check_arrow(file: LogFile) -> None:
    """Refuse what is not an Arrow file, or would unpack to more than any ordinary log or than fits into memory."""
    with file.plain() as plain:
        size = plain.seek(0, os.SEEK_END)
        plain.seek(0)
        start = plain.read(len(_MAGIC))
        if start != _MAGIC:
            what = "Feather of version 1" if (start or b"").startswith(b"FEA1") else "no Arrow file"
            raise InputError(f"is {what}: write it again as Feather version 2, or as .parquet")
        plain.seek(max(0, size - 10))
        end = plain.read(10) or b""
        length = struct.unpack("<i", end[:4])[0] if len(end) == 10 else 0
        if end[4:] != _MAGIC or not 0 < length <= min(size, _MOST):
            raise InputError("is an Arrow file without its end: it was cut off, or is still being written")
        plain.seek(size - 10 - length)
        footer = Table.root(plain.read(length) or b"")
        for field in (_DICTIONARIES, _BATCHES):
            for place, head, body in footer.rows(field, "<qi4xq"):
                if not (0 <= place <= size and 0 < head <= min(size, _MOST) and 0 <= body <= size):
                    raise _damaged()
                plain.seek(place)
                message = plain.read(head) or b""
                found = Table.root(message[8:]).table(_HEADER)
                batch = found if field == _BATCHES or found is None else found.table(_DATA)
                if batch is not None:
                    _check_batch(plain, place + head, body, batch)


def _check_batch(plain: io.RawIOBase, start: int, body: int, batch: Table) -> None:
    """Refuse a batch that would unpack to too much."""
    unpacked = packed = 0
    for place, length in batch.rows(_BUFFERS, "<qq"):
        if not (0 <= place <= body and 0 <= length <= body):
            raise _damaged()
        said = -1
        if batch.at(_COMPRESSION) is not None and length >= 8:
            plain.seek(start + place)
            said = _number("<q", plain.read(8) or b"", 0)
        unpacked, packed = unpacked + (said if said >= 0 else length), packed + length
    # A column of nulls takes no bytes here, but has rows.
    check_memory(2 * max(unpacked, 8 * max(0, batch.whole(_LENGTH))))
    if unpacked > max(FLOOR, RATIO * packed):
        raise InputError(
            f"has {packed:,} bytes that unpack to {unpacked:,}, which is beyond any ordinary log: "
            "write it again uncompressed if you trust it"
        )


def _number(form: str, data: bytes, place: int) -> int:
    if not 0 <= place <= len(data) - struct.calcsize(form):
        raise _damaged()
    found: int = struct.unpack_from(form, data, place)[0]
    return found


def _damaged() -> InputError:
    return InputError("is a damaged Arrow file: write it again")


FORMAT = long_format(name="long Arrow", suffixes=(".feather", ".arrow", ".ipc"), source=ArrowFile)
