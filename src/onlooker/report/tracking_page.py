"""A tracked learner as a section of a page: its estimate over time, with intervals."""

from __future__ import annotations

import numpy as np

from onlooker.base.types import Matrix
from onlooker.diagnosis import Diagnosis
from onlooker.observers import TrackingObserver
from onlooker.observers.tracking import FAMILIES
from onlooker.observers.tracking_summary import TrackingSummary
from onlooker.report.page import Column, Section, Table
from onlooker.report.plots import Chart, Mark, Series

SHOWN = 6
"""Coordinates that are drawn; each has a colour of its own."""
REACH = 1.96
"""Standard errors on either side of a band: 95%."""

_ABOUT = (
    "Every round was used: the observer follows the learner's estimate from pick to pick. Constants are in units of "
    "the reward noise. The evidence is the log-probability of the picks that decided; three more is twenty times as "
    "likely."
)

_ABOUT_MODEL_FREE = (
    "Every round was used: the weights walk from pick to pick, whatever the learner is. The chart has them at "
    "checkpoints, from the picks until then."
)


def tracking_section(observer: TrackingObserver, verdict: Diagnosis | None = None) -> Section:
    """How the learner explores and whether it has settled, the way its estimate went, and what else was considered.

    A `verdict` adds what holds whatever the family: what the learner values over time, and how it picks.

    Examples
    --------
    >>> from onlooker.simulation.environment import Environment
    >>> from onlooker.simulation.learners import LinUCB
    >>> from onlooker.simulation.play import simulate
    >>> section = tracking_section(TrackingObserver().fit(simulate(Environment(5, 20), LinUCB(), n_rounds=2500).log))
    >>> section.title, len(section.charts), len(section.table.rows)
    ('How it explores, and where its estimate went', 1, 4)
    """
    summary = observer.summary()
    about = _ABOUT if summary.named else _ABOUT_MODEL_FREE
    answers = [] if verdict is None else [f"Whatever the family: {verdict.sentence}"]
    found = [" ".join(summary.words), *answers, *(f"Warning: {text}." for text in summary.warnings), about]
    return Section(
        title="How it explores, and where its estimate went" if summary.named else "Where its weights went",
        text="\n\n".join(found),
        charts=tracking_charts(observer),
        table=families_table(summary) if summary.named else None,
    )


def families_table(summary: TrackingSummary) -> Table:
    """The kinds of exploration that were considered, by falling evidence; the first stands out if it fits.

    Examples
    --------
    >>> from onlooker import UCB, Environment, LinUCB, simulate
    >>> log = simulate(Environment(5, 20), LinUCB(), n_rounds=500).log
    >>> families_table(TrackingObserver(exploration=UCB(1.0)).fit(log).summary()).rows[0][:3]
    ('optimism (upper confidence bounds)', 'alpha', 1.0)
    """
    best = summary.families[0].evidence
    return Table(
        (
            Column("kind of exploration"),
            Column("constant"),
            Column("best guess", ".3g", "right"),
            Column("plausible", None, "right"),
            Column("log-evidence", ".1f", "right"),
            Column("behind by", ".1f", "right"),
        ),
        tuple(
            (
                one.words,
                FAMILIES[one.name].constant,
                one.strength,
                f"{one.low:.3g} to {one.high:.3g}" if one.low < one.high else None,
                one.evidence,
                best - one.evidence,
            )
            for one in summary.families
        ),
        highlight=0 if summary.fits else None,
    )


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
