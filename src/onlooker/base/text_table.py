"""Tables as lines of text, for terminals and `repr`."""

from __future__ import annotations

import re
from collections.abc import Sequence


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
