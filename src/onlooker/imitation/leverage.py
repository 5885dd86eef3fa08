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
from onlooker.imitation.choice_model import Likelihood, even_arms, revealed
from onlooker.imitation.objective import CurvedPoint, Objective
from onlooker.logs import ragged
from onlooker.logs.layouts import Layout
from onlooker.logs.log import BanditLog

EVEN = float(np.log(2))
"""Loss of a round in which two arms are equally likely. At the minimum, the mean loss of a log is its mean entropy."""

DECIDING, DECIDING_PER_WEIGHT = 500, 20
"""Rounds as open as that, in all and for every weight, from which on leverage is left out: it adds about 1% at most."""

SHARE = 0.2
"""Of what is known of a weight, that one round may hold at most where leverage is left out.

A feature that is on in 40 of 3,000 rounds has leverage, which adds 6% to its error; one in 100 has none, and lacks 3%.
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
    open_rounds = objective.effective_rounds * min(1.0, at.loss / EVEN)
    many = open_rounds >= max(DECIDING, DECIDING_PER_WEIGHT * free) and not _any_rare(objective, at)
    if objective.n_rounds <= free or many:
        return covariance
    half = (inverse(at.hessian) if metric is None else metric) / objective.total
    lifted = objective.lifted(at.theta, half)
    if lifted is None:
        return covariance
    wider = covariance * (1 - free / objective.n_rounds) + half @ lifted.scatter @ half
    return np.asarray(student_factor(lifted.freedom) * wider)


def _any_rare(objective: Objective, at: CurvedPoint) -> bool:
    """Whether one round may hold more than `SHARE` of what is known of a weight: a feature may hardly ever be on.

    A round tells at most the square of the feature's largest value. Weights of which nothing is known do not count.
    """
    most, known = objective.largest() ** 2, np.diag(at.hessian) - objective.l2
    return bool((SHARE * objective.effective_rounds * known < most)[known > 1e-12 * most].any())


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
        if part.n_rounds:
            scale = counts if scaled else np.ones(len(counts))
            found += _lifted(part, scale, np.ones(len(counts)) if scaled else counts, theta, mean, metric)
    return found


def _lifted(log: BanditLog, scale: Vector, repeats: Vector, theta: Vector, mean: Vector, metric: Matrix) -> Lifted:
    """The same of some rounds, which are scaled and repeated so."""
    chances = revealed(np.asarray(log.features @ theta.astype(log.features.dtype), dtype=np.float64), log)
    gradients = scale[:, None] * (_round_sums(chances.predicted - chances.expected, log) - mean)
    steps = gradients @ metric
    pulls = scale[:, None] * _pulled(chances, log, steps)
    turned = pulls @ metric
    sizes = np.einsum("ij,ij->i", steps, gradients)
    strong = np.flatnonzero(np.einsum("ij,ij->i", turned, pulls) > CLOSELY**2 * sizes)
    if len(strong):
        pulls[strong] = _solved(log[strong], scale[strong], theta, metric, gradients[strong])
        turned[strong] = pulls[strong] @ metric
    sizes += np.einsum("ij,ij->i", 2 * steps + turned, pulls)
    half = pulls.T @ (repeats[:, None] * (gradients + pulls / 2))
    return Lifted(half + half.T, float(repeats @ sizes), float(repeats @ sizes**2))


def _pieces(log: BanditLog, weights: Vector, theta: Vector) -> Iterator[tuple[BanditLog, Vector, Vector]]:
    """Rounds that count and are not quiet, some at a time, with their weights, and the weights of quiet ones."""
    counts = np.flatnonzero(weights > 0)
    log, weights = (log, weights) if len(counts) == len(weights) else (log[counts], weights[counts])
    # Rows that are not dense are not written out here: what counts is the rounds' gradients.
    offsets = np.arange(log.n_rounds + 1) if isinstance(log.features, Layout) else log.offsets
    for start, stop in ragged.blocks(offsets, log.n_features, PIECE):
        part, some = log[start:stop], weights[start:stop]
        chances = revealed(np.asarray(part.features @ theta.astype(part.features.dtype), dtype=np.float64), part)
        away = np.add.reduceat(np.abs(chances.predicted - chances.expected), part.offsets[:-1])
        loud = away > QUIET
        yield (part, some, some[:0]) if loud.all() else (part[np.flatnonzero(loud)], some[loud], some[~loud])


def _dense(log: BanditLog) -> Matrix:
    rows = log.features
    return np.asarray(rows.toarray() if isinstance(rows, Layout) else rows, dtype=np.float64)


def _pulled(chances: Likelihood, log: BanditLog, steps: Matrix) -> Matrix:
    """Every round's Hessian times the round's step."""
    rows, even = log.features, even_arms(log)
    if isinstance(rows, Layout):
        along = rows.along(steps, log.offsets)
    elif even is None:
        along = np.einsum("ij,ij->i", rows, np.repeat(steps, log.n_arms, axis=0))
    else:
        along = (rows.reshape(-1, even, rows.shape[1]) @ steps[:, :, None]).ravel()
    values = _centred(along, chances.predicted, log)
    if log.possible is not None:
        values -= _centred(along, chances.expected, log)
    return _round_sums(values, log)


def _round_sums(values: Vector, log: BanditLog) -> Matrix:
    """Sum of every round's rows, each times its value, shape (N, d)."""
    rows, even = log.features, even_arms(log)
    if isinstance(rows, Layout):
        sums = rows.round_sums(values, log.offsets)
        return sums.toarray() if isinstance(sums, Layout) else np.array(sums, dtype=np.float64)
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
    """What `(I - H M)^-1` adds to every round's gradient, with leverages of at most `MOST`."""
    by_arms = log.possible is None and log.n_features > int(log.n_arms.max())
    found, root = np.empty_like(gradients), metric if by_arms else _root(metric)
    for start, stop in ragged.blocks(log.offsets, log.n_features if by_arms else log.n_features**2, VALUES):
        some = slice(start, stop)
        solve = _solved_by_arms if by_arms else _solved_by_weights
        found[some] = solve(log[some], scale[some], theta, root, gradients[some])
    return found


