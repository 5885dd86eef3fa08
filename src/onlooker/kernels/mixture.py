"""How picks come about, estimated stretch by stretch: shares of several ways to pick, and the policy's decisiveness."""

import math

import numpy as np

from onlooker.base.types import Index, Matrix, Vector
from onlooker.kernels.cached_njit import cached_njit

SHARPEST = 5.0
"""A stretch's picks are at most so many times as decisive as the whole log's: beyond, likelihoods are flat."""

TIE = 1e-100
"""Scores that differ by less are the same: squares of their differences would be no proper numbers."""

LEAST_EXPONENT = -200.0
"""Arms whose scores are further below the best are taken to be so far below it: products of theirs are numbers."""

_compiled = cached_njit(error_model="numpy")


@_compiled
def below_best(scores: Vector, offsets: Index) -> None:
    """Count the scores of every round from its best one, in place."""
    for t in range(len(offsets) - 1):
        best = scores[offsets[t]]
        for row in range(offsets[t], offsets[t + 1]):
            best = max(best, scores[row])
        for row in range(offsets[t], offsets[t + 1]):
            below = scores[row] - best
            scores[row] = 0.0 if below > -TIE else below


@_compiled
def _weights(scores: Vector, scale: float, weights: Vector) -> tuple[float, float, float]:
    """Fill the unnormalised probabilities of a round's arms; return their sum, and mean and variance of the score."""
    total, moment, square = 0.0, 0.0, 0.0
    for k in range(len(scores)):
        weights[k] = math.exp(max(scale * scores[k], LEAST_EXPONENT))
        total += weights[k]
        moment += weights[k] * scores[k]
        square += weights[k] * scores[k] * scores[k]
    mean = moment / total
    return total, mean, square / total - mean * mean


@_compiled
def explain(
    scores: Vector,
    offsets: Index,
    picks: Index,
    others: Matrix,
    bounds: Index,
    steps: int,
    beforehand: Vector,
    scale: Vector,
    shares: Matrix,
    own: Vector,
    given: Vector,
    best: Vector,
    residuals: Vector,
) -> None:
    """Move `scale` and `shares` of every stretch on by expectation and maximisation; fill what each pick is taken for.

    `scores` are those below the best, `picks` the rows that were picked, `others` how probable each pick is in the
    other ways, shape (ways, N).
    """
    n_ways, most = shares.shape[1], 0
    for t in range(len(picks)):
        most = max(most, offsets[t + 1] - offsets[t])
    room, joint, sums = np.empty(most), np.empty(n_ways), np.empty(n_ways)
    for stretch in range(len(bounds) - 1):
        share = shares[stretch]
        for step in range(steps + 1):
            sums[:] = beforehand
            slope, bend = 0.0, 0.0
            for t in range(bounds[stretch], bounds[stretch + 1]):
                first, n = offsets[t], offsets[t + 1] - offsets[t]
                total, mean, spread = _weights(scores[first : first + n], scale[stretch], room)
                joint[0] = room[picks[t] - first] / total * share[0]
                probability = joint[0]
                for way in range(1, n_ways):
                    joint[way] = others[way - 1, t] * share[way]
                    probability += joint[way]
                mine = joint[0] / probability
                if step < steps:
                    for way in range(n_ways):
                        sums[way] += joint[way] / probability
                    slope += mine * (scores[picks[t]] - mean)
                    bend += mine * spread
                    continue
                own[t], given[t] = mine, probability
                best[t] = share[0] / total + (1.0 - share[0]) / n
                for k in range(n):
                    residuals[first + k] = -mine * room[k] / total
                residuals[picks[t]] += mine
            if step < steps:
                share[:] = sums / sums.sum()
                reach = max(scale[stretch], 0.2) / 2.0
                newton = min(max(slope / max(bend, 1e-9), -reach), reach)
                scale[stretch] = min(max(scale[stretch] + newton, 0.0), SHARPEST)
