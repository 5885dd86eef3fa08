"""Dots and whiskers on matplotlib's axes. Imported only to draw, as matplotlib is slow to load."""

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
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, Locator, MaxNLocator, NullLocator
from matplotlib.transforms import ScaledTranslation
from scipy.optimize import isotonic_regression

from onlooker.base.text import ends_of, start_of, two_lines
from onlooker.base.types import Vector
from onlooker.report.plots.charts import Chart, DotChart, IntervalChart, Level, Mark, Series
from onlooker.report.plots.heat import LEVELS, HeatChart, diverging, is_dark
from onlooker.report.plots.style import DASHES, INK, LIGHT, MARKERS

_GAP = 8.0
"""Points between the names of neighbouring marks."""


def draw_marks(axes: Axes, marks: Sequence[Mark]) -> None:
    """Write the marks' names in one row above the axes, each as near to its place as the others leave room."""
    if not marks:
        return
    marks = sorted(marks, key=lambda mark: mark.x)
    width = axes.bbox.width * 72 / axes.figure.dpi
    above = axes.transAxes + ScaledTranslation(0, 9 / 72, axes.figure.dpi_scale_trans)
    leader = {"arrowstyle": "-", "color": INK, "alpha": 0.5, "linewidth": 1, "shrinkA": 0, "shrinkB": 0}
    texts = [
        axes.annotate(
            start_of(mark.label, 40),
            xy=(mark.x, 1),
            xycoords=axes.get_xaxis_transform(),
            xytext=(0, 1),
            textcoords=above,
            ha="center",
            va="bottom",
            arrowprops=leader | {"relpos": (0.5, 0)},
            annotation_clip=False,
        )
        for mark in marks
    ]
    room = width / len(marks) - _GAP
    if sum(map(_width, texts)) > room * len(marks):
        for text in texts:
            letters = text.get_text()
            text.set_text(start_of(letters, max(2, int(len(letters) * min(1.0, room / max(1.0, _width(text)))))))
    places = axes.transAxes.inverted().transform(axes.transData.transform([(mark.x, 1.0) for mark in marks]))[:, 0]
    centres = spread(places * width, np.array([_width(text) for text in texts]), width)
    for text, centre in zip(texts, centres, strict=True):
        text.xyann = (centre / width, 1)


def _width(text: Text) -> float:
    """Points across, without the leader line that an annotation's own extent takes in."""
    assert text.figure is not None
    return float(Text.get_window_extent(text).width * 72 / text.figure.dpi)


def spread(centres: Vector, widths: Vector, width: float) -> Vector:
    """Move labels, in order, as little as possible until none overlap and all lie within 0 and `width`.

    Where there is no room for that they are drawn together until they lie within, and overlap.

    Examples
    --------
    >>> spread(np.array([10.0, 50.0, 52.0]), np.array([10.0, 10.0, 10.0]), width=100.0)
    array([10., 42., 60.])
    >>> spread(np.array([10.0, 50.0, 52.0]), np.array([10.0, 10.0, 10.0]), width=23.0)
    array([ 2.5, 11.5, 20.5])
    """
    # Left edges must keep distances; less those distances they must only be in order.
    before = np.concatenate([[0.0], np.cumsum(widths + _GAP)])
    edges = np.asarray(isotonic_regression(centres - widths / 2 - before[:-1]).x)
    needed = before[-1] - _GAP
    places = edges.clip(0, max(0.0, width - needed)) + before[:-1] + widths / 2
    # Else the layout would make room for what is outside, until nothing is left for the axes.
    return np.asarray(places if needed <= width else places * (width / needed))


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
    """Draw a chart's data and texts; return the legend's handle of each series and level."""
    axes.set(xscale="log" if chart.log_x else "linear", yscale="log" if chart.log_y else "linear")
    set_ticks(axes.xaxis, log=chart.log_x, most=5)
    set_ticks(axes.yaxis, log=chart.log_y)
    handles = [_draw_series(axes, series, number) for number, series in enumerate(chart.series)]
    handles += [_draw_level(axes, level, number) for number, level in enumerate(chart.levels)]
    for mark in chart.marks:
        axes.axvline(mark.x, color=INK, alpha=0.5, linewidth=1, linestyle=(0, (2, 2)), zorder=1)
    axes.set_xlabel(start_of(chart.x_label, 44))
    axes.set_ylabel(start_of(chart.y_label, 36))
    if title:
        axes.set_title(start_of(chart.title, 38), pad=26 if chart.marks else None)
    return handles


