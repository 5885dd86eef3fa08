"""What may be different about a learner whose family is known: coding, noise on scores, what it knew before, batches.

And what it may be instead: a policy that does not learn at all, or a learner that makes gradient steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from onlooker.base.numerics import largest_eigenvalue
from onlooker.base.threads import ordered_map
from onlooker.base.types import Vector
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog
from onlooker.observers.tracking.assumptions import TS, UCB, Assumption, Exploration, Lapse, Reference, Softmax
from onlooker.observers.tracking.follower import LEAST, Follower
from onlooker.observers.tracking.proof import SURE
from onlooker.observers.tracking.tuning import EPSILONS, Rounds, Trial, Tuned, climbed, mixed, refined, settle, textbook
from onlooker.observers.tracking.variation import feature_sizes, in_own_units

NOISES, NOISE_STEP = 3, 4.0
"""Steps from the first guess at the noise to the last, and their size."""
FIXED_SOFTMAX, FIXED_GREEDY = "fixed softmax", "fixed greedy"
"""Policies that do not learn: a softmax of scores, and the best arm except in a share of the rounds."""
GRADIENT_SOFTMAX, GRADIENT_GREEDY = "softmax by gradient", "greedy by gradient"
"""Learners that make gradient steps, which keep no `V`: the same two ways to pick."""
RATES = (0.2, 0.05, 0.0125)
"""Share of a pick's error that a step takes back, before any pick was seen."""
ALL_KNOWN = 1e9
"""Rounds after which a learner does not move any more: it is a fixed policy."""
FIXED_PRECISIONS = (0.001, 0.01, 0.1, 1.0)
"""Of a fixed policy's weights before any pick was seen, against the features' mean square; its temperature is 1."""
AGES = (1.0, 10.0, 0.1)
"""How old the learner may be at the first round, in lengths of the log; the others are tried if the first helps."""
BATCHES = ((50, (20, 100)), (10, ()), (500, (200, 1000)))
"""Rounds between updates; those beside are tried if the first of them helps."""
STEPS_TO_MODE = 20
"""Of Newton's method, at most."""
TWIN = 2.0
"""Variance by which the estimates of two learners of one world differ, in units of that of either."""
GAIN, ERRORS = 5.0, 3.0
"""Log-evidence, and standard errors of it, by which a learner with a past or with batches is ahead of one without."""


CODED = 500
"""Rounds that a coding is chosen by."""
ALIKE = 2.0
"""Features whose sizes differ by no more than this are alike; arms are so in length, up to this."""


def chosen_coding(log: BanditLog, ridge: float) -> Reference | None:
    """A block for every arm where one is left out; None where there is no such block, or the learner had none either.

    That an arm has no weights is taken of a learner only if its first picks say so by odds of twenty to one.
    """
    log = log[:CODED]
    found = Reference.of(log)
    if found is None or _usual(log, ridge) > _usual(found.log(log), ridge) + SURE:
        return None
    return found


def chosen_length(log: BanditLog, ridge: float) -> float | None:
    """Length of arms in units in which features are of one size; None takes the features as they are.

    A ridge is one in the learner's units, which may not be the log's. Textbooks have arms of length one, or features of
    size one. Either is taken of a learner if its first picks say so by odds of twenty to one.
    """
    log = log[:CODED]
    sizes = feature_sizes(log)
    sizes, most = sizes[sizes > 0], math.sqrt(log.n_features)
    if not len(sizes):
        return None
    length = math.sqrt(float(sizes @ sizes) / 3.0)
    if sizes.max() <= ALIKE * sizes.min() and 1.0 / ALIKE <= length <= ALIKE * most:
        return None
    found = {one: _usual(log, ridge, one) for one in (1.0, most)}
    best = max(found, key=lambda one: found[one])
    return best if found[best] > _usual(log, ridge) + SURE else None


def _usual(log: BanditLog, ridge: float, length: float | None = None) -> float:
    """Log-probability of the picks by the best family, its usual constants averaged."""
    log, _, _ = in_own_units(log, length)

    def follow(assumption: Assumption) -> Vector:
        return Follower.start(assumption, log.n_features, ()).follow(log)

    families = textbook(log, ridge).values()
    return max(float(mixed(np.stack(list(ordered_map(follow, ways)))).sum()) for ways in families)


