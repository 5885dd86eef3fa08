"""Which formats there are, and which of them a path is in: the suffix narrows them down, the content decides."""

import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from onlooker.errors import InputError
from onlooker.formats import (
    long_csv,
    long_jsonl,
    long_parquet,
    nested_parquet,
    obp,
    open_bandit,
    vw_dsjson,
    vw_text,
    yahoo_r6a,
)
from onlooker.formats.compressed import head
from onlooker.formats.format import Format, named

FORMATS: tuple[Format, ...] = (
    nested_parquet.FORMAT,
    long_parquet.FORMAT,
    open_bandit.FORMAT,
    yahoo_r6a.FORMAT,
    vw_dsjson.BY_CONTENT,
    vw_dsjson.FORMAT,
    vw_dsjson.GZIPPED,
    vw_text.FORMAT,
    vw_text.GZIPPED,
    obp.FORMAT,
    long_csv.FORMAT,
    long_csv.GZIPPED,
    long_csv.TABBED,
    long_jsonl.FORMAT,
    long_jsonl.GZIPPED,
)
"""In the order in which they are asked; the first that can write a suffix writes it."""

_COLUMNS = ("round", "chosen", "arm", "arms", "order_by", "by")
_LISTS = ("features", "categories")
_SAVED = re.compile(rb'\s*\{\s*"schema":\s*"onlooker\.(policy|tracking)/')


def find_format(path: Path) -> Format:
    """The format that a file or folder is in."""
    if path.is_dir():
        holds = next((one for one in FORMATS if one.folder and one.recognises(path)), None)
        if holds is None:
            raise InputError("is a folder: name a file in it")
        return holds
    if not path.exists():
        raise InputError("there is no such file: check the path")
    candidates = _candidates(path)
    if not path.is_file():
        raise InputError("is a device or a pipe, which cannot be read more than once: name a file")
    if not path.stat().st_size:
        raise InputError("is empty: it should hold a log")
    _check_log(path)
    return next((one for one in candidates[:-1] if one.recognises(path)), candidates[-1])


def find_writer(path: Path, *, long: bool = False) -> Format:
    """The format that writes files of this name; `long` asks for one row per offered arm."""
    if path.is_dir():
        raise InputError("is a folder: name a file in it to write")
    writers = [one for one in FORMATS if one.write is not None and (not long or one.name.startswith("long"))]
    formats = [one for one in writers if path.name.lower().endswith(one.suffixes)]
    if not formats:
        raise InputError(f"is of a kind that is not written: write {_suffixes(writers)}")
    return formats[0]


def check_writable(path: str, *, long: bool = False) -> None:
    """Refuse a name that no format writes, before anything is read."""
    with named(Path(path), "written"):
        find_writer(Path(path), long=long)


def check_options(found: Format, options: dict[str, Any], *, besides: tuple[str, ...] = ()) -> None:
    """Every option is one that the format's `read` takes, or one of those besides."""
    taken = [name for name in inspect.signature(found.read).parameters if name != "path"]
    for name, value in options.items():
        if name not in (*taken, *besides):
            raise InputError(f"{found.name} has no option {name!r}: it takes {', '.join(taken)}")
        if name in _LISTS and isinstance(value, str):
            raise InputError(f"option {name!r} is {value!r}: pass a list of columns")
        if name in _COLUMNS and not isinstance(value, str | None):
            raise InputError(f"option {name!r} is {value!r}: name a column")


def _candidates(path: Path) -> list[Format]:
    name = path.name.lower()
    candidates = [one for one in FORMATS if name.endswith(one.suffixes)]
    if not candidates:
        raise InputError(f"has none of the known suffixes {_suffixes(FORMATS)}: convert or rename it")
    return candidates


def _suffixes(formats: Iterable[Format]) -> str:
    return ", ".join(sorted({suffix for one in formats for suffix in one.suffixes}))


def _check_log(path: Path) -> None:
    """Refuse what onlooker saved besides logs."""
    saved = _SAVED.match(head(path, 200)) if path.suffix.lower() == ".json" else None
    if saved is not None:
        kind = "policy" if saved[1] == b"policy" else "state of tracking"
        raise InputError(f"this is a {kind} saved by onlooker, not a log: name the log that it came from")
