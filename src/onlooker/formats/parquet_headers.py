"""Headers of a Parquet file, read before Arrow does: what they say may take its memory, or end the process.

Arrow makes room for as much as a page's header says, whatever the file's footer says; two gigabytes of zeros are some
fifty bytes in some compressions. And pyarrow does not catch what Arrow throws when it is asked about a column of a
damaged footer. Both are read only where they are needed, under a memory limit or for lists: it takes some 60
microseconds for every column of every row group, more than reading a small one.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, BinaryIO

from onlooker.base.errors import InputError
from onlooker.formats.text_lines import LogFile
from onlooker.formats.thrift import MalformedError, read_struct

_TEXT = "BYTE_ARRAY"
_LONGEST = 1 << 16
"""Bytes of a page's header; statistics in it may be long, but not that long."""
_ROW_GROUPS, _COLUMNS, _METADATA = 4, 1, 3
_SECRETS = (8, 9)
_SIZES, _LETTERS, _REPEATED, _DEFINED = 16, 1, 2, 3
_UNPACKED, _PACKED = 2, 3
"""Numbers of fields, as the format's specification has them."""


class Footer:
    """What a Parquet file says of itself; of its columns only after a look at the bytes."""

    def __init__(self, file: LogFile) -> None:
        import pyarrow.parquet as pq

        self.file = file
        with file.native() as native, pq.ParquetFile(native) as opened:
            self.metadata, self.schema = opened.metadata, opened.schema_arrow
        """As pyarrow has read them: what the file has, and its columns."""

    def chunks(self, leaves: Sequence[int]) -> list[list[Any]]:
        """What pyarrow knows of some leaves in every row group."""
        self._check  # noqa: B018  once
        groups = map(self.metadata.row_group, range(self.metadata.num_row_groups))
        return [[group.column(j) for j in leaves] for group in groups]

    @cached_property
    def _check(self) -> None:
        check_footer(self.file, self.metadata.schema)


def page_sizes(file: BinaryIO, start: int, length: int) -> Iterator[int]:
    r"""Bytes that every page of a column chunk unpacks to.

    Examples
    --------
    A page of type 0 with 100 bytes packed into 7:

    >>> header = bytes([0x15, 0, 0x15, 200, 1, 0x15, 14, 0])
    >>> list(page_sizes(io.BytesIO(header + b"-------"), 0, 15))
    [100]
    """
    place = start
    while place < start + length:
        file.seek(place)
        header = io.BytesIO(file.read(_LONGEST))
        try:
            sizes = read_struct(header)
        except MalformedError:
            sizes = {}
        unpacked, packed = sizes.get(_UNPACKED), sizes.get(_PACKED)
        if not (isinstance(unpacked, int) and isinstance(packed, int) and packed >= 0):
            raise _damaged("a page has no proper header")
        yield unpacked
        place += header.tell() + packed


def check_footer(source: LogFile, schema: Any) -> None:
    """Refuse a footer about whose columns pyarrow could not be asked; `schema` is the file's own."""
    levels = [_levels(schema.column(j)) for j in range(len(schema))]
    try:
        groups = read_struct(_footer(source)).get(_ROW_GROUPS) or []
    except MalformedError:
        raise _damaged("its footer is no Thrift") from None
    for group in groups:
        columns = group.get(_COLUMNS) if isinstance(group, dict) else None
        if not isinstance(columns, list) or len(columns) != len(levels):
            raise _damaged("a row group has other columns than the file")
        for column, (repeated, defined, is_text) in zip(columns, levels, strict=True):
            _check_column(column, repeated, defined, is_text=is_text)


def _levels(leaf: Any) -> tuple[int, int, bool]:
    return leaf.max_repetition_level, leaf.max_definition_level, leaf.physical_type == _TEXT


def _check_column(column: Any, repeated: int, defined: int, *, is_text: bool) -> None:
    known = column.get(_METADATA) if isinstance(column, dict) else None
    if not isinstance(known, dict):
        raise _damaged("a column has no metadata")
    if any(field in column for field in _SECRETS):
        raise InputError("has encrypted columns: write it again without encryption")
    sizes = known.get(_SIZES)
    if sizes is None:
        return
    if not isinstance(sizes, dict) or (_LETTERS in sizes and not is_text):
        raise _damaged("a column has sizes of another kind")
    for field, level in ((_REPEATED, repeated), (_DEFINED, defined)):
        counts = sizes.get(field) or []
        if not isinstance(counts, list) or len(counts) not in {0, level + 1}:
            raise _damaged("a column has counts of other levels")


def _footer(source: LogFile) -> io.BytesIO:
    """The struct at the end of the file."""
    with source.native() as file:
        end = file.seek(0, os.SEEK_END) - 8
        file.seek(max(0, end))
        length = int.from_bytes(file.read(4), "little")
        if not 0 < length <= end:
            raise _damaged("it has no footer")
        file.seek(end - length)
        return io.BytesIO(file.read(length))


def _damaged(reason: str) -> InputError:
    return InputError(f"cannot be read as Parquet ({reason}): write it again")
