"""Products of factored rows with weights and with values, without writing the rows out; see `FactoredRows`.

Scores are small matrix products, contexts (R, p) times weights (p, K).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.types import Features, Ids, Index, Matrix, Vector
from onlooker.logs.factored_curvature import Turned, arm_blocks, block_hessian, decorrelated, per_arm_preconditioner
from onlooker.logs.factored_windows import window_products
from onlooker.logs.layouts import Layout

PIECE_VALUES = 1 << 20
"""Numbers that a temporary array holds at most, about: 8 MB."""

FEW_OFFERS = 8
"""Where rounds offer less than one arm in this many, scores are computed for the offered arms only."""

MOST_INVERTED = 1000
"""Columns up to which a preconditioner is an inverse, where arms have features."""


class FactoredProducts(Layout):
    """The algebra of `FactoredRows`: everything that multiplies rows."""

    arms: Ids
    contexts: Features | None
    items: Features | None
    own: Features | None
    which: Index | None
    bounds: Index | None
    n_rounds: int

    @property
    def n_arms(self) -> int:
        """Number of arms, K."""
        return len(self.arms)

    @property
    def n_own(self) -> int:
        """Columns that belong to one row alone."""
        return 0 if self.own is None else self.own.shape[1]

    @property
    def n_context(self) -> int:
        """Features of the context, p."""
        return 0 if self.contexts is None else self.contexts.shape[1]

    @property
    def n_items(self) -> int:
        """Features of the arms, q; 0 where each has its own weights."""
        return 0 if self.items is None else self.items.shape[1]

    @property
    def n_crossed(self) -> int:
        """Columns that follow from the arm and the context."""
        if self.items is None:
            return self.n_arms * (1 if self.contexts is None else self.n_context)
        return self.n_items * (1 + self.n_context)

    @property
    def only_blocks(self) -> bool:
        """Whether all weights are those of the arms, a block each."""
        return self.items is None and self.own is None

    @property
    def sizes(self) -> Index:
        """Rows of each round, shape (R,)."""
        return np.full(self.n_rounds, self.n_arms) if self.bounds is None else np.diff(self.bounds)

    @property
    def n_block(self) -> int:
        """Weights that each arm has of its own: p, or 1 without contexts."""
        return 1 if self.contexts is None else self.n_context

    def __matmul__(self, weights: Vector) -> Vector:
        own, rest = weights[: self.n_own], weights[self.n_own :]
        scores = self._crossed_scores(rest)
        if self.own is not None:
            scores += self.own @ own
        return scores

    def _crossed_scores(self, weights: Vector) -> Vector:
        """Scores by arm and context."""
        if self.which is None and self.items is None and self.contexts is not None:
            return np.asarray(self.contexts @ weights.reshape(self.n_arms, -1).T, dtype=np.float64).ravel()
        by_arm, by_context = self._by_arm(weights)
        if self.which is None:
            scores = np.tile(by_arm, (self.n_rounds, 1))
            if by_context is not None and self.contexts is not None:
                scores += self.contexts @ by_context.T
            return scores.ravel()
        scores = by_arm[self.which]
        if by_context is not None and self.bounds is not None and self.contexts is not None:
            few = FEW_OFFERS * len(self.which) < self.n_rounds * self.n_arms
            for rounds, rows in self._pieces(self.n_context * self._most_offers if few else self.n_arms):
                contexts = self.contexts[rounds].astype(np.float64, copy=False)
                which = self.which[rows]
                at = np.repeat(np.arange(len(contexts)), np.diff(self.bounds[rounds.start : rounds.stop + 1]))
                if self.items is not None and len(which) * self.n_items < len(contexts) * self.n_arms * self.n_context:
                    turned = contexts @ weights[self.n_items :].reshape(self.n_context, -1)
                    scores[rows] += np.einsum("rj,rj->r", turned[at], self.items[which])
                elif few:
                    scores[rows] += np.einsum("rj,rj->r", contexts[at], by_context[which])
                else:
                    scores[rows] += (contexts @ by_context.T)[at, which]
        return scores

    @property
    def _most_offers(self) -> int:
        """Rows of the largest round."""
        return int(self.sizes.max(initial=1))

    def _by_arm(self, weights: Vector) -> tuple[Vector, Matrix | None]:
        """What every arm scores in any context, shape (K,), and its weights of the context, shape (K, p)."""
        if self.items is None:
            if self.contexts is None:
                return weights.copy(), None
            return np.zeros(self.n_arms), weights.reshape(self.n_arms, -1)
        q = self.n_items
        by_arm = np.asarray(self.items @ weights[:q], dtype=np.float64)
        return by_arm, None if self.contexts is None else self.items @ weights[q:].reshape(-1, q).T

    def weighted_sum(self, values: Vector) -> Vector:
        """Sum of the rows, each times its value."""
        own = np.zeros(0) if self.own is None else self.own.T @ values
        if self.which is None:
            by_round: Any = values.reshape(self.n_rounds, self.n_arms)
        else:
            by_round = self._by_round(values)
        if self.items is None and self.contexts is not None:
            rest = np.asarray(by_round.T @ self.contexts).ravel()
            return np.concatenate([own, rest]).astype(np.float64, copy=False)
        totals = np.asarray(by_round.sum(axis=0)).ravel()
        if self.items is None:
            return np.concatenate([own, totals]).astype(np.float64, copy=False)
        parts = [own, totals @ self.items]
        if self.contexts is not None:
            parts.append((self.contexts.T @ (by_round @ self.items)).ravel())
        return np.concatenate(parts).astype(np.float64, copy=False)

    def _by_round(self, values: Vector) -> Any:
        """One value per row as a sparse matrix, shape (R, K)."""
        from scipy.sparse import csr_array

        parts: Any = (values, self.which, self.bounds)
        return csr_array(parts, shape=(self.n_rounds, self.n_arms))

    def cross(self, values: Vector) -> Matrix:
        """Weighted cross-product."""
        found = np.zeros((self.shape[1],) * 2)
        for part, rows in self._parts():
            block = part.toarray().astype(np.float64, copy=False)
            found += block.T @ (values[rows, None] * block)
        return found

    def round_sums(self, values: Vector, offsets: Index) -> Matrix:
        """Weighted sum of the rows of every round, as an array: shape (R, d)."""
        parts = [] if self.own is None else [np.add.reduceat(values[:, None] * self.own, offsets[:-1], axis=0)]
        if self.items is None:
            by_round = self.by_round(values)
            blocks = by_round if self.contexts is None else by_round[:, :, None] * self.contexts[:, None, :]
            parts.append(blocks.reshape(len(by_round), -1))
        else:
            # Sparse: a round offers few of many items.
            items = (self.by_round(values) if self.which is None else self._by_round(values)) @ self.items
            parts.append(items)
            if self.contexts is not None:
                parts.append((self.contexts[:, :, None] * items[:, None, :]).reshape(len(items), -1))
        return np.hstack(parts) if len(parts) > 1 else np.asarray(parts[0], dtype=np.float64)

    def along(self, steps: Matrix, offsets: Index) -> Vector:
        """Every row times the weights of its round."""
        if not (self.only_blocks and self.which is None):
            return super().along(steps, offsets)
        by_arm = steps.reshape(self.n_rounds, self.n_arms, -1)
        return np.asarray((by_arm @ self.block_contexts[:, :, None]).ravel(), dtype=np.float64)

    def by_round(self, values: Vector) -> Matrix:
        """One value per row as a matrix, shape (R, K): 0 where an arm is not offered."""
        if self.which is None:
            return values.reshape(self.n_rounds, self.n_arms)
        return np.asarray(self._by_round(values).toarray())

    def window_products(
        self, values: Vector, counts: NDArray[np.bool_], mean: Vector, width: int, *, coarse: bool
    ) -> tuple[int, Matrix, Matrix, Matrix] | None:
        """Sums over windows of the rounds' own sums of rows; see `window_products`. None where rows are not blocks."""
        if not self.only_blocks:
            return None
        contexts, by_round, turned = self.block_contexts, self.by_round(values), self.turned if coarse else None
        if not counts.all():
            contexts, by_round = contexts[counts], by_round[counts]
            turned = turned and (turned[0], turned[1][counts])
        return window_products(contexts, by_round, mean, width, turned)

    def covariance(self, shares: Vector, weights: Vector, offsets: Index, *, coarse: bool = False) -> Matrix:
        """Covariance of the rows within the rounds; coarse: in single precision."""
        if not self.only_blocks:
            return super().covariance(shares, weights, offsets)
        turned = self.turned if coarse else None
        return block_hessian(self.block_contexts, self.by_round(shares), weights, turned)

    @property
    def block_contexts(self) -> Features:
        """Contexts that each arm's block of weights is for: 1 where there are none."""
        return np.ones((self.n_rounds, 1)) if self.contexts is None else self.contexts

    @cached_property
    def turned(self) -> Turned:
        """Contexts decorrelated, in single precision: what curvature and scatter both need."""
        return decorrelated(self.block_contexts)

    def preconditioner(
        self, shares: Vector, weights: Vector, offsets: Index, l2: float, groups: Index | None = None
    ) -> Callable[[Vector], Vector]:
        """About the inverse of the `covariance`: a block for each arm where it has weights of its own."""
        if self.shape[1] <= MOST_INVERTED and (self.items is not None or self.own is not None):
            inverse = np.linalg.pinv(self.covariance(shares, weights, offsets) + l2 * np.eye(self.shape[1]))
            return lambda vector: inverse @ vector
        blocks = None
        if self.only_blocks:
            by_round = self.by_round(shares) if self.which is None else self._by_round(shares)
            blocks = arm_blocks(self.block_contexts, by_round, weights)
        if blocks is None:
            return super().preconditioner(shares, weights, offsets, l2)
        return per_arm_preconditioner(blocks, l2, self.groups if groups is None else groups)

    @property
    def groups(self) -> Index:
        """Which arms are compared, directly or by way of others: the number of each arm's group, shape (K,)."""
        if self.which is None:
            return np.zeros(self.n_arms, dtype=np.int64)
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        assert self.bounds is not None
        inside = np.ones(max(0, len(self.which) - 1), dtype=bool)
        inside[self.bounds[1:-1][(self.bounds[1:-1] > 0) & (self.bounds[1:-1] < len(self.which))] - 1] = False
        found: Index = np.arange(self.n_arms)
        for start in range(0, len(inside), PIECE_VALUES):
            some = start + np.flatnonzero(inside[start : start + PIECE_VALUES])
            # What is known already, and neighbours in a round.
            firsts = np.unique(found, return_index=True)[1][found]
            ends = np.append(firsts, self.which[some]), np.append(np.arange(self.n_arms), self.which[some + 1])
            entries: Any = (np.ones(len(ends[0]), dtype=np.int32), ends)
            graph = csr_array(entries, shape=(self.n_arms, self.n_arms))
            n_groups, labels = connected_components(graph, directed=False)
            found = np.asarray(labels, dtype=np.int64)
            if n_groups == 1:
                break
        return found

    def _parts(self) -> Iterator[tuple[Layout, slice]]:
        """The rows piece by piece, each small enough to be written out."""
        step = max(1, PIECE_VALUES // max(1, self.shape[1]))
        for start in range(0, self.shape[0], step):
            rows = slice(start, min(start + step, self.shape[0]))
            yield self[rows], rows

    def _pieces(self, values: int) -> Iterator[tuple[slice, slice]]:
        """Ranges of rounds, and their rows, for `values` numbers a round in a temporary array."""
        assert self.bounds is not None
        step = max(1, PIECE_VALUES // max(1, values))
        for start in range(0, self.n_rounds, step):
            stop = min(start + step, self.n_rounds)
            yield slice(start, stop), slice(int(self.bounds[start]), int(self.bounds[stop]))
