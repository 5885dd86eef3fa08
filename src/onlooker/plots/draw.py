"""Draw charts with matplotlib: SVG for pages, PNG for everything else."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from onlooker.errors import InputError
from onlooker.files import write_bytes
from onlooker.plots.dots import DotChart
from onlooker.plots.figure import Chart
from onlooker.plots.intervals import IntervalChart
from onlooker.plots.palette import INK
from onlooker.plots.svg import tidy
from onlooker.plots.text import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

AnyChart = Chart | IntervalChart | DotChart
"""Everything that can be drawn."""

_Kind = TypeVar("_Kind", Chart, AnyChart)

WIDTH, HEIGHT = 5.0, 3.5
"""Inches of one chart: 360 points wide, so that 11 points stay 11 pixels on a phone."""

LEGEND_LINE = 0.22
"""Inches that each further line of the legend adds, so that it takes nothing from the axes."""

NAME_LINE, AROUND = 0.25, 1.1
"""Inches of one name in a chart of intervals or dots, and of everything above and under them."""

_SETTINGS: dict[str, Any] = {
    # Text stays text: it can be read aloud, searched and copied, any script has glyphs, and the page chooses the font.
    "svg.fonttype": "none",
    "svg.hashsalt": "onlooker",
    # A dollar sign in a name is a dollar sign.
    "text.parse_math": False,
    "font.size": 11,
    "axes.titlesize": 13,
    "axes.titleweight": "bold",
    "axes.titlepad": 8,
    "axes.labelsize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": INK,
    "grid.alpha": 0.13,
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "legend.frameon": False,
}


def to_svg(charts: AnyChart | Sequence[AnyChart], *, titles: bool = True, prefix: str = "") -> str:
    """Draw one chart, or several side by side, as an SVG element to put into a page.

    The same charts give the same bytes. The drawing has no background and takes the text colour of the page around it.

    Parameters
    ----------
    charts
        What to draw.
    titles
        Whether to write each chart's title above it; a page that has its own captions leaves them out.
    prefix
        Put before the ids in the drawing: give each drawing on a page another one.

    Examples
    --------
    >>> from onlooker.plots import Series
    >>> chart = Chart(title="Growth", x_label="x", y_label="y", series=(Series("a", [0, 1], [0, 2]),))
    >>> to_svg(chart)[:4], "Growth" in to_svg(chart)
    ('<svg', True)
    """
    row = as_row(charts)
    with _drawn(row, titles=titles, dpi=72) as figure:
        return svg_of(figure, row, prefix=prefix)


def to_png(charts: AnyChart | Sequence[AnyChart], path: str | os.PathLike[str]) -> None:
    """Draw one chart, or several side by side, on white; the file is written whole or not at all.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from onlooker.plots import Series
    >>> chart = Chart(title="Growth", x_label="x", y_label="y", series=(Series("a", [0, 1], [0, 2]),))
    >>> with TemporaryDirectory() as folder:
    ...     to_png(chart, f"{folder}/growth.png")
    ...     os.listdir(folder)
    ['growth.png']
    """
    with _drawn(as_row(charts), titles=True, dpi=200) as figure:
        write_png(figure, path)


def svg_of(figure: Figure, charts: Sequence[AnyChart], *, prefix: str) -> str:
    """Save a drawn figure as an SVG element, under the settings that it was drawn with."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    label = "; ".join(f"{chart.title}: {chart.y_label} against {chart.x_label}" for chart in charts)
    return tidy(buffer.getvalue(), label=one_line(label, 400), prefix=prefix)


def write_png(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Save a drawn figure on white, whole or not at all, under the settings that it was drawn with."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", facecolor="white", metadata={"Software": None})
    write_bytes(path, buffer.getvalue())


def as_row(charts: _Kind | Sequence[_Kind]) -> tuple[_Kind, ...]:
    """Give the charts, of which there must be one."""
    row = (charts,) if isinstance(charts, AnyChart) else tuple(charts)
    if not row:
        raise InputError("there are no charts to draw: pass at least one")
    return row


@contextmanager
def looks(**changes: Any) -> Iterator[None]:
    """Draw and save under the house's settings, some of them changed, whatever the user's own."""
    from matplotlib import style

    with style.context(["default", _SETTINGS | changes]), warnings.catch_warnings():
        # Names may be in any script: a page has the glyphs that matplotlib's font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield


@contextmanager
def _drawn(row: tuple[AnyChart, ...], *, titles: bool, dpi: int) -> Iterator[Figure]:
    """Give the drawn figure, under the settings that saving it needs too."""
    from matplotlib.figure import Figure

    from onlooker.plots.marks import draw_marks

    with looks():
        figure = Figure(figsize=(WIDTH * len(row), max(map(_height, row))), dpi=dpi, layout="constrained")
        parts = figure.subfigures(1, len(row), squeeze=False, wspace=0.04)[0]
        drawn = [(_draw(part, chart, title=titles), chart) for part, chart in zip(parts, row, strict=True)]
        # The width of the axes is known after a first layout, and what stands above them does not change it.
        figure.draw_without_rendering()
        for axes, chart in drawn:
            if isinstance(chart, Chart):
                draw_marks(axes, chart.marks)
        yield figure


def _height(chart: AnyChart) -> float:
    """Inches that a chart needs."""
    from onlooker.plots.axes import legend_rows
    from onlooker.plots.dot_axes import lines_of_names
    from onlooker.plots.interval_axes import interval_legend_rows

    if isinstance(chart, Chart):
        return HEIGHT + LEGEND_LINE * (legend_rows(chart) - 1)
    if isinstance(chart, DotChart):
        rows = NAME_LINE * len(chart.names) * (1.4 if lines_of_names(chart) > 1 else 1.0)
        return AROUND + rows + LEGEND_LINE * (chart.level is not None)
    return AROUND + NAME_LINE * len(chart.names) + LEGEND_LINE * (interval_legend_rows(chart) - 1)


def _draw(figure: SubFigure, chart: AnyChart, *, title: bool) -> Axes:
    from onlooker.plots.axes import draw_chart
    from onlooker.plots.dot_axes import draw_dots
    from onlooker.plots.interval_axes import draw_intervals

    if isinstance(chart, Chart):
        return draw_chart(figure, chart, title=title)
    if isinstance(chart, DotChart):
        return draw_dots(figure, chart, title=title)
    return draw_intervals(figure, chart, title=title)