def _solved_by_weights(log: BanditLog, scale: Vector, theta: Vector, root: Matrix, gradients: Matrix) -> Matrix:
    """`H R (I - R' H R)^-1 R' g`, `R R' = M`."""
    rows = _dense(log)
    chances = revealed(rows @ theta, log)
    hessians = _covariances(rows, chances.predicted, log)
    if log.possible is not None:
        hessians -= _covariances(rows, chances.expected, log)
    turned = (scale[:, None, None] * hessians) @ root
    values, vectors = np.linalg.eigh(root.T @ turned)
    steps = np.einsum("tji,tj->ti", vectors, gradients @ root) / (1 - np.minimum(values, MOST))
    return np.asarray(np.einsum("tij,tjk,tk->ti", turned, vectors, steps, optimize=True))


def _solved_by_arms(log: BanditLog, scale: Vector, theta: Vector, metric: Matrix, gradients: Matrix) -> Matrix:
    """The same where rounds have fewer arms than weights: `B' (I - B M B')^-1 B M g`, `H = B' B`, a row an arm."""
    rows, d = _dense(log), log.n_features
    shares = revealed(rows @ theta, log).predicted
    centred = rows - np.repeat(_round_sums(shares, log), log.n_arms, axis=0)
    # Rounds with fewer arms than others get rows of zeros.
    arms = np.zeros((log.n_rounds, int(log.n_arms.max()), d))
    at = np.repeat(np.arange(log.n_rounds), log.n_arms)
    arms[at, np.arange(len(at)) - log.offsets[at]] = np.sqrt(np.repeat(scale, log.n_arms) * shares)[:, None] * centred
    turned = (arms.reshape(-1, d) @ metric).reshape(arms.shape)
    values, vectors = np.linalg.eigh(turned @ arms.transpose(0, 2, 1))
    steps = vectors.transpose(0, 2, 1) @ (turned @ gradients[:, :, None])
    steps = vectors @ (steps / (1 - np.minimum(values, MOST))[:, :, None])
    return np.asarray((arms.transpose(0, 2, 1) @ steps)[:, :, 0])


def _covariances(rows: Matrix, shares: Vector, log: BanditLog) -> NDArray[np.float64]:
    """Of every round's rows under the shares, shape (N, d, d)."""
    starts, even = log.offsets[:-1], even_arms(log)
    centred = rows - np.repeat(_round_sums(shares, log), log.n_arms, axis=0)
    if even is not None:
        by_round = centred.reshape(len(starts), even, -1)
        return np.asarray(by_round.transpose(0, 2, 1) @ (shares.reshape(-1, even, 1) * by_round))
    return np.asarray(np.add.reduceat((shares[:, None] * centred)[:, :, None] * centred[:, None, :], starts, axis=0))
