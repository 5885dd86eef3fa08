"""Curvature of rows that are made of contexts and arms, block by block: what intervals and the solver need.

With weights for each arm, a round adds `(diag(p) - p p') (x) c c'` to the Hessian, `p` the arms' probabilities and `c`
the context. Both factors are symmetric, so all of it is one product of two small tables: for every round the entries of
`diag(p) - p p'` on and above the diagonal, and those of `c c'`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onlooker.base.types import Features, Index, Matrix, Vector

PIECE_VALUES = 1 << 19
"""Numbers that a temporary table holds at most, about: 4 MB, which stay in the cache."""

MOST_PAIRS = 4096
"""Products of two context features that are written out for every round; with more, arms are taken pair by pair."""

MOST_BLOCK = 1 << 23
"""Numbers that the blocks of a preconditioner hold at most: beyond, it is a diagonal."""


def block_hessian(contexts: Features, shares: Matrix, weights: Vector) -> Matrix:
    """Sum of `weight (diag(p) - p p') (x) c c'` over the rounds, shape (K p, K p).

    The blocks of one arm follow from the others, as over all arms they sum to zero: of the most probable arm, so that
    nothing is left of rounding where an arm is never offered.

    Examples
    --------
    >>> block_hessian(np.array([[2.0]]), np.array([[0.25, 0.75]]), np.ones(1))
    array([[ 0.75, -0.75],
           [-0.75,  0.75]])
    """
    K, p, without = shares.shape[1] - 1, contexts.shape[1], int((weights @ shares).argmax())
    shares = np.delete(shares, without, axis=1)
    if p * (p + 1) // 2 > MOST_PAIRS:
        return _with_arm(_by_pairs(contexts, shares, weights), without)
    first, second = np.triu_indices(K)
    left, right = np.triu_indices(p)
    found = np.zeros((len(first), len(left)))
    step = max(64, PIECE_VALUES // max(len(left), len(first)))
    for start in range(0, len(contexts), step):
        rounds = slice(start, start + step)
        found += _pair_products(shares[rounds], weights[rounds]).T @ _square(contexts[rounds])
    blocks = np.empty((len(first), p, p))
    blocks[:, left, right] = found
    blocks[:, right, left] = found
    hessian = np.empty((K, p, K, p))
    hessian[first, :, second, :] = blocks
    hessian[second, :, first, :] = blocks
    return _with_arm(hessian, without)


def _with_arm(blocks: Matrix, arm: int) -> Matrix:
    """A matrix of blocks, shape (K - 1, p, K - 1, p), with those of one more arm: all together sum to zero."""
    K, p = blocks.shape[0] + 1, blocks.shape[1]
    full = np.empty((K, p, K, p))
    for part in (slice(0, arm), slice(arm, K - 1)):
        to = slice(part.start + (part.start == arm), part.stop + (part.start == arm))
        full[to, :, :arm, :], full[to, :, arm + 1 :, :] = blocks[part, :, :arm, :], blocks[part, :, arm:, :]
    missing = -blocks.sum(axis=0)
    full[arm, :, :arm, :], full[arm, :, arm + 1 :, :] = missing[:, :arm, :], missing[:, arm:, :]
    full[:, :, arm, :] = 0.0
    full[:, :, arm, :] = -full.sum(axis=2)
    return full.reshape(K * p, K * p)


def _pair_products(shares: Matrix, weights: Vector) -> Matrix:
    """Entries of `weight (diag(p) - p p')` on and above the diagonal, one row a round."""
    K = shares.shape[1]
    found, weighted, at = np.empty((len(shares), K * (K + 1) // 2)), shares * weights[:, None], 0
    for arm in range(K):
        np.multiply(-shares[:, arm, None], weighted[:, arm:], out=found[:, at : at + K - arm])
        found[:, at] += weighted[:, arm]
        at += K - arm
    return found


def _square(contexts: Features) -> Matrix:
    """Products of a context's features, each pair once, one row a round."""
    p = contexts.shape[1]
    wide = contexts.astype(np.float64, copy=False)
    found, at = np.empty((len(wide), p * (p + 1) // 2)), 0
    for j in range(p):
        np.multiply(wide[:, j, None], wide[:, j:], out=found[:, at : at + p - j])
        at += p - j
    return found


def _by_pairs(contexts: Features, shares: Matrix, weights: Vector) -> Matrix:
    """The same, a pair of arms at a time."""
    K, p = shares.shape[1], contexts.shape[1]
    hessian = np.zeros((K, p, K, p))
    step = max(1, PIECE_VALUES // p)
    for start in range(0, len(contexts), step):
        rounds = slice(start, start + step)
        wide, part = contexts[rounds].astype(np.float64, copy=False), shares[rounds]
        for arm in range(K):
            for other in range(arm, K):
                product = weights[rounds] * part[:, arm] * ((arm == other) - part[:, other])
                if product.any():
                    hessian[arm, :, other, :] += wide.T @ (product[:, None] * wide)
    for arm in range(K):
        for other in range(arm):
            hessian[arm, :, other, :] = hessian[other, :, arm, :].T
    return hessian


def window_products(
    contexts: Features, residuals: Matrix, mean: Vector, width: int, *, single: bool
) -> tuple[Matrix, Matrix, Matrix]:
    """Sum of `W W'` over windows of `width` rounds, `W` a window's sum of `residuals (x) context - mean`.

    Also the first and the last `width - 1` of these vectors, for windows into other rounds. Over all arms residuals and
    mean sum to zero, so that the last arm follows from the others. In single precision contexts are decorrelated first:
    rounding is then small beside the variation in every direction, not in the largest alone.

    Examples
    --------
    >>> found, _, _ = window_products(np.ones((3, 1)), np.array([[1.0, -1.0]] * 3), np.zeros(2), 2, single=False)
    >>> found
    array([[ 8., -8.],
           [-8.,  8.]])
    """
    K, p, n = residuals.shape[1] - 1, contexts.shape[1], len(contexts)
    back = np.eye(p)
    turned: Any = contexts.astype(np.float64, copy=False)
    if single:
        square = turned.T @ turned / max(1, n)
        back = np.linalg.cholesky(square + (1e-10 * np.trace(square) + 1e-300) * np.eye(p))
        turned = turned @ np.linalg.inv(back).T
    shift: Any = np.linalg.solve(back, mean.reshape(K + 1, p)[:K].T).T.ravel()
    values: list[Any] = [residuals[:, :K], turned, shift]
    picked, turned, shift = (np.ascontiguousarray(one, np.float32 if single else np.float64) for one in values)

    def vectors(start: int, stop: int) -> Matrix:
        found = (picked[start:stop, :, None] * turned[start:stop, None, :]).reshape(-1, K * p)
        found -= shift
        return np.asarray(found)

    inside = np.zeros((K * p, K * p))
    step = max(4 * width, PIECE_VALUES // (K * p))
    for start in range(0, n - width + 1, step):
        sums = _window_sums(vectors(start, min(start + step + width - 1, n)), width)
        inside += sums.T @ sums
    edge = width - 1
    blocks = inside.reshape(K, p, K, p)
    if single:
        blocks = np.matmul(np.matmul(back, inside.reshape(K, p, K * p)).reshape(K, p, K, p), back.T, out=blocks)
    ends = [vectors(0, min(edge, n)), vectors(max(0, n - edge), n)]
    head, tail = (_rows_with_last(end.astype(np.float64).reshape(-1, K, p) @ back.T) for end in ends)
    return _with_arm(blocks, K), head, tail


def _rows_with_last(rows: Matrix) -> Matrix:
    """Vectors of the arms but the last, shape (n, K - 1, p), with that of the last: shape (n, K p)."""
    full = np.concatenate([rows, -rows.sum(axis=1, keepdims=True)], axis=1)
    return full.reshape(len(full), full.shape[1] * full.shape[2])


def _window_sums(rows: Matrix, width: int) -> Matrix:
    """Sum of every `width` neighbouring rows: by sums of 1, 2, 4 and so on, which add no more rounding than needed."""
    n = len(rows) - width + 1
    total: Matrix | None = None
    at, part, size = 0, rows, 1
    while size <= width:
        if width & size:
            piece = part[at : at + n]
            total = piece.copy() if total is None else np.add(total, piece, out=total)
            at += size
        if 2 * size <= width:
            part = part[: len(part) - size] + part[size:]
        size *= 2
    assert total is not None
    return total


def arm_blocks(contexts: Features, shares: Matrix) -> Matrix | None:
    """Cross-products of the contexts weighted by each arm's shares, shape (K, p, p); None where they are too large."""
    K, p = shares.shape[1], contexts.shape[1]
    if K * p * p > MOST_BLOCK:
        return None
    wide = contexts.astype(np.float64, copy=False)
    return np.stack([wide.T @ (shares[:, arm, None] * wide) for arm in range(K)])


def per_arm_preconditioner(blocks: Matrix, l2: float, groups: Index) -> Callable[[Vector], Vector]:
    """About the inverse Hessian where each arm has weights of its own, from `arm_blocks`.

    With the same probabilities in every round it is exact: there `diag(1/p)`, centred, inverts `diag(p) - p p'`.
    """
    K, p = blocks.shape[:2]
    size = np.trace(blocks, axis1=1, axis2=2) / p
    floor = np.maximum(l2 + 1e-8 * size, 1e-10 * max(float(size.max(initial=0.0)), 1e-300))
    inverses = np.linalg.inv(blocks + floor[:, None, None] * np.eye(p))

    def times(vector: Vector) -> Vector:
        turned = np.matmul(inverses, centred(vector.reshape(K, p), groups)[:, :, None])[:, :, 0]
        return centred(turned, groups).ravel()

    return times


def diagonal_preconditioner(diagonal: Vector, l2: float) -> Callable[[Vector], Vector]:
    """The inverse of a diagonal."""
    floor = max(l2, 1e-10 * float(diagonal.max(initial=0.0)), 1e-300)
    scale = 1 / np.maximum(diagonal + l2, floor)
    return lambda vector: scale * vector


def centred(weights: Matrix, groups: Index) -> Matrix:
    """Weights of the arms, one row each, less the mean over the arms of their group.

    Examples
    --------
    >>> centred(np.array([[1.0], [3.0], [5.0]]), np.array([0, 0, 1])).ravel()
    array([-1.,  1.,  0.])
    """
    if not groups.any():
        return np.asarray(weights - weights.mean(axis=0))
    totals = np.zeros((int(groups.max()) + 1, weights.shape[1]))
    np.add.at(totals, groups, weights)
    return np.asarray(weights - (totals / np.bincount(groups)[:, None])[groups])


def filled_hessian(hessian: Matrix, groups: Index, p: int, first: int) -> Matrix:
    """A Hessian with curvature where the same weights are added to all arms of a group: no pick depends on that.

    Adding it changes nothing in all other directions. `first` is where the arms' weights begin.
    """
    found = hessian.copy()
    diagonal = np.diag(hessian)[first:].reshape(len(groups), p)
    for group in range(int(groups.max()) + 1):
        arms = np.flatnonzero(groups == group)
        if len(arms) < 2:
            continue
        for j in range(p):
            at = first + arms * p + j
            found[np.ix_(at, at)] += diagonal[arms, j].mean() / len(arms)
    return found
