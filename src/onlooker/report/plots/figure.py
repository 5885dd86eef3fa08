"""What a chart shows, as plain data: every renderer draws the same values, and so does the table behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

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
