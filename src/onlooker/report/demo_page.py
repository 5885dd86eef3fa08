"""The demo's page: the U-curve, the observers side by side, and the learner as it was tracked."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onlooker.base.version import __version__
from onlooker.evaluation.comparison import COLUMNS, Comparison, Row
from onlooker.evaluation.study import Study
from onlooker.report.log_page import tracking_section
from onlooker.report.page import Column, Page, Section, Table
from onlooker.report.plots import Chart, burn_in_curves


def demo_page(study: Study) -> Page:
    """Put a study on a page."""
    rows = study.comparison.rows
    learner = rows[0]
    simulation = study.simulation
    n_rounds = simulation.log.n_rounds
    observed = rows[1:-1]
    best = _best(observed)
    lead = (
        f"{simulation.learner!r} played {n_rounds:,} rounds and learned from rewards. Its log, without the rewards, "
        f"was given to the observers. Of those, '{best.name}' came closest to the true parameter: direction error "
        f"{best.direction_error:.4f}, where the learner itself, which saw every reward, reached "
        f"{learner.direction_error:.4f}."
    )
    return Page(
        title="What did the bandit learn?",
        lead=lead,
        sections=(
            Section(
                title="How much of the beginning to discard",
                text=(
                    "Early picks are exploration: keeping them misleads the observer. Discarding too much leaves "
                    "too little to learn from. Between the two the error is smallest."
                ),
                charts=study_curves(study),
            ),
            Section(
                title="The observers side by side",
                text=(
                    "Direction error is the distance between the recovered and the true parameter, both scaled to "
                    "length one. Predictive regret is the reward missed per round on fresh offers. Agreement is with "
                    "the learner's own picks over the last tenth of the log. The oracle picks its burn-in by looking "
                    "at the truth, so it profits from luck."
                ),
                table=comparison_table(study.comparison),
            ),
            *map(tracking_section, study.tracked),
        ),
        footer=f"onlooker {__version__}, seed {simulation.seed}",
    )


def study_curves(study: Study) -> tuple[Chart, Chart]:
    """Both metrics against alpha: the burn-ins of those observers that have one, the levels of the others."""
    learner, *others = study.comparison.rows
    n_rounds = study.simulation.log.n_rounds
    return burn_in_curves(
        *_curve(study),
        learner_error=_known(learner.direction_error),
        learner_regret=_known(learner.predictive_regret),
        marks={
            row.name.removeprefix("suffix imitation, "): _alpha(row.burn_in, n_rounds)
            for row in others
            if row.burn_in is not None
        },
        others={
            row.name: (_known(row.direction_error), _known(row.predictive_regret))
            for row in others
            if row.burn_in is None and row.direction_error is not None
        },
    )


def _curve(study: Study) -> tuple[list[float], list[float], list[float]]:
    measured = {row.burn_in: row for row in study.curve.rows}
    sweep = study.curve.sweep
    shown = [(float(a), measured[int(b)]) for a, b in zip(sweep.alphas, sweep.burn_ins, strict=True) if b in measured]
    return (
        [alpha for alpha, _ in shown],
        [_known(row.direction_error) for _, row in shown],
        [_known(row.predictive_regret) for _, row in shown],
    )


def _alpha(burn_in: int, n_rounds: int) -> float:
    return round(float(np.log(max(1, burn_in)) / np.log(n_rounds)), 4)


def _best(rows: Sequence[Row]) -> Row:
    """The one that came closest to the true direction."""
    return min(rows, key=lambda row: math.inf if row.direction_error is None else row.direction_error)


def _known(value: float | None) -> float:
    """A study knows the truth, so the value is there."""
    assert value is not None
    return value


def comparison_table(comparison: Comparison) -> Table:
    """The rows of a comparison; the best observer stands out."""
    observed = comparison.rows[1:-1]
    best = _best(observed)
    return Table(
        tuple(Column(heading, style, "right" if style else "left") for heading, _, style in COLUMNS),
        tuple(tuple(getattr(row, field) for _, field, _ in COLUMNS) for row in comparison.rows),
        highlight=comparison.rows.index(best),
    )
