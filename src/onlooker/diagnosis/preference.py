"""Whether the picks depend on the features at all: score tests against picking uniformly at random.

Under uniform picks everything about the score at theta = 0 is known, so the tests need no fit and hold in short bins,
where a likelihood ratio would be too large.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from onlooker.base.defaults import L2
from onlooker.base.numerics import UNIDENTIFIED, Curvature, chi_square_p
from onlooker.base.types import Matrix, Vector
from onlooker.imitation.short import is_short
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.logs.log import BanditLog


@dataclass(frozen=True, kw_only=True, eq=False)
class Preference:
    """What the score tests found."""

    rank: int
    """Directions of theta that the rounds identify."""

    spread: Matrix
    """Covariance of the features within the rounds, averaged over the rounds, shape (d, d)."""

    whole: float
    """Statistic for one preference throughout, chi-square with `rank` degrees of freedom."""

    whole_p: float
    """Its p-value."""

    binned: float
    """Statistic for any preference in any bin; `rank` degrees of freedom a bin."""

    freedom: int
    """Their number."""

    binned_p: float
    """Its p-value."""

    @property
    def p_value(self) -> float:
        """Of both together, corrected for there being two."""
        return min(1.0, 2 * min(self.whole_p, self.binned_p))


def find_preference(log: BanditLog, bounds: list[int]) -> Preference:
    """Test the whole log, and the bins between `bounds` together.

    Examples
    --------
    >>> X = np.random.default_rng(1).normal(size=(400, 3, 2))
    >>> find_preference(BanditLog.from_dense(X, chosen=np.zeros(400, dtype=int)), [0, 200, 400]).p_value > 0.05
    True
    >>> find_preference(BanditLog.from_dense(X, chosen=X[:, :, 0].argmax(axis=1)), [0, 200, 400]).p_value < 1e-9
    True
    """
    score, information = np.zeros(log.n_features), np.zeros((log.n_features, log.n_features))
    binned, freedom = 0.0, 0
    for gradient, hessian in _at_zero(log, bounds):
        score += gradient
        information += hessian
        found = Curvature.of(hessian, flat=UNIDENTIFIED)
        binned += found.square(gradient)
        freedom += found.rank
    found = Curvature.of(information, flat=UNIDENTIFIED)
    whole, rank = found.square(score), found.rank
    return Preference(
        rank=rank,
        spread=information / log.n_rounds,
        whole=whole,
        whole_p=chi_square_p(whole, rank),
        binned=binned,
        freedom=freedom,
        binned_p=chi_square_p(binned, freedom),
    )


def _at_zero(log: BanditLog, bounds: list[int]) -> Iterator[tuple[Vector, Matrix]]:
    """Gradient and Hessian of the loss where all arms score the same, summed over the rounds of each bin."""
    if not is_short(log, L2):
        for start, stop in pairwise(bounds):
            at = SoftmaxObjective(log[start:stop], l2=0.0).evaluate(np.zeros(log.n_features))
            yield (stop - start) * at.gradient, (stop - start) * at.hessian
        return
    sizes, rows = log.n_arms, log.dense.astype(np.float64)
    # From the first arm, then from the mean: what all arms share leaves exactly nothing.
    rows -= np.repeat(rows[log.offsets[:-1]], sizes, axis=0)
    rows -= np.repeat(np.add.reduceat(rows, log.offsets[:-1]) / sizes[:, None], sizes, axis=0)
    picked, shares = rows[log.chosen_rows], rows / np.repeat(sizes, sizes)[:, None]
    for start, stop in pairwise(bounds):
        part = slice(log.offsets[start], log.offsets[stop])
        yield -picked[start:stop].sum(axis=0), shares[part].T @ rows[part]
