"""Charts of results: a diagnosis over time, a tracked learner, calibration of propensities, the effect of a feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from onlooker.base.types import Vector
from onlooker.diagnosis import Bin, Diagnosis, Estimate
from onlooker.diagnosis.predictability import MATERIAL
from onlooker.report.plots.charts import Chart, Level, Mark, Series
from onlooker.report.plots.draw import write_charts

if TYPE_CHECKING:
    from onlooker.evaluation.overlap import Calibration, CalibrationBin
    from onlooker.logs.effects import Effect

from onlooker.base.types import Matrix
from onlooker.observers import TrackingObserver


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


SHOWN = 6
"""Coordinates that are drawn; each has a colour of its own."""


REACH = 1.96
"""Standard errors on either side of a band: 95%."""


def tracking_charts(observer: TrackingObserver) -> tuple[Chart, ...]:
    """The direction's largest coordinates, from where they are estimable; empty without a direction.

    Examples
    --------
    >>> from onlooker.simulation.environment import Environment
    >>> from onlooker.simulation.learners import LinUCB
    >>> from onlooker.simulation.play import simulate
    >>> log = simulate(Environment(5, 10), LinUCB(), n_rounds=2000).log
    >>> (chart,) = tracking_charts(TrackingObserver().fit(log))
    >>> chart.title, len(chart.series)
    ('What the learner valued', 5)
    """
    path = observer.path_
    last = path.direction[-1]
    if not last.any() or not observer.summary().preferring:
        return ()
    names = [one.name for one in observer.summary().coefficients]
    # Stable, so that equal coordinates keep their order.
    largest = np.argsort(-np.abs(last), kind="stable")[:SHOWN]
    start = _start(REACH * path.standard_error[:, largest])
    rounds = path.rounds[start:].astype(np.float64)
    series = []
    for j in largest:
        value, reach = path.direction[start:, j], REACH * path.standard_error[start:, j]
        # No coordinate of a direction lies outside.
        low, high = np.clip(value - reach, -1.0, 1.0), np.clip(value + reach, -1.0, 1.0)
        series.append(Series(names[j], rounds, value, low=low, high=high))
    settled = observer.settled_round_
    return (
        Chart(
            title="What the learner valued" if observer.exploration_ is not None else "What the picks were made by",
            x_label="rounds (log scale)",
            y_label="direction, 95% bands",
            series=tuple(series),
            marks=(Mark("estimate stable", float(settled)),) if settled is not None and settled >= rounds[0] else (),
            log_x=True,
        ),
    )


def _start(reaches: Matrix) -> int:
    """First checkpoint from which on the bands leave something out; the last two are drawn in any case."""
    wide = np.flatnonzero(reaches.max(axis=1) >= 1.0)
    return max(0, min(int(wide[-1]) + 1 if len(wide) else 0, len(reaches) - 2))
