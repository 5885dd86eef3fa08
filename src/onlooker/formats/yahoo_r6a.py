"""Yahoo's front page log (R6A): one visit per line, with the user, the articles on offer and the one displayed."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence

import numpy as np

from onlooker.base.checks import check_columns
from onlooker.base.errors import InputError, SkippedLinesWarning, warn
from onlooker.base.memory_limit import check_memory
from onlooker.base.types import Index, Matrix
from onlooker.formats.format import Format
from onlooker.formats.sparse_log import crossed, products
from onlooker.formats.text_lines import LogFile, as_text, at_line, numbered_lines
from onlooker.logs.log import BanditLog

_FIRST = re.compile(rb"\d+ \S+ [01] \|user ")
_NAMES = (b"1", b"2", b"3", b"4", b"5", b"6")
_PLACES = (11, 1, 3, 5, 7, 9)
"""Where each name stands behind that of the user or the article: the first feature, always 1, comes last."""
_WIDTH = 13
"""Words that a user or an article takes: its name, then names and values in turn."""
_CHECK = 1 << 14
"""Visits between two looks at the memory."""


def recognises(file: LogFile) -> bool:
    """Whether the file begins with a time, an article, a click and the user."""
    return _FIRST.match(file.head(256)) is not None


def read(file: LogFile, *, features: Sequence[str] | None = None, cross: bool = False) -> BanditLog:
    """Read one visit per line. Clicks are ignored; lines that are cut off or display no article on offer are skipped.

    Features are called 1 to 6. With `cross` they are the 36 products of the user's and the article's, called
    `user^1 x 1` and so on; the user's first is always 1, so that the articles' own are among them.
    """
    if not isinstance(cross, bool):
        raise InputError(f"option 'cross' is {cross!r}: pass True or False")
    visits = _Visits()
    for number, line in numbered_lines(file):
        with at_line(number):
            visits.take(number, line)
    if not visits.chosen:
        raise InputError(f"holds no visit that can be read ({visits.skipped} lines are malformed): check the file")
    if visits.skipped:
        warn(
            f"{visits.skipped} of {visits.skipped + len(visits.chosen)} lines are malformed (cut off, or the displayed "
            "article is not on offer): they were skipped",
            SkippedLinesWarning,
        )
    return visits.log(features, cross=cross)


class _Visits:
    """The visits so far: six numbers of each user and of each article on offer."""

    def __init__(self) -> None:
        self.chosen: list[int] = []
        self.skipped = 0
        self._users, self._offered = array("d"), array("d")
        self._ends, self._lines = array("q", [0]), array("q")
        self._articles: list[str] = []
        self._names: dict[bytes, str] = {}

    def take(self, number: int, line: bytes) -> None:
        """Add a visit, or count a line that is not one."""
        # Every article takes seven columns, behind ten of the visit and its user.
        if (len(line.split()) - 10) % 7:
            self.skipped += 1
            return
        words = line.replace(b":", b" ").split()
        described = words[3:]
        articles = described[_WIDTH::_WIDTH]
        if len(described) % _WIDTH or described[:1] != [b"|user"] or not all(name[:1] == b"|" for name in articles):
            raise InputError("is not 'timestamp article click |user 2:... |article 2:...': check the file's format")
        try:
            pick = articles.index(b"|" + words[1])
        except ValueError:
            self.skipped += 1
            return
        numbers = _numbers(described, len(articles) + 1)
        self._users.extend(numbers[:6])
        self._offered.extend(numbers[6:])
        self._articles += [self._names.get(name) or self._name(name) for name in articles]
        self._ends.append(len(self._articles))
        self._lines.append(number)
        self.chosen.append(pick)
        if not len(self.chosen) % _CHECK:
            check_memory(16 * (len(self._users) + len(self._offered)))

    def _name(self, name: bytes) -> str:
        return self._names.setdefault(name, as_text(name[1:]))

    def log(self, features: Sequence[str] | None, *, cross: bool) -> BanditLog:
        """All visits, in the order of the file."""
        users, articles = (np.frombuffer(part).reshape(-1, 6) for part in (self._users, self._offered))
        offsets = np.array(self._ends, dtype=np.int64)
        self._check_finite(users, np.arange(len(users) + 1))
        self._check_finite(articles, offsets)
        names, table = [name.decode() for name in _NAMES], articles
        if cross:
            check_memory(8 * (36 + 6) * len(articles))
            table = np.empty((len(articles), 36))
            products(table, users, articles, offsets)
            names = crossed([f"user^{name}" for name in names], names)
        for name in features or ():
            check_columns(names, {"features": name})
        kept = names if features is None else list(features)
        return BanditLog(
            table if kept == names else table[:, [names.index(name) for name in kept]],
            offsets,
            self.chosen,
            feature_names=kept,
            arm_ids=np.array(self._articles, dtype=object),
        )

    def _check_finite(self, rows: Matrix, offsets: Index) -> None:
        wrong = np.argwhere(~np.isfinite(rows))
        if len(wrong):
            row, feature = wrong[0].tolist()
            line = self._lines[int(np.searchsorted(offsets, row, side="right")) - 1]
            raise InputError(f"line {line}, feature {feature + 1} is {rows[row, feature]}: correct it or leave it out")


def _numbers(described: list[bytes], count: int) -> list[float]:
    """Six values of the user, then of every article."""
    texts = [b""] * (6 * count)
    for j, (name, place) in enumerate(zip(_NAMES, _PLACES, strict=True)):
        if described[place::_WIDTH] != [name] * count:
            raise InputError("has other features than 2, 3, 4, 5, 6 and 1, in this order: check the file's format")
        texts[j::6] = described[place + 1 :: _WIDTH]
    try:
        return [*map(float, texts)]
    except ValueError as error:
        raise InputError(
            f"has a value that is not a number ({str(error)[-40:]}): correct it or leave it out"
        ) from error


FORMAT = Format(
    name="Yahoo R6A",
    suffixes=(".txt", ".dat", ".gz"),
    recognises=recognises,
    read=read,
)
