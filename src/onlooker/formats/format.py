"""What a format is, and what the formats share: errors in one line."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from onlooker.base.errors import InputError
from onlooker.base.files import atomic_file
from onlooker.base.text import one_line, shown
from onlooker.formats.text_lines import LogFile
from onlooker.logs.categories import Categories
from onlooker.logs.log import BanditLog

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


class Scanned(Protocol):
    """A log that stays in its files: iterating gives it in parts of whole rounds, oldest first, as often as asked."""

    batch_rows: int
    """How many offered arms a part holds, about."""

    @property
    def row_bytes(self) -> int | None:
        """Memory that an offered arm takes where that is known; None for a double a feature."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """One name per feature, or None."""

    @property
    def n_features(self) -> int:
        """Number of features."""

    @property
    def categories(self) -> Categories | None:
        """Levels of the features that came from text, or None."""

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
    """Like `read`, with a column `by` that tells several logs in the file apart; None where there is no such column."""
    columns: Callable[[LogFile], list[str]] | None = None
    """Names of a file's columns, each of which may be a feature; None where a format knows its features."""
    source: Callable[[LogFile], Any] | None = None
    """Opens a file as a table, a `Source`; None where a format is none."""
    guessed: Callable[[LogFile], list[str]] | None = None
    """What was guessed of how a file is written, in words; None where there is nothing to guess."""
    shape: Callable[[Any], str | None] | None = None
    """How rows of a file that was opened describe rounds, in words, where not one row describes an offered arm."""
    by_name: bool = False
    """Whether rows name their features, so that one that is not named is 0."""
    folder: bool = False
    """Whether such a log may be a folder; `recognises` is asked about every folder."""

    @property
    def takes(self) -> dict[str, Any]:
        """Names of the column options, and their defaults."""
        taken = inspect.signature(self.options or self.read).parameters.values()
        return {one.name: one.default for one in taken if one.kind is one.KEYWORD_ONLY and one.name != "by"}


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
