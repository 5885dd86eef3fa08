"""What a round reveals, as a likelihood: from the scores of the arms on offer to how probable what was seen is.

A round reveals its pick, or a set of arms that holds it; and all offers, or the pick and a sample of the others. Each
is a function with the same result: gradients and curvature follow from the two sets of probabilities alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlooker.base.types import Matrix, Vector
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog

Flags = NDArray[np.bool_]
"""One flag per round."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Likelihood:
    """How probable what the rounds reveal is, given the arms' scores.

    With `r = predicted - expected`, the gradient of a round's loss with respect to its scores is `r`. The Hessian is
    the covariance under `predicted` less that under `expected`, so the first alone bounds it from above.
    """

    losses: Vector
    """Minus the log-probability of what each round reveals, shape (N,)."""
    predicted: Vector
    """Probability of picking each arm, one per row."""
    expected: Vector
    """The same, given what the round reveals, one per row: 1 for a pick that was seen."""


def revealed(scores: Vector, log: BanditLog) -> Likelihood:
    """Likelihood of what the rounds of any log reveal.

    Of sampled offers, a row that is kept with probability q stands for 1 / q like it, so `-log q` is added to its score
    (McFadden 1978). The scores of a policy are those without.

    Examples
    --------
    >>> features, log_of = np.zeros((3, 1)), lambda **known: BanditLog(np.zeros((3, 1)), [0, 3], None, **known)
    >>> revealed(np.zeros(3), log_of(possible=[1, 1, 0])).expected
    array([0.5, 0.5, 0. ])
    >>> revealed(np.zeros(3), log_of(possible=[1, 0, 0], offer_probability=[0.8, 0.4, 0.4])).predicted
    array([0.2, 0.4, 0.4])
    """
    if log.offer_probability is not None:
        scores = scores - np.log(log.offer_probability)
    return pick_likelihood(scores, log) if log.possible is None else set_likelihood(scores, log)


def set_likelihood(scores: Vector, log: BanditLog) -> Likelihood:
    """Likelihood of the picks lying in their sets: `logsumexp` over the offers less that over the set."""
    assert log.possible is not None
    starts, sizes = log.offsets[:-1], log.n_arms
    best = np.maximum.reduceat(scores, starts)
    weights = np.exp(scores - np.repeat(best, sizes))
    totals = np.add.reduceat(weights, starts)
    inside = np.where(log.possible, scores, -np.inf)
    top = np.maximum.reduceat(inside, starts)
    held = np.exp(inside - np.repeat(top, sizes))
    sums = np.add.reduceat(held, starts)
    return Likelihood(
        losses=best + np.log(totals) - top - np.log(sums),
        predicted=weights / np.repeat(totals, sizes),
        expected=held / np.repeat(sums, sizes),
    )


def pick_likelihood(scores: Vector, log: BanditLog) -> Likelihood:
    """Likelihood of the picks, all of which were seen.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.zeros((1, 2, 1)), chosen=[1])
    >>> found = pick_likelihood(np.zeros(2), log)
    >>> found.losses.round(3), found.predicted, found.expected
    (array([0.693]), array([0.5, 0.5]), array([0., 1.]))
    """
    even = even_arms(log)
    if even is not None:
        return _even_likelihood(scores.reshape(-1, even), log)
    starts, sizes = log.offsets[:-1], log.n_arms
    best = np.maximum.reduceat(scores, starts)
    weights = np.exp(scores - np.repeat(best, sizes))
    totals = np.add.reduceat(weights, starts)
    weights /= np.repeat(totals, sizes)
    return Likelihood(losses=best + np.log(totals) - scores[log.chosen_rows], predicted=weights, expected=_seen(log))


def even_arms(log: BanditLog) -> int | None:
    """How many arms every round offers; None where rounds differ, or there is none.

    Examples
    --------
    >>> even_arms(BanditLog.from_dense(np.zeros((4, 3, 1)), chosen=[0, 1, 2, 0]))
    3
    """
    sizes = log.n_arms
    return int(sizes[0]) if len(sizes) and (sizes == sizes[0]).all() else None


def _even_likelihood(scores: Matrix, log: BanditLog) -> Likelihood:
    """The same where all rounds offer as many arms: scores as a matrix, shape (N, K)."""
    best = scores.max(axis=1)
    weights = scores - best[:, None]
    picked = weights[np.arange(len(weights)), log.chosen]
    np.exp(weights, out=weights)
    totals = weights.sum(axis=1)
    weights /= totals[:, None]
    return Likelihood(losses=np.log(totals) - picked, predicted=weights.ravel(), expected=_seen(log))


def _seen(log: BanditLog) -> Vector:
    """1 for every row that was picked, 0 for the others."""
    seen = np.zeros(len(log.features))
    seen[log.chosen_rows] = 1.0
    return seen


def explained_and_agreed(scores: Vector, log: BanditLog) -> tuple[Flags, Flags]:
    """In which rounds the pick scores strictly above every other arm, and in which it is the first of the best.

    Of a set, whether its best arm does so.
    """
    if log.possible is not None:
        inside = np.maximum.reduceat(np.where(log.possible, scores, -np.inf), log.offsets[:-1])
        outside = np.maximum.reduceat(np.where(log.possible, -np.inf, scores), log.offsets[:-1])
        agreed = log.possible[log.offsets[:-1] + ragged.argmax(scores, log.offsets)]
        return np.asarray(inside > outside), np.asarray(agreed)
    even = even_arms(log)
    if even is not None:
        matrix = scores.reshape(-1, even)
        picked = matrix[np.arange(len(matrix)), log.chosen]
        first = matrix.argmax(axis=1) == log.chosen
        alone = np.array(first)
        alone[first] = np.count_nonzero(matrix[first] == picked[first, None], axis=1) == 1
        return alone, first
    best = np.maximum.reduceat(scores, log.offsets[:-1])
    top = scores == np.repeat(best, log.n_arms)
    alone = np.add.reduceat(top.astype(np.int64), log.offsets[:-1]) == 1
    agreed = ragged.argmax(scores, log.offsets) == log.chosen
    return top[log.chosen_rows] & alone, agreed
