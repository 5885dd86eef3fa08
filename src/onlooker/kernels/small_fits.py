"""Fits of short logs, the whole search in one call: what a search costs outside its passes is most of it there."""

import numpy as np
from numpy.typing import NDArray

from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.kernels.cached_njit import cached_njit
from onlooker.kernels.softmax import accumulate

LOOKS = 40
"""Times that a step is halved before the search gives up."""

ROUNDING = 1e-14
"""Part of the loss that rounding may add to it."""

_compiled = cached_njit(error_model="numpy")


@_compiled
def _look(
    features: Features,
    offsets: Index,
    chosen: Index,
    weights: Vector,
    start: int,
    stop: int,
    l2: float,
    theta: Vector,
    gradient: Vector,
    hessian: Matrix,
    none: Matrix,
) -> float:
    """Fill gradient and Hessian (upper triangle) of the mean loss with its penalty; return its value."""
    gradient[:], hessian[:] = 0.0, 0.0
    total = weights[start:stop].sum()
    loss, _, _ = accumulate(features, offsets, chosen, weights, start, stop, 1, theta, 0.0, gradient, hessian, none)
    value = loss / total
    for i in range(len(theta)):
        gradient[i] = gradient[i] / total + l2 * theta[i]
        value += 0.5 * l2 * theta[i] * theta[i]
        for j in range(i, len(theta)):
            hessian[i, j] /= total
        hessian[i, i] += l2
    return float(value)


@_compiled
def _solve(upper: Matrix, right: Vector, step: Vector) -> bool:
    """Solve `upper` (the upper triangle of a positive definite matrix, overwritten) by Cholesky; False if it is not."""
    d = len(right)
    for j in range(d):
        pivot = upper[j, j]
        for k in range(j):
            pivot -= upper[k, j] * upper[k, j]
        if not pivot > 0.0:
            return False
        root = np.sqrt(pivot)
        upper[j, j] = root
        for i in range(j + 1, d):
            value = upper[j, i]
            for k in range(j):
                value -= upper[k, j] * upper[k, i]
            upper[j, i] = value / root
    for i in range(d):
        value = right[i]
        for k in range(i):
            value -= upper[k, i] * step[k]
        step[i] = value / upper[i, i]
    for i in range(d - 1, -1, -1):
        value = step[i]
        for k in range(i + 1, d):
            value -= upper[i, k] * step[k]
        step[i] = value / upper[i, i]
    return True


@_compiled
def fit_weighted(
    features: Features,
    offsets: Index,
    chosen: Index,
    weights: Vector,
    start: int,
    stop: int,
    l2: float,
    tolerance: float,
    passes: int,
    theta: Vector,
) -> int:
    """Move theta to the minimum of the mean loss of the rounds from `start` to `stop`, by Newton steps.

    It is there when the Newton decrement and the gradient are at most `tolerance`; the step that is left is taken.
    Returns how many steps that took, or 0 where it did not get there: where there are more to go than given, or there
    is no curvature.
    """
    d = len(theta)
    gradient, hessian, none = np.empty(d), np.empty((d, d)), np.empty((0, d))
    ahead, slope, curve, step = np.empty(d), np.empty(d), np.empty((d, d)), np.empty(d)
    value = _look(features, offsets, chosen, weights, start, stop, l2, theta, gradient, hessian, none)
    for done in range(passes):
        if not _solve(hessian, gradient, step):
            return 0
        fall, largest = 0.0, 0.0
        for j in range(d):
            fall += gradient[j] * step[j]
            largest = max(largest, abs(gradient[j]))
        if not np.isfinite(fall):
            return 0
        if max(np.sqrt(max(fall, 0.0)), largest) <= tolerance:
            theta -= step
            return done + 1
        length, better = 1.0, value
        for look in range(LOOKS):
            for j in range(d):
                ahead[j] = theta[j] - length * step[j]
            better = _look(features, offsets, chosen, weights, start, stop, l2, ahead, slope, curve, none)
            if better <= value - 1e-4 * length * fall + ROUNDING * abs(value):
                break
            if look == LOOKS - 1:
                return 0
            length /= 2
        value = better
        theta[:], gradient[:], hessian[:] = ahead, slope, curve
    return 0


@_compiled
def fit_suffixes(
    features: Features,
    offsets: Index,
    chosen: Index,
    weights: Vector,
    starts: Index,
    l2: float,
    tolerance: float,
    passes: int,
    thetas: Matrix,
) -> bool:
    """Fill the minimum for the rounds from each start on, one a row, each search from the one before.

    Returns whether all of them got there.
    """
    theta = np.zeros(thetas.shape[1])
    for place in range(len(starts)):
        rounds = features, offsets, chosen, weights, starts[place], len(chosen)
        if not fit_weighted(*rounds, l2, tolerance, passes, theta):
            return False
        thetas[place] = theta
    return True


@_compiled
def fit_bins(
    features: Features,
    offsets: Index,
    chosen: Index,
    bounds: Index,
    l2: float,
    tolerance: float,
    passes: int,
    thetas: NDArray[np.float64],
) -> bool:
    """Fill the minimum for the rounds of each bin, and without each of its folds in turn; shape (bins, 1 + folds, d).

    Every so many rounds of a bin are a fold. Returns whether all searches got there.
    """
    folds = thetas.shape[1] - 1
    weights = np.empty(len(chosen))
    for place in range(len(bounds) - 1):
        start, stop = bounds[place], bounds[place + 1]
        for one in range(folds + 1):
            for t in range(start, stop):
                out = offsets[t + 1] - offsets[t] == 1 or (t - start) % folds == one - 1
                weights[t] = 0.0 if out else 1.0
            theta = thetas[place, one]
            for j in range(len(theta)):
                theta[j] = thetas[place, 0, j] if one else 0.0
            rounds = features, offsets, chosen, weights, start, stop
            if not fit_weighted(*rounds, l2, tolerance, passes, theta):
                return False
    return True
