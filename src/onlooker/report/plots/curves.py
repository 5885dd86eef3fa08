"""Observers side by side as charts: how close each came, and what it took."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.types import Vector
from onlooker.report.plots.charts import Chart, DotChart, Level, Mark, Series, y_values

Band = tuple[ArrayLike, ArrayLike]


def burn_in_curves(
    alphas: ArrayLike,
    direction_errors: ArrayLike,
    predictive_regrets: ArrayLike,
    *,
    learner_error: float,
    learner_regret: float,
    marks: Mapping[str, float] | None = None,
    others: Mapping[str, tuple[float, float]] | None = None,
    error_band: Band | None = None,
    regret_band: Band | None = None,
) -> tuple[Chart, Chart]:
    """Both metrics against alpha, where the first T = N^alpha rounds are left out.

    Parameters
    ----------
    alphas, direction_errors, predictive_regrets
        One entry per burn-in that was tried; NaN in a metric leaves a gap.
    learner_error, learner_regret
        The same metrics of the learner itself, which saw the rewards.
    marks
        Burn-ins to point out, by name: the alpha of each.
    others
        Observers without a burn-in, by name: both metrics of each.
    error_band, regret_band
        Lower and upper ends around the two curves.

    Examples
    --------
    >>> error, regret = burn_in_curves(
    ...     [0.0, 0.5, 0.9, 1.0],
    ...     [0.076, 0.075, 0.060, 0.9],
    ...     [0.0021, 0.0020, 0.0013, 0.2],
    ...     learner_error=0.052,
    ...     learner_regret=0.001,
    ...     marks={"naive": 0.0, "rule": 0.9},
    ... )
    >>> error.title, regret.title
    ('Direction error', 'Predictive regret')
    >>> error.rows()[1][2]
    (0.9, 0.06, 0.052, 'rule')
    """
    rest = others or {}
    both = (
        ("Direction error", direction_errors, error_band, learner_error, {name: two[0] for name, two in rest.items()}),
        ("Predictive regret", predictive_regrets, regret_band, learner_regret, {k: two[1] for k, two in rest.items()}),
    )
    places = tuple(Mark(name, alpha) for name, alpha in (marks or {}).items())
    first, second = (
        _curve(
            title, Series("observer", _array(alphas), _array(values), **_ends(band)), {"learner": own, **more}, places
        )
        for title, values, band, own, more in both
    )
    return first, second


def _curve(title: str, series: Series, levels: Mapping[str, float], marks: tuple[Mark, ...]) -> Chart:
    chart = Chart(
        title=title,
        x_label="alpha (burn-in: N^alpha rounds)",
        y_label=title.lower(),
        series=(series,),
        levels=tuple(Level(name, value) for name, value in levels.items()),
        marks=marks,
    )
    # The rise near alpha = 1 would flatten all the rest on a linear axis; a regret of exactly zero has no logarithm.
    if (y_values(chart) > 0).all():
        return replace(chart, log_y=True, y_label=f"{chart.y_label} (log scale)")
    return chart


def _array(values: ArrayLike) -> Vector:
    return np.asarray(values, dtype=np.float64)


def _ends(band: Band | None) -> dict[str, Any]:
    return {} if band is None else {"low": _array(band[0]), "high": _array(band[1])}


_PANELS = (
    ("Direction error", "direction_error", "distance to the true direction"),
    ("Predictive regret", "predictive_regret", "reward missed per round"),
    ("Agreement", "agreement", "share of the last picks"),
    ("Time", "seconds", "seconds"),
)
"""Title, field of a row, axis."""


def comparison_charts(rows: Sequence[Mapping[str, Any]], *, reference: str | None = None) -> tuple[DotChart, ...]:
    """One chart for each measure that was taken; `reference` names the row that the others are held against.

    Agreement says little where the truth is known, so it is drawn only where it is not.

    Examples
    --------
    >>> rows = [
    ...     {"name": "learner", "direction_error": 0.02, "predictive_regret": 1e-4, "agreement": 0.9, "seconds": None},
    ...     {"name": "rule", "direction_error": 0.03, "predictive_regret": 2e-4, "agreement": 0.8, "seconds": 0.1},
    ... ]
    >>> [chart.title for chart in comparison_charts(rows, reference="learner")]
    ['Direction error', 'Predictive regret', 'Time']
    """
    known = any(row["direction_error"] is not None for row in rows)
    charts = []
    for title, field, label in _PANELS:
        values = {row["name"]: row[field] for row in rows if row["name"] != reference}
        if all(value is None for value in values.values()) or (known and field == "agreement"):
            continue
        if field == "seconds":
            values = {name: value for name, value in values.items() if value is not None}
        level = next((row[field] for row in rows if row["name"] == reference), None)
        numbers = np.array([math.nan if value is None else value for value in values.values()])
        drawn = [*numbers[~np.isnan(numbers)], *([] if level is None else [level])]
        log = field != "agreement" and min(drawn) > 0
        charts.append(
            DotChart(
                title=title,
                x_label=f"{label} (log scale)" if log else label,
                y_label="observer",
                names=tuple(values),
                values=numbers,
                level=None if level is None or reference is None else Level(reference, level),
                log_x=log,
            )
        )
    return tuple(charts)
