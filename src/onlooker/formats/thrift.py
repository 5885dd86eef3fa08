"""Thrift's compact protocol, in which Parquet keeps its headers: structs by the numbers of their fields."""

from __future__ import annotations

import io
from typing import Any

_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)
_DEEPEST = 32

Struct = dict[int, Any]
"""Whole numbers, structs, and lists of them by the numbers of their fields; of other values None."""


class MalformedError(Exception):
    """The bytes are no struct."""


def read_struct(data: io.BytesIO, depth: int = 0) -> Struct:
    r"""Read a struct, and leave off behind it.

    Examples
    --------
    >>> read_struct(io.BytesIO(b"\x15\x04\x19\x25\x02\x06\x1c\x00\x00"))
    {1: 2, 2: [1, 3], 3: {}}
    """
    if depth > _DEEPEST:
        raise MalformedError
    found: Struct = {}
    number = 0
    while (start := _byte(data)) != _STOP:
        number = number + (start >> 4) if start >> 4 else _whole(data)
        kind = start & 15
        # The kind of a boolean is its value.
        found[number] = None if kind in {_TRUE, _FALSE} else _value(data, kind, depth)
    return found


def _value(data: io.BytesIO, kind: int, depth: int) -> Any:
    if kind in {_I16, _I32, _I64}:
        return _whole(data)
    if kind == _STRUCT:
        return read_struct(data, depth + 1)
    if kind in {_LIST, _SET}:
        start = _byte(data)
        count = _unsigned(data) if start >> 4 == 15 else start >> 4
        return [_value(data, start & 15, depth + 1) for _ in range(count)]
    if kind == _MAP:
        return _skip_map(data, depth)
    if kind in {_TRUE, _FALSE, _BYTE}:
        return _skip(data, 1)
    if kind == _DOUBLE:
        return _skip(data, 8)
    if kind == _BINARY:
        return _skip(data, _unsigned(data))
    raise MalformedError


def _skip_map(data: io.BytesIO, depth: int) -> None:
    count = _unsigned(data)
    kinds = _byte(data) if count else 0
    for _ in range(count):
        _value(data, kinds >> 4, depth + 1)
        _value(data, kinds & 15, depth + 1)


def _skip(data: io.BytesIO, count: int) -> None:
    if len(data.read(count)) < count:
        raise MalformedError


def _byte(data: io.BytesIO) -> int:
    read = data.read(1)
    if not read:
        raise MalformedError
    return read[0]


def _unsigned(data: io.BytesIO) -> int:
    value = shift = 0
    while True:
        byte = _byte(data)
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value
        if shift > 63:
            raise MalformedError


def _whole(data: io.BytesIO) -> int:
    """A whole number; those below zero lie between the others."""
    value = _unsigned(data)
    return (value >> 1) ^ -(value & 1)
