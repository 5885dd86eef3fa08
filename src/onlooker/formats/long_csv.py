"""Long CSV: one row per offered arm, a header, columns parted by comma, semicolon or tab."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onlooker.errors import InputError
from onlooker.formats import long
from onlooker.formats.format import Format, arrow_errors
from onlooker.log import BanditLog

_HEAD = 1000
"""Rows that decide whether a column of text was meant to hold numbers."""
_NUMBER = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"


def read(
    path: Path,
    *,
    round: str = long.ROUND,
    chosen: str = long.CHOSEN,
    arm: str | None = None,
    features: Sequence[str] | None = None,
    order_by: str | None = None,
) -> BanditLog:
    """See `BanditLog.from_frame`; ids are whole numbers where every one is written as such, else text."""
    header, delimiter = _header(path)
    arm = long.arm_column(header, arm)
    keys = long.check_table(header, round=round, chosen=chosen, arm=arm, features=features, order_by=order_by)
    ids = [name for name in (round, arm) if name is not None]
    with arrow_errors("CSV"):
        table = _read_table(path, delimiter, keys, ids, features)
        for name in ids:
            table = table.set_column(table.schema.get_field_index(name), name, _ids(table[name], name))
    names = long.feature_columns(table.schema, keys) if features is None else list(features)
    return BanditLog.from_frame(table, round=round, chosen=chosen, arm=arm, features=names, order_by=order_by)


def write(log: BanditLog, path: Path) -> None:
    """Write every value so that it reads back exactly."""
    import pyarrow.csv as pc

    tables = long.long_tables(log)
    first = next(tables)
    with pc.CSVWriter(path, first.schema) as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)


def _header(path: Path) -> tuple[list[str], str]:
    """Names of the columns, and the delimiter that parts the header into most of them."""
    parted: list[tuple[list[str], str]] = []
    for delimiter in (",", ";", "\t"):
        try:
            with open(path, encoding="utf-8-sig", newline="") as file:
                parted.append((next(csv.reader(file, delimiter=delimiter), []), delimiter))
        except UnicodeDecodeError as error:
            raise InputError("is not text in UTF-8: save it as CSV in that encoding") from error
        except csv.Error as error:
            raise InputError(f"cannot be read as CSV ({error})") from error
    return max(parted, key=lambda part: len(part[0]))


def _read_table(
    path: Path, delimiter: str, keys: Sequence[str], ids: Sequence[str], features: Sequence[str] | None
) -> Any:
    """Read the columns that are needed: ids as text, and numbers as float64 even if the first look whole."""
    import pyarrow as pa
    import pyarrow.csv as pc

    parsing = pc.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    types = dict.fromkeys(ids, pa.string())
    included = None if features is None else list(dict.fromkeys([*keys, *features]))
    conversion = pc.ConvertOptions(column_types=types, include_columns=included)
    with pc.open_csv(path, parse_options=parsing, convert_options=conversion) as head:
        others = [field for field in head.schema if field.name not in keys]
    types |= {field.name: pa.float64() for field in others if pa.types.is_integer(field.type)}
    conversion = pc.ConvertOptions(column_types=types, include_columns=included)
    table = pc.read_csv(path, parse_options=parsing, convert_options=conversion)
    if features is None:
        for name in table.column_names:
            if name not in keys and pa.types.is_string(table[name].type):
                _check_text(table[name], name)
    return table


def _check_text(column: Any, name: str) -> None:
    """A column is text if its head is: a stray word among numbers must not hide a feature."""
    import pyarrow.compute as pc

    head = pc.match_substring_regex(column.slice(0, _HEAD), _NUMBER)
    if 2 * (pc.sum(head).as_py() or 0) > len(head):
        row = pc.index(pc.match_substring_regex(column, _NUMBER), value=False).as_py()
        raise InputError(
            f"column {name!r}, row {row} is {column[row].as_py()!r}, not a number: mend it or name the features"
        )


def _ids(column: Any, name: str) -> Any:
    """Whole numbers where that loses nothing ("01" stays text), else the text itself."""
    import pyarrow as pa
    import pyarrow.compute as pc

    blank = pc.index(column, value="").as_py()
    if blank >= 0:
        raise InputError(f"column {name!r}, row {blank} is missing: fill it in or leave the round out")
    for whole in (pa.int64(), pa.uint64()):
        try:
            numbers = column.cast(whole)
        except pa.ArrowInvalid:
            continue
        if numbers.cast(pa.string()).equals(column):
            return numbers
    return column


FORMAT = Format(
    name="long CSV",
    suffixes=(".csv",),
    recognises=lambda _: True,
    read=read,
    write=write,
)