def legend_rows(chart: Chart) -> int:
    """How many lines the chart's legend takes up."""
    labels = _labels(chart)
    return math.ceil(len(labels) / _legend_columns(labels))


def _labels(chart: Chart) -> list[str]:
    levels = (f"{start_of(level.label, 32)} ({level.y:.3g})" for level in chart.levels)
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
        """Return the ticks between two positive numbers.

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


NAME = 28
"""Letters of a name that stand on one line."""


def draw_dots(figure: SubFigure, chart: DotChart, *, title: bool) -> Axes:
    """Draw a chart, each value written at the end of its row, the legend under the axes so that it covers no data."""
    axes = figure.add_subplot()
    places = np.arange(len(chart.names))
    axes.set_xscale("log" if chart.log_x else "linear")
    _widen(axes, chart)
    if chart.level is not None:
        axes.axvline(chart.level.y, color=INK, linestyle=DASHES[1], linewidth=1.4, zorder=1)
    if chart.low is not None and chart.high is not None:
        axes.hlines(places, chart.low, chart.high, color=LIGHT[0], linewidth=1.6, zorder=2)
    axes.plot(chart.values, places, linestyle="none", marker="o", color=LIGHT[0], zorder=3)
    for place, value in zip(places.tolist(), chart.values.tolist(), strict=True):
        text = "none" if np.isnan(value) else f"{value:.3g}"
        # Beside the axes, where no dot, line or interval can cover it.
        axes.text(1.03, place, text, transform=axes.get_yaxis_transform(), va="center", fontsize=9)
    axes.set_yticks(places, [two_lines(name, NAME) for name in chart.names], linespacing=1.0)
    axes.set_ylim(len(chart.names) - 0.4, -0.6)
    axes.margins(x=0.08)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True, axis="x")
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    # Names leave little room: few ticks stay apart.
    set_ticks(axes.xaxis, log=chart.log_x, most=3)
    axes.set_xlabel(start_of(chart.x_label, 44))
    if title:
        axes.set_title(start_of(chart.title, 38))
    if chart.level is not None:
        handle = Line2D([], [], color=INK, linestyle=DASHES[1], linewidth=1.4)
        figure.legend(
            [handle], [f"{start_of(chart.level.label, 32)} ({chart.level.y:.3g})"], loc="outside lower center"
        )
    return axes


def lines_of_names(chart: DotChart) -> int:
    """How many lines the longest of the names takes up."""
    return max(two_lines(name, NAME).count("\n") + 1 for name in chart.names)


def _widen(axes: Axes, chart: DotChart) -> None:
    """Set the limits of an axis with a single position."""
    places = np.unique(np.concatenate(chart.drawn()))
    if len(places) == 1:
        (place,) = places
        reach = 0.5 * abs(place) or 0.5
        axes.set_xlim(place - reach, place + reach)


_LOOKS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("clearly non-zero", {"marker": "o", "color": LIGHT[0]}),
    ("could be zero", {"marker": "o", "color": LIGHT[0], "markerfacecolor": "none"}),
    ("no interval", {"marker": "x", "color": LIGHT[1]}),
)
"""They differ in shape and filling, so that colour is not needed."""


def draw_intervals(figure: SubFigure, chart: IntervalChart, *, title: bool) -> Axes:
    """Draw a chart with the legend under the axes, so that it covers no data."""
    axes = figure.add_subplot()
    places = np.arange(len(chart.names))
    known, clear = chart.known, chart.clear
    axes.axvline(0.0, color=INK, alpha=0.6, linewidth=1, zorder=1)
    axes.hlines(places[known], chart.low[known], chart.high[known], color=LIGHT[0], linewidth=1.6, zorder=2)
    for (_, look), chosen in zip(_LOOKS, (clear, known & ~clear, ~known), strict=True):
        axes.plot(chart.estimates[chosen], places[chosen], linestyle="none", zorder=3, **look)
    axes.set_yticks(places, [ends_of(name, 26) for name in chart.names])
    axes.set_ylim(len(chart.names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True, axis="x")
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    # Names may leave little room: few ticks stay apart.
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(tick))
    axes.set_xlabel(start_of(chart.x_label, 44))
    if title:
        axes.set_title(start_of(chart.title, 38))
    shown = [(label, look) for (label, look), there in zip(_LOOKS, _kinds(chart), strict=True) if there]
    handles = [Line2D([], [], linestyle="none", **look) for _, look in shown]
    figure.legend(handles, [label for label, _ in shown], loc="outside lower center", ncols=min(2, len(shown)))
    return axes


def interval_legend_rows(chart: IntervalChart) -> int:
    """How many lines the chart's legend takes up."""
    return (sum(_kinds(chart)) + 1) // 2


