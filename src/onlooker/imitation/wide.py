"""Curvature of dense rows with many features, by products of matrices; and preconditioners from some of the rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from onlooker.base.numerics import inverse_of
from onlooker.base.types import Matrix, Vector
from onlooker.imitation.choice_model import pick_likelihood
from onlooker.logs.factored_curvature import diagonal_preconditioner
from onlooker.logs.log import BanditLog

DIAGONAL_ROWS = 4096
"""Rows by which the variances of the features within rounds are judged."""

ROWS_PER_FEATURE = 8
"""Rows per feature from which a whole Hessian is made, at least."""

SHARE = 100
"""Part of all rows, times the features, that it is made from besides: it then takes about as long as some passes."""

PIECE_ROWS = 1024
"""Rows that are weighted at once."""


def by_variances(log: BanditLog, weights: Vector, theta: Vector, l2: float) -> Callable[[Vector], Vector]:
    """The inverse of the Hessian's diagonal, times a vector."""
    squares, total = np.zeros(log.n_features), 0.0
    for table, weight in _spreads(_sampled(log, weights, DIAGONAL_ROWS), theta):
        squares += np.square(table).sum(axis=0)
        total += weight
    return diagonal_preconditioner(squares / total, l2)


def by_hessian(log: BanditLog, weights: Vector, theta: Vector, l2: float) -> Callable[[Vector], Vector]:
    """The inverse of the Hessian of a sample of the rounds, times a vector; in single precision, which is enough.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [0.0, 0.0]]]), chosen=[0, 0])
    >>> times = by_hessian(log, np.ones(2), np.zeros(2), 0.25)
    >>> np.abs(times(np.array([1.0, 0.0]))).round(3)
    array([2., 0.])
    """
    d, total = log.n_features, 0.0
    hessian = np.zeros((d, d))
    n_rows = max(ROWS_PER_FEATURE * d, SHARE * len(log.features) // d)
    for table, weight in _spreads(_sampled(log, weights, n_rows), theta):
        single = table.astype(np.float32)
        hessian += single.T @ single
        total += weight
    hessian /= total
    hessian[np.diag_indices(d)] += l2 + 1e-6 * float(np.trace(hessian)) / d
    inverse = inverse_of(hessian)
    return lambda vector: inverse @ vector


def hessian_of(log: BanditLog, weights: Vector, theta: Vector) -> Matrix:
    """Hessian of the rounds' summed loss at `theta`, shape (d, d), each counted by its weight.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.array([[[1.0, 0.0], [0.0, 1.0]]]), chosen=[0])
    >>> hessian_of(log, np.ones(1), np.zeros(2)).round(6).tolist()
    [[0.25, -0.25], [-0.25, 0.25]]
    """
    found = np.zeros((log.n_features,) * 2)
    for table, _ in _spreads(_sampled(log, weights), theta):
        found += table.T @ table
    return found


def _sampled(log: BanditLog, weights: Vector, n_rows: int | None = None) -> Iterator[tuple[BanditLog, Vector]]:
    """Rounds that count, or some of them with about so many rows, piece by piece, with their weights."""
    counts, by_round = np.flatnonzero(weights > 0), len(log.features) / max(1, log.n_rounds)
    if n_rows is not None:
        counts = counts[:: max(1, int(len(counts) * by_round / n_rows))]
    step = max(1, int(max(PIECE_ROWS, log.n_features) / max(1.0, by_round)))
    for start in range(0, len(counts), step):
        places = counts[start : start + step]
        alike = places[-1] - places[0] == len(places) - 1
        yield log[places[0] : places[-1] + 1] if alike else log[places], weights[places]


def _spreads(pieces: Iterable[tuple[BanditLog, Vector]], theta: Vector) -> Iterator[tuple[Matrix, float]]:
    """Rows less their round's mean, times the root of their weighted probability; and the rounds' weight."""
    for part, weight in pieces:
        # Less the pick's row first: what all arms share would drown what tells them apart.
        rows = part.dense.astype(np.float64)
        rows -= np.repeat(rows[part.chosen_rows], part.n_arms, axis=0)
        shares = pick_likelihood(rows @ theta, part).predicted
        means = np.add.reduceat(shares[:, None] * rows, part.offsets[:-1], axis=0)
        rows -= np.repeat(means, part.n_arms, axis=0)
        rows *= np.sqrt(shares * np.repeat(weight, part.n_arms))[:, None]
        yield rows, float(weight.sum())
