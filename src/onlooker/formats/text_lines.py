"""Lines of a file that may be vast or hostile: streamed, numbered, of bounded length."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import re
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self, TextIO, TypeVar, cast

from onlooker.base.errors import InputError
from onlooker.base.memory_limit import check_memory, limit_in_force
from onlooker.base.text import one_line

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Found = TypeVar("Found")

FLOOR, RATIO = 1 << 24, 200
"""Bytes, and multiple of the compressed size, to which a file may grow; tables of zeros shrink a hundredfold."""
HEAD = 1 << 20
"""Bytes at the beginning of a file that its format and its header are found by."""
_AHEAD = 1 << 25
"""Bytes that may be allocated between two checks of memory: some blocks of text and their values."""
_MAGICS = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
    "bz2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
}
"""How compressed files begin."""


class LogFile:
    """A file of a log. Within a block of `with` it is opened once, by Python or by Arrow, and stays open.

    Outside of such a block every reader opens it for itself: a scan of a thousand files keeps none of them open.
    Readers have places of their own in the file, so that several may read it at a time.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "log.csv.gz").write_bytes(gzip.compress(b"round,chosen"))
    ...     with LogFile(Path(folder) / "log.csv.gz") as file:
    ...         file.head(5), file.stream().read()
    (b'round', b'round,chosen')
    """

    def __init__(self, path: Path, partitions: dict[str, Any] | None = None) -> None:
        self.path = path
        """Where it is; it may be a folder."""
        self.partitions = partitions or {}
        """Columns that the folders it lies in are named for, and their value in all of its rows."""
        self._blocks = 0
        self._raw: _Raw | None = None
        self._native: Any = None
        self._found: dict[Callable[[LogFile], Any], Any] = {}

    def __reduce__(self) -> tuple[type[LogFile], tuple[Path, dict[str, Any]]]:
        return LogFile, (self.path, self.partitions)

    def __enter__(self) -> Self:
        self._blocks += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._blocks -= 1
        if self._blocks:
            return
        for handle in (self._raw, self._native):
            if handle is not None:
                handle.close()
        self._raw = self._native = None
        self._found.clear()

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self.path.stat().st_size

    def once(self, find: Callable[[LogFile], Found]) -> Found:
        """The result of `find` on the file, cached while the file is open."""
        if not self._blocks:
            return find(self)
        if find not in self._found:
            self._found[find] = find(self)
        return cast("Found", self._found[find])

    def head(self, size: int = 1 << 16) -> bytes:
        """The first bytes, decompressed: enough to recognise the format."""
        return self.once(_first_bytes)[:size]

    def stream(self) -> BinaryIO:
        """All of it from the beginning; what begins as gzip, zstd or bz2 does is decompressed, whatever its name."""
        compression = self.once(_compression)
        if compression is not None:
            self.once(_check_growth)
            return cast("BinaryIO", io.BufferedReader(_Bounded(self.plain(), compression), 1 << 18))
        return cast("BinaryIO", io.BufferedReader(_Watched(self.plain()), 1 << 18))

    def plain(self) -> _Reader:
        """All of it as it is on disk."""
        if not self._blocks:
            return _Reader(_Raw(self.path), alone=True)
        if self._raw is None:
            self._raw = _Raw(self.path)
        return _Reader(self._raw, alone=False)

    @contextmanager
    def for_arrow(self) -> Iterator[Any]:
        """All of it for Arrow, which reads plain files in larger pieces than Python would hand to it."""
        if limit_in_force() is not None or self.once(_compression) is not None:
            with self.stream() as stream:
                yield stream
            return
        with self.native() as native:
            yield native.get_stream(0, native.size())

    @contextmanager
    def native(self) -> Iterator[Any]:
        """Arrow's own file, for what reads at places of its own, from any thread."""
        if not self._blocks:
            with arrow_file(self.path) as native:
                yield native
            return
        if self._native is None:
            self._native = arrow_file(self.path)
        yield self._native


def arrow_file(path: Path) -> Any:
    """A file for Arrow, whatever bytes its name consists of: Arrow itself takes only names in UTF-8."""
    import pyarrow as pa

    return pa.OSFile(os.fsencode(path))


def _first_bytes(file: LogFile) -> bytes:
    with file.stream() as stream:
        return stream.read(HEAD)


def _compression(file: LogFile) -> str | None:
    with file.plain() as plain:
        start = plain.read(10) or b""
    return next((kind for kind, magic in _MAGICS.items() if magic.match(start)), None)


def _check_growth(file: LogFile) -> None:
    """Refuse a bomb by its beginning: readers may take minutes to get as far as decompressing does in no time."""
    kind = file.once(_compression)
    assert kind is not None
    with _Bounded(file.plain(), kind) as unpacked:
        left = FLOOR + 1
        while left > 0 and (read := len(unpacked.read(min(left, 1 << 18)) or b"")):
            left -= read


