"""Conditional softmax loss of a range of rounds: value, gradients and Hessian in one pass over the features.

Features may be float32; every product and sum is taken in float64, which costs nothing: the pass waits for memory. Arms
are compared with the pick (`x - x_pick`), which leaves the loss unchanged and keeps large common offsets out of it.
"""

from math import log
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.kernels.cached_njit import cached_njit


def _prefetch(_context: Any, array: Any, _position: Any) -> Any:
    """Have the cache line that holds `array.flat[position]` loaded; a position that does not exist does no harm.

    By itself, the processor foresees a stream of addresses only up to the end of a page.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [pointer, whole, whole, whole])
        call = builder.module.declare_intrinsic("llvm.prefetch", [pointer], shape)
        address = builder.bitcast(builder.gep(data, [arguments[1]]), pointer)
        to_read, soon, of_data = whole(0), whole(3), whole(1)
        builder.call(call, [address, to_read, soon, of_data])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


prefetch: Any = intrinsic(_prefetch)


FLUSH = -45.0
"""Scores this far below the round's best have probability below 3e-20: beyond double precision, so they are skipped."""

COLUMNS = 128
"""Arms that are gathered before their outer products are added to the Hessian; a column each, four to a register."""

APART = 8
"""Values between the gathered rows' ends and the next: rows a power of two apart would share few lines of the cache."""

AHEAD, LINE = 8192, 64
"""Bytes between what is being scored and what is asked for meanwhile, and in a line of the cache."""

# The order of a sum is the compiler's, so that it can use wide registers; it is the same in every call.
_compiled = cached_njit(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})


@_compiled
def _exp(x: float) -> float:
    """Exponential, to 1e-14 of it, for x from `FLUSH` to 0: without a call or a branch, so that loops use registers."""
    halvings = np.floor(x * 1.4426950408889634 + 0.5)
    # ln 2 in two parts, the first exact to the last bit that `halvings` can reach.
    r = x - halvings * 6.93147180369123816490e-01 - halvings * 1.90821492927058770002e-10
    high = 1 / 720 + r * (1 / 5040 + r * (1 / 40320 + r * (1 / 362880 + r * (1 / 3628800 + r * (1 / 39916800)))))
    power = 1.0 + r * (1.0 + r * (1 / 2 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r * high)))))
    return float(power * np.int64((np.int64(halvings) + 1023) << 52).view(np.float64))


