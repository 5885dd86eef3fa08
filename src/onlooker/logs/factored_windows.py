"""Scatter of the rounds' gradients over windows of neighbours, where every arm has weights of its own.

A round's gradient is `residuals (x) context`, so that sums over windows need not be written out for all rounds at once.
"""

from __future__ import annotations

import numpy as np

from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.logs.factored_curvature import Turned, with_arm

PIECE_VALUES = 1 << 16
"""Numbers of a piece of windows, about: half a megabyte, which stays in the cache."""

LEAST_ROWS = 1
"""Windows per weight whose products are taken at once, at least: adding what they give is then little beside it."""

HALVES = 2
"""Blocks that make up a window, where windows begin at every block and not at every round.

Each round is then in two windows instead of `width`: `2 / width` of the work. Where rounds are independent, a variance
that is estimated so has a standard error of `sqrt(1.5 width / N)` of it, with all windows of `sqrt(4/3 width / N)`:
2.2% and 2.1% for 50,000 rounds.
"""


def window_products(
    contexts: Features, residuals: Matrix, mean: Vector, width: int, turned: Turned | None = None
) -> tuple[int, Matrix, Matrix, Matrix]:
    """Sum of `W W'` over windows of `width` rounds, `W` a window's sum of `residuals (x) context - mean`.

    `width` first, and last the first and the last `width - 1` of these vectors, for windows into other rounds. With
    `turned`, the contexts `decorrelated`, sums are in single precision and windows begin at every block of half of
    `width` rounds, so that the vectors are those of blocks and `width` is 2. Over all arms residuals and mean sum to
    zero: the last arm follows from the others.

    Examples
    --------
    >>> _, found, _, _ = window_products(np.ones((3, 1)), np.array([[1.0, -1.0]] * 3), np.zeros(2), 2)
    >>> found
    array([[ 8., -8.],
           [-8.,  8.]])
    """
    K, p = residuals.shape[1] - 1, contexts.shape[1]
    mean = mean.reshape(K + 1, p)[:K]
    if turned is None:
        wide = contexts.astype(np.float64, copy=False)
        return width, *_products(_Rounds(wide, residuals[:, :K], mean.ravel()), width, p)
    back, used = turned
    shift = np.linalg.solve(back, mean.T).T.ravel()
    edges = block_edges(len(contexts), width)
    blocks = _Blocks(used, residuals[:, :K].astype(np.float32), shift.astype(np.float32), edges)
    halves = min(HALVES, width)
    return halves, *_products(blocks, halves, p, back)


def block_edges(n_rounds: int, width: int) -> Index:
    """Where blocks begin that are half of `width` rounds long, up to a round, and where the last one ends.

    Examples
    --------
    >>> block_edges(10, 10)
    array([ 0,  5, 10])
    >>> block_edges(8, 5)
    array([0, 2, 5, 7, 8])
    """
    halves = min(HALVES, width)
    edges = np.arange(n_rounds * halves // width + 1) * width // halves
    return edges if edges[-1] == n_rounds else np.append(edges, n_rounds)


class _Rounds:
    """Vectors of the rounds, some at a time."""

    def __init__(self, contexts: Features, residuals: Features, shift: Features) -> None:
        self.contexts, self.residuals, self.shift = contexts, residuals, shift

    def __len__(self) -> int:
        return len(self.contexts)

    def __getitem__(self, some: slice) -> Features:
        found = (self.residuals[some, :, None] * self.contexts[some, None, :]).reshape(-1, len(self.shift))
        found -= self.shift
        return np.asarray(found)


class _Blocks(_Rounds):
    """Sums of the vectors over blocks of rounds, some at a time."""

    def __init__(self, contexts: Features, residuals: Features, shift: Features, edges: Index) -> None:
        super().__init__(contexts, residuals, shift)
        self.edges = edges

    def __len__(self) -> int:
        return len(self.edges) - 1

    def __getitem__(self, some: slice) -> Features:
        edges = self.edges[some.start : some.stop + 1]
        sizes = np.diff(edges)
        if not len(sizes):
            return np.empty((0, len(self.shift)), dtype=self.contexts.dtype)
        # Shorter blocks are filled up by rounds that count nothing.
        at = edges[:-1, None] + np.arange(sizes.max())
        inside = at < edges[1:, None]
        at = np.minimum(at, len(self.contexts) - 1)
        residuals = self.residuals[at] * inside[:, :, None]
        found = np.matmul(residuals.transpose(0, 2, 1), self.contexts[at]).reshape(len(sizes), -1)
        found -= sizes[:, None].astype(found.dtype) * self.shift
        return np.asarray(found)


def _products(vectors: _Rounds, width: int, p: int, back: Matrix | None = None) -> tuple[Matrix, Matrix, Matrix]:
    """Sum of `W W'` over windows of vectors, and the vectors at both ends; `back` turns contexts back."""
    n, d = len(vectors), len(vectors.shift)
    inside = np.zeros((d, d))
    step = max(4 * width, LEAST_ROWS * d, PIECE_VALUES // d)
    for start in range(0, n - width + 1, step):
        sums = _window_sums(vectors[start : min(start + step + width - 1, n)], width)
        inside += sums.T @ sums
    ends = vectors[0 : min(width - 1, n)], vectors[max(0, n - width + 1) : n]
    head, tail = (end.astype(np.float64).reshape(len(end), d // p, p) for end in ends)
    blocks = inside.reshape(d // p, p, d // p, p)
    if back is not None:
        blocks = (back @ inside.reshape(d // p, p, d)).reshape(blocks.shape) @ back.T
        head, tail = head @ back.T, tail @ back.T
    return with_arm(blocks, d // p), _rows_with_last(head), _rows_with_last(tail)


def _rows_with_last(rows: Matrix) -> Matrix:
    """Vectors of the arms but the last, shape (n, K - 1, p), with that of the last: shape (n, K p)."""
    full = np.concatenate([rows, -rows.sum(axis=1, keepdims=True)], axis=1)
    return full.reshape(len(full), full.shape[1] * full.shape[2])


def _window_sums(rows: Features, width: int) -> Features:
    """Sum of every `width` neighbouring rows: by sums of 1, 2, 4 and so on, which add no more rounding than needed."""
    n = len(rows) - width + 1
    total: Features | None = None
    at, part, size = 0, rows, 1
    while size <= width:
        if width & size:
            piece = part[at : at + n]
            total = piece if total is None else np.asarray(total + piece)
            at += size
        if 2 * size <= width:
            part = np.asarray(part[: len(part) - size] + part[size:])
        size *= 2
    assert total is not None
    return total
