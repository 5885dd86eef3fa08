"""Long JSONL: one object per line, one line per offered arm, every object with the same keys."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from onlooker.base.checks import NestedLines, parsed
from onlooker.base.errors import InputError
from onlooker.base.memory_limit import limit_in_force
from onlooker.base.text import one_line
from onlooker.formats import long
from onlooker.formats.format import long_format
from onlooker.formats.text_lines import LogFile
from onlooker.logs.columns import Columns
from onlooker.logs.doubtful import is_id_name
from onlooker.logs.encoding import is_number, place
from onlooker.logs.log import BanditLog

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BLOCK = 1 << 22
"""Bytes that Arrow takes at a time; no line may be longer."""
_ODD = re.compile(rb"\n[ \t\r]*(?!\xef\xbb\xbf)[^ \t\r\n{]")
"""Begins a line that is not an object, not even after a byte order mark."""


class JsonlSource:
    """A file of JSON lines: ids are what they are there, whole numbers of 64 bits or text."""

    text_ids = False

    def __init__(self, file: LogFile) -> None:
        self.path, self._file = file.path, file
        self._head, self.names = self._first_block()

    def table(self, columns: Columns) -> Any:
        """The columns that are needed, as an Arrow table."""
        import pyarrow as pa
        import pyarrow.json as pj

        named = columns.named
        schema = self.schema(columns)
        if named is not None:
            schema = pa.schema([schema.field(name) for name in columns.needed or ()])
        # A column that the first block leaves empty may turn out to be anything.
        schema = pa.schema([field for field in schema if not pa.types.is_null(field.type)])
        others = "infer" if named is None else "ignore"
        failed: Exception | None = None
        for attempt in (schema, _unsigned(schema, columns)):
            parsing = pj.ParseOptions(explicit_schema=attempt, unexpected_field_behavior=others)
            try:
                with _opened(self._file) as file:
                    reading = pj.ReadOptions(use_threads=limit_in_force() is None, block_size=_BLOCK)
                    table = pj.read_json(file, read_options=reading, parse_options=parsing)
                    # Arrow passes on keys that are not text: asking for them here finds the line.
                    return table.select(table.column_names)
            except (pa.ArrowInvalid, UnicodeDecodeError) as error:
                failed = error
        assert failed is not None
        raise self._blame(columns, failed) from failed

    def schema(self, columns: Columns) -> Any:
        """Names and types of the first block: numbers float64 even if the first look whole, times as text."""
        import pyarrow as pa

        ids = {columns.round, columns.arm, columns.by}
        fields = []
        for field in self._head:
            kind = field.type
            if field.name in ids and pa.types.is_floating(kind):
                kind = pa.uint64()
            elif pa.types.is_timestamp(kind) and field.name != columns.order_by:
                kind = pa.string()
            elif field.name not in {*columns.keys, *_categories(columns)} and is_number(kind):
                kind = kind if pa.types.is_boolean(kind) else pa.float64()
            elif field.name not in columns.keys and pa.types.is_nested(kind):
                try:
                    kind = _fractions(kind)
                except UnicodeDecodeError as error:
                    raise self._blame(columns, error) from error
            fields.append(pa.field(field.name, kind))
        return pa.schema(fields)

    def batches(self, columns: Columns, names: Sequence[str], rows: int) -> Iterator[Any]:  # noqa: ARG002  blocks are bytes
        """Some columns as Arrow record batches."""
        import pyarrow as pa
        import pyarrow.json as pj

        schema = self.schema(columns)
        parsing = pj.ParseOptions(
            explicit_schema=pa.schema([schema.field(name) for name in names]), unexpected_field_behavior="ignore"
        )
        try:
            with _opened(self._file) as file:
                yield from pj.open_json(file, read_options=pj.ReadOptions(block_size=_BLOCK), parse_options=parsing)
        except pa.ArrowInvalid as error:
            raise self._blame(columns, error) from error

    def _first_block(self) -> tuple[Any, list[str]]:
        """Names and types that the first block has."""
        import pyarrow as pa
        import pyarrow.json as pj

        try:
            with (
                _opened(self._file) as file,
                pj.open_json(file, read_options=pj.ReadOptions(block_size=_BLOCK)) as reader,
            ):
                schema = reader.schema
                return schema, schema.names
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise self._blame(Columns(), error) from error

    def _blame(self, columns: Columns, error: Exception) -> InputError:
        """Find the line behind an error of Arrow's, which counts from the beginning of some block."""
        kinds: dict[str, str] = {}
        ids = {columns.round, columns.arm, columns.by}
        row = -1
        with self._file.stream() as file:
            for line in iter(partial(file.readline, _BLOCK), b""):
                if not line.strip():
                    continue
                row += 1
                try:
                    entry = parsed(line.removeprefix(b"\xef\xbb\xbf"), object_pairs_hook=_once)
                except InputError as refused:
                    return InputError(f"{place(row)} {refused}")
                except ValueError as wrong:
                    if len(line) == _BLOCK:
                        return InputError(f"{place(row)} is longer than {_BLOCK >> 20} MB: write one arm per line")
                    return InputError(
                        f"{place(row)} is not JSON ({one_line(wrong)}): correct it or leave the round out"
                    )
                if not isinstance(entry, dict):
                    return InputError(f"{place(row)} is no JSON object: write one object per line, one line per arm")
                for name, value in entry.items():
                    if name in ids and isinstance(value, int | float) and not _is_id(value):
                        return InputError(
                            f"column {name!r}, {place(row)} is {value}, which is not a 64-bit integer: "
                            "write ids as text"
                        )
                    kind = _kind(value)
                    if value is not None and kinds.setdefault(name, kind) != kind:
                        found = f"{kind}, but {kinds[name]} before"
                        return InputError(f"column {name[:60]!r}, {place(row)} holds {found}: make them one kind")
        return InputError(f"cannot be read as JSON lines ({one_line(error)}): write it again, one object per line")


