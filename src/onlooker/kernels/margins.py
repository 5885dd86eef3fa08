"""By how much an arm beats its rivals, in the belief of somebody who follows the learner.

The belief about the learner's estimate is Gaussian, so the margins over the rivals are too. That an arm was the best
says that all of them were positive: a short elimination over those that were close.
"""

import math
from typing import NamedTuple

import numpy as np

from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.kernels.cached_njit import cached_njit

LIVE = 128
"""Rivals of a pick that are considered, the strongest first."""
CUT = 3.0
"""A rival that is behind by this many standard deviations says nothing."""


SPARSE = 3
"""A vector of which less than one entry in so many is not 0 is multiplied entry by entry."""


class Belief(NamedTuple):
    """What is known of the learner's estimate. The arrays are updated in place."""

    mean: Vector
    """Of the estimate, shape (d,), in units of the reward noise."""
    spread: Matrix
    """Covariance of the estimate, given the picks."""
    inverse: Matrix
    """Inverse of the learner's V."""
    prior_inverse: Matrix
    """Inverse of V with the prior's precision in the place of the learner's ridge."""
    largest: Vector
    """Shape (2,): upper bounds on the largest eigenvalues of `inverse` and of `spread`."""


class Model(NamedTuple):
    """How picks are thought to come about."""

    width: float
    """Multiple of `sqrt(x' V^-1 x)` that is added to a score."""
    sampling: float
    """Multiple of `V^-1` that is the covariance of a sampled estimate around the learner's."""
    jitter: float
    """Variance of the normal noise added to every arm's score, independent for each arm and round."""
    temperature: float
    """Of a softmax over the scores; 0 takes the best of them."""
    lapse: float
    """Share of picks that are uniform."""
    shrink: float
    """Learner's ridge less the prior's precision: its estimate is `mean - shrink V^-1 mean`."""
    waits: float = 0.0
    """1 where the learner does not update after a round, but later on many."""
    rate: float = 0.0
    """Of the gradient steps of a learner that keeps no V; the belief is then about its estimate and the truth."""


class Scratch(NamedTuple):
    """Room to work in; the first two have an entry per arm of a round, the others one per rival considered."""

    values: Vector
    """What the learner is thought to have scored."""
    reaches: Vector
    """How far off that may be."""
    order: Index
    """Rivals, the strongest first."""
    means: Vector
    """Of the margins over them."""
    covariance: Matrix
    """Of the margins."""
    carried: Matrix
    """Covariance of the estimate with each margin."""
    shifts: Vector
    """By how much a variable with unit covariance with a margin moves when that turns out positive."""
    drops: Vector
    """How much of its variance is lost then."""


_sums = cached_njit(fastmath={"reassoc", "contract"})
_compiled = cached_njit()


@_sums
def inner(a: Vector, b: Vector) -> float:
    """Inner product."""
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@_sums
def _score_and_length(features: Features, row: int, estimate: Vector) -> tuple[float, float]:
    """Inner product of a row with the estimate, and the row's norm."""
    score, square = 0.0, 0.0
    for j in range(features.shape[1]):
        value = np.float64(features[row, j])
        score += value * estimate[j]
        square += value * value
    return score, math.sqrt(square)


@_compiled
def times(matrix: Matrix, x: Vector, out: Vector) -> float:
    """Fill `out` with `matrix @ x`, the matrix symmetric; return `x' matrix x`.

    Only the entries of `x` that are not 0 cost anything where they are few: those of one arm of many, or of a category.
    """
    d, count = len(x), 0
    for j in range(d):
        count += x[j] != 0.0
    if count * SPARSE > d:
        for i in range(d):
            out[i] = inner(matrix[i], x)
        return inner(out, x)
    out[:] = 0.0
    for j in range(d):
        if x[j] != 0.0:
            row, scale = matrix[j], x[j]
            for i in range(d):
                out[i] += scale * row[i]
    return inner(out, x)


