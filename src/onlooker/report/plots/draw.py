"""Draw charts with matplotlib: SVG for pages, PNG for everything else."""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from xml.etree import ElementTree as ET

from onlooker.base.errors import InputError
from onlooker.base.files import write_bytes, write_text
from onlooker.base.text import start_of
from onlooker.report.plots.charts import Chart, DotChart, IntervalChart
from onlooker.report.plots.heat import HeatChart
from onlooker.report.plots.style import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_XLINK = "{http://www.w3.org/1999/xlink}href"
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def tidy(svg: str, *, label: str, prefix: str) -> str:
    """Make matplotlib's drawing fit to be put into a page.

    Inline styles become attributes, which a strict content security policy lets through. Ink becomes the colour of the
    text around it. Ids start with `prefix`, so that drawings on one page do not get in each other's way.
    """
    root = ET.fromstring(svg)  # noqa: S314 - matplotlib wrote it a moment ago
    for parent in root.iter():
        for child in list(parent):
            if _name(child.tag) in {"metadata", "style"}:
                parent.remove(child)
    used = {name for element in root.iter() for name in _references(element)}
    for element in root.iter():
        element.tag = _name(element.tag)
        attributes = {key: value for key, value in element.attrib.items() if key not in {"style", _XLINK, "id"}}
        if element.get("id") in used:
            attributes["id"] = prefix + element.attrib["id"]
        if _XLINK in element.attrib:
            attributes["href"] = f"#{prefix}{element.attrib[_XLINK][1:]}"
        attributes |= _declarations(element.get("style", ""))
        element.attrib.clear()
        for key, value in attributes.items():
            element.set(key, "currentColor" if value == INK else _REFERENCE.sub(rf"url(#{prefix}\1)", value))
    _, _, width, height = root.attrib["viewBox"].split()
    root.attrib |= {
        "xmlns": "http://www.w3.org/2000/svg",
        "width": width,
        "height": height,
        "role": "img",
        "aria-label": label,
        # Matplotlib leaves these out where they have its defaults, which are not those of SVG.
        "fill": "currentColor",
        "stroke-linejoin": "round",
        "stroke-linecap": "butt",
        "font-family": "system-ui, sans-serif",
    }
    return ET.tostring(root, encoding="unicode")


def _name(tag: str) -> str:
    return tag.rpartition("}")[2]


def _references(element: ET.Element) -> list[str]:
    names = [name for value in element.attrib.values() for name in _REFERENCE.findall(value)]
    return [*names, element.attrib[_XLINK][1:]] if _XLINK in element.attrib else names


def _declarations(style: str) -> dict[str, str]:
    """Read an inline style, without the font's family: that is the page's to choose.

    Examples
    --------
    >>> _declarations("font: 700 11px 'DejaVu Sans', sans-serif; text-anchor: middle")
    {'text-anchor': 'middle', 'font-size': '11px', 'font-weight': '700'}
    """
    pairs = (part.partition(":") for part in style.split(";") if ":" in part)
    found = {key.strip(): value.strip() for key, _, value in pairs}
    found.pop("font-family", None)
    # Older matplotlib writes the shorthand, which exists in styles only.
    shorthand = found.pop("font", None)
    if shorthand:
        for key, pattern in (("font-size", r"[\d.]+px"), ("font-weight", r"\b[1-9]00\b|\bbold\b")):
            match = re.search(pattern, shorthand)
            if match:
                found[key] = match[0]
    return found


AnyChart = Chart | IntervalChart | DotChart | HeatChart
"""Everything that can be drawn."""

_Kind = TypeVar("_Kind", Chart, AnyChart)

WIDTH, HEIGHT = 5.0, 3.5
"""Inches of one chart: 360 points wide, so that 11 points stay 11 pixels on a phone."""

LEGEND_LINE = 0.22
"""Inches that each further line of the legend adds, so that it takes nothing from the axes."""

NAME_LINE, AROUND = 0.25, 1.1
"""Inches of one name in a chart of intervals or dots, and of everything above and under them."""

