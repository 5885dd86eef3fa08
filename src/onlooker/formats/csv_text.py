"""Text in a table that may have been meant for numbers: strays, decimal marks, leading zeros, blanks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onlooker.base.errors import InputError
from onlooker.logs.encoding import place

_HEAD = 1000
"""Rows that decide whether a column of text was meant to hold numbers."""
_GAPS = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "true", "false", "True", "False", "inf", "-inf"]
"""Text that Arrow takes for a number, a truth or a gap besides."""
_NUMBER = {
    mark: rf"^\s*[-+]?(\d+{one}?\d*|{one}\d+)([eE][-+]?\d+)?\s*$" for mark, one in {".": r"\.", ",": ","}.items()
}
"""What a number looks like, by its decimal mark."""
_OTHER = {".": ",", ",": "."}
_GROUPED = r"^\s*[-+]?[1-9]\d{0,2}(\.\d{3})+\s*$"
"""What a number with thousands apart looks like, and a fraction of three digits too."""
_SHORT = r"^\s*[-+]?\d{1,3}\s*$"
_HUNDREDS = r"^\s*[-+]?[1-9]\d{2}\s*$"
_ENOUGH = 10
"""Numbers with three digits after the mark that are not a coincidence."""
_PICKS = {"0", "1", "0.0", "1.0", "true", "false"}
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
    >>> has_mark(pa.array(["25,23", "7", "", "NA"]), ","), has_mark(pa.array(["25,23", "b"]), ",")
    (True, False)
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.index(pc.match_substring(column, mark), value=True).as_py() < 0:
        return False
    filled = column.filter(pc.invert(pc.is_in(column, pa.array(_GAPS))))
    return bool(pc.all(pc.match_substring_regex(filled, _NUMBER[mark])).as_py())


def check_thousands(column: Any, name: str) -> None:
    """Refuse whole numbers with thousands apart that would be read as small fractions: 4.035 beside 351.

    Every number with a point has groups of three digits behind it, and those without are too short to need one.
    """
    import pyarrow.compute as pc

    pointed = pc.match_substring(column, ".")
    marked = column.filter(pointed)
    if len(marked) < _ENOUGH or not pc.all(pc.match_substring_regex(marked, _GROUPED)).as_py():
        return
    others = column.filter(pc.and_(pc.invert(pointed), pc.not_equal(column, "")))
    long = others.filter(pc.match_substring_regex(others, _HUNDREDS))
    if len(long) and pc.all(pc.match_substring_regex(others, _SHORT)).as_py():
        row, found = pc.index(pointed, value=True).as_py(), marked[0].as_py().strip()[:40]
        remedy = f"write {found.replace('.', '')}, or pass decimal='.' if it is a fraction"
        raise InputError(f"column {name!r}, {place(row)} is {found!r} beside {long[0].as_py()!r}: {remedy}")


def check_quotes(column: Any, name: str, delimiter: str, names: Sequence[str], chosen: str, first_row: int = 0) -> None:
    """Refuse text that has swallowed lines of the table, as it does behind a quote that is never closed.

    A line of the table has as many fields as there are columns, and a pick or none where picks stand.
    """
    import pyarrow.compute as pc

    several = pc.match_substring(column, "\n")
    if not pc.any(several).as_py():
        return
    place_of = list(names).index(chosen)
    for row in pc.indices_nonzero(several).to_pylist():
        lines = (line.split(delimiter) for line in column[row].as_py().split("\n")[1:])
        if any(len(fields) == len(names) and fields[place_of].strip().lower() in _PICKS for fields in lines):
            raise InputError(
                f"column {name!r}, {place(first_row + row)} holds whole lines of the table: "
                "a quote before them is not closed, correct it"
            )


def remedy(mark: str) -> str:
    """What to do about numbers that are not written with this decimal mark, but with the other."""
    if mark == ".":
        return "pass decimal=',' if that is a decimal comma, else write plain numbers"
    return "write numbers with decimal commas in all columns, without thousands separators"


def check_text(column: Any, name: str, mark: str) -> None:
    """Refuse text that was meant for numbers, by the other decimal mark, or by numbers at its head."""
    import pyarrow.compute as pc

    other = _OTHER[mark]
    if has_mark(column, other):
        row = pc.index(pc.match_substring(column, other), value=True).as_py()
        found = column[row].as_py()[:40]
        raise InputError(f"column {name!r}, {place(row)} is {found!r}: {remedy(mark)}, or name it as a category")
    head = pc.match_substring_regex(column.slice(0, _HEAD), _NUMBER[mark])
    if 2 * (pc.sum(head).as_py() or 0) > len(head):
        row = pc.index(pc.match_substring_regex(column, _NUMBER[mark]), value=False).as_py()
        raise InputError(
            f"column {name!r}, {place(row)} is {column[row].as_py()!r}, not a number: "
            "correct it or name it as a category"
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
