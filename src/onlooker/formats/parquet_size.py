"""What a Parquet file unpacks to, found before it is unpacked: a few kilobytes may hold gigabytes."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from typing import Any, BinaryIO

from onlooker.base.errors import InputError
from onlooker.base.memory_limit import check_memory, limit_in_force
from onlooker.formats.format import arrow_errors
from onlooker.formats.text_lines import RATIO, LogFile

_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)
_DEEPEST = 32
_BUFFER = 1 << 20
"""Bytes that are read from a streamed file at a time, of every column."""

Struct = dict[int, Any]
"""Whole numbers, structs, and lists of them by the numbers of their fields; of other values None."""


class MalformedError(Exception):
    """The bytes are not a struct."""


def read_struct(data: io.BytesIO, depth: int = 0) -> Struct:
    r"""Read a struct, and leave off behind it.

    Examples
    --------
    >>> read_struct(io.BytesIO(b"\x15\x04\x19\x25\x02\x06\x1c\x00\x00"))
    {1: 2, 2: [1, 3], 3: {}}
    """
    if depth > _DEEPEST:
        raise MalformedError
    found: Struct = {}
    number = 0
    while (start := _byte(data)) != _STOP:
        number = number + (start >> 4) if start >> 4 else _whole(data)
        kind = start & 15
        # The kind of a boolean is its value.
        found[number] = None if kind in {_TRUE, _FALSE} else _value(data, kind, depth)
    return found


def _value(data: io.BytesIO, kind: int, depth: int) -> Any:
    if kind in {_I16, _I32, _I64}:
        return _whole(data)
    if kind == _STRUCT:
        return read_struct(data, depth + 1)
    if kind in {_LIST, _SET}:
        start = _byte(data)
        count = _unsigned(data) if start >> 4 == 15 else start >> 4
        return [_value(data, start & 15, depth + 1) for _ in range(count)]
    if kind == _MAP:
        return _skip_map(data, depth)
    if kind in {_TRUE, _FALSE, _BYTE}:
        return _skip(data, 1)
    if kind == _DOUBLE:
        return _skip(data, 8)
    if kind == _BINARY:
        return _skip(data, _unsigned(data))
    raise MalformedError


def _skip_map(data: io.BytesIO, depth: int) -> None:
    count = _unsigned(data)
    kinds = _byte(data) if count else 0
    for _ in range(count):
        _value(data, kinds >> 4, depth + 1)
        _value(data, kinds & 15, depth + 1)


def _skip(data: io.BytesIO, count: int) -> None:
    if len(data.read(count)) < count:
        raise MalformedError


def _byte(data: io.BytesIO) -> int:
    read = data.read(1)
    if not read:
        raise MalformedError
    return read[0]


def _unsigned(data: io.BytesIO) -> int:
    value = shift = 0
    while True:
        byte = _byte(data)
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value
        if shift > 63:
            raise MalformedError


def _whole(data: io.BytesIO) -> int:
    """A whole number; those below zero lie between the others."""
    value = _unsigned(data)
    return (value >> 1) ^ -(value & 1)


_FOOTER_TEXT = "BYTE_ARRAY"
_LONGEST = 1 << 16
"""Bytes of a page's header; statistics in it may be long, but not that long."""
_ROW_GROUPS, _COLUMNS, _METADATA = 4, 1, 3
_SECRETS = (8, 9)
_SIZES, _LETTERS, _REPEATED, _DEFINED = 16, 1, 2, 3
_UNPACKED, _PACKED = 2, 3
"""Numbers of fields, as the format's specification has them."""


class Footer:
    """The footer of a Parquet file; column metadata is parsed only after its bytes were checked."""

    def __init__(self, file: LogFile) -> None:
        import pyarrow.parquet as pq

        self.file = file
        with file.native() as native, pq.ParquetFile(native) as opened:
            self.metadata, self.schema = opened.metadata, opened.schema_arrow
        """As pyarrow has read them: what the file has, and its columns."""

    @contextmanager
    def opened(self, *, streamed: bool = False) -> Iterator[Any]:
        """The file, to read its columns; with `streamed` a large row group is not read at once."""
        import pyarrow.parquet as pq

        options: dict[str, Any] = {"buffer_size": _BUFFER, "pre_buffer": False} if streamed else {}
        with self.file.native() as native, pq.ParquetFile(native, metadata=self.metadata, **options) as file:
            yield file

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
    return leaf.max_repetition_level, leaf.max_definition_level, leaf.physical_type == _FOOTER_TEXT


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


_FLOOR = 1 << 28
"""Bytes of values that any file may hold, however small it is."""
_TEXT = "BYTE_ARRAY"
_ROWS = 1 << 14
"""Rows of texts that are examined together."""
_ENTRY = 100
"""Bytes of memory for a text beside its letters, once Python has it."""
_SHORT = 64
"""Letters up to which a text takes no more than what is reckoned for it anyway."""
_LISTED = 1 << 10
"""Rows of lists of texts that are examined together: Arrow cannot read those as entries of a dictionary."""


