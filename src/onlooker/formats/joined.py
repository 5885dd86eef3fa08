"""Several long tables as one, and columns that folders are named for."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from onlooker.base.checks import counted
from onlooker.base.errors import InputError
from onlooker.base.text import shown
from onlooker.formats.format import Source, named
from onlooker.formats.text_lines import LogFile
from onlooker.logs.columns import Columns
from onlooker.logs.encoding import is_text

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
import os
from urllib.parse import unquote


class LogFiles(tuple[LogFile, ...]):
    """Files of one log, in order."""

    __slots__ = ()

    @property
    def path(self) -> str:
        """What messages call them."""
        return f"{shown(self[0].path)} to {shown(self[-1].path)}, {counted(len(self), 'file')}"


class Chained(LogFile):
    """Files of lines one after the other, with a blank line between them, as a single one."""

    def __init__(self, files: LogFiles) -> None:
        super().__init__(files[0].path)
        self._files = files
        self._starts: list[tuple[int, Path]] = []

    def stream(self) -> BinaryIO:
        """All of them from the beginning."""
        self._starts.clear()
        return cast("BinaryIO", io.BufferedReader(_Chain(self._files, self._starts), 1 << 18))

    @contextmanager
    def named(self) -> Iterator[None]:
        """Name the file of a line in an error."""
        try:
            yield
        except InputError as error:
            found = re.match(r"line (\d+)\b", str(error))
            if found is None:
                raise
            line = int(found[1])
            before, path = next(start for start in reversed(self._starts) if start[0] < line)
            raise InputError(f"{shown(path)}: line {line - before}{str(error)[found.end() :]}") from error


class _Chain(io.RawIOBase):
    """Reads files one after the other, and notes how many lines there are before each."""

    def __init__(self, files: LogFiles, starts: list[tuple[int, Path]]) -> None:
        self._left, self._starts = list(files), starts
        self._open: BinaryIO | None = None
        self._lines, self._last = 0, b"\n"

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        block = memoryview(buffer).cast("B")
        read = self._next(len(block))
        block[: len(read)] = read
        self._lines += read.count(b"\n")
        return len(read)

    def _next(self, size: int) -> bytes:
        if self._open is None:
            if not self._left:
                return b""
            file = self._left.pop(0)
            self._starts.append((self._lines, file.path))
            with named(file.path, "read"):
                self._open = file.stream()
        with named(self._starts[-1][1], "read"):
            read = self._open.read(size)
        if read:
            self._last = read[-1:]
            return read
        self._open.close()
        self._open = None
        return b"\n" if self._last == b"\n" else b"\n\n"

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
        super().close()


class Joined:
    """Long tables one below the other, with the columns of the first; rows are counted over all of them."""

    def __init__(self, sources: Sequence[Source], path: str) -> None:
        self._sources, self.path = sources, path
        self.first = sources[0].path
        self.names, self.text_ids = sources[0].names, sources[0].text_ids
        for source in sources[1:]:
            check_same_columns(source, sources[0])

    def table(self, columns: Columns) -> Any:
        """The columns that are needed, as an Arrow table."""
        import pyarrow as pa

        tables: list[Any] = []
        for source in self._sources:
            with named(source.path, "read"):
                table = source.table(columns)
                tables.append(table if not tables else table.select(tables[0].column_names))
                self._check_kinds(tables[0].schema, table.schema, columns)
        for name in self._ids(columns):
            # Whole numbers in one file and text in another: in a single file all of them would be text.
            if len({is_text(table[name].type) for table in tables}) > 1:
                tables = [
                    table.set_column(table.column_names.index(name), name, table[name].cast(pa.string()))
                    for table in tables
                ]
        return pa.concat_tables(tables, promote_options="permissive")

    def schema(self, columns: Columns) -> Any:
        """Names and types of the first."""
        return self._sources[0].schema(columns)

    def batches(self, columns: Columns, names: Sequence[str], rows: int) -> Iterator[Any]:
        """Some columns as Arrow record batches."""
        for source in self._sources:
            yield from source.batches(columns, names, rows)

    def _ids(self, columns: Columns) -> list[str]:
        """Ids that may be text in one file and whole numbers in another, as nothing else says what they are."""
        return [name for name in (columns.round, columns.arm, columns.by) if name and self.text_ids]

    def _check_kinds(self, first: Any, other: Any, columns: Columns) -> None:
        import pyarrow as pa

        for field in first:
            found = other.field(field.name)
            if field.name in self._ids(columns):
                continue
            try:
                pa.unify_schemas([pa.schema([field]), pa.schema([found])], promote_options="permissive")
            except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
                said = f"column {field.name!r} holds {found.type}, but {field.type} in {shown(self._sources[0].path)}"
                raise InputError(f"{said}: make them one kind") from error


def check_same_columns(source: Source, first: Source) -> None:
    """Refuse a table that lacks columns of the first, or has others."""
    missing = [name for name in first.names if name not in source.names]
    more = [name for name in source.names if name not in first.names]
    if missing or more:
        what = f"has no column {missing[0]!r}, which" if missing else f"has a column {more[0]!r}, which"
        verb = "has" if missing else "lacks"
        with named(source.path, "read"):
            raise InputError(f"{what} {shown(first.path)} {verb}: make their columns the same, or read it alone")


class Partitioned:
    """A long table with columns that its folders are named for; they are read where an option names them."""

    def __init__(self, source: Source, partitions: Mapping[str, Any]) -> None:
        self._source, self.path, self.text_ids = source, source.path, source.text_ids
        self._partitions = {name: value for name, value in partitions.items() if name not in source.names}
        self.names = [*source.names, *self._partitions]

    def table(self, columns: Columns) -> Any:
        """The columns that are needed, as an Arrow table."""
        import pyarrow as pa

        table = self._source.table(self._without(columns))
        for name in self._asked(columns):
            table = table.append_column(self._field(name), pa.repeat(self._scalar(name), len(table)))
        return table

    def schema(self, columns: Columns) -> Any:
        """Names and types."""
        schema = self._source.schema(self._without(columns))
        for name in self._asked(columns):
            schema = schema.append(self._field(name))
        return schema

    def batches(self, columns: Columns, names: Sequence[str], rows: int) -> Iterator[Any]:
        """Some columns as Arrow record batches."""
        import pyarrow as pa

        own = [name for name in names if name not in self._partitions]
        # Rows are counted by some column of the file.
        read = own or [columns.round]
        for batch in self._source.batches(self._without(columns), read, rows):
            arrays = [
                pa.repeat(self._scalar(name), len(batch)) if name in self._partitions else batch[name] for name in names
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=list(names))

    def _asked(self, columns: Columns) -> list[str]:
        """Columns of the folders that an option names."""
        asked = {*columns.keys, *(columns.named or ()), *(columns.categories or ()), *columns.crossed}
        return [name for name in self._partitions if name in asked]

    def _without(self, columns: Columns) -> Columns:
        """The options that apply to the file itself."""
        if not self._asked(columns):
            return columns
        if columns.like is not None:
            known = columns.like.categories or {}
            columns = replace(columns, like=None, features=columns.named, categories=list(known))
        less: dict[str, Any] = {}
        for option in fields(columns):
            given = getattr(columns, option.name)
            if isinstance(given, str) and given in self._partitions:
                less[option.name] = None
            elif option.name in {"features", "categories", "context"} and given is not None:
                less[option.name] = [name for name in given if name not in self._partitions]
        kept = [pair for pair in columns.cross if not {*pair} & {*self._partitions}]
        if columns.features is not None:
            # Of a product with a column of the folders, the file has the other one.
            own = [name for name in columns.crossed if name not in self._partitions]
            less["features"] = list(dict.fromkeys([*less["features"], *own]))
        return replace(columns, **less, cross=kept)

    def _field(self, name: str) -> Any:
        import pyarrow as pa

        return pa.field(name, self._scalar(name).type)

    def _scalar(self, name: str) -> Any:
        import pyarrow as pa

        # A partition without a value has no type of its own: other folders say what it is.
        kinds = {int: pa.int64(), str: pa.string()}
        value = self._partitions[name]
        return pa.scalar(value, kinds.get(type(value), pa.null()))


_PARTITION = re.compile(r"([^=/]+)=([^/]*)/")


_NOTHING = "__HIVE_DEFAULT_PARTITION__"
"""What a folder is called that holds the rows without a value."""


_WHOLE = re.compile(r"-?\d{1,18}")


def below_common_folder(names: Sequence[str]) -> list[str]:
    """Names of files without the folders that all of them lie in.

    Examples
    --------
    >>> below_common_folder(["log/day=2/0.csv", "log/day=10/0.csv"]), below_common_folder(["s3://b/1.csv", "s3://b/2.csv"])
    (['day=2/0.csv', 'day=10/0.csv'], ['1.csv', '2.csv'])
    """
    parts = [name.replace(os.sep, "/").split("/") for name in names]
    common = 0
    while all(len(one) > common + 1 for one in parts) and len({one[common] for one in parts}) == 1:
        common += 1
    return ["/".join(one[common:]) for one in parts]


def partitions(names: Sequence[str]) -> list[dict[str, Any]]:
    """What the folders of every file say of its rows: `year=2024/month=05/` are two columns.

    A column is of whole numbers where all of its values are, else text. One that only some files have is left out.

    Examples
    --------
    >>> partitions(["log/year=2024/shop=a/1.csv", "log/year=2025/shop=b%20c/1.csv"])
    [{'year': 2024, 'shop': 'a'}, {'year': 2025, 'shop': 'b c'}]
    """
    found = [{unquote(key): unquote(value) for key, value in _PARTITION.findall(name)} for name in names]
    keys = [key for key in (found[0] if found else {}) if all(key in one for one in found)]
    whole = {key for key in keys if all(_is_whole(one[key]) for one in found)}
    return [{key: _value(one[key], whole=key in whole) for key in keys} for one in found]


def _is_whole(text: str) -> bool:
    return text == _NOTHING or _WHOLE.fullmatch(text) is not None


def _value(text: str, *, whole: bool) -> int | str | None:
    if text == _NOTHING:
        return None
    return int(text) if whole else text
