"""Long CSV: one row per offered arm, a header, columns separated by comma, semicolon or tab."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO

from onlooker.base.errors import InputError
from onlooker.base.memory_limit import limit_in_force
from onlooker.base.text import one_line
from onlooker.formats import long
from onlooker.formats.csv_text import (
    check_quotes,
    check_text,
    check_thousands,
    has_mark,
    led_by_zero,
    remedy,
    stray,
    without_blanks,
)
from onlooker.formats.format import long_format
from onlooker.formats.text_lines import HEAD, LogFile
from onlooker.logs.columns import Columns, is_outcome
from onlooker.logs.encoding import is_number, place
from onlooker.logs.grouping import odd_pick
from onlooker.logs.log import BanditLog


class IdKind:
    """What a column of ids can be, judged part by part.

    Examples
    --------
    >>> import pyarrow as pa
    >>> kind = IdKind("round")
    >>> kind.see(pa.array(["7", "10"]))
    >>> kind.type
    DataType(int64)
    >>> kind.see(pa.array(["01"]))
    >>> kind.type
    DataType(string)
    """

    def __init__(self, name: str) -> None:
        import pyarrow as pa

        self._name = name
        self._rows = 0
        self._possible = [pa.int64(), pa.uint64()]

    def see(self, column: Any) -> None:
        """Update with the next part of the column."""
        import pyarrow.compute as pc

        blank = pc.index(column, value="").as_py()
        if blank >= 0:
            at = place(self._rows + blank)
            raise InputError(f"column {self._name!r}, {at} is missing: fill it in or leave the round out")
        self._possible = [whole for whole in self._possible if _holds(column, whole)]
        self._rows += len(column)

    @property
    def type(self) -> Any:
        """The Arrow type that keeps every id that was seen."""
        import pyarrow as pa

        return self._possible[0] if self._possible else pa.string()


def as_whole_ids(column: Any, name: str) -> Any:
    """Whole numbers where that loses nothing ("01" stays text), else the text itself."""
    kind = IdKind(name)
    kind.see(column)
    return column.cast(kind.type)


def _holds(column: Any, whole: Any) -> bool:
    import pyarrow as pa

    try:
        return bool(column.cast(whole).cast(column.type).equals(column))
    except pa.ArrowInvalid:
        return False


_BLOCK = 1 << 20
"""Bytes that Arrow takes at a time; no row may be longer."""
_PARQUET = "is Parquet, not text: call it .parquet"
_NOT_UTF8 = "is not text in UTF-8: save it as UTF-8"


class CsvSource:
    """A CSV file: ids are whole numbers where every one is written as such, else text."""

    text_ids = True

    def __init__(self, file: LogFile) -> None:
        self.path, self._file = file.path, file
        self.names, self._delimiter = _header(file.head(HEAD))
        self._looked = False

    def table(self, columns: Columns) -> Any:
        """The columns that are needed, as an Arrow table."""
        import pyarrow as pa
        import pyarrow.csv as pc

        found = self._types(columns)
        fixed, whole, keys = {*self._texts(columns), *self._led}, {*self._whole}, {*columns.keys}
        types = {
            name: kind
            for name, kind in found.items()
            # What begins as fractions may turn out to be text, which is reported below.
            if name in fixed or (name in whole and name not in keys)
        }
        conversion = _conversion(columns, types, columns.needed)
        try:
            with self._file.for_arrow() as file:
                # One block at a time under a limit, which is checked before each.
                reading = pc.ReadOptions(use_threads=limit_in_force() is None, block_size=_BLOCK)
                table = pc.read_csv(file, reading, self._parsing(), conversion)
        except pa.ArrowInvalid as error:
            raise self._blame(columns, error) from error
        for j, name in enumerate(table.column_names):
            if pa.types.is_string(table[name].type):
                check_quotes(table[name], name, self._delimiter, self.names, columns.chosen)
            if name in _ids(columns):
                table = table.set_column(j, name, as_whole_ids(table[name], name))
            elif name not in columns.keys and pa.types.is_string(table[name].type):
                if name not in fixed and not is_outcome(name):
                    check_text(table[name], name, _mark(columns))
                table = table.set_column(j, name, without_blanks(table[name]))
        return table

    def schema(self, columns: Columns) -> Any:
        """Names and types: those of the first block, but numbers float64 even if the first look whole."""
        import pyarrow as pa

        return pa.schema(self._types(columns))

    def batches(self, columns: Columns, names: Sequence[str], rows: int) -> Iterator[Any]:  # noqa: ARG002  blocks are bytes
        """Some columns as Arrow record batches, a megabyte of text each; ids stay text."""
        import pyarrow as pa

        types = self._types(columns)
        conversion = _conversion(columns, types, list(names))
        texts = [name for name in names if name not in columns.keys and pa.types.is_string(types[name])]
        try:
            with self._opened(conversion) as reader:
                row = 0
                for number, batch in enumerate(reader):
                    if not number:
                        self._check_words(batch, columns)
                    for name in batch.schema.names:
                        if pa.types.is_string(batch[name].type):
                            check_quotes(batch[name], name, self._delimiter, self.names, columns.chosen, row)
                    row += len(batch)
                    for name in texts:
                        at = batch.schema.get_field_index(name)
                        batch = batch.set_column(at, name, without_blanks(batch[name]))  # noqa: PLW2901  gaps marked
                    yield batch
        except pa.ArrowInvalid as error:
            raise self._blame(columns, error) from error

    def _check_words(self, batch: Any, columns: Columns) -> None:
        """A stray word must not make text of a column of picks, or of one that is not known to be text."""
        import pyarrow as pa

        for field in batch.schema:
            if not pa.types.is_string(field.type) or field.name in {*self._texts(columns), *self._led}:
                continue
            named = field.name == columns.chosen and columns.picked_group is None
            if named and (row := stray(batch[field.name], _mark(columns))) >= 0:
                raise odd_pick(field.name, row, batch[field.name][row].as_py()[:40])
            if field.name not in columns.keys:
                check_text(batch[field.name], field.name, _mark(columns))

    def _types(self, columns: Columns) -> dict[str, Any]:
        """Type of every column, as its first block and the user have it."""
        import pyarrow as pa

        texts = dict.fromkeys(self._texts(columns), pa.string())
        conversion = _conversion(columns, texts)
        try:
            with self._opened(conversion) as head:
                types = {field.name: field.type for field in head.schema}
                if not any(map(len, head)):
                    raise InputError("the table has no rows: nothing was offered")
        except pa.ArrowInvalid as error:
            raise _unreadable(error) from error
        self._check_thousands(types, columns)
        whole = [name for name, kind in types.items() if pa.types.is_integer(kind)]
        settled, keys = {*columns.keys, *_numbers(columns)}, {*columns.keys}
        self._led = self._led_by_zero([name for name in whole if name not in settled])
        led = {*self._led}
        self._whole = [name for name in whole if name not in led]
        known = {name: pa.float64() for name in self._whole if name not in keys}
        return types | known | dict.fromkeys(self._led, pa.string())

    def _check_thousands(self, types: dict[str, Any], columns: Columns) -> None:
        """Fractions may be whole numbers with thousands apart, as far as the first block shows; checked once."""
        import pyarrow as pa

        skipped = {*columns.keys, *_numbers(columns), *self._texts(columns), *filter(is_outcome, types)}
        used = types if columns.named is None else columns.named
        fractions = [name for name in used if name not in skipped and pa.types.is_floating(types[name])]
        if self._looked or not fractions or columns.decimal is not None:
            return
        self._looked, head = True, self._head_as_text()
        for name in fractions:
            check_thousands(head[name], name)

    def _led_by_zero(self, names: Sequence[str]) -> list[str]:
        """Columns of whole numbers that are ids by their leading zeros, as far as the first block shows."""
        if not names:
            return []
        head = self._head_as_text()
        return [name for name in names if led_by_zero(head[name])]

    def _blame(self, columns: Columns, error: Exception) -> InputError:
        """Find the row behind an error of Arrow's, which does not always say: read everything as text."""
        import pyarrow as pa

        types = self._types(columns)
        conversion = _conversion(columns, dict.fromkeys(types, pa.string()))
        # Times are what Arrow itself has to say something about.
        numbers = [name for name, kind in types.items() if is_number(kind)]
        rows, mark = 0, _mark(columns)
        try:
            with self._opened(conversion) as reader:
                for batch in reader:
                    for name in numbers:
                        row = stray(batch[name], mark)
                        if row >= 0:
                            found, at = batch[name][row].as_py()[:40], place(rows + row)
                            comma = mark == "." and has_mark(batch[name].slice(row, 1), ",")
                            do = remedy(mark) if comma else "correct it"
                            return InputError(f"column {name!r}, {at} is {found!r}, not a number: {do}")
                    rows += len(batch)
        except pa.ArrowInvalid as serial:
            return _unreadable(serial)
        return _unreadable(error)

    def _texts(self, columns: Columns) -> list[str]:
        """Columns that are text however they look."""
        known = columns.like.categories if columns.like is not None else None
        offered = [] if columns.offered is None else [columns.offered]
        return [*_ids(columns), *offered, *(columns.categories or ()), *(known or ())]

    @property
    def guessed(self) -> list[str]:
        """How it is written, where that is not the usual way."""
        return {";": ["semicolons"], "\t": ["tabs"]}.get(self._delimiter, [])

    def _head_as_text(self) -> Any:
        """The first block, as it is written."""
        import pyarrow as pa
        import pyarrow.csv as pc

        conversion = pc.ConvertOptions(column_types=dict.fromkeys(self.names, pa.string()))
        try:
            with self._opened(conversion) as reader:
                return reader.read_next_batch()
        except StopIteration:
            raise InputError("the table has no rows: nothing was offered") from None
        except pa.ArrowInvalid as error:
            raise _unreadable(error) from error

    @contextmanager
    def _opened(self, conversion: Any) -> Iterator[Any]:
        """The file in blocks."""
        import pyarrow.csv as pc

        with (
            self._file.for_arrow() as file,
            pc.open_csv(file, parse_options=self._parsing(), convert_options=conversion) as reader,
        ):
            yield reader

    def _parsing(self) -> Any:
        import pyarrow.csv as pc

        return pc.ParseOptions(delimiter=self._delimiter, newlines_in_values=True)


