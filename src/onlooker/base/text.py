"""Text for display: untrusted text made safe, messages on one line, tables as lines."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Sequence

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
    r"""Put an error, a text or a path on one line: of a long one the beginning, and the end if there is room for both.

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


def by_number(name: str | os.PathLike[str]) -> list[tuple[str, int]]:
    """Key to sort files by, numbers in their names as numbers.

    Examples
    --------
    >>> sorted(["day10.csv", "day2.csv"], key=by_number)
    ['day2.csv', 'day10.csv']
    """
    pieces = re.split(r"(\d+)", os.fspath(name))
    return [(text, int(number)) for text, number in zip(pieces[::2], [*pieces[1::2], "0"], strict=True)]


_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://\S+")
_SECRET = re.compile(r"(?i)\b(password|passwd|pwd|secret\w*|access_key\w*|\w*token)(\s*=\s*)[^\s&]+")


def redacted(address: str) -> str:
    """An address as it may be shown: without user and password, and without its query.

    Examples
    --------
    >>> redacted("postgresql://bob:p@ss/word@host:5432/shop?sslmode=require")
    'postgresql://***@host:5432/shop?***'
    >>> redacted("logs/day=1/a?.csv")
    'logs/day=1/a?.csv'
    """
    if not _ADDRESS.match(address):
        return without_secrets(address)
    scheme, mark, rest = address.partition("://")
    if "@" in rest:
        rest = f"***@{rest.rpartition('@')[2]}"
    if "?" in rest:
        rest = f"{rest.partition('?')[0]}?***"
    return f"{scheme}{mark}{rest}"


def without_secrets(text: str) -> str:
    """A message in which every address is redacted.

    Examples
    --------
    >>> without_secrets("cannot open s3://key:secret@bucket/log.csv, password=hush refused")
    'cannot open s3://***@bucket/log.csv, password=*** refused'
    """
    return _SECRET.sub(r"\1\2***", _ADDRESS.sub(lambda found: redacted(found[0]), text))


def text_table(rows: Sequence[Sequence[str]], layout: str, *, rule: bool = False) -> list[str]:
    """Lay out cells under each other, one line a row; a `rule` is a line of dashes below the first.

    `layout` has a `<` (left) or `>` (right) for each column, with its least width, and between them what separates
    columns. A column is as wide as its longest cell needs.

    Examples
    --------
    >>> for line in text_table([["observer", "error"], ["naive", "0.0761"]], "<  >", rule=True):
    ...     print(line)
    observer   error
    --------  ------
    naive     0.0761
    >>> text_table([["price", "1.5", "[1, 2]"]], "<7 >6   <")
    ['price      1.5   [1, 2]']
    """
    sides, least = zip(*re.findall(r"([<>])(\d*)", layout), strict=True)
    gaps = [*re.split(r"[<>]\d*", layout)[1:-1], ""]
    needed = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    widths = [max(int(width or 0), longest) for width, longest in zip(least, needed, strict=True)]
    ruled = [rows[0], ["-" * width for width in widths], *rows[1:]] if rule else rows
    return [
        "".join(
            f"{cell:{side}{width}}{gap}" for cell, side, width, gap in zip(row, sides, widths, gaps, strict=True)
        ).rstrip()
        for row in ruled
    ]


def some_of(names: Sequence[object], few: int = 12) -> str:
    """The first few names; a single one more is shown too, since saying that it is left out takes as much room.

    Examples
    --------
    >>> some_of(["a", "b"]), some_of(range(9), 5)
    ("'a', 'b'", '0, 1, 2, 3, 4 and 4 more')
    """
    few += len(names) == few + 1
    more = f" and {len(names) - few:,} more" if len(names) > few else ""
    return ", ".join(map(repr, names[:few])) + more


SMALLEST_P = 1e-100
"""Smaller p-values are not reported: they are at the mercy of rounding."""


def p_words(p_value: float, least: float = 0.0) -> str:
    """A p-value with its relation sign; at the `least` that simulations can give, it is a bound.

    Examples
    --------
    >>> p_words(0.0421), p_words(0.0), p_words(1 / 1001, least=1 / 1001)
    ('= 0.042', '< 1e-100', '<= 0.001')
    """
    if p_value < SMALLEST_P:
        return f"< {SMALLEST_P:g}"
    return f"{'<=' if p_value <= least else '='} {p_value:.2g}"


def showable(text: str) -> str:
    r"""Replace what a page cannot show, or what would disturb the text around it, by the replacement character.

    Examples
    --------
    >>> showable("caf\u00e9 \u202ederit")
    'café �derit'
    """
    return safe(text, "\ufffd")


def start_of(text: str, limit: int) -> str:
    r"""Put text on one line of at most `limit` characters.

    Examples
    --------
    >>> start_of("predictive\n  regret of the learner", limit=20)
    'predictive regret o…'
    """
    line = " ".join(showable(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def ends_of(text: str, limit: int) -> str:
    """Put text on one line of at most `limit` characters, cut before its end, as names often differ there.

    Examples
    --------
    >>> ends_of("weight_of_the_parcel_in_kg", limit=15), ends_of("weight", limit=15)
    ('weight_of…in_kg', 'weight')
    """
    line = " ".join(showable(text).split())
    last = limit // 3
    return line if len(line) <= limit else line[: limit - 1 - last] + "…" + line[len(line) - last :]


def two_lines(text: str, limit: int) -> str:
    r"""Put text on one line of at most `limit` characters, or on two if there is a space to break it at.

    Examples
    --------
    >>> two_lines("suffix imitation, oracle in hindsight", limit=28), two_lines("tracking", limit=28)
    ('suffix imitation, oracle in\nhindsight', 'tracking')
    """
    line = " ".join(showable(text).split())
    space = line.rfind(" ", 0, limit + 1)
    if len(line) <= limit or space < 1 or len(line) - space - 1 > limit:
        return ends_of(line, limit)
    return f"{line[:space]}\n{line[space + 1 :]}"