@_compiled
def _scores(
    features: Features, first: int, last: int, following: int, pick: int, theta: Vector, origin: Vector, scores: Vector
) -> float:
    """Fill the scores of `x - x_pick`, and `origin` with the pick's features; return the best score.

    What all arms share cancels before it can drown what tells them apart. The next round begins at row `following`.
    """
    d = theta.shape[0]
    size = features.itemsize
    ahead = AHEAD // (size * d)
    for j in range(d):
        origin[j] = features[pick, j]
    top = 0.0
    for row in range(first, last):
        wanted = row + ahead if row + ahead < last else following + row + ahead - last
        for j in range(0, d, LINE // size):
            prefetch(features, wanted * d + j)
        score = 0.0
        for j in range(d):
            score += (features[row, j] - origin[j]) * theta[j]
        scores[row - first] = score
        top = max(top, score)
    return top


@_compiled
def _normalise(scores: Vector, n: int, top: float) -> float:
    """Turn the scores of `n` arms, `top` the best, into probabilities; return the round's loss."""
    total = 0.0
    for k in range(n):
        shifted = scores[k] - top
        weight = _exp(max(shifted, FLUSH))
        weight = weight if shifted > FLUSH else 0.0
        scores[k] = weight
        total += weight
    for k in range(n):
        scores[k] /= total
    return top + log(total)


@_compiled
def _rank(scores: Vector, n: int, pick: int, top: float) -> tuple[bool, bool]:
    """Whether the pick, whose score is 0, is strictly above all other arms, and whether it is the first of the best."""
    if top > 0.0:
        return False, False
    level, before = 0, 0
    for k in range(n):
        level += scores[k] == 0.0
    for k in range(pick):
        before += scores[k] == 0.0
    return level == 1, before == 0


@_compiled
def _fill_mean(features: Features, first: int, probabilities: Vector, n: int, origin: Vector, mean: Vector) -> None:
    """Fill the mean of `x - x_pick`, four arms at a time: one load and store for all of them."""
    d = mean.shape[0]
    mean[:] = 0.0
    whole = n - n % 4
    for k in range(0, whole, 4):
        p0, p1, p2, p3 = probabilities[k], probabilities[k + 1], probabilities[k + 2], probabilities[k + 3]
        if p0 + p1 + p2 + p3 == 0.0:
            continue
        x0, x1, x2, x3 = features[first + k], features[first + k + 1], features[first + k + 2], features[first + k + 3]
        for j in range(d):
            o = origin[j]
            mean[j] += p0 * (x0[j] - o) + p1 * (x1[j] - o) + p2 * (x2[j] - o) + p3 * (x3[j] - o)
    for k in range(whole, n):
        for j in range(d):
            mean[j] += probabilities[k] * (features[first + k, j] - origin[j])


@_compiled
def _largest(offsets: Index, start: int, stop: int) -> int:
    largest = 0
    for t in range(start, stop):
        largest = max(largest, offsets[t + 1] - offsets[t])
    return largest


@_compiled
def _add_products(columns: Matrix, n: int, hessian: Matrix) -> None:
    """Add `columns columns'`, over the first `n` columns, to the tiles of four by four on and above the diagonal."""
    for i in range(0, columns.shape[0], 4):
        a0, a1, a2, a3 = columns[i], columns[i + 1], columns[i + 2], columns[i + 3]
        for j in range(i, columns.shape[0], 4):
            b0, b1, b2, b3 = columns[j], columns[j + 1], columns[j + 2], columns[j + 3]
            s00, s01, s02, s03 = 0.0, 0.0, 0.0, 0.0
            s10, s11, s12, s13 = 0.0, 0.0, 0.0, 0.0
            s20, s21, s22, s23 = 0.0, 0.0, 0.0, 0.0
            s30, s31, s32, s33 = 0.0, 0.0, 0.0, 0.0
            for k in range(n):
                x0, x1, x2, x3 = a0[k], a1[k], a2[k], a3[k]
                y0, y1, y2, y3 = b0[k], b1[k], b2[k], b3[k]
                s00, s01, s02, s03 = s00 + x0 * y0, s01 + x0 * y1, s02 + x0 * y2, s03 + x0 * y3
                s10, s11, s12, s13 = s10 + x1 * y0, s11 + x1 * y1, s12 + x1 * y2, s13 + x1 * y3
                s20, s21, s22, s23 = s20 + x2 * y0, s21 + x2 * y1, s22 + x2 * y2, s23 + x2 * y3
                s30, s31, s32, s33 = s30 + x3 * y0, s31 + x3 * y1, s32 + x3 * y2, s33 + x3 * y3
            h0, h1, h2, h3 = hessian[i], hessian[i + 1], hessian[i + 2], hessian[i + 3]
            h0[j], h0[j + 1], h0[j + 2], h0[j + 3] = h0[j] + s00, h0[j + 1] + s01, h0[j + 2] + s02, h0[j + 3] + s03
            h1[j], h1[j + 1], h1[j + 2], h1[j + 3] = h1[j] + s10, h1[j + 1] + s11, h1[j + 2] + s12, h1[j + 3] + s13
            h2[j], h2[j + 1], h2[j + 2], h2[j + 3] = h2[j] + s20, h2[j + 1] + s21, h2[j + 2] + s22, h2[j + 3] + s23
            h3[j], h3[j + 1], h3[j + 2], h3[j + 3] = h3[j] + s30, h3[j + 1] + s31, h3[j + 2] + s32, h3[j + 3] + s33


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
    gradients: Matrix,
) -> tuple[float, float, float]:
    """Add the rounds' gradient, and their Hessian (upper triangle) unless it is empty, to the arrays given.

    `gradients`, unless it is empty, is filled with the gradient of every round in the range, one row a round and
    whatever its weight. Unpicked arms of probability at most `floor / K` of all of them together are left out of the
    Hessian. Returns the weighted loss, and the weight of the rounds whose pick scores strictly above every other arm,
    and of those where it is the first of the best.
    """
    d = theta.shape[0]
    curved, kept = hessian.shape[0] > 0, gradients.shape[0] > 0
    size = d + -d % 4 if curved else 0
    columns, products, filled = np.zeros((size, COLUMNS + APART)), np.zeros((size, size)), 0
    probabilities = np.empty(_largest(offsets, start, stop))
    origin, mean = np.empty(d), np.empty(d)
    loss = 0.0
    explained, agreed = 0.0, 0.0
    for t in range(start, stop, stride):
        first, n, weight = offsets[t], offsets[t + 1] - offsets[t], weights[t]
        if weight == 0.0:
            if kept:
                gradients[t - start, :] = 0.0
            continue
        pick = chosen[t]
        following = offsets[min(t + stride, stop)]
        top = _scores(features, first, first + n, following, first + pick, theta, origin, probabilities)
        alone, foremost = _rank(probabilities, n, pick, top)
        explained, agreed = explained + weight * alone, agreed + weight * foremost
        loss += weight * _normalise(probabilities, n, top)
        _fill_mean(features, first, probabilities, n, origin, mean)
        for j in range(d):
            gradient[j] += weight * mean[j]
        if kept:
            for j in range(d):
                gradients[t - start, j] = mean[j]
        if not curved:
            continue
        rest = 0.0
        for k in range(n):
            rest += probabilities[k] if k != pick else 0.0
        for k in range(n):
            if probabilities[k] * n <= floor * rest and k != pick:
                continue
            scale = np.sqrt(weight * probabilities[k])
            for j in range(d):
                columns[j, filled] = scale * (features[first + k, j] - origin[j] - mean[j])
            filled += 1
            if filled == COLUMNS:
                _add_products(columns, filled, products)
                filled = 0
    if curved:
        _add_products(columns, filled, products)
        for i in range(d):
            for j in range(i, d):
                hessian[i, j] += products[i, j]
    return loss, explained, agreed


@_compiled
def round_losses(
    features: Features, offsets: Index, chosen: Index, start: int, stop: int, theta: Vector, losses: Vector
) -> None:
    """Fill the softmax loss of every round in the range."""
    scores, origin = np.empty(_largest(offsets, start, stop)), np.empty(theta.shape[0])
    for t in range(start, stop):
        first, last = offsets[t], offsets[t + 1]
        top = _scores(features, first, last, last, first + chosen[t], theta, origin, scores)
        losses[t - start] = _normalise(scores, last - first, top)
