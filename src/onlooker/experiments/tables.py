"""Plain tables as CSV: the same rows give the same bytes, and numbers read back exactly."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real

from onlooker.base.errors import InputError
from onlooker.base.files import write_text

Cell = str | int | float | None
"""What a table holds: text, numbers, or nothing."""

# A spreadsheet would run such a text as a formula. Apostrophes in front count, so that reading knows to take one off.
# Spreadsheets may pass over spaces, and take the wide forms of the signs for the signs.
_FORMULA = re.compile(r"'*(\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])")


def write_csv(path: str | os.PathLike[str], rows: Iterable[Mapping[str, object]], columns: Sequence[str]) -> None:
    """Write a table, whole or not at all.

    Nothing (None, or a column that a row lacks) is an empty cell. A text that a spreadsheet would take for a formula
    gets an apostrophe in front.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "table.csv"
    ...     write_csv(path, [{"method": "rule", "alpha": 0.9}, {"method": "naive", "alpha": None}], ["method", "alpha"])
    ...     print(path.read_text(), end="")
    ...     read_csv(path)
    method,alpha
    rule,0.9
    naive,
    [{'method': 'rule', 'alpha': 0.9}, {'method': 'naive', 'alpha': None}]
    """
    lines = [_line(_as_text(name) for name in columns)]
    for number, row in enumerate(rows):
        for name, value in row.items():
            if name not in columns:
                raise InputError(f"{path}: row {number} has {name!r}, which is not a column: name it, or leave it out")
            if isinstance(value, bool) or not isinstance(value, str | Real | None):
                kind = type(value).__name__
                raise InputError(f"{path}: row {number}, {name!r} is a {kind}: write text, a number or None")
        lines.append(_line(_as_text(row.get(name)) for name in columns))
    write_text(path, "".join(lines))


def read_csv(path: str | os.PathLike[str]) -> list[dict[str, Cell]]:
    """Read a table that `write_csv` wrote: whole numbers, floats, None for empty cells, and text for the rest."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.reader(file, strict=True)
            columns = [_unguarded(name) for name in next(reader, [])]
            rows: list[dict[str, Cell]] = []
            for cells in reader:
                if len(cells) != len(columns):
                    found = f"{len(cells)} cells, the header {len(columns)}"
                    raise InputError(f"{path}: the row that ends on line {reader.line_num} has {found}")
                rows.append({name: _as_cell(text) for name, text in zip(columns, cells, strict=True)})
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is not a table in UTF-8 ({error})") from error
    if not columns:
        raise InputError(f"{path}: is empty, a table has at least a line of column names")
    return rows


def _as_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return repr(float(value))
    # Half a character, as some file names have it, cannot be written.
    text = str(value).encode("utf-8", "replace").decode()
    formula = _FORMULA.match(text) and isinstance(_number(text), str)
    return f"'{text}" if formula else text


def _line(cells: Iterable[str]) -> str:
    # The csv module leaves a lone carriage return unquoted and then reads it as the end of the line.
    quoted = [f'"{cell.replace(chr(34), 2 * chr(34))}"' if re.search('[",\r\n]', cell) else cell for cell in cells]
    return ('""' if quoted == [""] else ",".join(quoted)) + "\n"


def _as_cell(text: str) -> Cell:
    if not text:
        return None
    number = _number(text)
    return _unguarded(text) if isinstance(number, str) else number


def _number(text: str) -> str | int | float:
    """The number whose one spelling this is; else the text, so that `007` and `1_000` stay what they are."""
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        if repr(value) == text:
            return value
    return text


def _unguarded(text: str) -> str:
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