def write_parts(logs: Iterable[BanditLog], target: BinaryIO, *, compress: bool = False) -> None:
    """Write every value so that it reads back exactly."""
    import pyarrow as pa
    import pyarrow.csv as pc

    with pa.output_stream(target, compression="gzip" if compress else None) as file:
        writer = None
        for table in long.long_tables(logs, widen=True):
            if writer is None:
                writer = pc.CSVWriter(file, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()


def _mark(columns: Columns) -> str:
    """The decimal mark, a point unless another is given."""
    return columns.decimal or "."


def _conversion(columns: Columns, types: dict[str, Any], included: list[str] | None = None) -> Any:
    import pyarrow.csv as pc

    return pc.ConvertOptions(column_types=types, include_columns=included or [], decimal_point=_mark(columns))


def _ids(columns: Columns) -> list[str]:
    return [name for name in (columns.round, columns.arm, columns.by, columns.user) if name]


def _numbers(columns: Columns) -> list[str]:
    """Columns that are numbers however they look, as they were before."""
    return [] if columns.like is None else list(columns.like.feature_names or ())


def _header(start: bytes) -> tuple[list[str], str]:
    """Names of the columns at the start of a file, and the delimiter that parts the header into most of them."""
    try:
        # The block may end within a letter.
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(start, final=len(start) < HEAD)
    except UnicodeDecodeError as error:
        raise InputError(_PARQUET if start.startswith(b"PAR1") else _NOT_UTF8) from error
    if text.startswith("sep="):
        raise InputError(f"begins with {text[:5]!r}, a line that only Excel reads: delete it")
    parted: list[tuple[list[str], str]] = []
    for delimiter in (",", ";", "\t"):
        file = io.StringIO(text, newline="")
        try:
            parted.append((next(csv.reader(file, delimiter=delimiter), []), delimiter))
        except csv.Error as error:
            raise InputError(f"cannot be read as CSV ({error}): its first line should name the columns") from error
        if len(start) == HEAD and file.tell() == len(text):
            raise InputError(f"has a first line of more than {HEAD >> 20} MB: it should name the columns")
    names, delimiter = max(parted, key=lambda part: len(part[0]))
    if len(names) == 1 and names[0].count("|") > 1:
        raise InputError("has a first line separated by '|': separate columns by commas, semicolons or tabs")
    return names, delimiter


def _unreadable(error: Exception) -> InputError:
    if "straddl" in str(error):
        return InputError(f"has a row of more than {_BLOCK >> 20} MB: a quote is not closed, or a value is that long")
    if "invalid UTF8" in str(error):
        return InputError(_NOT_UTF8)
    return InputError(f"cannot be read as CSV ({one_line(error)}): correct that row, or save the file as CSV again")


def _guessed(file: LogFile) -> list[str]:
    return file.once(CsvSource).guessed


_long_csv = partial(long_format, name="long CSV", source=CsvSource, guessed=_guessed)
FORMAT = _long_csv(suffixes=(".csv",), write_parts=write_parts)
GZIPPED = _long_csv(suffixes=(".csv.gz",), write_parts=partial(write_parts, compress=True))
TABBED = _long_csv(suffixes=(".tsv", ".tsv.gz"))
