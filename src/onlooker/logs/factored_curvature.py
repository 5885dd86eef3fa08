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

STEP = 512
"""Rounds whose products are multiplied at once: enough for a product to be fast, few enough for the cache."""

MOST_PAIRS = 4096
"""Products of two context features that are written out for every round; with more, arms are taken pair by pair."""

MOST_BLOCK = 1 << 23
"""Numbers that the blocks of a preconditioner hold at most: beyond, it is a diagonal."""

Turned = tuple[Matrix, Features]
"""Contexts that were decorrelated, behind what turns them back."""


def block_hessian(contexts: Features, shares: Matrix, weights: Vector, turned: Turned | None = None) -> Matrix:
    """Sum of `weight (diag(p) - p p') (x) c c'` over the rounds, shape (K p, K p).

    The blocks of one arm follow from the others, as over all arms they sum to zero: of the most probable arm, so that
    nothing is left of rounding where an arm is never offered. With `turned`, the contexts `decorrelated`, sums of some
    hundred rounds are in single precision: about six digits are right, in half of the time.

    Examples
    --------
    >>> block_hessian(np.array([[2.0]]), np.array([[0.25, 0.75]]), np.ones(1))
    array([[ 0.75, -0.75],
           [-0.75,  0.75]])
    """
    K, p, without = shares.shape[1] - 1, contexts.shape[1], int((weights @ shares).argmax())
    shares = np.delete(shares, without, axis=1)
    if p * (p + 1) // 2 > MOST_PAIRS:
        return with_arm(_by_pairs(contexts, shares, weights), without)
    back, used = (None, contexts) if turned is None else turned
    first, second = np.triu_indices(K)
    left, right = np.triu_indices(p)
    found = _pair_sums(used, shares, weights, np.dtype(np.float64 if back is None else np.float32))
    blocks = np.empty((len(first), p, p))
    blocks[:, left, right] = found
    blocks[:, right, left] = found
    if back is not None:
        blocks = back @ blocks @ back.T
    hessian = np.empty((K, p, K, p))
    hessian[first, :, second, :] = blocks
    hessian[second, :, first, :] = blocks
    return with_arm(hessian, without)


def decorrelated(contexts: Features) -> Turned:
    """What turns them back, and contexts in single precision whose features are uncorrelated with mean square 1.

    Rounding is then small beside the variation in every direction, not in the largest alone.
    """
    wide = contexts.astype(np.float64, copy=False)
    square = wide.T @ wide / max(1, len(wide))
    back = np.linalg.cholesky(square + (1e-10 * np.trace(square) + 1e-300) * np.eye(len(square)))
    return back, np.asarray(wide @ np.linalg.inv(back).T, dtype=np.float32)


def _pair_sums(contexts: Features, shares: Matrix, weights: Vector, dtype: np.dtype[Any]) -> Matrix:
    """Sums over the rounds of `weight (diag(p) - p p')`, one row a pair of arms, times `c c'`, one column a pair."""
    K, p, n = shares.shape[1], contexts.shape[1], len(contexts)
    found = np.zeros((K * (K + 1) // 2, p * (p + 1) // 2))
    step = max(64, min(STEP, PIECE_VALUES // max(found.shape)))
    pairs, squares = (np.empty((size, min(step, n)), dtype) for size in found.shape)
    for start in range(0, n, step):
        rounds = slice(start, min(start + step, n))
        size = rounds.stop - rounds.start
        _pair_products(shares[rounds], weights[rounds], pairs[:, :size])
        _square(contexts[rounds], squares[:, :size])
        found += pairs[:, :size] @ squares[:, :size].T
    return found


def with_arm(blocks: Matrix, arm: int) -> Matrix:
    """Symmetric blocks, shape (K - 1, p, K - 1, p), with those of one more arm: all together sum to zero."""
    K, p = blocks.shape[0] + 1, blocks.shape[1]
    full = np.empty((K, p, K, p))
    for place, row in enumerate(blocks):
        to = full[place + (place >= arm)]
        to[:, :arm], to[:, arm + 1 :] = row[:, :arm], row[:, arm:]
    missing = -blocks.sum(axis=0)
    full[arm, :, :arm], full[arm, :, arm + 1 :] = missing[:, :arm], missing[:, arm:]
    full[arm, :, arm] = -missing.sum(axis=1)
    across = missing.transpose(1, 2, 0)
    full[:arm, :, arm], full[arm + 1 :, :, arm] = across[:arm], across[arm:]
    return full.reshape(K * p, K * p)


def _pair_products(shares: Matrix, weights: Vector, out: Features) -> None:
    """Entries of `weight (diag(p) - p p')` on and above the diagonal, one column a round."""
    K, at = shares.shape[1], 0
    across = np.ascontiguousarray(shares.T, dtype=out.dtype)
    weighted = across * weights.astype(out.dtype)
    for arm in range(K):
        np.multiply(across[arm], -weighted[arm:], out=out[at : at + K - arm])
        out[at] += weighted[arm]
        at += K - arm


def _square(contexts: Features, out: Features) -> None:
    """Products of a context's features, each pair once, one column a round."""
    p, at = contexts.shape[1], 0
    across = np.ascontiguousarray(contexts.T, dtype=out.dtype)
    for j in range(p):
        np.multiply(across[j], across[j:], out=out[at : at + p - j])
        at += p - j


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


def arm_blocks(contexts: Features, shares: Any, weights: Vector) -> Matrix | None:
    """Cross-products of the contexts weighted by each arm's shares, shape (K, p, p); None where they are too large.

    Shares are a matrix of rounds by arms, sparse where rounds offer some of the arms.

    Examples
    --------
    >>> arm_blocks(np.array([[2.0], [3.0]]), np.array([[0.5, 0.5], [1.0, 0.0]]), np.ones(2)).ravel()
    array([11.,  2.])
    """
    K, p = shares.shape[1], contexts.shape[1]
    if K * p * p > MOST_BLOCK:
        return None
    wide = contexts.astype(np.float64, copy=False)
    if isinstance(shares, np.ndarray):
        weighted = shares * weights[:, None]
        return np.stack([wide.T @ (weighted[:, arm, None] * wide) for arm in range(K)])
    found = np.empty((K, p, p))
    for j in range(p):
        found[:, j, j:] = shares.T @ (wide[:, j:] * (weights * wide[:, j])[:, None])
        found[:, j:, j] = found[:, j, j:]
    return found


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
