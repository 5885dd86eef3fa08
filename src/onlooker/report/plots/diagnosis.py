"""A diagnosis in pictures: predictability, agreement and fit of the final policy over time."""

from __future__ import annotations

from typing import Literal

import numpy as np

from onlooker.base.types import Vector
from onlooker.diagnosis import Bin, Diagnosis, Estimate
from onlooker.diagnosis.settling import MATERIAL
from onlooker.report.plots.figure import Chart, Level, Mark, Series


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
