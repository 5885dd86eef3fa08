"""Which kind of exploration explains a log best, and how strongly: families compared by their evidence.

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

from onlooker.base.threads import ordered_map
from onlooker.base.types import Matrix, Vector
from onlooker.logs.log import BanditLog
from onlooker.observers.tracking.assumptions import FAMILIES, TS, UCB, Assumption, Exploration, Lapse, Softmax
from onlooker.observers.tracking.follower import LEAST, SLIPS, Follower
from onlooker.observers.tracking.variation import within_rounds

STEP = 2.0
"""Between neighbouring constants that are tried."""
FINER = (STEP**0.5, STEP**0.25)
"""Between constants that are tried at last."""
NEARBY = 4
"""Steps that a constant may be off at most; the prior's precision of a learner without noise has no end."""
SPREAD = math.log(2.0)
"""Prior deviation of a constant's logarithm around its textbook value, 1 for `alpha` and d for `nu`."""
ROUNDS_OF_EM = 2
LAPSE_ROUNDS_OF_EM = 12
ENOUGH = 1000
"""From so many rounds on, a quarter of them is enough to leave out the families that are far behind."""
BEHIND = 30.0
"""Log-evidence."""
GIVEN_UP = 12.0
"""Log-probability by which constants that are behind the best ones half-way are given up."""
PRECISIONS = (0.01, 0.1, 1.0)
"""Of the prior before any pick was seen, against the features' mean square."""
EPSILONS = (0.05, 0.1, 0.2, 0.4)
"""Shares of random picks before any was seen."""


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """What one family makes of a log."""

    assumption: Assumption
    """With its best constant."""
    evidence: float
    """Log-probability of the picks, averaged over the constant; of a family that was left early, at most this."""
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
    first: Sequence[Tuned] | None = None,
    only: Sequence[str] | None = None,
) -> list[Tuned]:
    """Fit each family, given by name or with its constant, to the log; in the order given.

    Several are first fitted to a quarter of it, unless `first` has that. Those far behind there, or not among `only`,
    are not fitted any further: they are given the best one's evidence less what they were behind. If that leaves only
    one, its constant stands.
    """
    rounds = Rounds.of(log)
    fresh = [_start(rounds, one, ridge) for one in families]
    if len(families) == 1 or log.n_rounds < ENOUGH:
        return _each(rounds, families, fresh)
    if first is None:
        first = _each(Rounds.of(log[: log.n_rounds // 4]), families, fresh)
    top = max(one.evidence for one in first)
    left = [
        place
        for place, one in enumerate(first)
        if one.evidence > top - BEHIND and (only is None or families[place] in only)
    ]
    left = left or [max(range(len(first)), key=lambda place: first[place].evidence)]
    starts = [first[place].assumption for place in left]
    alone = len(left) == 1 and families[left[0]] != Lapse.name
    found = _each(rounds, [starts[0].exploration] if alone else [families[place] for place in left], starts)
    if alone:
        found = [replace(found[0], range=first[left[0]].range)]
    best = max(one.evidence for one in found)
    rest = dict(zip(left, found, strict=True))
    return [rest.get(place, replace(one, evidence=best - (top - one.evidence))) for place, one in enumerate(first)]


def textbook(log: BanditLog, ridge: float) -> dict[str, list[Assumption]]:
    """What may be assumed of each family before any pick was seen: constants around the textbook's, any prior.

    Epsilon is one of a learner that explores noticeably: one that never does is not taken for epsilon-greedy.
    """
    rounds, found = Rounds.of(log), dict[str, list[Assumption]]()
    for name, make in FAMILIES.items():
        start = _start(rounds, name, ridge)
        around = [start.exploration.strength * STEP**place for place in (-1, 0, 1)]
        ways = [make(one) for one in (EPSILONS if name == Lapse.name else around)]
        found[name] = [
            replace(start, exploration=way, precision=scale * rounds.scale) for way in ways for scale in PRECISIONS
        ]
    return found


def mixed(log_probabilities: Matrix) -> Vector:
    """Log-probability of each pick, the assumptions averaged by how well they predicted those before, shape (n,).

    Examples
    --------
    >>> sure, unsure = np.log([0.9, 0.9, 0.9]), np.log([0.5, 0.5, 0.5])
    >>> np.exp(mixed(np.stack([sure, unsure]))).round(2)
    array([0.7 , 0.76, 0.81])
    """
    so_far = np.cumsum(log_probabilities, axis=1)
    total = np.logaddexp.reduce(so_far, axis=0) - math.log(len(so_far))
    found: Vector = np.diff(total, prepend=0.0)
    return found


@dataclass(frozen=True)
class Rounds:
    """Rounds that families are fitted to."""

    log: BanditLog
    scale: float
    """Their `mean_square`."""

    @classmethod
    def of(cls, log: BanditLog) -> Rounds:
        """Of a log."""
        return cls(log, mean_square(log))


def _each(rounds: Rounds, families: Sequence[str | Exploration], starts: Sequence[Assumption]) -> list[Tuned]:
    jobs = [partial(_family, rounds, one, start) for one, start in zip(families, starts, strict=True)]
    return list(ordered_map(lambda job: job(), jobs))


def _start(rounds: Rounds, family: str | Exploration, ridge: float) -> Assumption:
    """Textbook constants, and a guess at the rest."""
    textbook: dict[str, Exploration] = {
        "UCB": UCB(1.0),
        "TS": TS(float(rounds.log.n_features)),
        "Lapse": Lapse(0.02),
        "Softmax": Softmax(1.0),
    }
    exploration = textbook[family] if isinstance(family, str) else family
    return Assumption(exploration=exploration, ridge=ridge, precision=0.3 * rounds.scale, slip=0.01)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One constant, its companions fitted."""

    assumption: Assumption
    score: float
    """Log-evidence, slips averaged over; minus infinity if it was given up."""
    picks: Vector
    """Log-probability of each pick; of those before it was given up."""


def _family(rounds: Rounds, family: str | Exploration, start: Assumption) -> Tuned:
    if not isinstance(family, str):
        trial = settle(rounds, start)
        return Tuned(assumption=trial.assumption, evidence=trial.score, range=(family.strength, family.strength))
    if family == Lapse.name:
        trial = settle(rounds, start, free=True)
        rate, n = trial.assumption.lapse, max(1, rounds.log.n_rounds)
        reach = 2 * math.sqrt(rate * (1 - rate) / n)
        limits = (max(0.0, rate - reach), min(1.0, rate + reach))
        return Tuned(assumption=trial.assumption, evidence=trial.score, range=limits)
    return _climb(rounds, FAMILIES[family], float(rounds.log.n_features) if family == TS.name else 1.0, start)


def _climb(rounds: Rounds, make: Callable[[float], Exploration], centre: float, start: Assumption) -> Tuned:
    """Try constants on a grid around the centre, from the start's on, until both neighbours of the best are worse."""
    trials: dict[int, Trial] = {}

    def score(place: int) -> float:
        if place not in trials:
            nearest = min(trials, key=lambda other: abs(other - place), default=None)
            guess = start if nearest is None else trials[nearest].assumption
            against = None if best not in trials else trials[best].picks
            trial = replace(guess, exploration=make(centre * STEP**place))
            trials[place] = settle(rounds, trial, 1 if trials else ROUNDS_OF_EM, against=against)
        return trials[place].score + _log_prior(place)

    best = round(math.log(start.exploration.strength / centre, STEP))
    while True:
        around = max((best, best - 1, best + 1), key=score)
        if around == best:
            break
        best = around
    posterior = {place: score(place) for place in trials}
    top = posterior[best]
    plausible = [place for place, value in posterior.items() if value > top + math.log(0.05)]
    averaged = top + math.log(sum(math.exp(value - top) for value in posterior.values()))
    return Tuned(
        assumption=trials[best].assumption,
        evidence=averaged,
        range=(centre * STEP ** min(plausible), centre * STEP ** max(plausible)),
    )


def refined(log: BanditLog, assumption: Assumption) -> Assumption:
    """The same with the constant and the prior's precision, of those nearby, that make the picks most probable.

    Expectation maximisation takes the filter's belief for the posterior, and comes to rest beside that.
    """
    rounds = Rounds.of(log)
    best = settle(rounds, assumption, 0)
    for factor in FINER if not isinstance(assumption.exploration, Lapse) else ():
        strength = best.assumption.exploration.strength
        for constant in (strength * factor, strength / factor):
            other = replace(best.assumption, exploration=type(assumption.exploration)(constant))
            best = _better(rounds, best, other)
    return climbed(rounds, best, lambda one, factor: replace(one, precision=factor * one.precision)).assumption


def climbed(rounds: Rounds, best: Trial, scaled: Callable[[Assumption, float], Assumption]) -> Trial:
    """The best of what scaling a constant by steps up, or else down, gives."""
    for factor in (STEP, 1.0 / STEP):
        before = best
        for _ in range(NEARBY):
            last = best
            best = _better(rounds, last, scaled(last.assumption, factor))
            if best is last:
                break
        if best is not before:
            break
    return best


def _better(rounds: Rounds, best: Trial, other: Assumption) -> Trial:
    """What makes the picks more probable."""
    found = settle(rounds, other, 0, against=best.picks)
    is_behind = len(found.picks) < len(best.picks) or found.picks.sum() <= best.picks.sum()
    return best if is_behind else found


def _log_prior(place: int) -> float:
    """Of one constant on the grid: a normal density over its logarithm, times the grid's step."""
    step = math.log(STEP)
    return -0.5 * (place * step / SPREAD) ** 2 + math.log(step / SPREAD / math.sqrt(2 * math.pi))


def settle(
    rounds: Rounds,
    assumption: Assumption,
    times: int = ROUNDS_OF_EM,
    *,
    free: bool = False,
    against: Vector | None = None,
) -> Trial:
    """Fit the prior's precision and the share of slips, or with `free` epsilon; judge the result.

    Epsilon alone is fitted until the evidence stops rising: from a small to a large share takes a while. What is far
    behind `against`, the log-probability of each pick in the best trial so far, is given up on the way.
    """
    log, scale, before = rounds.log, rounds.scale, -math.inf
    for _ in range(LAPSE_ROUNDS_OF_EM if free else times):
        follower, picks = _followed(log, assumption, against)
        if len(picks) < log.n_rounds:
            return Trial(assumption=assumption, score=-math.inf, picks=picks)
        if free and follower.evidence < before + 1.0:
            break
        before = follower.evidence
        precision = float(np.clip(1 / follower.second_moment, 1e-6 * scale, 1e6 * scale))
        n, k = follower.n_choices, follower.random_picks
        assumption = replace(assumption, precision=precision, slip=max(LEAST, k / (n + SLIPS)))
        if free:
            assumption = replace(assumption, exploration=Lapse(min(max(LEAST, k / max(n, 1)), 1.0)))
    else:
        # Where epsilon has settled, it has just been judged.
        follower, picks = _followed(log, assumption, against)
    score = follower.evidence
    if len(picks) < log.n_rounds:
        score = -math.inf
    elif free or not isinstance(assumption.exploration, Lapse):
        score += _averaged(follower.random_picks, follower.n_choices, assumption.lapse, 1.0 if free else SLIPS)
    return Trial(assumption=assumption, score=score, picks=picks)


def _followed(log: BanditLog, assumption: Assumption, against: Vector | None) -> tuple[Follower, Vector]:
    """Follow the log; give the log-probabilities of its picks, or of those until it was given up."""
    follower, half = Follower.start(assumption, log.n_features, checkpoints=()), log.n_rounds // 2
    if against is None:
        return follower, follower.follow(log)
    picks = np.empty(0)
    for start, stop in ((0, half // 2), (half // 2, half), (half, log.n_rounds)):
        if picks.sum() < against[:start].sum() - GIVEN_UP:
            break
        picks = np.concatenate([picks, follower.follow(log[start:stop])])
    return follower, picks


def _averaged(k: float, n: int, rate: float, weight: float) -> float:
    """What to add to the evidence at `rate`, for averaging over a rate with prior Beta(1, weight) instead."""
    beta = math.lgamma(k + 1) + math.lgamma(n - k + weight) - math.lgamma(n + 1 + weight)
    at = k * math.log(rate) + ((n - k) * math.log1p(-rate) if rate < 1 else 0.0)
    return math.log(weight) + beta - at


def mean_square(log: BanditLog) -> float:
    """Of how far an arm's features are from their round's mean: what is the same for all arms sets no scale."""
    return float(np.trace(within_rounds(log)[1])) / log.n_rounds or 1.0
