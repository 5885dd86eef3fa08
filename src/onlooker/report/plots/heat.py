"""A table of numbers as colours: what it holds, and the colours of the numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.errors import InputError
from onlooker.base.types import Matrix
from onlooker.report.plots.charts import Cell

LEVELS = 11
"""Colours, an odd number: the middle one is for values around zero."""
_BELOW, _MIDDLE, _ABOVE = "#d35c00", "#f2f2f2", "#0070b0"
"""Orange, nearly white, and blue, which are distinguishable with impaired colour vision. They are not quite those of
series, which a dark page replaces: letters in a cell are chosen for its own colour."""


# eq=False: `==` on arrays is elementwise, so a generated __eq__ would raise.
@dataclass(frozen=True, kw_only=True, eq=False)
class HeatChart:
    """A cell for each row and column, coloured by its value: one colour above zero, another below.

    Examples
    --------
    >>> tea = {"columns": ["age"], "names": ["tea", "milk"], "values": [[1.5], [-2.0]]}
    >>> chart = HeatChart(title="Weights", x_label="feature", y_label="arm", **tea)
    >>> chart.rows()
    (('arm', 'age'), (('tea', 1.5), ('milk', -2.0)))
    """

    title: str
    """What the chart shows, in a few words."""
    x_label: str
    """What a column is of."""
    y_label: str
    """What a row is of."""
    columns: tuple[str, ...]
    """From left to right; at least one."""
    names: tuple[str, ...]
    """From top to bottom; at least one."""
    values: Matrix
    """Finite, shape (names, columns)."""

    def __post_init__(self) -> None:
        values = _as_matrix(self.values, f"chart {self.title!r}")
        columns, names = tuple(self.columns), tuple(self.names)
        if not names or not columns or values.shape != (len(names), len(columns)):
            raise InputError(
                f"chart {self.title!r} has values of shape {values.shape} for {len(names)} rows and {len(columns)} "
                "columns: pass one value for each cell"
            )
        for name, value in (("columns", columns), ("names", names), ("values", values)):
            object.__setattr__(self, name, value)

    @property
    def reach(self) -> float:
        """The largest value without its sign, or 1 where all are 0: colours go from minus that to that."""
        return float(np.abs(self.values).max()) or 1.0

    def rows(self) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
        """Return the table behind the chart: the names of its columns, and its rows from top to bottom."""
        cells = tuple((name, *row) for name, row in zip(self.names, self.values.tolist(), strict=True))
        return (self.y_label, *self.columns), cells


def diverging() -> list[str]:
    """Colours from the most negative value to the most positive.

    Examples
    --------
    >>> colours = diverging()
    >>> len(colours), colours[0], colours[5], colours[-1]
    (11, '#d35c00', '#f2f2f2', '#0070b0')
    """
    half = LEVELS // 2
    below = [_mixed(_BELOW, _MIDDLE, k / half) for k in range(half)]
    return [*below, _MIDDLE, *(_mixed(_MIDDLE, _ABOVE, k / half) for k in range(1, half + 1))]


def is_dark(colour: str) -> bool:
    """Whether white letters are easier to read on a colour than black ones."""
    red, green, blue = _parts(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue < 140


def _mixed(one: str, other: str, share: float) -> str:
    parts = (round(a + share * (b - a)) for a, b in zip(_parts(one), _parts(other), strict=True))
    return "#" + "".join(f"{part:02x}" for part in parts)


def _parts(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _as_matrix(values: ArrayLike, where: str) -> Matrix:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: values are not made of numbers: pass one number for each cell") from error
    if array.ndim != 2 or not np.isfinite(array).all():
        raise InputError(f"{where}: values have shape {array.shape}: pass finite numbers, a row for each name")
    array.flags.writeable = False
    return array
