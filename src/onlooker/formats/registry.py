"""Which formats there are, which of them writes a file, and what else than files can be read."""

from collections.abc import Callable, Iterable
from pathlib import Path

from onlooker.base.errors import InputError
from onlooker.formats import (
    long_arrow,
    long_csv,
    long_jsonl,
    long_parquet,
    nested_parquet,
    obp,
    open_bandit,
    vw_dsjson,
    vw_text,
    yahoo_r6a,
)
from onlooker.formats.arrow_source import arrow_source
from onlooker.formats.format import Format, Source, named

FORMATS: tuple[Format, ...] = (
    nested_parquet.FORMAT,
    long_parquet.FORMAT,
    long_arrow.FORMAT,
    open_bandit.FORMAT,
    yahoo_r6a.FORMAT,
    vw_dsjson.BY_CONTENT,
    vw_dsjson.FORMAT,
    vw_dsjson.GZIPPED,
    vw_text.FORMAT,
    vw_text.GZIPPED,
    obp.FORMAT,
    long_csv.FORMAT,
    long_csv.GZIPPED,
    long_csv.TABBED,
    long_jsonl.FORMAT,
    long_jsonl.GZIPPED,
)
"""In the order in which they are asked; the first that can write a suffix writes it."""

SOURCES: tuple[Callable[[object], Source | None], ...] = (arrow_source,)
"""What is asked about anything that may be a log before it is taken for the path of a file; the first that knows it
reads it, as a long table."""


def find_writer(path: Path, *, long: bool = False) -> Format:
    """The format that writes files of this name; `long` asks for one row per offered arm."""
    if path.is_dir():
        raise InputError("is a folder: name a file in it to write")
    writers = [one for one in FORMATS if one.write is not None and (not long or one.name.startswith("long"))]
    formats = [one for one in writers if path.name.lower().endswith(one.suffixes)]
    if not formats:
        raise InputError(f"is of a kind that is not written: write {suffixes_of(writers)}")
    return formats[0]


def check_writable(path: str, *, long: bool = False) -> None:
    """Refuse a name that no format writes, before anything is read."""
    with named(Path(path), "written"):
        find_writer(Path(path), long=long)


def suffixes_of(formats: Iterable[Format]) -> str:
    """How files of these formats end, in a message."""
    return ", ".join(sorted({suffix for one in formats for suffix in one.suffixes}))