def _kinds(chart: IntervalChart) -> tuple[bool, bool, bool]:
    """Which looks the chart has."""
    known, clear = chart.known, chart.clear
    return bool(clear.any()), bool((known & ~clear).any()), bool((~known).any())


_WRITTEN, UPRIGHT = 10, 3
"""Columns up to which every cell has its value written in it, and up to which their names stand side by side."""


def draw_heat(figure: SubFigure, chart: HeatChart, *, title: bool) -> Axes:
    """Draw coloured cells, with the value written into each where there is room, and a bar of the colours below."""
    from matplotlib.colors import BoundaryNorm, ListedColormap

    axes = figure.add_subplot()
    colours, edges = diverging(), np.linspace(-chart.reach, chart.reach, LEVELS + 1)
    cells = axes.pcolormesh(
        chart.values, cmap=ListedColormap(colours), norm=BoundaryNorm(edges, LEVELS), edgecolors="white", linewidth=0.8
    )
    if len(chart.columns) <= _WRITTEN:
        shown = np.clip(np.searchsorted(edges, chart.values, side="right") - 1, 0, LEVELS - 1)
        for (row, column), value in np.ndenumerate(chart.values):
            # Not ink, which takes the page's colour: a cell has its own on any page.
            colour = "#ffffff" if is_dark(colours[shown[row, column]]) else "#111111"
            axes.text(column + 0.5, row + 0.5, f"{value:.2g}", ha="center", va="center", fontsize=8, color=colour)
    axes.set_yticks(np.arange(len(chart.names)) + 0.5, [ends_of(name, 20) for name in chart.names])
    names = [ends_of(name, 16) for name in chart.columns]
    axes.set_xticks(np.arange(len(names)) + 0.5, names, rotation=90 if len(names) > UPRIGHT else 0)
    axes.set_ylim(len(chart.names), 0)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(start_of(chart.x_label, 44))
    axes.set_ylabel(start_of(chart.y_label, 36))
    bar = figure.colorbar(cells, ax=axes, location="top", aspect=40, pad=0.02, ticks=edges[[0, LEVELS // 2, -1]])
    bar.set_ticks([-chart.reach, 0.0, chart.reach], labels=[f"{-chart.reach:.3g}", "0", f"{chart.reach:.3g}"])
    bar.outline.set_visible(False)
    if title:
        bar.ax.set_title(start_of(chart.title, 38))
    return axes