class _Raw:
    """An open file that several readers share."""

    def __init__(self, path: Path) -> None:
        self._file = io.FileIO(path)
        self._lock = threading.Lock()
        self.close = self._file.close

    def read_at(self, place: int, buffer: WriteableBuffer) -> int:
        """Read from a place in the file."""
        with self._lock:
            self._file.seek(place)
            return self._file.readinto(buffer) or 0

    def size(self) -> int:
        """Bytes in the file."""
        return os.fstat(self._file.fileno()).st_size


class _Reader(io.RawIOBase):
    """Reads an open file from a place of its own; closes it where it reads it alone."""

    def __init__(self, raw: _Raw, *, alone: bool) -> None:
        self._raw, self._alone, self._place = raw, alone, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._place = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._raw.size()}[whence]
        return self._place

    def tell(self) -> int:
        return self._place

    def readinto(self, buffer: WriteableBuffer) -> int:
        count = self._raw.read_at(self._place, buffer)
        self._place += count
        return count

    def close(self) -> None:
        if self._alone:
            self._raw.close()
        super().close()


class _Watched(io.RawIOBase):
    """A file that is read no further when memory is used up by what was made of it so far."""

    def __init__(self, raw: _Reader) -> None:
        self._raw = raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        check_memory(_AHEAD)
        return self._fill(buffer)

    def _fill(self, buffer: WriteableBuffer) -> int:
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Bounded(_Watched):
    """A compressed file that refuses to decompress without bound, with errors on one line."""

    def __init__(self, raw: _Reader, kind: str) -> None:
        super().__init__(raw)
        self._file = _unpacked(cast("BinaryIO", raw), kind)
        self._read = 0

    def _fill(self, buffer: WriteableBuffer) -> int:
        try:
            count = int(self._file.readinto(buffer))
        except (EOFError, OSError, zlib.error) as error:
            if isinstance(error, OSError) and error.errno:
                raise
            raise InputError(f"cannot be decompressed ({one_line(error)}): compress it again") from error
        self._read += count
        if self._read > max(FLOOR, RATIO * self._raw.tell()):
            raise InputError(
                f"grows to more than {self._read / 1e6:,.0f} MB when decompressed, {RATIO} times what was read of it, "
                "which is beyond any ordinary log: decompress it yourself if you trust it"
            )
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def _unpacked(raw: BinaryIO, kind: str) -> Any:
    if kind == "gzip":
        return gzip.GzipFile(fileobj=raw, mode="rb")
    if kind == "bz2":
        return bz2.BZ2File(raw)
    import pyarrow as pa

    return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")


LONGEST = 1 << 24
"""Bytes that a line may have; a longer one is not a line of a log."""
_CHUNK = 1 << 18
_PARSED = 40
"""Bytes of memory for each of a line, at most, while it is taken apart: an empty object takes three letters."""


def numbered_lines(source: LogFile) -> Iterator[tuple[int, bytes]]:
    r"""Number (from 1) and bytes of every line, without its end; a gzip file is decompressed on the way.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "log.vw").write_bytes(b"shared | a\r\n| b\n")
    ...     list(numbered_lines(LogFile(Path(folder) / "log.vw")))
    [(1, b'shared | a'), (2, b'| b')]
    """
    number = 0
    with source.stream() as file:
        rest = file.read(_CHUNK).removeprefix(b"\xef\xbb\xbf")
        while rest:
            chunk = file.read(_CHUNK)
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            if not chunk and rest:
                lines.append(rest)
                rest = b""
            for line in lines:
                number += 1
                if b"\0" in line:
                    raise InputError(f"line {number} has a zero byte: it is not text, save it as UTF-8")
                if len(line) > LONGEST:
                    raise _too_long(number)
                if len(line) > _CHUNK:
                    check_memory(_PARSED * len(line))
                yield number, line.removesuffix(b"\r")
            if len(rest) > LONGEST:
                raise _too_long(number + 1)
            rest = rest or file.read(_CHUNK)


def _too_long(number: int) -> InputError:
    return InputError(f"line {number} is longer than {LONGEST >> 20} MB: write one line per arm or event")


def as_text(name: bytes) -> str:
    """Bytes of a file as text."""
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise InputError("is not text in UTF-8: save it in that encoding") from error


@contextmanager
def at_line(number: int) -> Iterator[None]:
    """Prefix errors with the number of the line."""
    try:
        yield
    except InputError as error:
        raise InputError(f"line {number} {error}") from error


@contextmanager
def as_text_file(file: BinaryIO, *, compress: bool) -> Iterator[TextIO]:
    """Write text to a file as UTF-8; compressed, the same text gives the same bytes."""
    target = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if compress else file
    with io.TextIOWrapper(target, encoding="utf-8", newline="\n") as text:
        try:
            yield text
        except UnicodeEncodeError as error:
            raise InputError(f"{error.object[:40]!r} cannot be written as UTF-8: rename it") from error
