"""Where a log is: files here, a folder, a pattern or a list of them, a store, a database, the standard input, a table.

What is not here is copied once into a temporary folder, so that it can be read as often as a fit needs, and is the same
each time. Files here must not change while they are read: an answer would mix two versions of the log.
"""

from __future__ import annotations

import glob
import os
import re
import stat
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from onlooker.base.checks import counted, did_you_mean
from onlooker.base.errors import InputError
from onlooker.base.text import by_number, redacted, shown
from onlooker.formats.arrow_source import ArrowSource
from onlooker.formats.databases import DATABASES, fetch_rows
from onlooker.formats.format import TABLE, Source, named
from onlooker.formats.joined import partitions
from onlooker.formats.open_bandit import ITEMS
from onlooker.formats.spool import Spool, copy_of_stdin, write_arrow
from onlooker.formats.stores import STORES, fetch, is_hidden
from onlooker.formats.text_lines import LogFile

STDIN = "-"
"""The name of the standard input."""
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


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
        return Place("the standard input", [LogFile(copy_of_stdin(spool))], spool=spool)
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
    if any("=" in name for name, _ in files):
        for values, (_, file) in zip(partitions([name for name, _ in files]), files, strict=True):
            file.partitions = values


def _check_no_sql(sql: str | None, name: str) -> None:
    if sql is not None:
        raise InputError(f"{name}: is not a database, so `sql` does not apply: leave it out")


REMEDY = "an answer would mix two versions of it, so run this again when it is complete, or on a copy"
_TICK = 0.02
"""Seconds within which a file system may give two writes the same time; its clock ticks every 1 to 10 ms."""
_ENDS = 1 << 16
"""Bytes at either end of a file that workers compare; the end of a Parquet file describes the rest of it."""


def is_pattern(name: str) -> bool:
    """Whether a name denotes several files: it has a *, ? or [ and is not itself the name of one."""
    return glob.has_magic(name) and not os.path.lexists(name)


def matching(name: str) -> list[Path]:
    """The files of a folder, of its folders too, or those that match a pattern; in the order of their names."""
    if is_pattern(name):
        found = [Path(one) for one in glob.glob(name, recursive=True)]  # noqa: PTH207  it may begin at the root
        return sorted((path for path in found if not path.is_dir()), key=by_number)
    folder = Path(name)
    inside = (path for path in folder.rglob("*") if not is_hidden(path.relative_to(folder).as_posix()))
    return sorted((path for path in inside if path.is_file()), key=by_number)


@dataclass(frozen=True)
class FileState:
    """The state of a file as reported by the system."""

    device: int
    inode: int
    size: int
    written: int
    """When its content was last written, in nanoseconds; anyone may set this."""
    touched: int
    """When its content, permissions or links last changed, in nanoseconds; only the system sets this."""

    @classmethod
    def of(cls, path: Path) -> FileState | None:
        """The state of a file now; None for what is not an ordinary file."""
        try:
            found = path.stat()
        except OSError as error:
            raise InputError(f"{shown(path)}: cannot be read any more ({error.strerror}): {REMEDY}") from error
        if not stat.S_ISREG(found.st_mode):
            return None
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)

    def change_to(self, now: FileState, *, touched: bool) -> str:
        """Describe how the file changed; empty if it did not. `touched`: compare its time of change, too."""
        if (now.device, now.inode) != (self.device, self.inode):
            return "was replaced"
        if now.size != self.size:
            done = "grew" if now.size > self.size else "was cut"
            return f"{done} from {self.size:,} to {now.size:,} bytes"
        return "was written to" if now.written != self.written or (touched and now.touched != self.touched) else ""


class UnchangedFiles:
    """The files of a log, as they were when it was opened.

    It can be pickled. Files that a worker finds under the same names may be copies: they must have the same size and
    the same bytes at either end, and must not change from then on.

    Parameters
    ----------
    paths
        The logs, a file or folder each.
    pattern
        The folder or pattern that they were found by, if they were: no other file may come to belong to it.
    """

    def __init__(self, paths: Iterable[Path], pattern: str | None = None) -> None:
        self._paths = [file for path in paths for file in _files_of(path)]
        self._pattern = pattern
        self.compared = False
        """Whether all content will be compared with what it was before: new permissions or links then do not matter."""
        self._matched = self._matching()
        self._known = self._states()
        latest = max((state.touched for state in self._known.values()), default=0)
        if 0 <= time.time() - latest / 1e9 < _TICK:
            # A second write would not show in the times.
            time.sleep(_TICK)
            self._known = self._states()

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Refuse what the block finds if the files change; this error takes precedence over any other."""
        self.check()
        try:
            yield
        except Exception:
            self.check()
            raise
        self.check()

    def check(self) -> None:
        """Refuse files that have changed."""
        for path, known in self._known.items():
            now = FileState.of(path)
            what = "was replaced" if now is None else known.change_to(now, touched=not self.compared)
            if what:
                raise InputError(f"{shown(path)}: {what} while it was read: {REMEDY}")
        more = self._matching() - self._matched
        if more:
            raise InputError(
                f"{shown(min(more))}: appeared while the files of {self._pattern} were read: run this again, "
                "or name the files"
            )

    def _matching(self) -> set[str]:
        return set() if self._pattern is None else {os.fspath(path) for path in matching(self._pattern)}

    def _states(self) -> dict[Path, FileState]:
        found = {path: FileState.of(path) for path in self._paths}
        return {path: state for path, state in found.items() if state is not None}

    def __getstate__(self) -> dict[str, Any]:
        return {"ends": {path: (known.size, _ends(path)) for path, known in self._known.items()}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._paths, self._pattern, self._matched, self.compared = list(state["ends"]), None, set(), False
        self._known = self._states()
        for path, (size, ends) in state["ends"].items():
            if path not in self._known or self._known[path].size != size or _ends(path) != ends:
                raise InputError(f"{shown(path)}: is not the file that was opened, or has changed since: {REMEDY}")


def _files_of(path: Path) -> list[Path]:
    """The files that a log may be read from: its own, and a table of items beside it; none where it does not exist."""
    if path.is_dir():
        return [file for file in path.iterdir() if file.is_file()]
    return [file for file in (path, path.parent / ITEMS) if file.is_file()]


def _ends(path: Path) -> int:
    """Checksum of the first and the last bytes."""
    try:
        with open(path, "rb") as file:
            checksum = zlib.crc32(file.read(_ENDS))
            file.seek(-min(_ENDS, os.fstat(file.fileno()).st_size), os.SEEK_END)
            return zlib.crc32(file.read(_ENDS), checksum)
    except OSError as error:
        raise InputError(f"{shown(path)}: cannot be read any more ({error.strerror}): {REMEDY}") from error
