"""What a chart shows, as plain data: every renderer draws the same values, and so does the table behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlooker.base.errors import InputError
from onlooker.base.types import Vector


def vector(values: ArrayLike, name: str, *, gaps: bool = True) -> Vector:
    """Return the values as a read-only array of their own: finite, or NaN where `gaps` are allowed."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not made of numbers: pass one number for each point") from error
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}: pass one dimension")
    bad = np.flatnonzero(np.isinf(array) if gaps else ~np.isfinite(array))
    if len(bad):
        needed = "finite numbers, or NaN for a gap" if gaps else "finite numbers"
        raise InputError(f"{name} is {array[bad[0]]} at position {bad[0]}: pass {needed}")
    array.flags.writeable = False
    return array


def band(
    low: ArrayLike | None, high: ArrayLike | None, where: str, *, gaps: bool = True
) -> tuple[Vector | None, Vector | None]:
    """Return both ends of a band, or neither."""
    if low is None and high is None:
        return None, None
    if low is None or high is None:
        raise InputError(f"{where} has one end of a band: pass both low and high")
    lower, upper = vector(low, f"{where}: low", gaps=gaps), vector(high, f"{where}: high", gaps=gaps)
    if len(lower) != len(upper):
        raise InputError(f"{where}: low has {len(lower)} values, but high has {len(upper)}: pass one for each point")
    crossed = np.flatnonzero(lower > upper)
    if len(crossed):
        raise InputError(f"{where}: low lies above high at position {crossed[0]}: swap them")
    return lower, upper


def for_names(names: Iterable[str], columns: Mapping[str, Vector | None], where: str) -> dict[str, object]:
    """Return names, and columns that have one value for each of them, as the fields of a chart."""
    rows = tuple(names)
    if not rows:
        raise InputError(f"{where} has no names: nothing would be drawn")
    for name, values in columns.items():
        if values is not None and len(values) != len(rows):
            raise InputError(f"{where}: {name} has {len(values)} values for {len(rows)} names: pass one for each")
    return {"names": rows, **columns}


Cell = str | float | None


# eq=False: `==` on arrays is elementwise, so a generated __eq__ would raise.
@dataclass(frozen=True, eq=False)
class Series:
    """Values that were measured: one y for each x, with or without a band around it.

    Examples
    --------
    >>> Series("error", [0.0, 0.5, 1.0], [0.3, float("nan"), 0.2]).y
    array([0.3, nan, 0.2])
    """

    label: str
    """Name in the legend."""
    x: Vector
    """Finite."""
    y: Vector
    """Finite, or NaN where there is a gap."""
    _: KW_ONLY
    low: Vector | None = None
    """Lower end of the band, NaN where there is none."""
    high: Vector | None = None
    """Upper end of the band."""
    style: Literal["line", "points"] = "line"
    """Whether neighbours belong together."""

    def __post_init__(self) -> None:
        where = f"series {self.label!r}"
        x, y = vector(self.x, f"{where}: x", gaps=False), vector(self.y, f"{where}: y")
        if not len(x):
            raise InputError(f"{where} has no points: leave it out")
        low, high = band(self.low, self.high, where)
        for name, values in (("y", y), ("low", low), ("high", high)):
            if values is not None and len(values) != len(x):
                raise InputError(f"{where}: {name} has {len(values)} values, but x has {len(x)}: pass one for each")
        if self.style not in {"line", "points"}:
            raise InputError(f"{where}: style {self.style!r} is not known: pass 'line' or 'points'")
        for name, values in (("x", x), ("y", y), ("low", low), ("high", high)):
            object.__setattr__(self, name, values)


@dataclass(frozen=True)
class Level:
    """A value to compare with, drawn across the chart."""

    label: str
    """Name in the legend."""
    y: float
    """Finite."""
    _: KW_ONLY
    low: float | None = None
    """Lower end of the band."""
    high: float | None = None
    """Upper end of the band."""

    def __post_init__(self) -> None:
        where = f"level {self.label!r}"
        vector([self.y], f"{where}: y", gaps=False)
        low, high = (None if end is None else [end] for end in (self.low, self.high))
        band(low, high, where, gaps=False)