def check_size(footer: Footer, names: Sequence[str], rows: int | None = None) -> None:
    """Refuse columns that would not fit: pages, row groups that are beyond all measure, and texts in `rows` rows."""
    with arrow_errors("Parquet"):
        leaves = _leaves(footer.metadata, names)
        if limit_in_force() is not None:
            _check_pages(footer, leaves)
        packed = footer.file.size
        groups = [8 * sum(counts) for counts in _counts(footer, leaves)]
        _check_growth(sum(groups), packed)
        for unpacked in groups:
            if unpacked > RATIO * packed:
                check_memory(3 * unpacked)
        texts = [leaf.path for leaf in leaves.values() if leaf.physical_type == _TEXT]
        if texts and _may_be_long(footer.metadata, rows or footer.metadata.num_rows):
            _check_texts(footer, texts, rows)


def text_entries(footer: Footer, names: Sequence[str]) -> int:
    """Bytes that Python takes for the texts in some columns, short as they are."""
    with arrow_errors("Parquet"):
        leaves = _leaves(footer.metadata, names)
        texts = {j: leaf for j, leaf in leaves.items() if leaf.physical_type == _TEXT}
        return _ENTRY * sum(map(sum, _counts(footer, texts)))


def _leaves(metadata: Any, names: Sequence[str]) -> dict[int, Any]:
    """Leaves of the columns that are read, by their places among all."""
    # By the file's schema, which is what Arrow reads by, not by what each chunk says of itself.
    wanted, schema = set(names), metadata.schema
    leaves = {j: schema.column(j) for j in range(len(schema))}
    return {j: leaf for j, leaf in leaves.items() if not wanted.isdisjoint(_columns_of(leaf.path))}


def _columns_of(path: str) -> Iterator[str]:
    """Names that the column of a leaf may have: it may lie within one, and names may have dots in them."""
    while path:
        yield path
        path = path.rpartition(".")[0]


def _counts(footer: Footer, leaves: dict[int, Any]) -> Iterator[list[int]]:
    """Values of the leaves in every row group: one a row, but for lists, of which each has as many as its file says."""
    lists = [j for j, leaf in leaves.items() if leaf.max_repetition_level]
    flat = len(leaves) - len(lists)
    chunks = footer.chunks(lists) if lists else []
    for i in range(footer.metadata.num_row_groups):
        rows = footer.metadata.row_group(i).num_rows
        yield [flat * rows, *(chunk.num_values for chunk in (chunks[i] if lists else ()))]


def _check_growth(unpacked: int, packed: int) -> None:
    """Refuse values without end: the same one any number of times takes a few bytes, but hours to go through."""
    if unpacked > max(_FLOOR, 5 * RATIO * packed):
        raise InputError(
            f"holds {unpacked / 1e6:,.0f} MB of values in {packed / 1e6:,.1f} MB, which is beyond any ordinary log: "
            "write it as CSV if you trust it"
        )


def _check_pages(footer: Footer, leaves: Iterable[int]) -> None:
    """No page unpacks to more than there is room for, whatever the file says of itself elsewhere."""
    with footer.file.native() as file:
        for chunk in chain.from_iterable(footer.chunks(list(leaves))):
            start = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
            if start is None or start < 0 or chunk.total_compressed_size < 0:
                raise InputError("cannot be read as Parquet (a column has no proper place): write it again")
            for number, size in enumerate(page_sizes(file, start, chunk.total_compressed_size)):
                # One for the dictionary, one for a page of nothing.
                if number > chunk.num_values + 2:
                    raise InputError("cannot be read as Parquet (more pages than values): write it again")
                # Once packed and once unpacked.
                check_memory(2 * size)


def _may_be_long(metadata: Any, rows: int) -> bool:
    """Whether texts could take more than was reckoned for them: one in a dictionary may stand for any number."""
    longest = max((metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)), default=0)
    if longest <= _SHORT:
        return False
    try:
        check_memory(longest * rows)
    except InputError:
        return True
    return False


def _check_texts(footer: Footer, texts: Sequence[str], rows: int | None) -> None:
    """Texts as numbers of entries of a dictionary, their lengths summed up: `rows` rows at a time, or all of them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    held = total = 0
    roots = list(dict.fromkeys(name.partition(".")[0] for name in texts))
    with footer.file.native() as native:
        file = pq.ParquetFile(native, metadata=footer.metadata, read_dictionary=list(texts))
        known = set(file.schema_arrow.names)
        columns, most = [name for name in {*texts, *roots} if name in known], _ROWS
        if any(pa.types.is_nested(file.schema_arrow.field(name).type) for name in columns):
            file, most = pq.ParquetFile(native, metadata=footer.metadata), _LISTED
        for batch in file.iter_batches(batch_size=min(most, rows or most), columns=columns):
            held += len(batch)
            total += sum(_letters(column) for column in batch.columns)
            check_memory(3 * total)
            if rows is not None and held >= rows:
                held = total = 0


def _letters(column: Any) -> int:
    """Bytes of all texts in a column of them, or of lists of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    while pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        column = column.flatten()
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = pc.binary_length(column.dictionary).cast(pa.int64())
    return int(pc.sum(lengths.take(column.indices)).as_py() or 0)
