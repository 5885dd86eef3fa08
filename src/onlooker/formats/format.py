"""What a format is, and what formats share: errors in one line, and all that concerns long tables, a row an arm."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from onlooker.base.errors import InputError
from onlooker.base.files import atomic_file
from onlooker.base.text import one_line, shown
from onlooker.formats.long import ARM
from onlooker.formats.text_lines import LogFile
from onlooker.logs.columns import Columns, understood
from onlooker.logs.frames import LogArrays, encoding_of, parts_of_table, without_missing
from onlooker.logs.log import BanditLog
from onlooker.logs.parts import Described
from onlooker.logs.round_table import Rounds

TABLE = "the table"
"""What messages call a table that is in no file."""
_LONGEST = 500
"""Letters of a refusal: names in a hostile file have any length."""


@dataclass(frozen=True)
class Stretch:
    """Some rounds that can be read by themselves, at any time and in any thread."""

    n_rounds: int
    """How many."""
    read: Callable[[], BanditLog]
    """Reads them."""


class Scanned(Described, Protocol):
    """A log that stays in its files: iterating gives it in parts of whole rounds, oldest first, as often as asked."""

    batch_rows: int
    """How many offered arms a part holds, about."""

    @property
    def row_bytes(self) -> int | None:
        """Memory that an offered arm takes where that is known; None for a double a feature."""

    def __iter__(self) -> Iterator[BanditLog]: ...

    def stretches(self) -> Iterator[Stretch] | None:
        """The same parts, to be read side by side; None where they can only be read in order."""


@dataclass(frozen=True, kw_only=True)
class Format:
    """One way to keep a log in a file. Its functions raise `InputError` without the path, which the caller adds."""

    name: str
    """How messages call it, such as "long CSV"."""
    suffixes: tuple[str, ...]
    """How such files end, in lower case."""
    recognises: Callable[[LogFile], bool]
    """Whether the content is this format's; the last format of a suffix is not asked."""
    read: Callable[..., BanditLog]
    """From a file and column options, which are keyword arguments, to a log."""
    options: Callable[..., Any] | None = None
    """What has the column options as its keyword arguments, with their defaults; None where `read` itself has."""
    write: Callable[[BanditLog, BinaryIO], None] | None = None
    """From a log to a file, which it may close, or None where this format is only read."""
    scan: Callable[..., Scanned] | None = None
    """From a sequence of files, a number `batch_rows` and the options of `read` to a log that is not loaded; None where
    files are read whole, one after the other."""
    write_parts: Callable[[Iterable[BanditLog], BinaryIO], None] | None = None
    """From parts of a log, one after the other, to a file; None where a log is written from memory."""
    read_by: Callable[..., dict[str, BanditLog]] | None = None
    """Like `read`, with a column `by` that separates several logs in the file; None where there is no such column."""
    columns: Callable[[LogFile], list[str]] | None = None
    """Names of a file's columns, each of which may be a feature; None where a format knows its features."""
    source: Callable[[LogFile], Any] | None = None
    """Opens a file as a table, a `Source`; None where a format is not a table."""
    guessed: Callable[[LogFile], list[str]] | None = None
    """Describe what was guessed about how a file is written; None where there is nothing to guess."""
    shape: Callable[[Any], str | None] | None = None
    """Describe how rows of a file represent rounds, where a row is not an offered arm."""
    by_name: bool = False
    """Whether rows name their features, so that one that is not named is 0."""
    folder: bool = False
    """Whether such a log may be a folder; `recognises` is asked about every folder."""

    @property
    def takes(self) -> dict[str, Any]:
        """Names of the column options, and their defaults."""
        taken = inspect.signature(self.options or self.read).parameters.values()
        return {one.name: one.default for one in taken if one.kind is one.KEYWORD_ONLY and one.name != "by"}


class Source(Protocol):
    """Anything that holds a long table and yields it as Arrow batches: a file, or a table of another library."""

    names: list[str]
    """Its columns."""
    text_ids: bool
    """Whether ids come as text that may represent whole numbers."""

    @property
    def path(self) -> Path | str:
        """Where it is, or what messages call it."""

    def table(self, columns: Columns) -> Any:
        """The columns that are needed, or all where features are not named, as an Arrow table."""

    def schema(self, columns: Columns) -> Any:
        """Names and types that `batches` would give; an error where those cannot be had more than once."""

    def batches(self, columns: Columns, names: Sequence[str], rows: int) -> Iterator[Any]:
        """Some columns as Arrow record batches, of about as many rows where the format allows."""


@contextmanager
def named(name: Path | str, done: str) -> Iterator[None]:
    """Put the name of a file, or of what else holds a log, in front of what went wrong with it."""
    try:
        yield
    except InputError as error:
        said = one_line(error, _LONGEST)
        # A table that is in no file may be named already: it is called the same everywhere.
        known = isinstance(name, str) and said.startswith(f"{name} ")
        raise InputError(said if known else f"{shown(name)}: {said}") from error
    except OSError as error:
        raise InputError(f"{shown(name)}: cannot be {done} ({one_line(error)})") from error


@contextmanager
def file_for(target: Path) -> Iterator[BinaryIO]:
    """A file to write a log to; what goes wrong with the log says its name, as what goes wrong with the file does."""
    import pyarrow as pa

    with atomic_file(target) as file:
        try:
            yield file
        except InputError as error:
            raise InputError(f"{shown(target)}: {error}") from error
        except (pa.ArrowException, UnicodeError) as error:
            raise InputError(f"{shown(target)}: cannot be written ({one_line(error)})") from error


