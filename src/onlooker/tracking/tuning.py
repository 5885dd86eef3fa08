"""Which way to explore explains a log best, and how strongly: families compared by their evidence.

Every family has one constant with a wide prior, and all have two more that are fitted by a few steps of expectation
maximisation: the prior variance of theta*, and the share of picks that follow no rule. The family's evidence averages
over its constant, so that a family does not win by having one that happens to be harmless.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from onlooker.log import BanditLog
from onlooker.threads import ordered_map
from onlooker.tracking.exploration import FAMILIES, TS, Exploration, Lapse
from onlooker.tracking.follower import Assumption, Follower
from onlooker.types import Progress

STEP = 2.0
"""Between neighbouring constants that are tried."""
SPREAD = math.log(3.0)
"""Prior deviation of a constant's logarithm around its textbook value, 1 for `alpha` and d for `nu`."""
SLIPS = 1000.0
"""Prior weight, in rounds, of there being no slips where exploration is of another kind."""
LEAST = 5e-4
"""Share of slips that is always allowed for: without any, one odd pick would break the filter."""
ROUNDS_OF_EM = 3
ROUNDS_OF_EM_FREE = 20


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """What one family makes of a log."""

    assumption: Assumption
    """With its best constant."""
    evidence: float
    """Log-probability of the picks, averaged over the constant."""
    range: tuple[float, float]
    """Smallest and largest constant that was tried and has at least a twentieth of the best one's posterior."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"assumption": self.assumption.to_dict(), "evidence": self.evidence, "range": list(self.range)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Tuned:
        """Give back what `to_dict` was made of."""
        low, high = values["range"]
        assumption = Assumption.from_dict(values["assumption"])
        return cls(assumption=assumption, evidence=float(values["evidence"]), range=(float(low), float(high)))


def tune(
    log: BanditLog,
    families: Sequence[str | Exploration],
    *,
    ridge: float,
    progress: Progress | None = None,
) -> list[Tuned]:
    """Fit each family, given by name or with its constant, to all of the log; in the order given."""
    jobs = [partial(_family, log, one, ridge) for one in families]
    found = []
    for done, one in enumerate(ordered_map(lambda job: job(), jobs), 1):
        found.append(one)
        if progress is not None:
            progress(done, len(jobs))
    return found


@dataclass(frozen=True, kw_only=True)
class _Trial:
    """One constant, its companions fitted."""

    assumption: Assumption
    score: float
    """Log-evidence, slips averaged over."""


def _family(log: BanditLog, family: str | Exploration, ridge: float) -> Tuned:
    start = Assumption(
        exploration=Lapse(0.02) if isinstance(family, str) else family,
        ridge=ridge,
        precision=0.3 * mean_square(log),
        slip=0.01,
    )
    if not isinstance(family, str):
        trial = _settle(log, start)
        constant = family.strength
        return Tuned(assumption=trial.assumption, evidence=trial.score, range=(constant, constant))
    if family == Lapse.name:
        trial = _settle(log, start, free=True)
        rate, n = trial.assumption.lapse, max(1, log.n_rounds)
        reach = 2 * math.sqrt(rate * (1 - rate) / n)
        limits = (max(0.0, rate - reach), min(1.0, rate + reach))
        return Tuned(assumption=trial.assumption, evidence=trial.score, range=limits)
    return _climb(log, FAMILIES[family], float(log.n_features) if family == TS.name else 1.0, start)


def _climb(log: BanditLog, make: Callable[[float], Exploration], centre: float, start: Assumption) -> Tuned:
    """Try constants around the centre, and go on past the best until both its neighbours are worse."""
    trials: dict[int, _Trial] = {}

    def score(place: int) -> float:
        if place not in trials:
            nearest = min(trials, key=lambda other: abs(other - place), default=None)
            guess = start if nearest is None else trials[nearest].assumption
            exploration = make(centre * STEP**place)
            trials[place] = _settle(log, replace(guess, exploration=exploration), 1 if trials else ROUNDS_OF_EM)
        return trials[place].score + _log_prior(place)

    best = 0
    while True:
        around = max((best - 1, best, best + 1), key=score)
        if around == best:
            break
        best = around
    posterior = {place: score(place) for place in trials}
    top = posterior[best]
    plausible = [place for place, value in posterior.items() if value > top + math.log(0.05)]
    return Tuned(
        assumption=trials[best].assumption,
        evidence=top + math.log(sum(math.exp(value - top) for value in posterior.values())),
        range=(centre * STEP ** min(plausible), centre * STEP ** max(plausible)),
    )


def _log_prior(place: int) -> float:
    """Of one constant on the grid: a normal density over its logarithm, times the grid's step."""
    step = math.log(STEP)
    return -0.5 * (place * step / SPREAD) ** 2 + math.log(step / SPREAD / math.sqrt(2 * math.pi))


def _settle(log: BanditLog, assumption: Assumption, times: int = ROUNDS_OF_EM, *, free: bool = False) -> _Trial:
    """Fit the prior's precision and the share of slips, or with `free` that of lapses; judge the result."""
    scale, before = mean_square(log), -math.inf
    if free:
        times = ROUNDS_OF_EM_FREE
    while True:
        follower = Follower.start(assumption, log.n_features, checkpoints=())
        follower.follow(log)
        if not times or (free and follower.evidence < before + 0.5):
            break
        times -= 1
        before = follower.evidence
        precision = float(np.clip(1 / follower.second_moment, 1e-6 * scale, 1e6 * scale))
        n, k = follower.n_choices, follower.lapses
        slip = max(LEAST, k / (n + SLIPS))
        assumption = replace(assumption, precision=precision, slip=slip)
        if free:
            assumption = replace(assumption, exploration=Lapse(min(max(LEAST, k / max(n, 1)), 1.0)))
    if isinstance(assumption.exploration, Lapse) and not free:
        return _Trial(assumption=assumption, score=follower.normalised_evidence)
    weight = 1.0 if free else SLIPS
    score = follower.normalised_evidence + _averaged(follower.lapses, follower.n_choices, assumption.lapse, weight)
    return _Trial(assumption=assumption, score=score)


def _averaged(k: float, n: int, rate: float, weight: float) -> float:
    """What to add to the evidence at `rate`, for averaging over a rate with prior Beta(1, weight) instead."""
    beta = math.lgamma(k + 1) + math.lgamma(n - k + weight) - math.lgamma(n + 1 + weight)
    at = k * math.log(rate) + ((n - k) * math.log1p(-rate) if rate < 1 else 0.0)
    return math.log(weight) + beta - at


def mean_square(log: BanditLog) -> float:
    """Of the length of picked feature rows."""
    rows = log.features[log.chosen_rows].astype(np.float64, copy=False)
    return float(np.mean(np.sum(rows * rows, axis=1))) or 1.0
