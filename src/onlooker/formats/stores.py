"""Files in object stores and other file systems that pyarrow reaches: listed, then copied here once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from onlooker.base.errors import InputError
from onlooker.base.text import by_number, one_line, redacted, without_secrets
from onlooker.formats.spool import CHUNK, Spool

STORES = ("s3", "gs", "gcs", "hdfs", "viewfs", "abfs", "abfss")
"""Schemes of the addresses that `pyarrow.fs` opens."""
_PATIENCE = "retry_limit_seconds=20"
"""How long Google's client may go on trying; without it, for 15 minutes."""


def fetch(address: str, spool: Spool) -> list[tuple[str, Path]]:
    """Copy the files of an address, a folder or a pattern there; names and copies, in the order of the names."""
    where = redacted(address)
    with store_errors(address):
        system, path = _opened(address)
        found = _listed(system, path, where)
        spool.check_room(sum(info.size or 0 for info in found))
        root = where.removesuffix("?***").removesuffix(path)
        copies = []
        for info in found:
            name = f"{root}{info.path}"
            with system.open_input_stream(info.path) as source, spool.file(name, info.path) as (copy, file):
                while block := source.read(CHUNK):
                    file.write(block)
                if info.size is not None and file.tell() != info.size:
                    raise InputError(f"{name}: {file.tell():,} of {info.size:,} bytes arrived: run this again")
            copies.append((name, copy))
        return copies


def _opened(address: str) -> tuple[Any, str]:
    """The file system, and the path in it."""
    from pyarrow import fs

    parts = urlsplit(address, allow_fragments=False)
    query = parts.query
    if parts.scheme in {"gs", "gcs"} and "retry_limit_seconds" not in query:
        query = f"{query}&{_PATIENCE}" if query else _PATIENCE
    # Spaces and brackets are quoted here, what was quoted already stays.
    quoted = parts._replace(path=quote(parts.path, safe="/%=:@+~,"), query=query).geturl()
    system, path = fs.FileSystem.from_uri(quoted)
    return system, path.rstrip("/")


def _listed(system: Any, path: str, where: str) -> list[Any]:
    """The files that a path in a store denotes."""
    from pyarrow import fs

    info = system.get_file_info(path)
    if info.type == fs.FileType.File:
        return [info]
    pattern = "*" in path or "[" in path
    if info.type == fs.FileType.NotFound and not pattern:
        raise InputError(f"{where}: there is no such file or folder: check the address")
    folder = path if not pattern else path[: min(path.find(mark) % (len(path) + 1) for mark in "*[")].rpartition("/")[0]
    every = system.get_file_info(fs.FileSelector(folder, recursive=True, allow_not_found=True))
    files = {one.path: one for one in every if one.type == fs.FileType.File}
    if pattern:
        names = matches(files, path)
    else:
        names = [name for name in files if not is_hidden(name.removeprefix(folder).lstrip("/"))]
    if not names:
        raise InputError(f"{where}: {'no file matches' if pattern else 'is an empty folder'}: check the address")
    return [files[name] for name in sorted(names, key=by_number)]


def matches(names: Iterable[str], pattern: str) -> list[str]:
    """Those of a store's names that match a pattern; `**` matches any number of folders.

    Examples
    --------
    >>> matches(["b/day1.csv", "b/c/day2.csv"], "b/*.csv"), matches(["b/day1.csv", "b/c/day2.csv"], "b/**/day*.csv")
    (['b/day1.csv'], ['b/day1.csv', 'b/c/day2.csv'])
    """
    pieces = re.split(r"(\*\*/|\*\*|\*|\[[^\]]+\])", pattern)
    known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
    parts = [
        known.get(piece) or (piece if piece[:1] == "[" and number % 2 else re.escape(piece))
        for number, piece in enumerate(pieces)
    ]
    whole = re.compile("".join(parts))
    return [name for name in names if whole.fullmatch(name)]


@contextmanager
def store_errors(address: str, advice: str = "the address") -> Iterator[None]:
    """Report an error of a store or a database on one line, without secrets of the address."""
    try:
        yield
    except InputError as error:
        raise InputError(hidden(str(error), address)) from None
    except MemoryError:
        raise InputError(f"{redacted(address)}: does not fit into memory: read a part of it") from None
    except Exception as error:  # noqa: BLE001  any library may be behind it; its own words may hold the password
        said = hidden(one_line(error, 300), address)
        raise InputError(
            f"{redacted(address)}: cannot be read ({said}): check {advice}, and the credentials in the environment"
        ) from None


def hidden(text: str, address: str) -> str:
    """A message without what is secret in an address: its user and password, and the values behind the question mark.

    Examples
    --------
    >>> hidden("no role bob with hu sh at host", "postgresql://bob:hu%20sh@host/db")
    'no role bob with *** at host'
    """
    text = without_secrets(text.replace(address, redacted(address)))
    rest = address.partition("://")[2]
    user, _, query = rest.rpartition("@")[0], *rest.rpartition("?")[1:]
    secrets = {user.partition(":")[2], *(pair.partition("=")[2] for pair in query.split("&"))}
    for secret in sorted({*secrets, *map(unquote, secrets)} - {""}, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def is_hidden(name: str) -> bool:
    """Whether a file below a folder is none of its log: it, or a folder above it, begins with a dot or underscore.

    Examples
    --------
    >>> is_hidden("_SUCCESS"), is_hidden("year=2024/.part-0.crc"), is_hidden("year=2024/part-0.parquet")
    (True, True, False)
    """
    return any(part.startswith((".", "_")) for part in name.split("/"))
