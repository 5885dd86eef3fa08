"""Dots on matplotlib's axes. Imported only to draw, as matplotlib is slow to load."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure
from matplotlib.lines import Line2D

from onlooker.plots.axes import set_ticks
from onlooker.plots.dots import DotChart
from onlooker.plots.palette import DASHES, INK, LIGHT
from onlooker.plots.text import one_line, two_lines

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
    axes.set_xlabel(one_line(chart.x_label, 44))
    if title:
        axes.set_title(one_line(chart.title, 38))
    if chart.level is not None:
        handle = Line2D([], [], color=INK, linestyle=DASHES[1], linewidth=1.4)
        figure.legend(
            [handle], [f"{one_line(chart.level.label, 32)} ({chart.level.y:.3g})"], loc="outside lower center"
        )
    return axes


def lines_of_names(chart: DotChart) -> int:
    """How many lines the longest of the names takes up."""
    return max(two_lines(name, NAME).count("\n") + 1 for name in chart.names)


def _widen(axes: Axes, chart: DotChart) -> None:
    """Give an axis on which there is a single place a width of its own."""
    places = np.unique(np.concatenate(chart.drawn()))
    if len(places) == 1:
        (place,) = places
        reach = 0.5 * abs(place) or 0.5
        axes.set_xlim(place - reach, place + reach)
