"""Scores that are not linear, in a report: what they gain, curves of the features, how features act together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onlooker.base.types import Vector
from onlooker.imitation.choice_model import LINEAR, Linear, as_score
from onlooker.imitation.scores.additive_policy import AdditivePolicy
from onlooker.imitation.scores.choice import ScoreChoice, choose_score, name_of
from onlooker.imitation.scores.products import ProductsPolicy
from onlooker.logs.effects import Effect
from onlooker.logs.layouts import Layout
from onlooker.logs.log import BanditLog, feature_labels
from onlooker.logs.policy import Policy
from onlooker.observers import SuffixImitation
from onlooker.report.page import Column, Section, Table
from onlooker.report.plots import Chart, HeatChart
from onlooker.report.plots.results import effect_chart

DRAWN = 6
"""Curves that are drawn: of the features that matter most."""

ENDS = (0.005, 0.995)
"""Curves are drawn between these quantiles of a feature: its extremes would make the rest small."""

CELLS = 7
"""Rows and columns of an interaction's map."""

MOST_ROWS = 20_000
"""Rows by which it is judged how much a feature matters: an even sample of the rounds."""

MOST_MAPPED = 15
"""Features up to which all products are shown as a map."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CurvedFit:
    """A score that is not linear, fitted beside the linear one."""

    asked: str
    """The score that was asked for."""
    choice: ScoreChoice
    """What it and the linear score leave unexplained of rounds that were held out."""
    policy: Policy | None
    """The policy; None where the linear score was taken."""
    effects: tuple[Effect, ...]
    """Of all features, those that matter most first."""
    sizes: Vector
    """Standard deviation of each effect between the arms of a round."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        names = [name_of(one) for one in self.choice.models]
        losses = dict(zip(names, self.choice.losses.tolist(), strict=True))
        sizes = {one.name: float(size) for one, size in zip(self.effects, self.sizes, strict=True)}
        taken = name_of(self.choice.model) if self.policy is not None else "linear"
        return {"asked": self.asked, "taken": taken, "held_out_loss": losses, "typical_effect": sizes}


def curved_fit(log: BanditLog, score: Any, *, burn_in: Any, l2: float) -> CurvedFit | None:
    """Fit the score that was asked for; None where that is the linear one."""
    asked = as_score(score)
    if isinstance(asked, Linear):
        return None
    choice = choose_score(log, None if isinstance(asked, str) else [LINEAR, asked], l2=l2)
    taken = choice.model if isinstance(asked, str) else asked
    if isinstance(taken, Linear):
        return CurvedFit(asked=str(score), choice=choice, policy=None, effects=(), sizes=np.zeros(0))
    observer = SuffixImitation(burn_in=burn_in, l2=l2, score=taken).fit(log)
    found = [(one, _size(one, log)) for one in _effects(observer, log)]
    found.sort(key=lambda pair: -pair[1])
    return CurvedFit(
        asked=score if isinstance(score, str) else name_of(taken),
        choice=choice,
        policy=observer.policy_,
        effects=tuple(one for one, _ in found),
        sizes=np.array([size for _, size in found]),
    )


def _effects(observer: SuffixImitation, log: BanditLog) -> list[Effect]:
    """The effect of every feature over nearly all of its range."""
    names = feature_labels(log.weight_names, log.n_features)
    found = []
    for name, column in zip(names, log.dense.T, strict=True):
        low, high = np.quantile(column.astype(np.float64), ENDS)
        low, high = (float(column.min()), float(column.max())) if low == high else (low, high)
        if low < high:
            found.append(observer.effect(name, np.linspace(low, high, 101)))
    return found


