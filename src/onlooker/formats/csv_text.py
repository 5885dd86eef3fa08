"""Text in a table that may have been meant for numbers: strays, decimal commas, leading zeros, blanks."""

from __future__ import annotations

from typing import Any

from onlooker.encoding import place
from onlooker.errors import InputError

_HEAD = 1000
"""Rows that decide whether a column of text was meant to hold numbers."""
_GAPS = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "true", "false", "True", "False", "inf", "-inf"]
"""Text that Arrow takes for a number, a truth or a gap besides."""
_NUMBER = {
    mark: rf"^\s*[-+]?(\d+{one}?\d*|{one}\d+)([eE][-+]?\d+)?\s*$" for mark, one in {".": r"\.", ",": ","}.items()
}
"""What a number looks like, by its decimal mark."""
_LED_BY_ZERO = r"^\s*[-+]?0\d"
"""Ids may look like that, numbers do not."""


def stray(column: Any, mark: str) -> int:
    """First row that Arrow does not take for a number, a truth or a gap, or -1."""
    import pyarrow as pa
    import pyarrow.compute as pc

    fits = pc.or_(pc.match_substring_regex(column, _NUMBER[mark]), pc.is_in(column, pa.array(_GAPS)))
    row: int = pc.index(fits, value=False).as_py()
    return row


def has_mark(column: Any, mark: str) -> bool:
    """Whether text is nothing but numbers and gaps, and some of the numbers have this decimal mark.

    Examples
    --------
    >>> import pyarrow as pa
    >>> has_mark(pa.array(["25,23", "7", ""]), ","), has_mark(pa.array(["25,23", "b"]), ",")
    (True, False)
    """
    import pyarrow.compute as pc

    if pc.index(pc.match_substring(column, mark), value=True).as_py() < 0:
        return False
    filled = column.filter(pc.not_equal(column, ""))
    return bool(pc.all(pc.match_substring_regex(filled, _NUMBER[mark])).as_py())


def check_commas(column: Any, name: str) -> None:
    """Numbers with decimal commas are no text: as such they would be lost, or made a category."""
    import pyarrow.compute as pc

    if has_mark(column, ","):
        comma = pc.index(pc.match_substring(column, ","), value=True).as_py()
        found = column[comma].as_py()[:40]
        alike = "in all columns alike and without thousands separators"
        remedy = f"write numbers with points, not commas, {alike}, or name it as a category"
        raise InputError(f"column {name!r}, {place(comma)} is {found!r}: {remedy}")


def check_text(column: Any, name: str, mark: str) -> None:
    """A column is text if its head is: a stray word among numbers must not hide a feature."""
    import pyarrow.compute as pc

    head = pc.match_substring_regex(column.slice(0, _HEAD), _NUMBER[mark])
    if 2 * (pc.sum(head).as_py() or 0) > len(head):
        row = pc.index(pc.match_substring_regex(column, _NUMBER[mark]), value=False).as_py()
        raise InputError(
            f"column {name!r}, {place(row)} is {column[row].as_py()!r}, not a number: mend it or name it as a category"
        )


def without_blanks(column: Any) -> Any:
    """A blank is a gap, as it is among numbers."""
    import pyarrow.compute as pc

    return pc.if_else(pc.equal(column, ""), None, column) if pc.index(column, value="").as_py() >= 0 else column


def led_by_zero(column: Any) -> bool:
    """Whether whole numbers are ids by a leading zero.

    Examples
    --------
    >>> import pyarrow as pa
    >>> led_by_zero(pa.array(["7", "019"])), led_by_zero(pa.array(["0", "10"]))
    (True, False)
    """
    import pyarrow.compute as pc

    return bool(pc.any(pc.match_substring_regex(column, _LED_BY_ZERO)).as_py())
