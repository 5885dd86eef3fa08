"""Many learners on one page: how many are in which state, how their weights vary, and a table of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from onlooker.base.checks import counted
from onlooker.base.defaults import BURN_IN, L2
from onlooker.diagnosis import Diagnosis, diagnose
from onlooker.logs.log import BanditLog
from onlooker.observers import SuffixImitation
from onlooker.observers.groups import GroupFit, Groups, fit_group
from onlooker.report.page import Cell, Column, Page, Section, Source, Table, provenance, terms_section
from onlooker.report.plots.charts import DotChart, Level

SECTIONS = 12
"""Learners up to which each has sections of its own; beyond, a page would take minutes to scroll."""
FEATURES = 12
"""Features in the chart and the table: those whose weights stand out most."""

FIRST = {"changed": 0, "moving": 1}
"""Order of the learners in the table: those that need attention come first."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupAnalysis:
    """What the overview says of one learner."""

    n_rounds: int
    """Rounds in its log."""
    diagnosis: Diagnosis
    fit: GroupFit


def analyse_group(log: BanditLog, *, burn_in: str | float = BURN_IN, l2: float = L2) -> GroupAnalysis:
    """Diagnose one learner of many and recover its policy."""
    fit = fit_group(SuffixImitation(burn_in=burn_in, l2=l2), 0.95, log)
    return GroupAnalysis(n_rounds=log.n_rounds, diagnosis=diagnose(log), fit=fit)


def groups_page(
    found: Mapping[str, GroupAnalysis], failed: Mapping[str, str], source: Source, pooled: Groups | None = None
) -> Page:
    """An overview of many learners; with `pooled`, their weights are those of partial pooling."""
    fits = {name: one.fit if pooled is None else pooled[name] for name, one in found.items()}
    states = Counter(one.diagnosis.verdict for one in found.values())
    shown = ", ".join(f"{count:,} {state}" for state, count in states.most_common())
    lead = f"{counted(len(found), 'learner')}, one for each value of {source.by!r}: {shown}."
    if failed:
        lead += f" {counted(len(failed), 'more')} had no answer; the last table says why."
    if pooled is not None:
        lead += "\n\nWeights are partially pooled: each learner's is drawn towards the mean of all."
    sections = [*_weights(fits), _all(found, fits, source.by or "learner")]
    if failed:
        columns = (Column(source.by or "learner"), Column("why there is no answer", wrap=True))
        sections.append(Section(title="Without an answer", table=Table(columns, tuple(failed.items()))))
    return Page(
        title=f"What the learners behind {source.name} value",
        lead=lead,
        warnings=source.warnings,
        sections=(*sections, provenance(source), terms_section()),
    )


def _ranked(fits: Mapping[str, GroupFit]) -> list[int]:
    """Places of the weights, those that stand out most in most groups first."""
    sizes = np.array([[abs(c.z) for c in fit.coefficients] for fit in fits.values()])
    typical = np.nan_to_num(np.median(np.nan_to_num(sizes), axis=0))
    return [int(place) for place in np.argsort(-typical, kind="stable")[:FEATURES]]


def _weights(fits: Mapping[str, GroupFit]) -> list[Section]:
    """Where the weights of most learners lie, feature by feature."""
    if not fits:
        return []
    places = _ranked(fits)
    names = [c.name for c in next(iter(fits.values())).coefficients]
    values = np.array([[c.estimate for c in fit.coefficients] for fit in fits.values()])[:, places]
    low, middle, high = np.quantile(values, [0.1, 0.5, 0.9], axis=0)
    chart = DotChart(
        title="Weights over learners",
        x_label="weight: median, and 8 of 10 learners",
        y_label="feature",
        names=tuple(names[place] for place in places),
        values=middle,
        low=low,
        high=high,
        level=Level("no effect", 0.0),
    )
    left = len(names) - len(places)
    text = "The dot is the median learner's weight. The line reaches from the 10th to the 90th percentile of learners."
    if left:
        text += f" {counted(left, 'feature')} with less clear weights are left out."
    return [Section(title="How the weights vary", text=text, charts=(chart,))]


def _all(found: Mapping[str, GroupAnalysis], fits: Mapping[str, GroupFit], by: str) -> Section:
    places = _ranked(fits)[: FEATURES // 2] if fits else []
    names = [c.name for c in next(iter(fits.values())).coefficients] if fits else []
    columns = (
        Column(by),
        Column("values"),
        Column("exploratory picks", ".0%", align="right"),
        Column("rounds", align="right"),
        Column("imitated", align="right"),
        Column("agreement", ".2f", align="right"),
        *(Column(names[place], ".3g", align="right") for place in places),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            name,
            one.diagnosis.verdict,
            one.diagnosis.exploration.share,
            one.n_rounds,
            fits[name].n_rounds,
            fits[name].agreement,
            *(fits[name].coefficients[place].estimate for place in places),
        )
        for name, one in sorted(found.items(), key=lambda pair: FIRST.get(pair[1].diagnosis.verdict, 2))
    )
    return Section(
        title="All learners",
        text="Those whose values changed or move come first. Weights are log-odds of a pick for one unit of a feature.",
        table=Table(columns, rows),
    )
