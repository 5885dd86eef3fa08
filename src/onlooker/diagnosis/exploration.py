"""How a learner picks: the share of picks that are not its best guess.

The best guess is the arm that the estimated policy scores highest. Every other pick counts as exploration, whatever
made the learner pick it: chance, optimism, a rule. So the picks of a softmax policy that are not its likeliest arm are
exploration too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from onlooker.base.numerics import UNIDENTIFIED, inverse, normal_reach
from onlooker.base.types import Matrix, Vector
from onlooker.diagnosis.movement import RIDGE, Pull
from onlooker.diagnosis.predictability import proportion, proportion_of
from onlooker.imitation.mixture import LEAST_WEIGHT, explain
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.imitation.stretches import LATE
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog
from onlooker.observers.dynamic.guesses import best_guesses

DRAWS = 10
"""Policies as plausible as the estimate, by which its error is judged, always the same ones."""

BLOCKS = 30
"""Parts by which the error of a trend is measured: picks close in time may be alike."""

NOW_ROUNDS = 100
"""The last 30% of the rounds are now, at least so many."""

PLAUSIBLE = 0.05
"""Likelihood, relative to the best, from which on an explanation of the picks counts for the interval."""

Trend = Literal["rising", "falling", "steady"]


@dataclass(frozen=True, kw_only=True)
class Exploration:
    """How it picks now; None where there is no best guess to compare with."""

    share: float | None = None
    """Share of picks, in the last 30% of the rounds since the learner is stable, that are not its best guess."""
    low: float | None = None
    """Lower end of its interval, which includes the error of the estimated policy."""
    high: float | None = None
    """Upper end."""
    trend: Trend | None = None
    """Whether that share rises or falls over these rounds, beyond chance and beyond what the offers explain."""


def find_exploration(log: BanditLog, others: Matrix, pull: Pull, level: float, *, since: int) -> Exploration:
    """Compare the picks of rounds that one policy explains with what it prefers; those before `since` do not count."""
    scores = log.features @ pull.fit.theta
    missed = ragged.argmax(scores, log.offsets) != log.chosen
    now = slice(log.n_rounds - _recent(log.n_rounds - since), None)
    found = proportion(missed[now], level)
    doubt = _doubt(log[now], pull, log.n_rounds)
    mixture = explain(log, scores, others, np.array([0, log.n_rounds]), steps=8)
    return Exploration(
        share=found.value,
        low=max(0.0, found.low - doubt),
        high=min(1.0, found.high + doubt / 2),
        trend=_trend((missed - (1 - mixture.best))[since:], level),
    )


def find_followed(log: BanditLog, others: Matrix, pull: Pull, level: float, *, since: int) -> Exploration:
    """The same for a learner that moves: its best guess is that of the round, by the weights that it had then.

    Those are followed without a model of how it learns. What they leave open is in the interval: every combination of
    noise and error that explains the picks about as well as the best one.
    """
    found = best_guesses(log, since)
    now = found.rounds >= log.n_rounds - _recent(log.n_rounds - since)
    weights, n_now = found.weights, int(np.count_nonzero(now))
    shares = found.missed[:, now].mean(axis=1)
    plausible = shares[weights >= PLAUSIBLE * weights.max()]
    least, most = (proportion_of(float(end), n_now, level) for end in (plausible.min(), plausible.max()))
    best = explain(log, log.features @ pull.fit.theta, others, np.array([0, log.n_rounds]), steps=8).best
    return Exploration(
        share=float(weights @ shares),
        # Less than half a round is none.
        low=least.low if least.low * n_now >= 0.5 else 0.0,
        high=most.high,
        trend=_trend(weights @ found.missed - (1 - best)[found.rounds], level),
    )


def _recent(n_rounds: int) -> int:
    """How many rounds of so many are now."""
    return max(round((1 - LATE) * n_rounds), min(NOW_ROUNDS, n_rounds))


def _doubt(now: BanditLog, pull: Pull, n_rounds: int) -> float:
    """In how many of the rounds another arm may be the best, as the policy is only estimated.

    Chance is that of the rounds: what each pulls the weights by counts more or less. So neither the order of arms nor
    that of features matters.
    """
    theta, turn = pull.fit.theta, _inverse(now, pull) / (now.n_rounds * n_rounds) ** 0.5
    residuals = pull.mixture.residuals[-len(now.features) :]
    best = ragged.argmax(now.features @ theta, now.offsets)
    noise = np.random.default_rng(0).standard_normal((DRAWS, now.n_rounds))
    pulls = (now.features.T @ (np.repeat(one, now.n_arms) * residuals) for one in noise)
    others = (theta + turn @ one for one in pulls)
    return float(np.mean([(ragged.argmax(now.features @ other, now.offsets) != best).mean() for other in others]))


def _inverse(log: BanditLog, pull: Pull) -> Matrix:
    """Of the mean information of some rounds."""
    weights = np.maximum(pull.mixture.own[-log.n_rounds :], LEAST_WEIGHT)
    information = SoftmaxObjective(log, l2=0.0, weights=weights).evaluate(pull.fit.theta).hessian * weights.mean()
    return inverse(information + RIDGE * np.diag(np.diag(information)), flat=UNIDENTIFIED)


def _trend(excess: Vector, level: float) -> Trend:
    """Compare the last 30% of the rounds with the first 30%, by the scatter of blocks."""
    blocks = [float(block.mean()) for block in np.array_split(excess, min(BLOCKS, max(2, len(excess) // 20)))]
    part = max(1, round((1 - LATE) * len(blocks)))
    early, late = np.array(blocks[:part]), np.array(blocks[-part:])
    spread = float(np.sqrt((early.var() + late.var()) / max(1, part - 1)))
    chance = float(excess.std()) * (2 / (part / len(blocks) * len(excess))) ** 0.5
    reach, gap = normal_reach(level) * max(spread, chance), float(late.mean() - early.mean())
    if abs(gap) <= reach:
        return "steady"
    return "rising" if gap > 0 else "falling"
