"""One value for each name, one under the other: dots, with intervals where there are some, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker.errors import InputError
from onlooker.plots.checks import band, for_names, vector
from onlooker.plots.figure import Cell, Level, or_none
from onlooker.types import Vector


# eq=False: `==` on arrays is elementwise, so a generated __eq__ would raise.
@dataclass(frozen=True, kw_only=True, eq=False)
class DotChart:
    """A row for each name, and a line across all of them for a value to compare with.

    Examples
    --------
    >>> chart = DotChart(
    ...     title="Error", x_label="error", y_label="observer", names=("rule", "auto"), values=[0.06, float("nan")]
    ... )
    >>> chart.rows()
    (('observer', 'error'), (('rule', 0.06), ('auto', None)))
    """

    title: str
    """What the chart shows, in a few words."""
    x_label: str
    """What a value is."""
    y_label: str
    """What a name is of: heads the names in the table."""
    names: tuple[str, ...]
    """From top to bottom; at least one."""
    values: Vector
    """Finite, or NaN where there is none: the row says so."""
    low: Vector | None = None
    """Lower ends of intervals, NaN where there is none."""
    high: Vector | None = None
    """Upper ends of intervals."""
    level: Level | None = None
    """A value to compare with."""
    log_x: bool = False
    """Logarithmic axis: every value, interval and level must be positive."""

    def __post_init__(self) -> None:
        where = f"chart {self.title!r}"
        low, high = band(self.low, self.high, where)
        found = {"values": vector(self.values, f"{where}: values"), "low": low, "high": high}
        for name, values in for_names(self.names, found, where).items():
            object.__setattr__(self, name, values)
        if self.log_x and any((drawn <= 0).any() for drawn in self.drawn()):
            raise InputError(f"{where}: log_x needs every value, interval and level to be positive")

    def drawn(self) -> list[Vector]:
        """Every place on the axis: values, ends of intervals and the level, without gaps."""
        parts = [part for part in (self.values, self.low, self.high) if part is not None]
        level = [] if self.level is None else [self.level.y]
        return [part[~np.isnan(part)] for part in (*parts, np.array(level, dtype=np.float64))]

    def rows(self) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
        """Give the table behind the chart: the names of its columns, and its rows from top to bottom."""
        heads = [self.y_label, self.x_label]
        columns: list[list[Cell]] = [list(self.names), [or_none(value) for value in self.values.tolist()]]
        for head, ends in (("low", self.low), ("high", self.high)):
            if ends is not None:
                heads.append(head)
                columns.append([or_none(end) for end in ends.tolist()])
        if self.level is not None:
            heads.append(self.level.label)
            columns.append([float(self.level.y)] * len(self.names))
        return tuple(heads), tuple(zip(*columns, strict=True))
