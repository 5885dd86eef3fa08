"""Rounds that pull the fit towards themselves, and what the sandwich misses by it.

A round's gradient at the minimum is smaller than it would be had theta been fitted without the round. Where few rounds
decide, as in short logs or with learners that hardly ever make a mistake, a sandwich of such gradients is too narrow.
The gradient at the theta of all other rounds is `(I - H_t A^-1)^-1 g_t` after one step of Newton's, with the round's
own Hessian `H_t` and that of all rounds `A` (Mancl and DeRouen 2001; of a linear regression it is HC3, the jackknife).

A variance that comes from few rounds is itself known badly. If it is a sum of terms `q_t`, it has about
`2 (sum q_t)^2 / sum q_t^2` degrees of freedom (Satterthwaite), and 95% intervals are made as wide as Student's
distribution asks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlooker.base.numerics import inverse, student_factor
from onlooker.base.types import Matrix, Vector
from onlooker.imitation.likelihood import Likelihood, even_arms, revealed
from onlooker.imitation.objective import CurvedPoint, Objective
from onlooker.logs import ragged
from onlooker.logs.layouts import Layout
from onlooker.logs.log import BanditLog

ROUNDS_PER_WEIGHT = 500
"""Rounds for every weight from which on leverage is left out.

Learners that hardly ever make a mistake show their preferences in about one round of eight, and the correction then
still adds 2% to a standard error; of a softmax policy it adds 0.2%.
"""

VALUES = 1 << 20
"""Values of gradients up to which it is done for rows that are not dense; and of Hessians that are solved together."""

PIECE = 1 << 18
"""Values of features that are looked at together; tests/base/test_working_memory.py measures what that takes."""

QUIET = 1e-4
"""Rounds whose picks are predicted to within this have no pull of their own: the gradient is the penalty's share."""

CLOSELY = 0.05
"""Rounds with at least this leverage are solved for; of others the first term of the series is within 0.3%."""

MOST = 0.99
"""Leverage at most: without a round of 1 theta is not identified, and intervals a hundred times wider say so."""


def with_leverage(objective: Objective, at: CurvedPoint, covariance: Matrix, metric: Matrix | None) -> Matrix:
    """A sandwich with every round's gradient taken at the theta of all other rounds; `metric`: the Hessian's inverse.

    In the place of the factor for the number of weights. Products of neighbours are left as they are.
    """
    free = objective.n_features - objective.n_redundant
    if not free < objective.n_rounds <= ROUNDS_PER_WEIGHT * free:
        return covariance
    half = (inverse(at.hessian) if metric is None else metric) / objective.total
    lifted = objective.lifted(at.theta, half)
    if lifted is None:
        return covariance
    wider = covariance * (1 - free / objective.n_rounds) + half @ lifted.scatter @ half
    return np.asarray(student_factor(lifted.freedom) * wider)


@dataclass(frozen=True, eq=False)
class Lifted:
    """Gradients of some rounds, each at the theta of all other rounds; those of several parts can be added."""

    scatter: Matrix
    """By how much they scatter more than those at the theta of all rounds, shape (d, d)."""
    size: float
    """Sum of their squared sizes, by the metric."""
    squares: float
    """Sum of the squares of these."""

    def __add__(self, other: Lifted) -> Lifted:
        return Lifted(self.scatter + other.scatter, self.size + other.size, self.squares + other.squares)

    @property
    def freedom(self) -> float:
        """Degrees of freedom of a variance that is made of them, 1 at least."""
        return max(1.0, 2 * self.size**2 / self.squares) if self.squares > 0 else 1.0


def lifted_gradients(
    log: BanditLog, weights: Vector, theta: Vector, mean: Vector, metric: Matrix, *, scaled: bool = False
) -> Lifted:
    """Every round's gradient at the theta of all other rounds, and what these scatter more.

    `mean` is taken off every round's gradient, and `metric` is the inverse of the rounds' summed Hessian.

    Examples
    --------
    Two rounds weigh as much as each other, so each one's gradient would be twice as large without it:

    >>> log = BanditLog.from_dense(np.array([[[1.0], [0.0]], [[1.0], [0.0]]]), chosen=[0, 1])
    >>> lifted_gradients(log, np.ones(2), np.zeros(1), np.zeros(1), np.array([[2.0]])).scatter
    array([[1.5]])
    """
    found, rest, still = Lifted(np.zeros_like(metric), 0.0, 0.0), np.zeros_like(metric), float(mean @ metric @ mean)
    for part, counts, quiet in _pieces(log, weights, theta):
        scales = quiet**2 if scaled else np.ones(len(quiet))
        times = np.ones(len(quiet)) if scaled else quiet
        found += Lifted(rest, still * float(times @ scales), still**2 * float(times @ scales**2))
        if not part.n_rounds:
            continue
        rows = _dense(part)
        chances = revealed(rows @ theta, part)
        sums = _round_sums(chances.predicted - chances.expected, rows, part)
        scale = counts if scaled else np.ones(len(counts))
        gradients = scale[:, None] * (sums - mean)
        pulls = scale[:, None] * _pulled(rows, chances, part, gradients @ metric)
        without = gradients + pulls
        sizes = [np.einsum("ij,ij->i", each @ metric, each) for each in (pulls, gradients)]
        strong = np.flatnonzero(sizes[0] > CLOSELY**2 * sizes[1])
        if len(strong):
            without[strong] = _solved(part[strong], scale[strong], theta, metric, gradients[strong])
        repeats = np.ones(len(counts)) if scaled else counts
        scatter = (repeats[:, None] * without).T @ without - (repeats[:, None] * gradients).T @ gradients
        squared = np.einsum("ij,ij->i", without @ metric, without)
        found += Lifted(scatter, float(repeats @ squared), float(repeats @ squared**2))
    return found


