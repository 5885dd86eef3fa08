"""The probability that an arm has the best score, for all arms of a round at once.

What the margins between arms have in common is computed once: the covariance of all scores that come into question,
from which those of any arm's margins over its rivals are sums of four entries.
"""

import math

import numpy as np

from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.kernels.cached_njit import cached_njit
from onlooker.kernels.margins import (
    CUT,
    Belief,
    Model,
    Scratch,
    beats_all,
    condition,
    count_twins,
    inner,
    is_twin,
    strongest,
    times,
)

TOGETHER = 256
"""Arms in question up to which the covariance of all their scores is computed; with more, each arm's margins are."""

_compiled = cached_njit()


@_compiled
def _in_question(best: int, values: Vector, reaches: Vector, places: Index) -> int:
    """Number the arms that may be the best, and those that may have come close to one of them; give how many."""
    lowest = values[best]
    for arm in range(len(values)):
        if values[best] - values[arm] <= max(reaches[arm], reaches[best]):
            lowest = min(lowest, values[arm])
    count = 0
    for arm in range(len(values)):
        places[arm] = -1
        if lowest - values[arm] <= reaches[arm]:
            places[arm] = count
            count += 1
    return count


@_compiled
def _scores_covariance(
    features: Features, first: int, best: int, places: Index, count: int, model: Model, belief: Belief
) -> Matrix:
    """Of the scores of the arms in question less that of the best, noise of each arm aside."""
    d = len(belief.mean)
    plain, seen, turned, carried = np.zeros((count, d)), np.empty((count, d)), np.empty((count, d)), np.empty(d)
    found = np.empty((count, count))
    samples = model.sampling > 0.0
    for arm in range(len(places)):
        place = places[arm]
        if place < 0:
            continue
        for j in range(d):
            plain[place, j] = np.float64(features[first + arm, j]) - np.float64(features[first + best, j])
            seen[place, j] = plain[place, j]
        if model.shrink != 0.0 or samples:
            times(belief.inverse, plain[place], turned[place])
            for j in range(d):
                seen[place, j] -= model.shrink * turned[place, j]
    for i in range(count):
        times(belief.spread, seen[i], carried)
        for k in range(i + 1):
            found[i, k] = inner(seen[k], carried)
            if samples:
                found[i, k] += model.sampling * inner(plain[k], turned[i])
            found[k, i] = found[i, k]
    return found


@_compiled
def _margins_of(
    features: Features,
    first: int,
    arm: int,
    rivals: int,
    places: Index,
    scores: Matrix,
    model: Model,
    at: Scratch,
    used: Index,
) -> int:
    """Fill means and covariance (upper triangle) of an arm's margins over its rivals; give how many were close."""
    own, count = places[arm], 0
    for place in range(rivals):
        rival = at.order[place]
        if model.jitter == 0.0 and is_twin(features, first, at.order, place, at.values):
            continue
        k = places[rival]
        variance = scores[own, own] - 2.0 * scores[own, k] + scores[k, k] + 2.0 * model.jitter
        margin = at.values[arm] - at.values[rival]
        # No variance is left between arms with the same features.
        if variance <= 0.0 or margin > CUT * math.sqrt(variance):
            continue
        at.means[count] = margin
        at.covariance[count, count] = variance
        base = scores[own, own] - scores[own, k] + model.jitter
        for i in range(count):
            at.covariance[i, count] = base - scores[own, used[i]] + scores[used[i], k]
        used[count] = k
        count += 1
    return count


@_compiled
def all_arms(
    features: Features, first: int, best: int, model: Model, belief: Belief, at: Scratch, probabilities: Vector
) -> float:
    """Fill the probability that an arm has the best score, for every arm of a round; give their sum, near one."""
    n_arms, total = len(probabilities), 0.0
    values, reaches = at.values[:n_arms], at.reaches[:n_arms]
    places, used = np.empty(n_arms, dtype=np.int64), np.empty(len(at.order), dtype=np.int64)
    count = _in_question(best, values, reaches, places)
    together = count <= TOGETHER
    scores = np.empty((0, 0))
    if together:
        scores = _scores_covariance(features, first, best, places, count, model, belief)
    for arm in range(n_arms):
        probabilities[arm] = 0.0
        if values[best] - values[arm] > max(reaches[arm], reaches[best]):
            continue
        if together:
            rivals = strongest(values, reaches, arm, at.order)
            close = _margins_of(features, first, arm, rivals, places, scores, model, at, used)
            probability = math.exp(condition(close, at.means, at.covariance, at.shifts, at.drops))
            twins = 1 if model.jitter > 0.0 else count_twins(features, first, arm, values)
        else:
            probability, _, twins = beats_all(features, first, n_arms, arm, model, belief, at)
        probabilities[arm] = probability / twins
        total += probabilities[arm]
    return total
