"""Passes by way of the scores: loss, gradient, curvature and scatter.

For rows that are not dense, and for rounds that reveal less than their pick among all offers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from onlooker.base.types import Index, Matrix, Vector
from onlooker.imitation.choice_model import even_arms, explained_and_agreed, revealed
from onlooker.imitation.dense_passes import DenseRows
from onlooker.imitation.objective import Pass, Sums, Windows
from onlooker.logs.factored import FactoredRows
from onlooker.logs.layouts import Layout
from onlooker.logs.log import BanditLog

BLOCK_ROWS = 1 << 17
"""Rows that are scored at once: 1 MB of scores stays in the cache, and products are large enough to be fast."""

CURVED_ROWS = 1 << 19
"""Rows whose curvature is found at once where there are many weights: adding matrices of d x d takes long."""

GRADIENT_VALUES = 1 << 20
"""Numbers in the rounds' own gradients that are written out at once."""


SAFE = 300.0
"""Scores of at most this size are exponentiated as they are: neither they nor sums of them overflow or vanish."""


@dataclass(frozen=True, eq=False)
class Block:
    """Some neighbouring rounds with their weights."""

    log: BanditLog
    weights: Vector
    scaled: bool = False
    """Whether weights scale rounds, where otherwise they repeat them."""

    @property
    def rows(self) -> Layout:
        """Their rows."""
        features = self.log.features
        return features if isinstance(features, Layout) else DenseRows(features)

    @cached_property
    def even(self) -> int | None:
        """Arms of every round, where all have as many."""
        return even_arms(self.log)

    @cached_property
    def numbers(self) -> Index:
        """0, 1 and so on, one a round."""
        return np.arange(self.log.n_rounds)

    def predicted(self, theta: Vector) -> Vector:
        """Probability of every row's arm."""
        return revealed(self.rows @ theta, self.log).predicted

    def run(self, wanted: Pass) -> Sums:
        """What a pass finds in these rounds."""
        if self.even is not None and not wanted.judged and not self.log.partial:
            return self._slope(wanted.theta, self.even)
        log, rows, scores = self.log, self.rows, self.rows @ wanted.theta
        found = revealed(scores, log)
        explained, agreed = explained_and_agreed(scores, log)
        upper = np.zeros((0, 0))
        if wanted.share is not None:
            coarse = {"coarse": True} if wanted.coarse else {}
            upper = rows.covariance(found.predicted, self.weights, log.offsets, **coarse)
            if log.possible is not None and not wanted.bound:
                upper -= rows.covariance(found.expected, self.weights, log.offsets, **coarse)
            # In place: a copy would count with many weights.
            for row in range(1, len(upper)):
                upper[row, :row] = 0.0
        residuals = found.predicted - found.expected
        sums = Sums(
            loss=float(self.weights @ found.losses),
            gradient=rows.T @ (residuals * np.repeat(self.weights, log.n_arms)),
            upper=upper,
            explained=float(self.weights @ explained),
            agreed=float(self.weights @ agreed),
        )
        return sums if not wanted.width else replace(sums, windows=self._windows(residuals, wanted))

    def _slope(self, theta: Vector, n_arms: int) -> Sums:
        """Loss and gradient where every round offers as many arms: most of a fit is this."""
        scores = (self.rows @ theta).reshape(-1, n_arms)
        if max(scores.max(), -scores.min()) > SAFE:
            scores -= scores.max(axis=1)[:, None]
        picked = scores[self.numbers, self.log.chosen]
        np.exp(scores, out=scores)
        totals = scores @ np.ones(n_arms)
        loss = float(self.weights @ (np.log(totals) - picked))
        scores *= (self.weights / totals)[:, None]
        scores[self.numbers, self.log.chosen] -= self.weights
        nothing = np.zeros((0, 0))
        gradient = self.rows.T @ scores.ravel()
        return Sums(loss=loss, gradient=gradient, upper=nothing, explained=np.nan, agreed=np.nan)

    def _windows(self, residuals: Vector, wanted: Pass) -> Windows:
        """Sums over windows of the rounds' gradients, which are written out a piece at a time."""
        d, rows = self.rows.shape[1], self.rows
        if isinstance(rows, FactoredRows) and not self.scaled and set(np.unique(self.weights).tolist()) <= {0.0, 1.0}:
            mean = np.zeros(d) if wanted.mean is None else wanted.mean
            blocks = rows.window_products(residuals, self.weights > 0, mean, wanted.width, coarse=wanted.coarse)
            if blocks is not None:
                return Windows(*blocks)
        found = Windows.of(np.zeros((0, d)), wanted.width)
        step = max(wanted.width, GRADIENT_VALUES // d)
        for start in range(0, self.log.n_rounds, step):
            part, weights = self.log[start : start + step], self.weights[start : start + step]
            first = int(self.log.offsets[start])
            some = Block(part, weights).rows
            sums = some.round_sums(residuals[first : first + len(some)], part.offsets)
            gradients: Matrix = sums.toarray() if isinstance(sums, Layout) else sums
            if wanted.mean is not None:
                gradients -= wanted.mean
            counts = weights > 0
            if self.scaled:
                found = found.joined(Windows.of(gradients[counts] * weights[counts, None], wanted.width))
                continue
            repeats = None if (weights[counts] == 1).all() else weights[counts].astype(np.int64)
            found = found.joined(Windows.of(gradients if counts.all() else gradients[counts], wanted.width, repeats))
        return found


def scored_blocks(log: BanditLog, weights: Vector, rows: int = BLOCK_ROWS, *, scaled: bool = False) -> list[Block]:
    """Blocks of neighbouring rounds with about so many rows, as views."""
    if not log.n_rounds:
        return []
    n_blocks = max(1, -(-len(log.features) // rows))
    edges = np.searchsorted(log.offsets, np.arange(1, n_blocks) * (len(log.features) / n_blocks))
    bounds = np.unique(np.concatenate([[0], edges, [log.n_rounds]])).tolist()
    return [Block(log[a:b], weights[a:b], scaled) for a, b in pairwise(bounds)]
