"""Copies of rows that are not in local files, in a temporary folder, so that all passes read the same data."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from onlooker.base.errors import InputError
from onlooker.base.text import one_line
from onlooker.formats.format import named
from onlooker.formats.text_lines import LogFile

CHUNK = 1 << 22
"""Bytes that are copied at a time."""
_MARGIN = 1 << 26
"""Bytes that are left free where the copies are made: other programs write there too."""


_LOCK = ".lock"
"""File in a folder of copies that its process holds a lock on."""
_PREFIX = "onlooker-"


class Spool:
    """A temporary folder that is deleted with the object, or when Python ends.

    A process that is killed leaves its folder behind; the next one that makes a folder deletes it.

    Examples
    --------
    >>> spool = Spool()
    >>> with spool.file("s3://bucket/log.csv", "log.csv") as (path, file):
    ...     _ = file.write(b"round,chosen")
    >>> path.read_bytes(), spool.said(f"{path}: is empty")
    (b'round,chosen', 's3://bucket/log.csv: is empty')
    >>> spool.close()
    >>> path.exists()
    False
    """

    def __init__(self) -> None:
        with _room():
            _delete_abandoned(Path(tempfile.gettempdir()))
            self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
            lock = _hold(self.folder)
        self.close: Callable[[], object] = weakref.finalize(self, _delete, self.folder, lock)
        """Delete it."""
        self.names: dict[Path, str] = {}
        """The name of each file in messages."""

    def __reduce__(self) -> tuple[Callable[..., None], tuple[()]]:
        # A worker has the files, not the folder's keeper.
        return _nothing, ()

    @contextmanager
    def file(self, name: str, called: str) -> Iterator[tuple[Path, BinaryIO]]:
        """A new file to write a copy of `name` to; `called` is a name whose suffix says what it is."""
        path = self.folder / str(len(self.names)) / Path(called).name
        self.names[path] = name
        with _room():
            path.parent.mkdir()
            with open(path, "wb") as file:
                yield path, file

    def check_room(self, size: int) -> None:
        """Refuse to copy this many bytes where they do not fit."""
        free = shutil.disk_usage(self.folder).free - _MARGIN
        if size > free:
            where = f"{self.folder.parent} has {max(free, 0) / 1e6:,.0f} MB of room"
            raise InputError(f"takes {size / 1e6:,.0f} MB, but {where}: set TMPDIR to a folder with more")

    def said(self, text: str) -> str:
        """A message with the names of what was copied, in the place of those of the copies."""
        for path, name in self.names.items():
            text = text.replace(str(path), name)
        return text


def _hold(folder: Path) -> int | None:
    """Lock a folder until it is released or the process ends, however it ends; None where the system has no locks."""
    if os.name != "posix":
        return None
    import fcntl

    # Locked before it has its name: there is no moment at which the folder looks abandoned.
    fresh = folder / f"{_LOCK}.new"
    lock = os.open(fresh, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    fresh.rename(folder / _LOCK)
    return lock


def _delete(folder: Path, lock: int | None) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        with suppress(OSError):
            os.close(lock)


def _delete_abandoned(where: Path) -> None:
    """Delete folders of this user whose process was killed."""
    if os.name != "posix":
        return
    import fcntl

    for lock_file in where.glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError):
            folder = lock_file.parent
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(lock_file, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _nothing() -> None:
    """What a worker gets in the place of a spool."""


@contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = tempfile.gettempdir() if error.filename is None else os.fsdecode(error.filename)
        raise InputError(
            f"cannot be copied to {where} ({one_line(error)}): set TMPDIR to a folder with room"
        ) from error


def write_arrow(reader: Any, file: BinaryIO, check: Callable[[int], None]) -> int:
    """Write a stream of Arrow's to a file, batch by batch; returns the number of rows."""
    import pyarrow as pa

    rows = 0
    with pa.ipc.new_file(file, reader.schema) as writer:
        for batch in reader:
            check(batch.nbytes)
            writer.write_batch(batch)
            rows += len(batch)
    return rows


_VW = re.compile(rb"(shared\b[^|]*|[\d.:eE+-]*[ \t]*|\d+ \S+ [01] )\|")
"""The first line of a file of Vowpal Wabbit's, or of Yahoo's R6A."""


_BEGINNINGS = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"PK\x03\x04": ".npz", b"{": ".jsonl"}


def copy_of_stdin(spool: Spool) -> Path:
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
