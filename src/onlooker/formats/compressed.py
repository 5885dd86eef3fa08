"""Files that may be compressed with gzip: read as they are, and no bomb is let go off."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from onlooker.errors import InputError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

FLOOR, RATIO = 1 << 28, 200
"""A file may grow to this many bytes, or to this many times its size; tables of zeros shrink about a hundredfold."""
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
    if not is_compressed(path):
        return open(path, "rb")
    return cast("BinaryIO", io.BufferedReader(_Bounded(path), 1 << 18))


def open_text(path: Path) -> io.TextIOWrapper:
    """Open a file of text in UTF-8, with or without a byte order mark, compressed or not."""
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", newline="")


def head(path: Path, size: int = 1 << 16) -> bytes:
    """The first bytes of a file, decompressed: enough to tell what it is."""
    with open_bytes(path) as file:
        return file.read(size)


def is_compressed(path: Path) -> bool:
    """Whether a file begins as gzip files do, whatever it is called."""
    with open(path, "rb") as file:
        return file.read(2) == _MAGIC


class _Bounded(io.RawIOBase):
    """A gzip file that refuses to grow beyond all measure, and says in one line what is wrong with it."""

    def __init__(self, path: Path) -> None:
        self._most = max(FLOOR, RATIO * path.stat().st_size)
        self._file = gzip.GzipFile(path, "rb")
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        try:
            count = self._file.readinto(buffer)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f"cannot be decompressed ({error}): compress it again") from error
        self._read += count
        if self._read > self._most:
            raise InputError(
                f"grows to more than {self._most / 1e6:,.0f} MB when decompressed, which is beyond any ordinary log: "
                "decompress it yourself if you trust it"
            )
        return count

    def close(self) -> None:
        self._file.close()
        super().close()