@contextmanager
def arrow_errors(kind: str) -> Iterator[None]:
    """Turn what pyarrow raises into `InputError`, in one line."""
    import pyarrow as pa

    try:
        yield
    except MemoryError as error:
        raise InputError("does not fit into memory: read a part of it") from error
    except (pa.ArrowException, OSError, UnicodeError) as error:
        remedy = "write it again, or name it as what it is (.csv, .jsonl)"
        raise InputError(f"cannot be read as {kind} ({one_line(error)}): {remedy}") from error


@dataclass(frozen=True)
class _LongTables:
    """Long tables in files that `source` opens; without it, what is given is a source itself."""

    name: str
    source: Callable[[LogFile], Source] | None
    guessed: Callable[[LogFile], list[str]] | None

    def opened(self, file: Any) -> Source:
        """A file, or several, as one source of Arrow batches."""
        from onlooker.formats.joined import Joined, LogFiles, Partitioned

        if self.source is None:
            return cast("Source", file)
        if isinstance(file, LogFiles):
            found_all = []
            for one in file:
                with named(one.path, "read"):
                    found_all.append(self.opened(one))
            return Joined(found_all, file.path)
        with file:
            found = cast("Source", file.once(self.source))
        return Partitioned(found, file.partitions) if file.partitions else found

    def shape_of(self, file: Any) -> str | None:
        """Describe how rows represent rounds; None where a row is an offered arm."""
        from onlooker.formats.shaped import shape_in_words

        return shape_in_words(self.opened(file))

    def wanted(self, options: dict[str, Any]) -> Columns:
        """The columns that the options name."""
        columns = Columns(**options)
        if columns.decimal is not None and self.guessed is None:
            raise InputError(f"{self.name} has one way to write numbers: leave `decimal` out")
        return columns

    def parts(self, file: Any, options: dict[str, Any]) -> LogArrays:
        """The arrays of the log."""
        from onlooker.formats.shaped import columns_of, shaped

        columns = self.wanted(options)
        found = shaped(self.opened(file), columns)
        columns = with_arm(found.names, columns_of(found, columns))
        columns.check(found.names)
        table = found.table(columns)
        check_text(table)
        table = without_missing(table, columns)
        return parts_of_table(table, columns, encoding_of(table, columns))

    def rounds(self, file: Any, options: dict[str, Any]) -> Rounds | None:
        """The log of a table of one row per round; None where rows are offered arms."""
        from onlooker.formats.round_tables import read_rounds
        from onlooker.formats.users import with_users

        columns = self.wanted(options)
        return read_rounds(*with_users(self.opened(file), columns)) if columns.per_round else None

    def read(self, file: Any, **options: Any) -> BanditLog:
        """Read one log."""
        found = self.rounds(file, options)
        return BanditLog.from_parts(self.parts(file, options)) if found is None else found.log

    def read_by(self, file: Any, **options: Any) -> dict[str, BanditLog]:
        """Read the logs that column `by` separates."""
        several = self.rounds(file, options)
        if several is not None:
            assert several.by is not None
            return several.log.split(several.by)
        found = self.parts(file, options)
        assert found.by is not None
        return BanditLog.from_parts(found).split(found.by)

    def scan(self, files: Sequence[Any], *, batch_rows: int, **options: Any) -> Scanned:
        """Read in parts."""
        from onlooker.formats.long_scan import LongScan
        from onlooker.formats.round_tables import RoundScan
        from onlooker.formats.shaped import columns_of, shaped_files
        from onlooker.formats.users import with_users

        columns, sources = self.wanted(options), []
        for file in files:
            with named(file.path, "read"):
                sources.append(self.opened(file))
        if columns.per_round:
            joined = []
            for one in sources:
                with named(one.path, "read"):
                    joined.append(with_users(one, columns))
            return RoundScan([one for one, _ in joined], joined[0][1], batch_rows)
        sources = shaped_files(sources, columns)
        return LongScan(sources, columns_of(sources[0], columns), batch_rows)


def long_format(
    *,
    name: str,
    suffixes: tuple[str, ...],
    source: Callable[[LogFile], Source] | None,
    write_parts: Callable[[Iterable[BanditLog], BinaryIO], None] | None = None,
    guessed: Callable[[LogFile], list[str]] | None = None,
) -> Format:
    """The format of files that `source` opens and `write_parts` writes; without `source`, of sources themselves."""
    tables = _LongTables(name, source, guessed)
    return Format(
        name=name,
        suffixes=suffixes,
        recognises=lambda _: True,
        read=tables.read,
        options=Columns,
        write=None if write_parts is None else lambda log, file: write_parts([log], file),
        read_by=tables.read_by,
        scan=tables.scan,
        write_parts=write_parts,
        columns=lambda file: tables.opened(file).names,
        source=tables.opened,
        guessed=guessed,
        shape=tables.shape_of,
    )


def with_arm(names: Sequence[str], columns: Columns) -> Columns:
    """Take the column `arm` for the arms' ids where there is one and no other is named."""
    columns = understood(names, columns)
    return replace(columns, arm=ARM) if columns.arm is None and ARM in names else columns


def check_text(table: Any) -> None:
    """Refuse text that is not UTF-8, which Arrow passes on."""
    import pyarrow as pa

    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid as error:
                raise InputError(
                    f"column {name!r} is not text in UTF-8 ({one_line(error)}): save it as UTF-8"
                ) from error


def plain_text(schema: Any) -> Any:
    """The same schema with plain text for views of it, which little can be done with."""
    import pyarrow as pa

    views = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return pa.schema([field.with_type(views.get(field.type, field.type)) for field in schema], schema.metadata)