@_compiled
def _passed(z: float) -> tuple[float, float]:
    """Log of the normal distribution function, and density over distribution."""
    if z > -8.0:
        mass = 0.5 * math.erfc(-z / math.sqrt(2.0))
        return math.log(mass), math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) / mass
    # Far out both are 0: the continued fraction of Mills' ratio.
    tail = 0.0
    for k in range(20, 0, -1):
        tail = k / (tail - z)
    return -0.5 * z * z - 0.5 * math.log(2.0 * math.pi) - math.log(tail - z), tail - z


@_compiled
def strongest(values: Vector, reaches: Vector, arm: int, order: Index) -> int:
    """Rivals that may have come close to `arm`, by falling value, no more than `order` has room for; give their number.

    A rival may have come close if its value is within its reach of the arm's.
    """
    count = 0
    for k in range(len(values)):
        if k == arm or values[arm] - values[k] > reaches[k]:
            continue
        if count == len(order):
            if values[k] <= values[order[count - 1]]:
                continue
            count -= 1
        place = count
        while place > 0 and values[order[place - 1]] < values[k]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = k
        count += 1
    return count


@_compiled
def same_row(features: Features, one: int, other: int) -> bool:
    """Whether two arms have the same features: neither can be preferred."""
    j = 0
    while j < features.shape[1] and features[one, j] == features[other, j]:
        j += 1
    return bool(j == features.shape[1])


@_compiled
def is_twin(features: Features, first: int, order: Index, place: int, values: Vector) -> bool:
    """Whether a stronger rival, or one as strong before it, has the same features."""
    before = place - 1
    while before >= 0 and values[order[before]] == values[order[place]]:
        if same_row(features, first + order[before], first + order[place]):
            return True
        before -= 1
    return False


@_compiled
def _margins(
    features: Features,
    first: int,
    arm: int,
    order: Index,
    values: Vector,
    model: Model,
    belief: Belief,
    means: Vector,
    covariance: Matrix,
    carried: Matrix,
) -> int:
    """Belief about by how much `arm` beats the rivals in `order`; give how many of them were close.

    Fills their `means` and `covariance` (upper triangle), and in `carried` the covariance of the learner's estimate
    with each of them.
    """
    d = len(belief.mean)
    plain, seen, turned = np.empty((len(order), d)), np.empty((len(order), d)), np.empty((len(order), d))
    count = 0
    for place in range(len(order)):
        k = order[place]
        if model.jitter == 0.0 and is_twin(features, first, order, place, values):
            continue
        for j in range(d):
            plain[count, j] = np.float64(features[first + arm, j]) - np.float64(features[first + k, j])
            seen[count, j] = plain[count, j]
        own = 0.0
        if model.shrink != 0.0 or model.sampling > 0.0:
            own = model.sampling * times(belief.inverse, plain[count], turned[count])
            for j in range(d):
                seen[count, j] -= model.shrink * turned[count, j]
        variance = times(belief.spread, seen[count], carried[count]) + own + 2.0 * model.jitter
        margin = values[arm] - values[k]
        # No variance is left between arms with the same features.
        if variance <= 0.0 or margin > CUT * math.sqrt(variance):
            continue
        means[count] = margin
        covariance[count, count] = variance
        for i in range(count):
            covariance[i, count] = inner(seen[i], carried[count]) + model.jitter
            if model.sampling > 0.0:
                covariance[i, count] += model.sampling * inner(plain[i], turned[count])
        count += 1
    return count


