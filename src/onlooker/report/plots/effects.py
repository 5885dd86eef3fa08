"""Effects of features as curves with bands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from onlooker.base.errors import InputError
from onlooker.base.files import write_text
from onlooker.report.plots.draw import to_png, to_svg
from onlooker.report.plots.figure import Chart, Level, Series

if TYPE_CHECKING:
    from onlooker.logs.effects import Effect


def effect_chart(found: Effect) -> Chart:
    """A feature's effect over its range, with its band where there is one.

    Examples
    --------
    >>> from onlooker import LinearPolicy
    >>> effect_chart(LinearPolicy([2.0], feature_names=["price"]).effect("price")).title
    'price'
    """
    low, high = (found.low, found.high) if found.has_band else (None, None)
    label = f"effect, {found.level:.0%} band" if found.has_band else "effect"
    return Chart(
        title=found.name,
        x_label=found.name,
        y_label="effect on the score",
        series=(Series(label, found.x, found.effect, low=low, high=high),),
        levels=(Level("average offer", 0.0),),
    )


def plot_effect(found: Effect, path: str | None) -> Chart:
    """The chart; written to a file where one is named."""
    chart = effect_chart(found)
    if path is not None:
        suffix = Path(path).suffix.lower()
        if suffix == ".svg":
            write_text(path, to_svg([chart]) + "\n")
        elif suffix == ".png":
            to_png([chart], path)
        else:
            raise InputError(f"{path}: is drawn as .png or .svg, name such a file")
    return chart
