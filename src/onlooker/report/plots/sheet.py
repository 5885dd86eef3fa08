"""Small multiples for print: several charts on the width of a page, in the paper's letter size, with one legend."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from onlooker.base.errors import InputError
from onlooker.base.text import start_of
from onlooker.report.plots.charts import Chart
from onlooker.report.plots.draw import as_row, looks, svg_of, write_png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 7.0
"""Inches of the whole sheet: the text width of most papers, so that letters are printed in their own size."""

PANEL = 1.75
"""Inches that a row of charts is high, without the legend."""

_LEGEND = 0.17
"""Inches of one line of the legend."""

_SMALL: dict[str, Any] = {
    "font.size": 7,
    "axes.titlesize": 7,
    "axes.titlepad": 5,
    "axes.labelsize": 7,
    "axes.labelpad": 2,
    "axes.linewidth": 0.6,
    "xtick.labelsize": 6,
    "ytick.labelsize": 6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.pad": 2,
    "ytick.major.pad": 2,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 2.8,
    "legend.fontsize": 7,
    "figure.constrained_layout.w_pad": 0.02,
    "figure.constrained_layout.wspace": 0.01,
}


def sheet_svg(charts: Chart | Sequence[Chart], *, columns: int = 4) -> str:
    """Draw charts in rows of `columns` as one SVG element; series of the same name share their entry in the legend.

    Examples
    --------
    >>> from onlooker.report.plots import Series
    >>> chart = Chart(title="Growth", x_label="x", y_label="y", series=(Series("a", [0, 1], [0, 2]),))
    >>> sheet_svg([chart, chart]).count(">a</text>")
    1
    """
    row = as_row(charts)
    with _drawn(row, columns=columns, dpi=72) as figure:
        return svg_of(figure, row, prefix="")


def sheet_png(charts: Chart | Sequence[Chart], path: str | os.PathLike[str], *, columns: int = 4) -> None:
    """Draw charts in rows of `columns` on white, sharp enough for print; the file is written whole or not at all."""
    with _drawn(as_row(charts), columns=columns, dpi=300) as figure:
        write_png(figure, path)


@contextmanager
def _drawn(charts: tuple[Chart, ...], *, columns: int, dpi: int) -> Iterator[Figure]:
    from matplotlib.figure import Figure

    from onlooker.report.plots.axes import draw_data, draw_marks

    labels = _shared_labels(charts)
    columns = min(columns, len(charts))
    rows = math.ceil(len(charts) / columns)
    # A letter of the legend takes 4 points at most, and the line before it 36.
    across = max(1, min(len(labels), int(WIDTH * 72) // (4 * max(map(len, labels)) + 36)))
    height = PANEL * rows + _LEGEND * math.ceil(len(labels) / across)
    with looks(**_SMALL):
        figure = Figure(figsize=(WIDTH, height), dpi=dpi, layout="constrained")
        places = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
        handles: dict[str, Any] = {}
        for axes, chart in zip(places, charts, strict=False):
            drawn = draw_data(axes, chart, title=True)
            handles = dict(zip(_labels(chart), drawn, strict=True)) | handles
        for axes in places[len(charts) :]:
            axes.set_axis_off()
        shown = [handles[label] for label in labels]
        figure.legend(shown, labels, loc="outside lower center", ncols=across, handlelength=3, columnspacing=1.5)
        if any(chart.marks for chart in charts):
            # The width of the axes is known after a first layout, and what stands above them does not change it.
            figure.draw_without_rendering()
        for axes, chart in zip(places, charts, strict=False):
            draw_marks(axes, chart.marks)
        yield figure


def _shared_labels(charts: Sequence[Chart]) -> list[str]:
    """Every label once; what has the same name must look the same, which follows from its place in the chart."""
    places: dict[str, tuple[str, int]] = {}
    for chart in charts:
        kinds = [("series", i) for i in range(len(chart.series))] + [("level", i) for i in range(len(chart.levels))]
        for label, place in zip(_labels(chart), kinds, strict=True):
            if places.setdefault(label, place) != place:
                raise InputError(f"chart {chart.title!r} has {label!r} in another place: keep the order of the others")
    return list(places)


def _labels(chart: Chart) -> list[str]:
    names = [*(series.label for series in chart.series), *(level.label for level in chart.levels)]
    return [start_of(name, 42) for name in names]
