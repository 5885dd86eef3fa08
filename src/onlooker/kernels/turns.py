"""Two learners of one estimate that take turns at random: each pick is one of the first or of the second."""

import math

import numpy as np
from numpy.typing import NDArray

from onlooker.base.types import Features, Index, Vector
from onlooker.kernels.cached_njit import cached_njit
from onlooker.kernels.margins import Belief, Model
from onlooker.kernels.tracking import BLOCK, follow_part, refresh

_compiled = cached_njit()


@_compiled
def _copy(belief: Belief, into: Belief) -> None:
    into.mean[:], into.spread[:] = belief.mean, belief.spread
    into.inverse[:], into.prior_inverse[:] = belief.inverse, belief.prior_inverse
    into.largest[:] = belief.largest


@_compiled
def _join(belief: Belief, other: Belief, weight: float) -> None:
    """A normal belief with mean and covariance of both, the first of which has this weight."""
    d, apart = len(belief.mean), 0.0
    gap = belief.mean - other.mean
    for i in range(d):
        belief.mean[i] = other.mean[i] + weight * gap[i]
        apart += gap[i] * gap[i]
        for j in range(d):
            belief.spread[i, j] = (
                weight * belief.spread[i, j]
                + (1.0 - weight) * other.spread[i, j]
                + weight * (1.0 - weight) * gap[i] * gap[j]
            )
    belief.largest[1] = max(belief.largest[1], other.largest[1]) + weight * (1.0 - weight) * apart


@_compiled
def follow_turns(
    features: Features,
    offsets: Index,
    chosen: Index,
    model: Model,
    other: Model,
    n_rounds: int,
    choices: int,
    belief: Belief,
    log_probabilities: Vector,
    random_picks: Vector,
    tally: NDArray[np.float64],
) -> None:
    """The same as `follow` where half of the picks are of one model, half of the other; `tally` stays as it is."""
    spare = Belief(
        belief.mean.copy(),
        belief.spread.copy(),
        belief.inverse.copy(),
        belief.prior_inverse.copy(),
        belief.largest.copy(),
    )
    unused, none, second, random = np.zeros_like(tally[0]), np.empty(0), np.empty(1), np.empty(1)
    for t in range(len(chosen)):
        if (n_rounds + t) % BLOCK == 0:
            refresh(belief)
        _copy(belief, spare)
        part, first = (offsets[t : t + 2], chosen[t : t + 1]), log_probabilities[t : t + 1]
        follow_part(features, *part, model, choices, belief, first, random_picks[t : t + 1], unused, none)
        follow_part(features, *part, other, choices, spare, second, random, unused, none)
        choices += offsets[t + 1] - offsets[t] > 1
        own, theirs = math.exp(first[0]), math.exp(second[0])
        weight = own / (own + theirs) if own + theirs > 0.0 else 0.5
        log_probabilities[t] = math.log(max(0.5 * (own + theirs), 1e-300))
        random_picks[t] = weight * random_picks[t] + (1.0 - weight) * random[0]
        _join(belief, spare, weight)
