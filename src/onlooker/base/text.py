"""Text of other people's data, made safe to show: in a message, on a terminal, on a page or in JSON."""

from __future__ import annotations

import json
import os
import unicodedata

KEPT = "\n\t\u200c\u200d"
"""Letters that are not printable, and are left alone all the same."""


def safe(text: str, instead: str = "?") -> str:
    r"""The text without letters that command a terminal, reorder others, are not seen, or cannot be encoded.

    Line ends, tabs and the joiners that some scripts are written with stay; every other kind of space becomes a plain
    one.

    Examples
    --------
    >>> safe("caf\u00e9\x1b[31m \u202ederit\ud800")
    'caf\xe9?[31m ?derit?'
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in KEPT else _plain(letter, instead) for letter in text)


def _plain(letter: str, instead: str) -> str:
    return " " if unicodedata.category(letter) == "Zs" else instead


def json_text(document: object) -> str:
    r"""A document as JSON in which `safe` would find nothing: such letters are escaped, and read back the same.

    Examples
    --------
    >>> json_text({"caf\u00e9": "\x9b \u202e \U000e0041"})
    '{\n  "caf\xe9": "\\u009b \\u202e \\udb40\\udc41"\n}'
    """
    lines = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False).split("\n")
    return "\n".join(line if line.isprintable() else "".join(map(_escaped, line)) for line in lines)


def _escaped(letter: str) -> str:
    return letter if letter.isprintable() else json.dumps(letter)[1:-1]


def one_line(said: BaseException | str | os.PathLike[str], longest: int = 160) -> str:
    r"""Say an error, a text or a path in one line: of a long one the beginning, and the end if there is room for both.

    Examples
    --------
    >>> one_line(ValueError("row 3:\n  bad\x1b[0m value."))
    'row 3: bad [0m value'
    >>> one_line("column " + "x" * 1000 + " is missing: fill it in", longest=60)
    'column xxxxxxxxxxxxxxxxxxxxxxxxxx ... is missing: fill it in'
    """
    if isinstance(said, OSError) and said.errno:
        text = os.strerror(said.errno)
    else:
        text = str(said) if isinstance(said, BaseException) else os.fspath(said)
    line = " ".join(safe(text, " ").split()).rstrip(".")
    if len(line) <= longest:
        return line
    end = (longest - 5) * 2 // 5
    return f"{line[: longest - 5 - end]} ... {line[-end:]}"


def shown(path: str | os.PathLike[str]) -> str:
    """A path as a message names it: as it is, but for letters that would break the line or command a terminal."""
    return safe(os.fspath(path)).replace("\n", "?").replace("\t", "?")
