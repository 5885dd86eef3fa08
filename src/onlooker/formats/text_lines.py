"""Lines of a file that may be vast or hostile: streamed, numbered, of bounded length."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, TextIO

from onlooker.errors import InputError
from onlooker.formats.compressed import LogFile
from onlooker.memory_limit import check_memory

LONGEST = 1 << 24
"""Bytes that a line may have; a longer one is no line of a log."""
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
    """Put the line's number in front of what is wrong with it."""
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
