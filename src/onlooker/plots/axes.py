"""One chart on matplotlib's axes. Imported only to draw, as matplotlib is slow to load."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import SubFigure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, Locator, MaxNLocator, NullLocator

from onlooker.plots.figure import Chart, Level, Series
from onlooker.plots.palette import DASHES, INK, LIGHT, MARKERS
from onlooker.plots.text import ends_of, one_line
from onlooker.types import Vector

_MANY = 40
"""A line through more points than this is drawn without markers."""


def draw_chart(figure: SubFigure, chart: Chart, *, title: bool) -> Axes:
    """Draw everything but the names of the marks, with the legend under the axes so that it covers no data."""
    axes = figure.add_subplot()
    handles = draw_data(axes, chart, title=title)
    labels = _labels(chart)
    figure.legend(handles, labels, loc="outside lower center", ncols=_legend_columns(labels), handlelength=2.6)
    return axes


def draw_data(axes: Axes, chart: Chart, *, title: bool) -> list[Artist]:
    """Draw a chart's data and texts; give what stands for each series and level in a legend."""
    axes.set(xscale="log" if chart.log_x else "linear", yscale="log" if chart.log_y else "linear")
    set_ticks(axes.xaxis, log=chart.log_x, most=5)
    set_ticks(axes.yaxis, log=chart.log_y)
    handles = [_draw_series(axes, series, number) for number, series in enumerate(chart.series)]
    handles += [_draw_level(axes, level, number) for number, level in enumerate(chart.levels)]
    for mark in chart.marks:
        axes.axvline(mark.x, color=INK, alpha=0.5, linewidth=1, linestyle=(0, (2, 2)), zorder=1)
    axes.set_xlabel(one_line(chart.x_label, 44))
    axes.set_ylabel(one_line(chart.y_label, 36))
    if title:
        axes.set_title(one_line(chart.title, 38), pad=26 if chart.marks else None)
    return handles


def legend_rows(chart: Chart) -> int:
    """How many lines the chart's legend takes up."""
    labels = _labels(chart)
    return math.ceil(len(labels) / _legend_columns(labels))


def _labels(chart: Chart) -> list[str]:
    levels = (f"{one_line(level.label, 32)} ({level.y:.3g})" for level in chart.levels)
    return [*(ends_of(series.label, 42) for series in chart.series), *levels]


def _legend_columns(labels: Sequence[str]) -> int:
    # Points that a letter, and the line before the label, take up at most; a chart is 360 wide.
    widest = 7 * max(map(len, labels)) + 55
    return max(1, min(len(labels), 360 // widest))


def _draw_series(axes: Axes, series: Series, number: int) -> Artist:
    colour, marker = LIGHT[number % len(LIGHT)], MARKERS[number % len(MARKERS)]
    line = series.style == "line"
    look: dict[str, Any] = {
        "color": colour,
        "marker": marker,
        "linestyle": DASHES[number % len(DASHES)] if line else "none",
    }
    shown = _shown_points(series.y) if line and len(series.x) > _MANY else None
    axes.plot(series.x, series.y, markevery=shown, zorder=3, **look)
    if series.low is not None and series.high is not None:
        if line:
            axes.fill_between(series.x, series.low, series.high, color=colour, alpha=0.2, linewidth=0, zorder=2)
        else:
            axes.vlines(series.x, series.low, series.high, color=colour, linewidth=1.2, zorder=2)
    return Line2D([], [], **look | ({"marker": None} if shown is not None else {}))


def _shown_points(y: Vector) -> list[int]:
    """Points with a gap on both sides: no line would show them."""
    present = np.pad(~np.isnan(y), 1)
    alone: list[int] = np.flatnonzero(present[1:-1] & ~present[:-2] & ~present[2:]).tolist()
    return alone


def _draw_level(axes: Axes, level: Level, number: int) -> Artist:
    # Not solid, and in ink: a level is never taken for a series.
    dashes = DASHES[1 + number % (len(DASHES) - 1)]
    line = axes.axhline(level.y, color=INK, linestyle=dashes, linewidth=1.4, zorder=2.5)
    if level.low is not None and level.high is not None:
        axes.axhspan(level.low, level.high, color=INK, alpha=0.1, linewidth=0, zorder=1)
    return line


class _LogTicks(Locator):
    """Round numbers on a logarithmic axis: as few as say something, also where it spans less than a decade."""

    def __init__(self, most: int = 8) -> None:
        self._most = most

    def __call__(self) -> list[float]:
        assert self.axis is not None
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Give the ticks between two positive numbers.

        Examples
        --------
        >>> _LogTicks().tick_values(0.5, 2e4), _LogTicks().tick_values(0.009, 0.11), _LogTicks().tick_values(0.27, 0.8)
        ([1.0, 10.0, 100.0, 1000.0, 10000.0], [0.01, 0.02, 0.05, 0.1], [0.3, 0.4, 0.5, 0.7])

        Where there is room for few, every so many of them, or fewer in each decade:

        >>> _LogTicks(3).tick_values(0.5, 2e4), _LogTicks(3).tick_values(0.009, 0.11)
        ([1.0, 100.0, 10000.0], [0.01, 0.1])
        """
        low, high = sorted((vmin, vmax))
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        fewer: list[float] = []
        for steps in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)):
            # Written and read, as 3 * 10.0**-1 is not the number 0.3.
            ticks = [float(f"{step}e{decade}") for decade in decades for step in steps]
            shown = [tick for tick in ticks if low <= tick <= high]
            if len(shown) > self._most and len(fewer) > 1:
                return fewer
            if len(shown) > 2:
                return shown[:: math.ceil(len(shown) / self._most)]
            fewer = shown
        even = MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
        return [float(tick) for tick in even if low <= tick <= high]


def set_ticks(axis: Axis, *, log: bool, most: int = 8) -> None:
    """Round numbers, written in full; on a logarithmic axis `most` of them at most."""
    if log:
        axis.set_major_locator(_LogTicks(most))
        axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(_log_tick if log else tick))


def tick(value: float, _: int | None = None) -> str:
    """A tick in full: no markup, and no common factor at the end of the axis, where marks have their names.

    Examples
    --------
    >>> tick(0.05), tick(2e-7), tick(1000.0), tick(0.1 + 0.2)
    ('0.05', '2e-07', '1000', '0.3')
    """
    return f"{value:.10g}"


def _log_tick(value: float, _: int | None = None) -> str:
    """A tick of which neighbours differ by a factor: small ones in short.

    Examples
    --------
    >>> _log_tick(0.05), _log_tick(0.00015), _log_tick(1e-12), _log_tick(1000.0)
    ('0.05', '1.5e-4', '1e-12', '1000')
    """
    if value >= 0.001:
        return tick(value)
    digits, power = f"{value:.9e}".split("e")
    return f"{float(digits):g}e{int(power)}"