def fixed_policies(log: BanditLog, ridge: float) -> dict[str, list[Assumption]]:
    """What may be assumed of policies that do not learn, before any pick was seen."""
    rounds = Rounds.of(log)
    start = _fixed(rounds, Softmax(1.0), ridge)
    return {
        FIXED_SOFTMAX: [replace(start, precision=one * rounds.scale) for one in FIXED_PRECISIONS],
        FIXED_GREEDY: [replace(start, exploration=Lapse(one)) for one in EPSILONS],
    }


def fixed_policy(log: BanditLog, name: str, ridge: float) -> Assumption:
    """The policy that does not learn and explains the log best, of one of the two kinds."""
    rounds = Rounds.of(log)
    if name == FIXED_SOFTMAX:
        return settle(rounds, _fixed(rounds, Softmax(1.0), ridge)).assumption
    return settle(rounds, _fixed(rounds, Lapse(0.1), ridge), free=True).assumption


def gradient_learners(log: BanditLog, ridge: float) -> dict[str, list[Assumption]]:
    """What may be assumed of learners that make gradient steps, before any pick was seen."""
    usual, found = textbook(log, ridge), dict[str, list[Assumption]]()
    for name, family in ((GRADIENT_SOFTMAX, Softmax.name), (GRADIENT_GREEDY, Lapse.name)):
        found[name] = [replace(one, rate=rate / _length(log)) for one in usual[family] for rate in RATES]
    return found


def gradient_learner(log: BanditLog, name: str, ridge: float) -> Assumption:
    """The learner by gradient steps that explains the log best, of one of the two kinds."""
    rounds, free = Rounds.of(log), name == GRADIENT_GREEDY
    way: Exploration = Lapse(0.1) if free else Softmax(1.0)
    start = Assumption(exploration=way, ridge=ridge, precision=0.3 * rounds.scale, slip=0.01)
    best = settle(rounds, replace(start, rate=RATES[1] / _length(log)), free=free)
    best = climbed(rounds, best, lambda one, factor: replace(one, rate=factor * one.rate))
    if not free:
        best = climbed(
            rounds, best, lambda one, factor: replace(one, exploration=Softmax(factor * one.exploration.strength))
        )
    return refined(log, best.assumption)


def _length(log: BanditLog) -> float:
    """Mean square length of an arm's features."""
    parts = [log[start:stop].dense for start, stop in ragged.blocks(log.offsets, log.n_features)]
    return float(sum(np.einsum("ij,ij->", rows, rows, dtype=np.float64) for rows in parts)) / len(log.features) or 1.0


def in_turns(start: Assumption, n_features: int) -> Assumption:
    """Two learners of one world that take turns at random and together explore about as much as one.

    One is greedy but for a textbook's optimism, so that the other explores twice as much; one that is optimistic takes
    turns with a textbook's Thompson sampling. Random picks are easily shared out, so that epsilon-greedy takes turns
    with a learner whose estimate is another: it differs by `TWIN` times what either knows not.
    """
    way = start.exploration
    if isinstance(way, UCB):
        return replace(start, other=TS(float(n_features)))
    if isinstance(way, Lapse):
        return replace(start, exploration=Lapse(min(1.0, 2.0 * way.epsilon)), other=TS(TWIN), slip=LEAST)
    return replace(start, exploration=type(way)(2.0 * way.strength), other=UCB(1.0))


def settle_fixed(follower: Follower, rounds: BanditLog) -> None:
    """Put the belief about a fixed softmax at its most probable weights given these rounds, where that is better.

    The filter looks at each pick once, and where weights are large its first steps leave them too short for long. No
    learner gains from that: it would be ahead of a policy that does not learn by an approximation alone.
    """
    theta, spread = follower.belief.mean.copy(), follower.belief.spread.copy()
    best, starts = -math.inf, rounds.offsets[:-1]
    rows = rounds.dense.astype(np.float64)
    rows -= np.repeat(rows[starts], rounds.n_arms, axis=0)
    for _ in range(STEPS_TO_MODE):
        scores = rows @ theta
        scores -= np.repeat(np.maximum.reduceat(scores, starts), rounds.n_arms)
        shares = np.exp(scores)
        shares /= np.repeat(np.add.reduceat(shares, starts), rounds.n_arms)
        penalty = 0.5 * follower.assumption.precision * float(theta @ theta)
        value = float(np.log(shares[rounds.chosen_rows]).sum()) - penalty
        if value < best + 1e-3:
            break
        mean = np.add.reduceat(shares[:, None] * rows, starts)
        centred = rows - np.repeat(mean, rounds.n_arms, axis=0)
        bend = (shares[:, None] * centred).T @ centred + follower.assumption.precision * np.eye(len(theta))
        best, spread = value, np.linalg.inv(bend)
        follower.belief.mean[:], follower.belief.spread[:] = theta, spread
        theta = theta + spread @ (centred[rounds.chosen_rows].sum(axis=0) - follower.assumption.precision * theta)
    follower.belief.largest[1] = largest_eigenvalue(follower.belief.spread)


