"""A tracked learner in pictures: what its estimate valued, and how surely that is known, over time."""

from __future__ import annotations

import numpy as np

from onlooker.base.types import Matrix
from onlooker.logs.log import feature_labels
from onlooker.observers import TrackingObserver
from onlooker.report.plots.figure import Chart, Mark, Series

SHOWN = 6
"""Coordinates that are drawn; each has a colour of its own."""
REACH = 1.96
"""Standard errors on either side of a band: 95%."""


def tracking_charts(observer: TrackingObserver) -> tuple[Chart, ...]:
    """The direction's largest coordinates, since they are known at all; nothing where there is no direction.

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
    names = feature_labels(observer.policy_.feature_names, len(last))
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