def _size(effect: Effect, log: BanditLog) -> float:
    """Standard deviation of an effect between the arms of a round."""
    assert not isinstance(log.features, Layout)
    part = log[:: max(1, len(log.features) // MOST_ROWS)]
    place = feature_labels(log.weight_names, log.n_features).index(effect.name)
    values = np.interp(part.dense[:, place], effect.x, effect.effect)
    means = np.add.reduceat(values, part.offsets[:-1]) / part.n_arms
    squares = (values - np.repeat(means, part.n_arms)) ** 2
    return float(np.sqrt((np.add.reduceat(squares, part.offsets[:-1]) / part.n_arms).mean()))


def curves_sections(found: CurvedFit) -> tuple[Section, ...]:
    """What a score that is not linear gains, and how it looks."""
    comparison = Table(
        (
            Column("score"),
            Column("loss of a held-out pick", ".4f", align="right"),
            Column("above the best", ".4f", align="right"),
            Column("standard error", ".4f", align="right"),
        ),
        tuple(
            (name_of(model), _known(loss), _known(loss - found.choice.losses.min()), float(error))
            for model, loss, error in zip(found.choice.models, found.choice.losses, found.choice.errors, strict=True)
        ),
        caption="Mean loss on late rounds that were held out from all scores: smaller is better",
    )
    if found.policy is None:
        text = (
            "Among the scores that were tried, none predicts held-out picks clearly better than a weight for every "
            "feature. The linear score above is what to read."
        )
        return (Section(title="Whether the score is linear", text=text, table=comparison),)
    bands = any(one.has_band for one in found.effects)
    text = (
        f"A score of another kind ({type(found.policy).__name__}) was fitted beside the linear one: the table has what "
        "each leaves unexplained of picks that it has not seen. A curve shows what a feature adds to the score, "
        "relative to an average offer: between two arms of a round only differences count. "
    )
    text += "Bands are pointwise. " if bands else "Curves of this kind of score have no bands. "
    shown = min(DRAWN, len(found.effects))
    text += f"Drawn are the {shown} features that matter most, by how much their effect differs between arms."
    sizes = Table(
        (Column("feature", wrap=True), Column("typical effect", align="right")),
        tuple((one.name, float(size)) for one, size in zip(found.effects, found.sizes, strict=True)),
        caption="Standard deviation of a feature's effect between the arms of a round",
    )
    charts: tuple[Chart | HeatChart, ...] = tuple(effect_chart(one) for one in found.effects[:DRAWN])
    return (
        Section(title="Whether the score is linear", text=text, table=comparison, charts=charts),
        Section(title="What matters most", table=sizes, charts=_maps(found)),
    )


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _maps(found: CurvedFit) -> tuple[HeatChart, ...]:
    """How features act together, where the score says so in a few numbers."""
    policy = found.policy
    if isinstance(policy, AdditivePolicy):
        names = feature_labels(policy.feature_names, len(policy.theta))
        return tuple(_surface(term, names) for term in policy.terms if len(term.features) == 2)
    if isinstance(policy, ProductsPolicy):
        names = feature_labels(policy.feature_names, policy.n_features)
        kept = [one.name for one in found.effects[:MOST_MAPPED]]
        places = [names.index(name) for name in kept]
        matrix = policy.quadratic[np.ix_(places, places)]
        return (
            HeatChart(
                title="Weights of products of features",
                x_label="feature",
                y_label="feature",
                columns=tuple(kept),
                names=tuple(kept),
                values=(matrix + matrix.T) / 2,
            ),
        )
    return ()


def _surface(term: Any, names: tuple[str, ...]) -> HeatChart:
    """What two features add together besides their own curves."""
    first, second = (np.linspace(one.knots[0], one.knots[-1], CELLS) for one in term.splines)
    grid = [np.repeat(first, CELLS), np.tile(second, CELLS)]
    rows, columns = (names[j] for j in term.features)
    return HeatChart(
        title=f"{rows} and {columns} together",
        x_label=columns,
        y_label=rows,
        columns=tuple(f"{value:.3g}" for value in second),
        names=tuple(f"{value:.3g}" for value in first),
        values=term.effect(grid)[0].reshape(CELLS, CELLS),
    )