def _fixed(rounds: Rounds, exploration: Exploration, ridge: float) -> Assumption:
    scale = rounds.scale
    return Assumption(exploration=exploration, ridge=ridge, precision=0.1 * scale, slip=0.01, known=ALL_KNOWN * scale)


def with_noise(log: BanditLog, start: Assumption, noise: float = 0.25) -> Assumption:
    """The same with the most probable amount of normal noise on scores, in the place of a softmax or besides.

    `noise` is the first guess; where it takes the place of a softmax, that says it better.
    """
    if isinstance(start.exploration, Softmax):
        # The deviation of Gumbel noise, whose best arm is a softmax pick.
        noise = math.pi * start.exploration.temperature / math.sqrt(6)
        start = replace(start, exploration=Lapse(max(LEAST, start.slip)))
    rounds, trials = Rounds.of(log), dict[int, Trial]()

    def score(place: int) -> float:
        if place not in trials:
            nearest = min(trials, key=lambda other: abs(other - place), default=None)
            guess = start if nearest is None else trials[nearest].assumption
            against = None if best not in trials else trials[best].picks
            trial = replace(guess, noise=noise * NOISE_STEP**place)
            trials[place] = settle(rounds, trial, 0 if trials else 1, against=against)
        return trials[place].score

    best = 0
    while abs(best) < NOISES and (around := max((best, best - 1, best + 1), key=score)) != best:
        best = around
    return trials[best].assumption


def with_past(log: BanditLog, tuned: Tuned) -> Tuned:
    """The same learner with what it knew before the log, or with batches, where the picks clearly say so."""
    rounds = Rounds.of(log)
    plain = settle(rounds, tuned.assumption, 0)
    found = [_best(rounds, plain, _aged(rounds, plain.assumption, AGES[:1]), _aged(rounds, plain.assumption, AGES[1:]))]
    for first, beside in BATCHES:
        found.append(_best(rounds, plain, _batched(rounds, plain, (first,)), _batched(rounds, plain, beside)))
    best = max(found, key=lambda one: one.score)
    if best.score < plain.score + GAIN:
        return tuned
    ahead = best.picks - plain.picks
    if ahead.sum() < ERRORS * ahead.std() * len(ahead) ** 0.5:
        return tuned
    return replace(tuned, assumption=best.assumption, evidence=tuned.evidence + best.score - plain.score)


def _best(rounds: Rounds, plain: Trial, first: Iterable[Assumption], beside: Iterable[Assumption]) -> Trial:
    """The best of the first and, if that is better than the plain one, those beside it."""
    tried = [settle(rounds, one, 0, against=plain.picks) for one in first]
    found = max(tried, key=lambda one: one.score, default=plain)
    if found.score <= plain.score:
        return plain
    tried = [found, *(settle(rounds, one, 0, against=plain.picks) for one in beside)]
    best = max(tried, key=lambda one: one.score)
    return settle(rounds, best.assumption, 1)


def _aged(rounds: Rounds, plain: Assumption, ages: Iterable[float]) -> Iterable[Assumption]:
    """Learners of these ages that explore, half-way through the log, as much as one that began with it."""
    of_log = information(rounds.log, rounds.scale)
    half = plain.ridge + 0.5 * of_log
    for age in ages:
        known = age * of_log
        exploration, more = plain.exploration, (half + known) / half
        if isinstance(exploration, TS):
            exploration = TS(exploration.nu * more)
        elif isinstance(exploration, UCB):
            exploration = UCB(exploration.alpha * math.sqrt(more))
        yield replace(plain, exploration=exploration, known=known)


def information(log: BanditLog, scale: float) -> float:
    """What a learner that picked at random would know of a typical weight after these rounds."""
    return scale * log.n_rounds / log.n_features


def _batched(rounds: Rounds, plain: Trial, lengths: Iterable[int]) -> Iterable[Assumption]:
    return (replace(plain.assumption, batch=one) for one in lengths if 2 * one <= rounds.log.n_rounds)