class _Objects(io.RawIOBase):
    """A file of lines that all begin an object, none nested deeply: others may crash Arrow (null: its issue 47409)."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._before = b"\n"
        self._nested = NestedLines()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        import pyarrow as pa

        block = memoryview(buffer).cast("B")
        read = self._file.read(len(block))
        block[: len(read)] = read
        lines = self._before + read
        # Counting is fast, and lines seldom begin otherwise.
        if lines.count(b"\n") != lines.count(b"\n{") and _ODD.search(lines):
            raise pa.ArrowInvalid("a line is not an object")
        try:
            self._nested.see(read)
        except InputError as error:
            raise pa.ArrowInvalid(str(error)) from error
        self._before = b"\n" if not lines[lines.rfind(b"\n") + 1 :].strip() else b""
        return len(read)

    def close(self) -> None:
        self._file.close()
        super().close()


def _fractions(kind: Any) -> Any:
    """The type of nested values with float64 for their numbers, ids aside: later ones may have fractions."""
    import pyarrow as pa

    if pa.types.is_list(kind):
        return pa.list_(_fractions(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([one if is_id_name(one.name) else one.with_type(_fractions(one.type)) for one in kind])
    return pa.float64() if pa.types.is_integer(kind) else kind


def _opened(file: LogFile) -> BinaryIO:
    return cast("BinaryIO", _Objects(file.stream()))


def _categories(columns: Columns) -> list[str]:
    """Columns that are categories whatever they hold."""
    known = columns.like.categories if columns.like is not None else None
    return [*(columns.categories or ()), *(known or ())]


def _unsigned(schema: Any, columns: Columns) -> Any:
    """The same schema with ids that reach beyond 2^63."""
    import pyarrow as pa

    ids = {columns.round, columns.arm, columns.by}
    return pa.schema(
        [
            pa.field(field.name, pa.uint64() if field.name in ids and pa.types.is_integer(field.type) else field.type)
            for field in schema
        ]
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without doubled keys."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise InputError(f"has the key {twice[:60]!r} twice: write it once")
    return found


def _kind(value: object) -> str:
    names = {bool: "a truth", int: "a number", float: "a number", str: "text", list: "a list", dict: "an object"}
    return names.get(type(value), "nothing")


def _is_id(value: float) -> bool:
    return isinstance(value, bool) or (isinstance(value, int) and -(2**63) <= value < 2**64)


def write_parts(logs: Iterable[BanditLog], target: BinaryIO, *, compress: bool = False) -> None:
    """Write every value so that it reads back exactly."""
    import pyarrow as pa

    with pa.output_stream(target, compression="gzip" if compress else None) as file:
        for table in long.long_tables(logs, widen=True):
            file.write(_lines(table))


def _lines(table: Any) -> bytes:
    """A table as JSON lines, put together a column at a time."""
    import pyarrow as pa
    import pyarrow.compute as pc

    pieces: list[Any] = []
    for j, name in enumerate(table.column_names):
        column = table[name].combine_chunks()
        text = _quoted(column) if not is_number(column.type) else column.cast(pa.large_string())
        pieces += [pa.scalar(f"{',' if j else '{'}{json.dumps(name)}:", pa.large_string()), text]
    pieces.append(pa.scalar("}\n", pa.large_string()))
    joined = pc.binary_join_element_wise(*pieces, pa.scalar("", pa.large_string()))
    # The lines lie end to end in the array's last buffer.
    data: bytes = joined.buffers()[2].to_pybytes()
    return data


def _quoted(column: Any) -> Any:
    """Text in quotes, whatever is in it; times as text."""
    import pyarrow as pa

    coded = column.dictionary_encode()
    texts = [json.dumps(text, ensure_ascii=False) for text in coded.dictionary.cast(pa.string()).to_pylist()]
    return pa.array(texts, pa.large_string()).take(coded.indices)


SUFFIXES = (".jsonl", ".ndjson", ".json")
FORMAT = long_format(name="long JSONL", suffixes=SUFFIXES, source=JsonlSource, write_parts=write_parts)
GZIPPED = long_format(
    name="long JSONL",
    suffixes=tuple(f"{suffix}.gz" for suffix in SUFFIXES),
    source=JsonlSource,
    write_parts=partial(write_parts, compress=True),
)
