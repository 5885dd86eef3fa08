"""Dots and whiskers on matplotlib's axes. Imported only to draw, as matplotlib is slow to load."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from onlooker.plots.axes import tick
from onlooker.plots.intervals import IntervalChart
from onlooker.plots.palette import INK, LIGHT
from onlooker.plots.text import ends_of, one_line

_LOOKS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("interval leaves out 0", {"marker": "o", "color": LIGHT[0]}),
    ("interval holds 0", {"marker": "o", "color": LIGHT[0], "markerfacecolor": "none"}),
    ("no interval", {"marker": "x", "color": LIGHT[1]}),
)
"""Told apart by shape and filling, with and without colour."""


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
    axes.set_xlabel(one_line(chart.x_label, 44))
    if title:
        axes.set_title(one_line(chart.title, 38))
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
