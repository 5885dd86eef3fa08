"""Files that may be compressed with gzip: read as they are, and no bomb is let go off."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from onlooker.errors import InputError
from onlooker.memory_limit import check_memory, limit_in_force

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

FLOOR, RATIO = 1 << 24, 200
"""A file may grow to so many bytes, or to so many times what was read of it; tables of zeros shrink a hundredfold."""
_AHEAD = 1 << 25
"""Bytes of memory that may be taken between two looks at it: some blocks of text and what they become."""
_MAGIC = b"\x1f\x8b"


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading; one that begins as gzip files do is decompressed on the way.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "log.csv.gz").write_bytes(gzip.compress(b"round,chosen"))
    ...     with open_bytes(Path(folder) / "log.csv.gz") as file:
    ...         file.read()
    b'round,chosen'
    """
    if is_compressed(path):
        _check_growth(path)
        return cast("BinaryIO", io.BufferedReader(_Bounded(path), 1 << 18))
    return cast("BinaryIO", io.BufferedReader(_Watched(path), 1 << 18))


def open_for_arrow(path: Path) -> Any:
    """Open a file for Arrow, which reads plain ones in larger pieces than Python would hand to it."""
    import pyarrow as pa

    if is_compressed(path) or limit_in_force() is not None:
        return open_bytes(path)
    return pa.OSFile(os.fsencode(path))


def head(path: Path, size: int = 1 << 16) -> bytes:
    """The first bytes of a file, decompressed: enough to tell what it is."""
    with open_bytes(path) as file:
        return file.read(size)


def is_compressed(path: Path) -> bool:
    """Whether a file begins as gzip files do, whatever it is called."""
    with open(path, "rb") as file:
        return file.read(2) == _MAGIC


def _check_growth(path: Path) -> None:
    """Refuse a bomb by its beginning: readers may take minutes to get as far as decompressing does in no time."""
    with _Bounded(path) as file:
        left = FLOOR + 1
        while left > 0 and (read := len(file.read(min(left, 1 << 18)) or b"")):
            left -= read


class _Watched(io.RawIOBase):
    """A file that is read no further when memory is used up by what was made of it so far."""

    def __init__(self, path: Path) -> None:
        self._raw = io.FileIO(path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        check_memory(_AHEAD)
        return self._fill(buffer)

    def _fill(self, buffer: WriteableBuffer) -> int:
        return self._raw.readinto(buffer) or 0

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Bounded(_Watched):
    """A gzip file that refuses to grow beyond all measure, and says in one line what is wrong with it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._file = gzip.GzipFile(fileobj=self._raw, mode="rb")
        self._read = 0

    def _fill(self, buffer: WriteableBuffer) -> int:
        try:
            count = self._file.readinto(buffer)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f"cannot be decompressed ({error}): compress it again") from error
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
