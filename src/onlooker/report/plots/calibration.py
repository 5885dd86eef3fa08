"""Propensities in pictures: predicted against observed shares of picks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from onlooker.base.errors import InputError
from onlooker.base.files import write_text
from onlooker.report.plots.draw import to_png, to_svg
from onlooker.report.plots.figure import Chart, Series

if TYPE_CHECKING:
    from onlooker.evaluation.overlap import Calibration, CalibrationBin


def calibration_charts(found: Calibration) -> tuple[Chart, ...]:
    """All arms on logarithmic axes, where small probabilities show, and the likeliest arm of each round.

    Examples
    --------
    >>> from onlooker import Environment, EpsilonGreedy, propensities, simulate
    >>> log = simulate(Environment(5, 10), EpsilonGreedy(0.2), n_rounds=1000).log
    >>> [chart.title for chart in calibration_charts(propensities(log).calibration())]
    ['All offered arms', 'Likeliest arm of each round']
    """
    both = (("All offered arms", found.arms, True), ("Likeliest arm of each round", found.top, False))
    return tuple(_chart(title, bins, logarithmic=small) for title, bins, small in both if bins)


def _chart(title: str, bins: tuple[CalibrationBin, ...], *, logarithmic: bool) -> Chart:
    predicted, observed, error = (
        np.array([getattr(one, name) for one in bins]) for name in ("predicted", "observed", "error")
    )
    least = float(predicted.min()) / 3
    if logarithmic:
        observed = np.where(observed > 0, observed, np.nan)
    low, high = np.maximum(predicted - 2 * error, least if logarithmic else 0.0), np.minimum(predicted + 2 * error, 1.0)
    return Chart(
        title=title,
        x_label="predicted probability",
        y_label="share that was picked",
        series=(
            Series("as predicted, and what chance explains", predicted, predicted, low=low, high=high),
            Series("picked", predicted, observed, style="points"),
        ),
        log_x=logarithmic,
        log_y=logarithmic,
    )


def plot_calibration(found: Calibration, path: str | None) -> tuple[Chart, ...]:
    """The charts; written to a file where one is named."""
    charts = calibration_charts(found)
    if path is not None:
        suffix = Path(path).suffix.lower()
        if suffix == ".svg":
            write_text(path, to_svg(charts) + "\n")
        elif suffix == ".png":
            to_png(charts, path)
        else:
            raise InputError(f"{path}: is drawn as .png or .svg, name such a file")
    return charts