HEAT_NAMES = 1.2
"""Inches for the names of the columns of a heat map where they are written upwards."""

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
    >>> from onlooker.report.plots import Series
    >>> chart = Chart(title="Growth", x_label="x", y_label="y", series=(Series("a", [0, 1], [0, 2]),))
    >>> to_svg(chart)[:4], "Growth" in to_svg(chart)
    ('<svg', True)
    """
    row = as_row(charts)
    with _drawn(row, titles=titles, dpi=72) as figure:
        return svg_of(figure, row, prefix=prefix)


def write_charts(charts: Sequence[AnyChart], path: str) -> None:
    """Draw charts side by side into a file, as SVG or PNG by its name."""
    suffix = Path(path).suffix.lower()
    if suffix == ".svg":
        write_text(path, to_svg(charts) + "\n")
    elif suffix == ".png":
        to_png(charts, path)
    else:
        raise InputError(f"{path}: is drawn as .png or .svg, name such a file")


def to_png(charts: AnyChart | Sequence[AnyChart], path: str | os.PathLike[str]) -> None:
    """Draw one chart, or several side by side, on white; the file is written whole or not at all.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from onlooker.report.plots import Series
    >>> chart = Chart(title="Growth", x_label="x", y_label="y", series=(Series("a", [0, 1], [0, 2]),))
    >>> with TemporaryDirectory() as folder:
    ...     to_png(chart, f"{folder}/growth.png")
    ...     os.listdir(folder)
    ['growth.png']
    """
    with _drawn(as_row(charts), titles=True, dpi=200) as figure:
        write_png(figure, path)


def figure_of_charts(charts: AnyChart | Sequence[AnyChart]) -> Figure:
    """Draw one chart, or several side by side, as a figure of matplotlib's.

    Examples
    --------
    >>> from onlooker.report.plots import Series
    >>> chart = Chart(title="Growth", x_label="x", y_label="y", series=(Series("a", [0, 1], [0, 2]),))
    >>> type(figure_of_charts(chart)).__name__
    'Figure'
    """
    with _drawn(as_row(charts), titles=True, dpi=100) as figure:
        return figure


def svg_of(figure: Figure, charts: Sequence[AnyChart], *, prefix: str) -> str:
    """Save a drawn figure as an SVG element, under the settings that it was drawn with."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    label = "; ".join(f"{chart.title}: {chart.y_label} against {chart.x_label}" for chart in charts)
    return tidy(buffer.getvalue(), label=start_of(label, 400), prefix=prefix)


def write_png(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Save a drawn figure on white, whole or not at all, under the settings that it was drawn with."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", facecolor="white", metadata={"Software": None})
    write_bytes(path, buffer.getvalue())


def as_row(charts: _Kind | Sequence[_Kind]) -> tuple[_Kind, ...]:
    """Return the charts, of which there must be one."""
    row = (charts,) if isinstance(charts, AnyChart) else tuple(charts)
    if not row:
        raise InputError("there are no charts to draw: pass at least one")
    return row


@contextmanager
def looks(**changes: Any) -> Iterator[None]:
    """Draw and save under onlooker's settings, with some changes, whatever the user's own."""
    from matplotlib import style

    with style.context(["default", _SETTINGS | changes]), warnings.catch_warnings():
        # Names may be in any script: a page has the glyphs that matplotlib's font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield


@contextmanager
def _drawn(row: tuple[AnyChart, ...], *, titles: bool, dpi: int) -> Iterator[Figure]:
    """Yield the drawn figure, under the settings that saving it needs too."""
    from matplotlib.figure import Figure

    from onlooker.report.plots.axes import draw_marks

    with looks():
        figure = Figure(figsize=(WIDTH * len(row), max(map(_height, row))), dpi=dpi, layout="constrained")
        parts = figure.subfigures(1, len(row), squeeze=False, wspace=0.04)[0]
        drawn = [(_draw(part, chart, title=titles), chart) for part, chart in zip(parts, row, strict=True)]
        marked = [(axes, chart.marks) for axes, chart in drawn if isinstance(chart, Chart) and chart.marks]
        if marked:
            # The width of the axes is known after a first layout, and what stands above them does not change it.
            figure.draw_without_rendering()
        for axes, marks in marked:
            draw_marks(axes, marks)
        yield figure


def _height(chart: AnyChart) -> float:
    """Inches that a chart needs."""
    from onlooker.report.plots.axes import UPRIGHT, interval_legend_rows, legend_rows, lines_of_names

    if isinstance(chart, Chart):
        return HEIGHT + LEGEND_LINE * (legend_rows(chart) - 1)
    if isinstance(chart, HeatChart):
        return AROUND + HEAT_NAMES * (len(chart.columns) > UPRIGHT) + NAME_LINE * (1 + len(chart.names))
    if isinstance(chart, DotChart):
        rows = NAME_LINE * len(chart.names) * (1.4 if lines_of_names(chart) > 1 else 1.0)
        return AROUND + rows + LEGEND_LINE * (chart.level is not None)
    return AROUND + NAME_LINE * len(chart.names) + LEGEND_LINE * (interval_legend_rows(chart) - 1)


def _draw(figure: SubFigure, chart: AnyChart, *, title: bool) -> Axes:
    from onlooker.report.plots.axes import draw_chart, draw_dots, draw_heat, draw_intervals

    if isinstance(chart, Chart):
        return draw_chart(figure, chart, title=title)
    if isinstance(chart, HeatChart):
        return draw_heat(figure, chart, title=title)
    if isinstance(chart, DotChart):
        return draw_dots(figure, chart, title=title)
    return draw_intervals(figure, chart, title=title)
