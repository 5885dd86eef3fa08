"""Results as figures and as HTML, for notebooks: see `onlooker.base.notebook`."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from onlooker.base.errors import InputError
from onlooker.diagnosis import Diagnosis
from onlooker.evaluation.propensities import Propensities
from onlooker.logs.log import feature_labels
from onlooker.logs.policy import LinearPolicy, Scoring
from onlooker.observers import DynamicImitation, SuffixImitation, TrackingObserver
from onlooker.observers.base import Observer
from onlooker.observers.groups import Groups
from onlooker.observers.summaries import Coefficient
from onlooker.report.log_analysis import weights_by_arm
from onlooker.report.page import Column, Table
from onlooker.report.plots import (
    AnyChart,
    Chart,
    HeatChart,
    IntervalChart,
    Series,
    calibration_charts,
    diagnosis_charts,
)
from onlooker.report.plots.draw import figure_of_charts
from onlooker.report.plots.results import effect_chart, tracking_charts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from onlooker.observers.dynamic.path import WeightPath

DRAWN = 30
"""Weights that are drawn: the largest."""
LINES = 6
"""Weights that are drawn over time, the largest at the end, and curves of features."""
ROWS = 40
"""Rows that a notebook shows."""
COLUMNS = 8
"""Weights of a group that a notebook shows."""
GROUPS_DRAWN = 40
"""Groups in a coloured table."""


def figure_of(result: object) -> Figure:
    """A result as a matplotlib figure."""
    charts = charts_of(result)
    if not charts:
        raise InputError("there is nothing to draw: no preference was found, or there is too little evidence")
    return figure_of_charts(charts)


def charts_of(result: object) -> tuple[AnyChart, ...]:
    """The pictures of a result, as data; nothing where there is none."""
    if isinstance(result, Diagnosis):
        return diagnosis_charts(result)
    if isinstance(result, Propensities):
        return calibration_charts(result.calibration())
    if isinstance(result, Groups):
        return _groups_charts(result)
    if isinstance(result, TrackingObserver):
        result.summary()
        return tracking_charts(result)
    if isinstance(result, DynamicImitation):
        found = result.summary()
        return (path_chart(result.path_, [one.name for one in found.coefficients]),)
    if isinstance(result, SuffixImitation):
        result.summary()
        return weights_charts(result) if isinstance(result.policy_, LinearPolicy) else effects_charts(result)
    return weights_charts(result)


def effects_charts(observer: SuffixImitation) -> tuple[Chart, ...]:
    """Curves of the features whose effect varies most, with bands where there are any."""
    policy = cast("Scoring", observer.policy_)
    found = [observer.effect(name) for name in feature_labels(policy.feature_names, policy.n_features)]
    found.sort(key=lambda one: -one.effect.std())
    return tuple(effect_chart(one) for one in found[:LINES])


def weights_charts(result: Any) -> tuple[AnyChart, ...]:
    """Weights one under the other, the largest first, with intervals where there are any; or by arm, as a table."""
    summary = result.summary() if isinstance(result, Observer) else result
    policy = getattr(result, "policy_", None)
    heat = weights_by_arm(policy) if isinstance(policy, LinearPolicy) else None
    if heat is not None:
        return (heat,)
    found = sorted(summary.coefficients, key=lambda one: -abs(one.estimate))[:DRAWN]
    every = len(summary.coefficients)
    left = f", the {DRAWN} largest of {every}" if every > DRAWN else ""
    ends = np.array([(one.low, one.high) for one in found])
    known = np.isfinite(ends).all(axis=1)
    ends[~known] = np.nan
    interval = f", {100 * summary.level:g}% interval" if known.any() else ""
    return (
        IntervalChart(
            title=f"Weights of the features{left}",
            x_label=f"weight for one unit{interval}",
            y_label="feature",
            names=tuple(one.name for one in found),
            estimates=np.array([one.estimate for one in found]),
            low=ends[:, 0],
            high=ends[:, 1],
        ),
    )


def path_chart(path: WeightPath, names: Sequence[str]) -> Chart:
    """The largest weights over time, with bands."""
    largest = np.argsort(-np.abs(path.theta[-1]), kind="stable")[:LINES]
    low, high = path.band()
    rounds = path.rounds.astype(np.float64)
    return Chart(
        title="Weights over time",
        x_label="round",
        y_label="weight, 95% bands",
        series=tuple(
            Series(names[j], rounds, path.theta[:, j], low=low[:, j], high=high[:, j])
            for j in largest.tolist()
            if not np.isnan(path.standard_error[:, j]).any()
        )
        or (Series("nothing varied", rounds, np.zeros(len(rounds))),),
    )


def _groups_charts(found: Groups) -> tuple[AnyChart, ...]:
    """Weights of the groups as a coloured table: the first of them, and the features with the largest weights."""
    if not found.fits:
        return ()
    names = [one.name for one in next(iter(found.fits.values())).coefficients]
    shown = list(found.fits)[:GROUPS_DRAWN]
    weights = np.array([[one.estimate for one in found[name].coefficients] for name in shown])
    columns = np.sort(np.argsort(-np.abs(weights).max(axis=0), kind="stable")[:20])
    left = f", the first {len(shown)} of {len(found)} groups" if len(found) > len(shown) else ""
    return (
        HeatChart(
            title=f"Weights by group{left}",
            x_label="feature",
            y_label="group",
            columns=tuple(names[j] for j in columns),
            names=tuple(shown),
            values=weights[:, columns],
        ),
    )


def html_of(result: object) -> str:
    """A result as a piece of HTML: what it is in a line, its table, and what to know."""
    if isinstance(result, Observer):
        if not hasattr(result, "policy_"):
            return f"<p>{escape(str(result))}</p>"
        summary = result.summary()
        table = _weights(summary.coefficients) if summary.coefficients else ""
        return f"<p>{escape(str(result))}</p>{table}{_warned(summary.warnings)}"
    if isinstance(result, Diagnosis):
        return f"<p><b>{escape(result.verdict)}</b>. {escape(result.sentence)}</p>{_warned(result.notes, 'note')}"
    if isinstance(result, Groups):
        return _groups(result)
    return f"{_weights(getattr(result, 'coefficients', ()))}{_warned(getattr(result, 'warnings', ()))}"


def _weights(found: tuple[Coefficient, ...]) -> str:
    known = any(np.isfinite(one.standard_error) for one in found)
    heads = ("feature", "weight", *(("standard error", "from", "to", "z") if known else ()))
    rows = []
    for one in sorted(found, key=lambda one: -abs(one.estimate))[:ROWS]:
        numbers = (one.estimate, *((one.standard_error, one.low, one.high, one.z) if known else ()))
        rows.append((one.name, *(value if np.isfinite(value) else None for value in numbers)))
    left = f"<p>and {len(found) - ROWS} smaller weights</p>" if len(found) > ROWS else ""
    return _table(heads, rows) + left


def _groups(found: Groups) -> str:
    rows = [
        (name, fit.n_rounds, fit.agreement, *(one.estimate for one in fit.coefficients[:COLUMNS]))
        for name, fit in found.fits.items()
    ]
    names = [one.name for one in next(iter(found.fits.values())).coefficients][:COLUMNS] if found.fits else []
    more = f"<p>and {len(rows) - ROWS} more groups</p>" if len(rows) > ROWS else ""
    failed = [f"{name}: no answer: {why}" for name, why in found.failed.items()]
    return _table(("group", "rounds", "agreement", *names), rows[:ROWS]) + more + _warned(failed[:ROWS])


def _table(heads: tuple[str, ...], rows: list[Any]) -> str:
    table = Table(
        tuple(Column(head, align="right" if place else "left") for place, head in enumerate(heads)), tuple(rows)
    )
    head = "".join(f"<th>{escape(column.title)}</th>" for column in table.columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.text())
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _warned(texts: Any, word: str = "warning") -> str:
    return "".join(f"<p>{word}: {escape(text)}</p>" for text in texts)
