"""Picks of a learner that updates in batches: its rows as its estimate sees them, and the loss of picks on those."""

from math import exp, log, sqrt

import numpy as np

from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.kernels.cached_njit import cached_njit

NEGLIGIBLE = 1e-12
"""Arms of a smaller share in their round's loss are left out of its curvature."""

# The order of a sum is the compiler's, so that it can use wide registers; it is the same in every call.
_compiled = cached_njit(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})


@_compiled
def transform(
    features: Features,
    offsets: Index,
    chosen: Index,
    batch: int,
    ridge: float,
    inverse: Matrix,
    rows: Matrix,
    norms: Vector,
) -> None:
    """Fill `rows` with `(I - ridge * inverse) x` and `norms` with `sqrt(x' inverse x)`, for every offered arm.

    `inverse` is that of `ridge * I + sum of x x'` over the picks of whole batches; it is brought forward as they end.
    """
    d = features.shape[1]
    row, turned = np.empty(d), np.empty(d)
    learned = 0
    for t in range(chosen.shape[0]):
        if t - learned == batch:
            for past in range(learned, t):
                _learn(features, offsets[past] + chosen[past], inverse, row, turned)
            learned = t
        for k in range(offsets[t], offsets[t + 1]):
            squared = _turn(features, k, inverse, row, turned)
            norms[k] = sqrt(max(0.0, squared))
            for i in range(d):
                rows[k, i] = row[i] - ridge * turned[i]


@_compiled
def _turn(features: Features, k: int, inverse: Matrix, row: Vector, turned: Vector) -> float:
    """Fill `turned` with `inverse x` and return `x' inverse x`."""
    d = row.shape[0]
    squared = 0.0
    for i in range(d):
        row[i] = features[k, i]
    for i in range(d):
        total = 0.0
        for j in range(d):
            total += inverse[i, j] * row[j]
        turned[i] = total
        squared += total * row[i]
    return squared


@_compiled
def _learn(features: Features, pick: int, inverse: Matrix, row: Vector, turned: Vector) -> None:
    """Add a pick to the matrix behind `inverse` (the formula of Sherman and Morrison)."""
    scale = 1.0 / (1.0 + _turn(features, pick, inverse, row, turned))
    for i in range(row.shape[0]):
        for j in range(row.shape[0]):
            inverse[i, j] -= scale * turned[i] * turned[j]


@_compiled
def accumulate(
    rows: Matrix,
    bonus: Vector,
    offsets: Index,
    chosen: Index,
    start: int,
    stop: int,
    theta: Vector,
    margin: float,
    width: float,
    gradient: Vector,
    hessian: Matrix,
) -> tuple[float, float, float]:
    """Add gradient and Hessian (upper triangle) of the rounds' smoothed losses to the arrays given.

    A rival's violation is how far its score, bonus and margin added, is above the pick's. Returns three sums over the
    rounds: smoothed losses, hinge losses, and violations weighted by the shares that the smoothing gives them.
    """
    d = theta.shape[0]
    largest = 0
    for t in range(start, stop):
        largest = max(largest, offsets[t + 1] - offsets[t])
    shares, violations = np.empty(largest), np.empty(largest)
    mean, difference = np.empty(d), np.empty(d)
    smooth, hinge, weighted = 0.0, 0.0, 0.0
    for t in range(start, stop):
        first, last = offsets[t], offsets[t + 1]
        pick = first + chosen[t]
        top = 0.0
        for k in range(first, last):
            score = 0.0
            for j in range(d):
                score += (rows[k, j] - rows[pick, j]) * theta[j]
            violations[k - first] = 0.0 if k == pick else score + bonus[k] - bonus[pick] + margin
            top = max(top, violations[k - first])
        total = 0.0
        for k in range(last - first):
            shares[k] = exp((violations[k] - top) / width)
            total += shares[k]
        hinge += top
        smooth += top + width * log(total)
        mean[:] = 0.0
        for k in range(last - first):
            share = shares[k] / total
            weighted += share * violations[k]
            if share < NEGLIGIBLE or first + k == pick:
                continue
            for j in range(d):
                difference[j] = rows[first + k, j] - rows[pick, j]
                mean[j] += share * difference[j]
            for i in range(d):
                scaled = share / width * difference[i]
                for j in range(i, d):
                    hessian[i, j] += scaled * difference[j]
        for i in range(d):
            gradient[i] += mean[i]
            for j in range(i, d):
                hessian[i, j] -= mean[i] * mean[j] / width
    return smooth, hinge, weighted
