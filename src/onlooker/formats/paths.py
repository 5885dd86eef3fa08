"""Names of files: those of a folder or a pattern, their order, and what the folders they lie in say of them."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from onlooker.base.text import by_number

_PARTITION = re.compile(r"([^=/]+)=([^/]*)/")
_NOTHING = "__HIVE_DEFAULT_PARTITION__"
"""What a folder is called that holds the rows without a value."""
_WHOLE = re.compile(r"-?\d{1,18}")


def is_hidden(name: str) -> bool:
    """Whether a file below a folder is none of its log: it, or a folder above it, begins with a dot or underscore.

    Examples
    --------
    >>> is_hidden("_SUCCESS"), is_hidden("year=2024/.part-0.crc"), is_hidden("year=2024/part-0.parquet")
    (True, True, False)
    """
    return any(part.startswith((".", "_")) for part in name.split("/"))


def is_pattern(name: str) -> bool:
    """Whether a name stands for several files: it has a *, ? or [ and is not itself the name of one."""
    return glob.has_magic(name) and not os.path.lexists(name)


def matching(name: str) -> list[Path]:
    """The files of a folder, of its folders too, or those that match a pattern; in the order of their names."""
    if is_pattern(name):
        found = [Path(one) for one in glob.glob(name, recursive=True)]  # noqa: PTH207  it may begin at the root
        return sorted((path for path in found if not path.is_dir()), key=by_number)
    folder = Path(name)
    inside = (path for path in folder.rglob("*") if not is_hidden(path.relative_to(folder).as_posix()))
    return sorted((path for path in inside if path.is_file()), key=by_number)


def below_common_folder(names: Sequence[str]) -> list[str]:
    """Names of files without the folders that all of them lie in.

    Examples
    --------
    >>> below_common_folder(["log/day=2/0.csv", "log/day=10/0.csv"]), below_common_folder(["s3://b/1.csv", "s3://b/2.csv"])
    (['day=2/0.csv', 'day=10/0.csv'], ['1.csv', '2.csv'])
    """
    parts = [name.replace(os.sep, "/").split("/") for name in names]
    common = 0
    while all(len(one) > common + 1 for one in parts) and len({one[common] for one in parts}) == 1:
        common += 1
    return ["/".join(one[common:]) for one in parts]


def matches(names: Iterable[str], pattern: str) -> list[str]:
    """Those of a store's names that match a pattern; `**` stands for any number of folders.

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


def partitions(names: Sequence[str]) -> list[dict[str, Any]]:
    """What the folders of every file say of its rows: `year=2024/month=05/` are two columns.

    A column is of whole numbers where all of its values are, else text. One that only some files have is left out.

    Examples
    --------
    >>> partitions(["log/year=2024/shop=a/1.csv", "log/year=2025/shop=b%20c/1.csv"])
    [{'year': 2024, 'shop': 'a'}, {'year': 2025, 'shop': 'b c'}]
    """
    found = [{unquote(key): unquote(value) for key, value in _PARTITION.findall(name)} for name in names]
    keys = [key for key in (found[0] if found else {}) if all(key in one for one in found)]
    whole = {key for key in keys if all(_is_whole(one[key]) for one in found)}
    return [{key: _value(one[key], whole=key in whole) for key in keys} for one in found]


def _is_whole(text: str) -> bool:
    return text == _NOTHING or _WHOLE.fullmatch(text) is not None


def _value(text: str, *, whole: bool) -> int | str | None:
    if text == _NOTHING:
        return None
    return int(text) if whole else text
