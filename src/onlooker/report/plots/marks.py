"""Names of the marks above a chart. Imported only to draw, as matplotlib is slow to load."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Text
from matplotlib.transforms import ScaledTranslation
from scipy.optimize import isotonic_regression

from onlooker.base.types import Vector
from onlooker.report.plots.figure import Mark
from onlooker.report.plots.style import INK, one_line

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
            one_line(mark.label, 40),
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
            text.set_text(one_line(letters, max(2, int(len(letters) * min(1.0, room / max(1.0, _width(text)))))))
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
