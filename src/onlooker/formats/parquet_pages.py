"""Pages of a Parquet file: what their headers say that they unpack to, read without unpacking any.

Arrow makes room for as much as a page's header says, whatever the file's footer says; two gigabytes of zeros are some
fifty bytes in some compressions. Headers are in Thrift's compact protocol.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

from onlooker.errors import InputError

_UNPACKED, _PACKED = 2, 3
"""Numbers of the fields of a header with a page's size before and after compression."""
_LONGEST = 1 << 16
"""Bytes of a header; statistics in it may be long, but not that long."""
_DEEPEST = 8
_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)


def page_sizes(file: BinaryIO, start: int, length: int) -> Iterator[int]:
    r"""Bytes that every page of a column chunk unpacks to.

    Examples
    --------
    A page of type 0 with 100 bytes packed into 7:

    >>> header = bytes([0x15, 0, 0x15, 200, 1, 0x15, 14, 0])
    >>> list(page_sizes(io.BytesIO(header + b"-------"), 0, 15))
    [100]
    """
    place = start
    while place < start + length:
        file.seek(place)
        header = io.BytesIO(file.read(_LONGEST))
        try:
            sizes = _fields(header)
            unpacked, packed = sizes[_UNPACKED], sizes[_PACKED]
        except (IndexError, KeyError) as error:
            raise InputError("cannot be read as Parquet (a page has no proper header): write it again") from error
        if packed < 0:
            raise InputError("cannot be read as Parquet (a page has a negative size): write it again")
        yield unpacked
        place += header.tell() + packed


def _fields(header: io.BytesIO, depth: int = 0) -> dict[int, int]:
    """Whole numbers of a struct by the numbers of their fields; the rest is read past."""
    found: dict[int, int] = {}
    number = 0
    while (start := _byte(header)) != _STOP:
        kind = start & 15
        number = number + (start >> 4) if start >> 4 else _whole(header)
        if kind in {_I16, _I32, _I64}:
            found[number] = _whole(header)
        elif kind not in {_TRUE, _FALSE}:
            _skip(header, kind, depth)
    return found


def _skip(header: io.BytesIO, kind: int, depth: int) -> None:
    """Read past a value."""
    if depth > _DEEPEST:
        raise IndexError
    if kind in {_TRUE, _FALSE, _BYTE}:
        _byte(header)
    elif kind in {_I16, _I32, _I64}:
        _whole(header)
    elif kind == _DOUBLE:
        header.seek(8, io.SEEK_CUR)
    elif kind == _BINARY:
        header.seek(_unsigned(header), io.SEEK_CUR)
    elif kind in {_LIST, _SET}:
        start = _byte(header)
        for _ in range(_unsigned(header) if start >> 4 == 15 else start >> 4):
            _skip(header, start & 15, depth + 1)
    elif kind == _STRUCT:
        _fields(header, depth + 1)
    else:
        raise IndexError


def _byte(header: io.BytesIO) -> int:
    return header.read(1)[0]


def _unsigned(header: io.BytesIO) -> int:
    value = shift = 0
    while True:
        byte = _byte(header)
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value
        if shift > 63:
            raise IndexError


def _whole(header: io.BytesIO) -> int:
    """A whole number; those below zero lie between the others."""
    value = _unsigned(header)
    return (value >> 1) ^ -(value & 1)
