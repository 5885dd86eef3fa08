"""Estimates with their intervals, one under the other: dots and whiskers, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlooker.base.errors import InputError
from onlooker.base.types import Vector
from onlooker.report.plots.figure import Cell, Level, band, for_names, or_none, vector


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
        """Return the table behind the chart: the names of its columns, and its rows from top to bottom."""
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


# eq=False: `==` on arrays is elementwise, so a generated __eq__ would raise.
@dataclass(frozen=True, kw_only=True, eq=False)
class IntervalChart:
    """One row for each name: an estimate, the interval around it, and where zero is.

    Examples
    --------
    >>> chart = IntervalChart(
    ...     title="Weights",
    ...     x_label="log-odds for one unit",
    ...     y_label="feature",
    ...     names=("price", "speed"),
    ...     estimates=[-1.2, 0.3],
    ...     low=[-1.4, -0.1],
    ...     high=[-1.0, 0.7],
    ... )
    >>> chart.rows()
    (('feature', 'estimate', 'low', 'high'), (('price', -1.2, -1.4, -1.0), ('speed', 0.3, -0.1, 0.7)))
    >>> chart.clear
    array([ True, False])
    """

    title: str
    """What the chart shows, in a few words."""
    x_label: str
    """What an estimate is."""
    y_label: str
    """What a name is of: heads the names in the table."""
    names: tuple[str, ...]
    """From top to bottom; at least one."""
    estimates: Vector
    """Finite."""
    low: Vector
    """Lower ends of the intervals, NaN where there is none."""
    high: Vector
    """Upper ends of the intervals."""

    def __post_init__(self) -> None:
        where = f"chart {self.title!r}"
        low, high = band(self.low, self.high, where)
        if low is None or high is None:
            raise InputError(f"{where} has no intervals: pass low and high, NaN where there is none")
        found = {"estimates": vector(self.estimates, f"{where}: estimates", gaps=False), "low": low, "high": high}
        for name, values in for_names(self.names, found, where).items():
            object.__setattr__(self, name, values)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which of the estimates have an interval."""
        return ~(np.isnan(self.low) | np.isnan(self.high))

    @property
    def clear(self) -> NDArray[np.bool_]:
        """Which of the estimates are clearly non-zero: their interval excludes 0."""
        return (self.low > 0) | (self.high < 0)

    def rows(self) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
        """Return the table behind the chart: the names of its columns, and its rows from top to bottom."""
        columns = (self.estimates.tolist(), *(map(or_none, ends.tolist()) for ends in (self.low, self.high)))
        return (self.y_label, "estimate", "low", "high"), tuple(zip(self.names, *columns, strict=True))