def _pieces(log: BanditLog, weights: Vector, theta: Vector) -> Iterator[tuple[BanditLog, Vector, Vector]]:
    """Rounds that count and are not quiet, some at a time, with their weights, and the weights of quiet ones."""
    counts = np.flatnonzero(weights > 0)
    log, weights = (log, weights) if len(counts) == len(weights) else (log[counts], weights[counts])
    for start, stop in ragged.blocks(log.offsets, log.n_features, PIECE):
        part = log[start:stop]
        chances = revealed(np.asarray(part.features @ theta.astype(part.features.dtype), dtype=np.float64), part)
        away = np.add.reduceat(np.abs(chances.predicted - chances.expected), part.offsets[:-1])
        loud, some = away > QUIET, weights[start:stop]
        yield part[np.flatnonzero(loud)], some[loud], some[~loud]


def _dense(log: BanditLog) -> Matrix:
    rows = log.features
    return np.asarray(rows.toarray() if isinstance(rows, Layout) else rows, dtype=np.float64)


def _pulled(rows: Matrix, chances: Likelihood, log: BanditLog, steps: Matrix) -> Matrix:
    """Every round's Hessian times the round's step."""
    even = even_arms(log)
    if even is None:
        along = np.einsum("ij,ij->i", rows, np.repeat(steps, log.n_arms, axis=0))
    else:
        along = (rows.reshape(-1, even, rows.shape[1]) @ steps[:, :, None]).ravel()
    values = _centred(along, chances.predicted, log)
    if log.possible is not None:
        values -= _centred(along, chances.expected, log)
    return _round_sums(values, rows, log)


def _round_sums(values: Vector, rows: Matrix, log: BanditLog) -> Matrix:
    """Sum of every round's rows, each times its value, shape (N, d)."""
    even = even_arms(log)
    if even is None:
        return np.asarray(np.add.reduceat(values[:, None] * rows, log.offsets[:-1], axis=0))
    return np.asarray((values.reshape(-1, 1, even) @ rows.reshape(-1, even, rows.shape[1]))[:, 0])


def _centred(values: Vector, shares: Vector, log: BanditLog) -> Vector:
    """Values less their mean of the round under the shares, times these."""
    mean = np.add.reduceat(shares * values, log.offsets[:-1])
    return np.asarray(shares * (values - np.repeat(mean, log.n_arms)))


def _root(metric: Matrix) -> Matrix:
    """`R` with `R R' = M`, where some directions may be flat."""
    values, vectors = np.linalg.eigh(metric)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _solved(log: BanditLog, scale: Vector, theta: Vector, metric: Matrix, gradients: Matrix) -> Matrix:
    """`(I - H M)^-1 g` of every round, with leverages of at most `MOST`: `g + H R (I - R' H R)^-1 R' g`, `R R' = M`."""
    found = gradients.copy()
    if log.possible is None and log.n_features > int(log.n_arms.max()):
        for t in range(log.n_rounds):
            found[t] += _solved_by_arms(log[t : t + 1], float(scale[t]), theta, metric, gradients[t])
        return found
    root = _root(metric)
    for start, stop in ragged.blocks(log.offsets, log.n_features**2, VALUES):
        some, part = slice(start, stop), log[start:stop]
        rows = _dense(part)
        chances = revealed(rows @ theta, part)
        hessians = _covariances(rows, chances.predicted, part)
        if part.possible is not None:
            hessians -= _covariances(rows, chances.expected, part)
        turned = (scale[some, None, None] * hessians) @ root
        values, vectors = np.linalg.eigh(root.T @ turned)
        steps = np.einsum("tji,tj->ti", vectors, gradients[some] @ root) / (1 - np.minimum(values, MOST))
        found[some] += np.einsum("tij,tjk,tk->ti", turned, vectors, steps, optimize=True)
    return found


def _solved_by_arms(log: BanditLog, scale: float, theta: Vector, metric: Matrix, gradient: Vector) -> Vector:
    """What `_solved` adds to the gradient of one round, where it has fewer arms than features.

    With `H = B' B`, a row of `B` an arm, that is `B' (I - B M B')^-1 B M g`.
    """
    rows = _dense(log)
    shares = revealed(rows @ theta, log).predicted
    arms = np.sqrt(scale * shares)[:, None] * (rows - shares @ rows)
    turned = arms @ metric
    values, vectors = np.linalg.eigh(turned @ arms.T)
    steps = vectors @ ((vectors.T @ (turned @ gradient)) / (1 - np.minimum(values, MOST)))
    return np.asarray(arms.T @ steps)


def _covariances(rows: Matrix, shares: Vector, log: BanditLog) -> NDArray[np.float64]:
    """Of every round's rows under the shares, shape (N, d, d)."""
    starts, even = log.offsets[:-1], even_arms(log)
    centred = rows - np.repeat(_round_sums(shares, rows, log), log.n_arms, axis=0)
    if even is not None:
        by_round = centred.reshape(len(starts), even, -1)
        return np.asarray(by_round.transpose(0, 2, 1) @ (shares.reshape(-1, even, 1) * by_round))
    return np.asarray(np.add.reduceat((shares[:, None] * centred)[:, :, None] * centred[:, None, :], starts, axis=0))
