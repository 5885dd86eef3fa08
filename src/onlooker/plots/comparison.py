"""Observers side by side as charts: how close each came, and what it took."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onlooker.plots.dots import DotChart
from onlooker.plots.figure import Level

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
