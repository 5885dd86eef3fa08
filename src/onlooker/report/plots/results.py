"""Charts of results: a diagnosis over time, the calibration of propensities, the effect of a feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from onlooker.base.types import Vector
from onlooker.diagnosis import Bin, Diagnosis, Estimate
from onlooker.diagnosis.predictability import MATERIAL
from onlooker.report.plots.draw import write_charts
from onlooker.report.plots.figure import Chart, Level, Mark, Series

if TYPE_CHECKING:
    from onlooker.evaluation.overlap import Calibration, CalibrationBin
    from onlooker.logs.effects import Effect


def diagnosis_charts(diagnosis: Diagnosis) -> tuple[Chart, ...]:
    """Predictability by bin, the final policy's agreement by bin, and how well that policy fits, block by block.

    What was not measured is left out: a log with too few rounds has no charts, one without a preference no third.

    Examples
    --------
    >>> from onlooker.diagnosis import diagnose
    >>> from onlooker.simulation.environment import Environment
    >>> from onlooker.simulation.learners import LinUCB
    >>> from onlooker.simulation.play import simulate
    >>> charts = diagnosis_charts(diagnose(simulate(Environment(5, 10), LinUCB(), n_rounds=2000).log))
    >>> [chart.title for chart in charts]
    ['Predictability over time', 'Agreement of the final policy', 'Fit of the final policy']
    """
    if not diagnosis.bins:
        return ()
    own, late = ([getattr(b, name) for b in diagnosis.bins] for name in ("own", "late"))
    marks = _marks(diagnosis)
    charts = [
        _by_bin("Predictability over time", "fitted within the bin", diagnosis.bins, own, marks),
        _by_bin("Agreement of the final policy", "final policy", diagnosis.bins, late, marks),
    ]
    if diagnosis.stability:
        charts.append(_fit(diagnosis, marks))
    return tuple(charts)


def _marks(diagnosis: Diagnosis) -> tuple[Mark, ...]:
    found = (("stable", diagnosis.settled), ("changed", diagnosis.changed))
    return tuple(Mark(name, float(place.round)) for name, place in found if place is not None)


def _by_bin(title: str, label: str, bins: tuple[Bin, ...], estimates: list[Estimate], marks: tuple[Mark, ...]) -> Chart:
    middle = np.array([(b.start + b.stop) / 2 for b in bins])
    guessing = Series("random guessing", middle, np.array([b.chance for b in bins]))
    return Chart(
        title=title,
        x_label="round",
        y_label="share of picks predicted",
        series=(_series(label, middle, estimates), guessing),
        marks=marks,
    )


def _fit(diagnosis: Diagnosis, marks: tuple[Mark, ...]) -> Chart:
    blocks = diagnosis.stability
    middle = np.array([(block.start + block.stop) / 2 for block in blocks])
    return Chart(
        title="Fit of the final policy",
        x_label="round",
        y_label="fit, relative to the end",
        series=(
            _series("in each block", middle, [block.share for block in blocks], style="points"),
            Series("never falling", middle, np.array([block.fitted for block in blocks])),
        ),
        levels=(Level("level with the end", 1 - MATERIAL),),
        marks=marks,
    )


def _series(label: str, x: Vector, estimates: list[Estimate], style: Literal["line", "points"] = "line") -> Series:
    y, low, high = (np.array([getattr(e, name) for e in estimates]) for name in ("value", "low", "high"))
    return Series(label, x, y, low=low, high=high, style=style)


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
    """The charts; written to a file if `path` names one."""
    charts = calibration_charts(found)
    if path is not None:
        write_charts(charts, path)
    return charts


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
    """The chart; written to a file if `path` names one."""
    chart = effect_chart(found)
    if path is not None:
        write_charts([chart], path)
    return chart
