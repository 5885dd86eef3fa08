"""Features as Vowpal Wabbit's text has them: namespaces after bars, then names, numbers and categories."""

from __future__ import annotations

from onlooker.base.errors import InputError
from onlooker.formats.sparse_rows import Columns, SparseRows
from onlooker.formats.text_lines import as_text

_LETTERS = bytes(set(range(256)) - set(b": \t\r\v\f"))
"""All bytes but those that separate words."""


class LineReader:
    """Adds the features of lines to the current row.

    Examples
    --------
    >>> rows = SparseRows(Columns())
    >>> LineReader(rows).take(b"ad:2 price:1.5 new colour:red")
    >>> list(rows.columns), list(rows.values)
    (['ad^price', 'ad^new', ('ad^colour', 'red')], [3.0, 2.0, 1.0])
    """

    def __init__(self, rows: SparseRows) -> None:
        self._rows = rows
        self._namespaces: dict[bytes, _Namespace] = {}

    def take(self, tail: bytes) -> None:
        """Read what follows the first bar."""
        for segment in tail.split(b"|"):
            name, _, listed = segment.rstrip().partition(b" ")
            if not (name in self._namespaces and self._take_plain(self._namespaces[name], listed)):
                self._take_any(segment)

    def _take_plain(self, namespace: _Namespace, listed: bytes) -> bool:
        """Read words that are all `name`, or all `name:number` with one space between; or do nothing and give False.

        This is the fast way, and lines are seldom other.
        """
        if b":" not in listed:
            names = listed.split()
            self._rows.extend([*map(namespace.__getitem__, names)], [1.0] * len(names))
            return True
        marks = listed.translate(None, _LETTERS)
        words = listed.replace(b":", b" ").split()
        # Two words to a colon: no name and no value is empty.
        if len(words) % 2 or not words or marks != (b": " * (len(words) // 2))[:-1]:
            return False
        texts = words[1::2]
        # Python takes 1_0 for a number, Vowpal Wabbit does not.
        if b"_" in listed and b"_" in b"".join(texts):
            return False
        try:
            values = [*map(float, texts)]
        except ValueError:
            return False
        self._rows.extend([*map(namespace.__getitem__, words[::2])], values)
        return True

    def _take_any(self, segment: bytes) -> None:
        tokens = segment.split()
        scale, name = 1.0, b""
        if segment[:1].strip():
            name, scale = _scaled(tokens.pop(0))
        if not tokens:
            return
        namespace = self._namespaces.setdefault(name, _Namespace(name, self._rows.columns))
        nameless, rows = 0, self._rows
        for token in tokens:
            name, colon, text = token.partition(b":")
            if not name:
                name, nameless = b"%d" % nameless, nameless + 1
            if (colon and not text) or b":" in text:
                raise InputError(f"has {as_text(token)[:60]!r}: write name, name:number or name:text")
            value = as_number(text) if colon else 1.0
            if value is None:
                # Scales are for numbers: a category counts as 1 in every namespace.
                rows.add((namespace.prefix + as_text(name), as_text(text)), 1.0)
            elif (number := namespace[name]) >= 0:
                rows.numbers.append(number)
                rows.values.append(scale * value)


class _Namespace(dict[bytes, int]):
    """Number of each feature of one namespace, by the bytes of its name."""

    def __init__(self, name: bytes, columns: Columns) -> None:
        super().__init__()
        self.prefix = as_text(name) + "^" if name else ""
        self._columns = columns

    def __missing__(self, name: bytes) -> int:
        number = self[name] = self._columns[self.prefix + as_text(name)]
        return number


def _scaled(token: bytes) -> tuple[bytes, float]:
    """Name of a namespace, and the number that its features are multiplied with."""
    name, colon, text = token.partition(b":")
    scale = as_number(text) if colon else 1.0
    if scale is None or not name:
        raise InputError(f"has the namespace {as_text(token)[:60]!r}: write |name or |name:number")
    return name, scale


def as_number(text: bytes) -> float | None:
    """The number that a text is, or None; Python would take 1_0 for one too."""
    try:
        return None if b"_" in text else float(text)
    except ValueError:
        return None
