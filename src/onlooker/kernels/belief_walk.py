"""Beliefs around a walk: draw them round by round, weigh them by the picks, and draw the walk behind them."""

from math import log, sqrt

import numpy as np

from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.kernels.beliefs import most_arms, weigh
from onlooker.kernels.cached_njit import cached_njit

_compiled = cached_njit(error_model="numpy")


@_compiled
def redraw_around(
    features: Features,
    offsets: Index,
    chosen: Index,
    start: int,
    stop: int,
    alpha: float,
    deviation: float,
    centres: Matrix,
    steps: Vector,
    normals: Matrix,
    uniforms: Vector,
    beliefs: Matrix,
    likelihoods: Vector,
) -> int:
    """One Metropolis step for the belief of every round of a block, `N(centres[t], deviation^2 I)`; how many moved.

    As `onlooker.kernels.beliefs.redraw_beliefs`, whatever was picked before.
    """
    d = centres.shape[1]
    proposal, no_pull = np.empty(d), np.empty(0)
    scores = np.empty(most_arms(offsets, start, stop))
    moved = 0
    for t in range(start, stop):
        kept, step = sqrt(1.0 - steps[t - start] ** 2), steps[t - start] * deviation
        for j in range(d):
            proposal[j] = centres[t, j] + kept * (beliefs[t, j] - centres[t, j]) + step * normals[t - start, j]
        first = offsets[t]
        weight = weigh(features, first, offsets[t + 1], first + chosen[t], alpha, proposal, scores, no_pull)
        if log(uniforms[t - start]) < weight - likelihoods[t]:
            beliefs[t] = proposal
            likelihoods[t] = weight
            moved += 1
    return moved


@_compiled
def carry_around(
    features: Features,
    offsets: Index,
    chosen: Index,
    start: int,
    stop: int,
    alpha: float,
    shifts: Matrix,
    beliefs: Matrix,
    other_beliefs: Matrix,
    likelihoods: Vector,
    pulls: Matrix,
) -> None:
    """Carry the beliefs of a block along when the mean of round t's moves by `shifts[t]`: their distances stay.

    Fills `other_beliefs`, the log-probabilities of their picks, and `pulls[t]`, the gradient of that in the mean.
    """
    scores = np.empty(most_arms(offsets, start, stop))
    for t in range(start, stop):
        for j in range(shifts.shape[1]):
            other_beliefs[t, j] = beliefs[t, j] + shifts[t, j]
        first = offsets[t]
        likelihoods[t] = weigh(
            features, first, offsets[t + 1], first + chosen[t], alpha, other_beliefs[t], scores, pulls[t]
        )


@_compiled
def draw_walk(
    sights: Matrix, first_variance: float, step_variance: float, variances: Vector, normals: Matrix, walk: Matrix
) -> None:
    """Draw a walk of which every round has a noisy sight: filter forwards, sample backwards.

    `variances` are those of a sight's coordinates. No coordinate depends on another, so gains are scalars. Fills
    `walk`, which has a row a round.
    """
    n_rounds, d = sights.shape
    spreads = np.empty((n_rounds, d))
    for j in range(d):
        spread, before = first_variance, 0.0
        for t in range(n_rounds):
            gain = spread / (spread + variances[j])
            before += gain * (sights[t, j] - before)
            walk[t, j] = before
            spreads[t, j] = gain * variances[j]
            spread = spreads[t, j] + step_variance
        walk[n_rounds - 1, j] += sqrt(spreads[n_rounds - 1, j]) * normals[n_rounds - 1, j]
        for t in range(n_rounds - 2, -1, -1):
            gain = spreads[t, j] / (spreads[t, j] + step_variance)
            noise = sqrt(gain * step_variance) * normals[t, j]
            walk[t, j] += gain * (walk[t + 1, j] - walk[t, j]) + noise