@dataclass(frozen=True)
class Mark:
    """A place on the x axis with a name."""

    label: str
    """Written above the chart."""
    x: float
    """Finite."""

    def __post_init__(self) -> None:
        vector([self.x], f"mark {self.label!r}: x", gaps=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class Chart:
    """One pair of axes and everything on them.

    Examples
    --------
    >>> chart = Chart(
    ...     title="Error by burn-in",
    ...     x_label="alpha",
    ...     y_label="error",
    ...     series=(Series("observer", [0.0, 0.9], [0.076, 0.060]),),
    ...     levels=(Level("learner", 0.052),),
    ...     marks=(Mark("rule", 0.9),),
    ... )
    >>> names, rows = chart.rows()
    >>> names
    ('alpha', 'observer', 'learner', 'mark')
    >>> rows
    ((0.0, 0.076, 0.052, None), (0.9, 0.06, 0.052, 'rule'))
    """

    title: str
    """What the chart shows, in a few words."""
    x_label: str
    """Name of the x axis."""
    y_label: str
    """Name of the y axis."""
    series: tuple[Series, ...]
    """At least one."""
    levels: tuple[Level, ...] = ()
    """Horizontal references."""
    marks: tuple[Mark, ...] = ()
    """Vertical references."""
    log_x: bool = False
    """Logarithmic x axis: every x must be positive."""
    log_y: bool = False
    """Logarithmic y axis: every y, level and band must be positive."""

    def __post_init__(self) -> None:
        for name in ("series", "levels", "marks"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not self.series:
            raise InputError(f"chart {self.title!r} has no series: nothing would be drawn")
        labels = [series.label for series in self.series] + [level.label for level in self.levels]
        if len(set(labels)) != len(labels):
            twice = next(label for i, label in enumerate(labels) if label in labels[:i])
            raise InputError(f"chart {self.title!r} has {twice!r} twice: series and levels need labels that differ")
        if self.log_x and not (_xs(self) > 0).all():
            raise InputError(f"chart {self.title!r}: log_x needs every x to be positive")
        if self.log_y and (y_values(self) <= 0).any():
            raise InputError(f"chart {self.title!r}: log_y needs every y, level and band to be positive")

    def rows(self) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
        """Return the table behind the chart: the names of its columns, and its rows in order of x.

        A series has a column, and two more for its band; a level has the same value in every row; None where there is
        no value.
        """
        names, columns = [self.x_label], []
        for series in self.series:
            for suffix, values in (("", series.y), (" low", series.low), (" high", series.high)):
                if values is not None:
                    names.append(series.label + suffix)
                    columns.append(dict(zip(_keys(series.x), values.tolist(), strict=True)))
        marks: dict[tuple[float, int], str] = {}
        for mark in self.marks:
            key = (float(mark.x), 0)
            marks[key] = f"{marks[key]}, {mark.label}" if key in marks else mark.label
        keys = sorted({key for column in columns for key in column} | set(marks))
        constants: list[float] = []
        for level in self.levels:
            for suffix, value in (("", level.y), (" low", level.low), (" high", level.high)):
                if value is not None:
                    names.append(level.label + suffix)
                    constants.append(float(value))
        rows: list[tuple[Cell, ...]] = []
        for key in keys:
            cells = [or_none(column.get(key)) for column in columns]
            rows.append((key[0], *cells, *constants, *((marks.get(key),) if marks else ())))
        return (*names, *(("mark",) if marks else ())), tuple(rows)


def y_values(chart: Chart) -> Vector:
    """Every y on the chart, bands included and gaps left out."""
    parts = [values for s in chart.series for values in (s.y, s.low, s.high) if values is not None]
    parts += [np.array([v for v in (level.y, level.low, level.high) if v is not None]) for level in chart.levels]
    values = np.concatenate(parts)
    return np.asarray(values[~np.isnan(values)], dtype=np.float64)


def _xs(chart: Chart) -> Vector:
    return np.concatenate([*(series.x for series in chart.series), np.array([mark.x for mark in chart.marks])])


def _keys(x: Vector) -> list[tuple[float, int]]:
    """Each x with how often it came before, so that points of the same x keep rows of their own."""
    seen: dict[float, int] = {}
    keys = []
    for value in x.tolist():
        keys.append((value, seen.get(value, 0)))
        seen[value] = keys[-1][1] + 1
    return keys


def or_none(value: float | None) -> float | None:
    """A value as a cell of a table: None for a gap."""
    return None if value is None or np.isnan(value) else value


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
