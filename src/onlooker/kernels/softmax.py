"""Conditional softmax loss of a range of rounds: value, gradient and Hessian in one pass over the features.

Features may be float32; every product and sum is taken in float64. Arms are compared with the pick (`x - x_pick`),
which leaves the loss unchanged and keeps large common offsets out of the Hessian.
"""

from math import exp, log

import numpy as np
from numba import njit

from onlooker.types import Features, Index, Matrix, Vector

FLUSH = -45.0
"""Scores this far below the round's best have probability below 3e-20: beyond double precision, so they are skipped."""

ROWS = 8
"""Outer products are gathered and added to the Hessian this many at a time: one load and store for all of them."""

# The order of a sum is the compiler's, so that it can use wide registers; it is the same in every call.
_compiled = njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})


@_compiled
def _probabilities(
    features: Features, first: int, last: int, pick: int, theta: Vector, origin: Vector, probabilities: Vector
) -> float:
    """Fill the round's softmax probabilities, and `origin` with the pick's features; return the round's loss.

    Scores are those of `x - x_pick`: what all arms share cancels before it can drown what tells them apart.
    """
    d = theta.shape[0]
    for j in range(d):
        origin[j] = features[pick, j]
    top = 0.0
    for row in range(first, last):
        score = 0.0
        for j in range(d):
            score += (features[row, j] - origin[j]) * theta[j]
        probabilities[row - first] = score
        top = max(top, score)
    total = 0.0
    for k in range(last - first):
        shifted = probabilities[k] - top
        weight = exp(shifted) if shifted > FLUSH else 0.0
        probabilities[k] = weight
        total += weight
    for k in range(last - first):
        probabilities[k] /= total
    return top + log(total)


@_compiled
def _largest(offsets: Index, start: int, stop: int) -> int:
    largest = 0
    for t in range(start, stop):
        largest = max(largest, offsets[t + 1] - offsets[t])
    return largest


@_compiled
def _add_outer(scales: Vector, rows: Matrix, hessian: Matrix) -> None:
    """Add `scales[r] * rows[r] rows[r]'` over all rows to the upper triangle."""
    d = rows.shape[1]
    for i in range(d):
        c0, c1 = scales[0] * rows[0, i], scales[1] * rows[1, i]
        c2, c3 = scales[2] * rows[2, i], scales[3] * rows[3, i]
        c4, c5 = scales[4] * rows[4, i], scales[5] * rows[5, i]
        c6, c7 = scales[6] * rows[6, i], scales[7] * rows[7, i]
        for j in range(i, d):
            hessian[i, j] += (
                c0 * rows[0, j]
                + c1 * rows[1, j]
                + c2 * rows[2, j]
                + c3 * rows[3, j]
                + c4 * rows[4, j]
                + c5 * rows[5, j]
                + c6 * rows[6, j]
                + c7 * rows[7, j]
            )


@_compiled
def accumulate(
    features: Features,
    offsets: Index,
    chosen: Index,
    weights: Vector,
    start: int,
    stop: int,
    stride: int,
    theta: Vector,
    floor: float,
    gradient: Vector,
    hessian: Matrix,
) -> tuple[float, int, int]:
    """Add the rounds' gradient, and their Hessian (upper triangle) unless it is empty, to the arrays given.

    Arms of probability at most `floor / K` of all unpicked arms together are left out of the Hessian. Returns the
    weighted loss and, of the rounds that carry weight and offer a choice, in how many the pick scores strictly above
    every other arm, and in how many it is the first of the best.
    """
    d = theta.shape[0]
    curved = hessian.shape[0] > 0
    probabilities = np.empty(_largest(offsets, start, stop))
    rows, scales, filled = np.zeros((ROWS, d)), np.zeros(ROWS), 0
    origin, mean = np.empty(d), np.empty(d)
    loss = 0.0
    explained, agreed = 0, 0
    for t in range(start, stop, stride):
        first, last, weight = offsets[t], offsets[t + 1], weights[t]
        pick = first + chosen[t]
        loss += weight * _probabilities(features, first, last, pick, theta, origin, probabilities)
        beaten, first_best = 0, True
        mean[:] = 0.0
        probabilities[pick - first], picked = 0.0, probabilities[pick - first]
        rest = probabilities[: last - first].sum()
        for k in range(last - first):
            p = probabilities[k]
            beaten += p < picked
            if p > picked or (p == picked and first + k < pick):
                first_best = False
            if p == 0.0:
                continue
            for j in range(d):
                mean[j] += p * (features[first + k, j] - origin[j])
            if curved and p * (last - first) > floor * rest:
                for j in range(d):
                    rows[filled, j] = features[first + k, j] - origin[j]
                scales[filled] = weight * p
                filled += 1
                if filled == ROWS:
                    _add_outer(scales, rows, hessian)
                    filled = 0
        if weight > 0.0:
            explained += beaten == last - first
            agreed += first_best
        for j in range(d):
            gradient[j] += weight * mean[j]
        if curved:
            rows[filled, :] = mean
            scales[filled] = -weight
            filled += 1
            if filled == ROWS:
                _add_outer(scales, rows, hessian)
                filled = 0
    if curved:
        scales[filled:] = 0.0
        _add_outer(scales, rows, hessian)
    return loss, explained, agreed


@_compiled
def round_losses(
    features: Features, offsets: Index, chosen: Index, start: int, stop: int, theta: Vector, losses: Vector
) -> None:
    """Fill the softmax loss of every round in the range."""
    probabilities, origin = np.empty(_largest(offsets, start, stop)), np.empty(theta.shape[0])
    for t in range(start, stop):
        pick = offsets[t] + chosen[t]
        losses[t - start] = _probabilities(features, offsets[t], offsets[t + 1], pick, theta, origin, probabilities)


@_compiled
def round_gradients(
    features: Features,
    offsets: Index,
    chosen: Index,
    weights: Vector,
    start: int,
    stop: int,
    theta: Vector,
    gradients: Matrix,
) -> None:
    """Fill the weighted gradient of every round in the range, one row a round."""
    d = theta.shape[0]
    probabilities, origin = np.empty(_largest(offsets, start, stop)), np.empty(d)
    for t in range(start, stop):
        first, last = offsets[t], offsets[t + 1]
        _probabilities(features, first, last, first + chosen[t], theta, origin, probabilities)
        gradients[t - start, :] = 0.0
        for k in range(last - first):
            if probabilities[k] == 0.0:
                continue
            scaled = weights[t] * probabilities[k]
            for j in range(d):
                gradients[t - start, j] += scaled * (features[first + k, j] - origin[j])