@_compiled
def condition(count: int, means: Vector, covariance: Matrix, shifts: Vector, drops: Vector) -> float:
    """Let every margin be positive, one after the other; give the log-probability of that.

    Row k of `covariance` is left as it was when its turn came; `shifts` and `drops` say by how much a variable with
    unit covariance with margin k then moves, and how much of its variance is lost.
    """
    log_probability = 0.0
    for k in range(count):
        shifts[k], drops[k] = 0.0, 0.0
        variance = covariance[k, k]
        # Given the earlier rivals nothing is left to learn from this one (rounding can make the variance negative).
        if variance <= 0.0:
            continue
        deviation = math.sqrt(variance)
        z = means[k] / deviation
        log_passed, ratio = _passed(z)
        log_probability += log_passed
        if z > CUT:
            continue
        shifts[k] = ratio / deviation
        drops[k] = ratio * (ratio + z) / variance
        for i in range(k + 1, count):
            means[i] += shifts[k] * covariance[k, i]
            scale = drops[k] * covariance[k, i]
            for j in range(i, count):
                covariance[i, j] -= scale * covariance[k, j]
    return log_probability


@_compiled
def fill_values(
    features: Features, first: int, pick: int, model: Model, belief: Belief, values: Vector, reaches: Vector
) -> int:
    """Fill what the learner is thought to have scored, and how far off that may be; give the first best arm.

    The bonus of an arm that cannot have been the best is left out, unless it was picked.
    """
    d = len(belief.mean)
    estimate, x = np.empty(d), np.empty(d)
    times(belief.inverse, belief.mean, estimate)
    for j in range(d):
        estimate[j] = belief.mean[j] - model.shrink * estimate[j]
    stretch = 1.0 + max(0.0, -model.shrink) * belief.largest[0]
    deviation = math.sqrt(stretch * stretch * belief.largest[1] + model.sampling * belief.largest[0])
    bonus = model.width * math.sqrt(belief.largest[0])
    longest, floor = 0.0, -np.inf
    for k in range(len(values)):
        values[k], reaches[k] = _score_and_length(features, first + k, estimate)
        longest = max(longest, reaches[k])
        floor = max(floor, values[k])
    best = 0
    for k in range(len(values)):
        reach = CUT * deviation * (reaches[k] + longest)
        if model.jitter > 0.0:
            reach = math.sqrt(reach * reach + 2.0 * CUT * CUT * model.jitter)
        if model.width > 0.0 and (k == pick or values[k] + bonus * reaches[k] + reach >= floor):
            for j in range(d):
                x[j] = features[first + k, j]
            values[k] += model.width * math.sqrt(max(times(belief.inverse, x, estimate), 0.0))
        reaches[k] = reach
        if values[k] > values[best]:
            best = k
    return best


@_compiled
def room(offsets: Index, start: int, stop: int, d: int) -> Scratch:
    """Arrays for the largest of the rounds."""
    largest = 1
    for t in range(start, stop):
        largest = max(largest, offsets[t + 1] - offsets[t])
    live = min(LIVE, largest)
    return Scratch(
        np.empty(largest),
        np.empty(largest),
        np.empty(live, dtype=np.int64),
        np.empty(live),
        np.empty((live, live)),
        np.empty((live, d)),
        np.empty(live),
        np.empty(live),
    )


@_compiled
def count_twins(features: Features, first: int, arm: int, values: Vector) -> int:
    """How many arms have the features of this one, itself included."""
    twins = 1
    for k in range(len(values)):
        if k != arm and values[k] == values[arm] and same_row(features, first + k, first + arm):
            twins += 1
    return twins


@_compiled
def beats_all(
    features: Features, first: int, n_arms: int, arm: int, model: Model, belief: Belief, at: Scratch
) -> tuple[float, int, int]:
    """Probability that `arm` has the best score, how many rivals were close, and how many arms share that score.

    Arms with the same features do, unless each has noise of its own. `at` receives the margins' moments.
    """
    rivals = strongest(at.values[:n_arms], at.reaches[:n_arms], arm, at.order)
    count = _margins(
        features, first, arm, at.order[:rivals], at.values, model, belief, at.means, at.covariance, at.carried
    )
    twins = 1 if model.jitter > 0.0 else count_twins(features, first, arm, at.values[:n_arms])
    return math.exp(condition(count, at.means, at.covariance, at.shifts, at.drops)), count, twins
