"""Where a log is: files here, a folder, a pattern or a list of them, a store, a database, the standard input, a table.

What is not here is copied once into a temporary folder, so that it can be read as often as a fit needs, and is the same
each time.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

from onlooker.base.checks import counted, did_you_mean
from onlooker.base.errors import InputError
from onlooker.base.text import one_line, redacted, shown
from onlooker.formats.arrow_source import ArrowSource
from onlooker.formats.databases import DATABASES, fetch_rows
from onlooker.formats.format import TABLE, Source, named
from onlooker.formats.spool import CHUNK, Spool, write_arrow
from onlooker.formats.stores import STORES, fetch
from onlooker.formats.text_lines import LogFile
from onlooker.formats.unchanged import is_pattern, matching

STDIN = "-"
"""The name of the standard input."""
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_VW = re.compile(rb"(shared\b[^|]*|[\d.:eE+-]*[ \t]*|\d+ \S+ [01] )\|")
"""The first line of a file of Vowpal Wabbit's, or of Yahoo's R6A."""
_PARTITION = re.compile(r"([^=/]+)=([^/]*)/")
_NOTHING = "__HIVE_DEFAULT_PARTITION__"
"""What a folder is called that holds the rows without a value."""
_WHOLE = re.compile(r"-?\d{1,18}")
_BEGINNINGS = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"PK\x03\x04": ".npz", b"{": ".jsonl"}


@dataclass(eq=False)
class Place:
    """Where a log was found."""

    name: str
    """Its name in messages, without secrets."""
    files: list[LogFile] = field(default_factory=list)
    """The files to read it from, in order; copies of those that are elsewhere."""
    table: Source | None = None
    """A table of another library in their place."""
    pattern: str | None = None
    """The folder or pattern here that the files were found by."""
    spool: Spool | None = None
    """What keeps the copies."""

    @property
    def paths(self) -> list[Path]:
        """Where the files are, of which there are none for a table."""
        return [file.path for file in self.files]

    def called(self, path: Path) -> str:
        """The name of a file in messages."""
        return shown(path) if self.spool is None else self.spool.names.get(path, shown(path))

    def close(self) -> None:
        """Delete the copies."""
        if self.spool is not None:
            self.spool.close()

    @contextmanager
    def said(self) -> Iterator[None]:
        """Name the places that copies were made of, not the copies."""
        try:
            yield
        except InputError as error:
            if self.spool is None:
                raise
            raise InputError(self.spool.said(str(error))) from error


Take = Callable[[object], Source | None]


def find_place(source: object, sql: str | None, takes: Sequence[Take], *, again: bool = False) -> Place:
    """Where a log is, and copies of what is not here; `again` requires a place that can be read more than once."""
    if isinstance(source, Place):
        return source
    if isinstance(source, str | os.PathLike):
        return _several([source], sql)
    table = next((one for one in (take(source) for take in takes) if one is not None), None)
    if table is None:
        return _several(source, sql)
    _check_no_sql(sql, TABLE)
    if again and isinstance(table, ArrowSource) and not table.again:
        with _kept(Spool()) as spool, named(TABLE, "read"), spool.file(TABLE, "rows.arrow") as (path, file):
            write_arrow(table.stream(), file, spool.check_room)
        return Place(TABLE, [LogFile(path)], spool=spool)
    return Place(TABLE, table=table)


@contextmanager
def _kept(spool: Spool) -> Iterator[Spool]:
    """Keep copies unless something goes wrong."""
    try:
        yield spool
    except BaseException:
        spool.close()
        raise


def _several(source: Any, sql: str | None) -> Place:
    """The files of a list, in its order."""
    if not isinstance(source, Iterable) or isinstance(source, Mapping | bytes):
        kind = type(source).__name__
        raise InputError(f"a {kind} is not a path: pass a file's name, or a table to BanditLog.from_frame")
    every = list(source)
    odd = next((one for one in every if not isinstance(one, str | os.PathLike)), None)
    if odd is not None:
        raise InputError(f"a list of {type(odd).__name__} is not a log: pass names of files, or one table")
    if not every:
        raise InputError("there are no files to scan: name at least one")
    if not any(_is_elsewhere(os.fspath(one)) for one in every):
        return _together([_here(os.fspath(one), sql) for one in every], None)
    with _kept(Spool()) as spool:
        return _together([_named_place(os.fspath(one), sql, spool) for one in every], spool)


def _together(places: Sequence[Place], spool: Spool | None) -> Place:
    """One place of several."""
    _set_partitions(places)
    if len(places) == 1:
        return places[0]
    files = [file for place in places for file in place.files]
    _check_once(files)
    name = f"{places[0].name} to {places[-1].name}, {counted(len(files), 'file')}"
    return Place(name, files, spool=spool)


def _check_once(files: Sequence[LogFile]) -> None:
    seen: dict[Path, Path] = {}
    for file in files:
        real = Path(os.path.realpath(file.path))
        if real in seen:
            raise InputError(f"{shown(file.path)}: is named twice, its rounds would count twice: name it once")
        seen[real] = file.path


def _is_elsewhere(name: str) -> bool:
    return name == STDIN or (_ADDRESS.match(name) is not None and not os.path.lexists(name))


def _named_place(name: str, sql: str | None, spool: Spool) -> Place:
    """The place that a name denotes."""
    if not _is_elsewhere(name):
        return _here(name, sql)
    if name == STDIN:
        _check_no_sql(sql, "the standard input")
        return Place("the standard input", [LogFile(_from_stdin(spool))], spool=spool)
    scheme = name.partition("://")[0].lower()
    if scheme in DATABASES:
        return Place(redacted(name), [LogFile(fetch_rows(name, sql, spool))], spool=spool)
    if scheme == "file":
        return _here(unquote(name.partition("://")[2]), sql)
    _check_no_sql(sql, redacted(name))
    if scheme not in STORES:
        known = ("file", *STORES, *DATABASES)
        ways = f"{did_you_mean(scheme, known)} known are {', '.join(f'{one}://' for one in known)}"
        raise InputError(f"{redacted(name)}: {scheme}:// is not a place that logs are read from: {ways.strip()}")
    return Place(redacted(name), [LogFile(copy) for _, copy in fetch(name, spool)], spool=spool)


def _here(name: str, sql: str | None) -> Place:
    """Files of this machine."""
    _check_no_sql(sql, redacted(name))
    if is_pattern(name):
        found = matching(name)
        if not found:
            raise InputError(f"{shown(name)}: no file matches: check the pattern")
        return Place(shown(name), [LogFile(path) for path in found], pattern=name)
    return Place(redacted(shown(name)), [LogFile(Path(name))])


def files_of_folder(place: Place) -> Place:
    """The files of a folder that is itself no log."""
    (folder,) = place.paths
    found = matching(os.fspath(folder))
    if not found:
        raise InputError(f"{place.name}: is an empty folder: there is no log in it")
    inside = Place(place.name, [LogFile(path) for path in found], pattern=os.fspath(folder))
    _set_partitions([inside])
    return inside


def _set_partitions(places: Sequence[Place]) -> None:
    """Set the partitions of files from the names of their folders."""
    files = [(place.called(file.path), file) for place in places for file in place.files]
    for values, (_, file) in zip(partitions([name for name, _ in files]), files, strict=True):
        file.partitions = values


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


def _check_no_sql(sql: str | None, name: str) -> None:
    if sql is not None:
        raise InputError(f"{name}: is not a database, so `sql` does not apply: leave it out")


def _from_stdin(spool: Spool) -> Path:
    """A copy of the standard input, with a suffix that says what it is."""
    stream: BinaryIO = sys.stdin.buffer
    name = "the standard input"
    try:
        start = stream.read(CHUNK)
        if not start:
            raise InputError(f"{name}: is empty: it should hold a log")
        with spool.file(name, "stdin") as (path, file):
            while start:
                spool.check_room(len(start))
                file.write(start)
                start = stream.read(CHUNK)
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({one_line(error)}): name a file") from error
    with LogFile(path) as copy, named(name, "read"):
        known = path.with_name(f"stdin{suffix_of(copy.head())}")
    path.rename(known)
    spool.names[known] = spool.names.pop(path)
    return known


def suffix_of(start: bytes) -> str:
    """Suffix of a file that begins like this.

    Examples
    --------
    >>> suffix_of(b"round,chosen,price"), suffix_of(b"shared |user age=30"), suffix_of(b'{"round": 1}')
    ('.csv', '.txt', '.jsonl')
    """
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    known = next((suffix for magic, suffix in _BEGINNINGS.items() if text.startswith(magic)), None)
    if known is not None:
        return known
    return ".txt" if _VW.match(text.partition(b"\n")[0]) else ".csv"
