"""Stretches of a log, the policies fitted to them, and how well those predict picks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from onlooker.base.defaults import L2
from onlooker.base.types import Index, Matrix, Vector
from onlooker.imitation.newton import TOLERANCE, Fit, minimise
from onlooker.imitation.short import is_short, short_bins, short_fit
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog
from onlooker.logs.policy import LinearPolicy

LATE = 0.7
"""The late policy learns from the rounds after this part of the log, as in the paper."""

FOLDS = 5
"""Four fifths of a stretch are fitted to predict the remaining fifth, as in the paper, but for each fifth in turn."""

FAST = 1e-4
"""Newton decrement at which a fit is done: what is left of the loss is below 1e-8 a round."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Predicted:
    """How well a policy predicted every round."""

    hits: Flags
    """Whether the policy's best arm was picked, shape (N,)."""

    given: Vector
    """Probability that the policy gave to the pick, shape (N,)."""

    expected: Vector
    """What that is on average if the policy makes the picks, shape (N,): the sum of its squared probabilities."""


def edges(n_rounds: int, bins: int) -> list[int]:
    """Where equal bins begin and end.

    Examples
    --------
    >>> edges(10, 4)
    [0, 2, 5, 7, 10]
    """
    places: list[int] = np.linspace(0, n_rounds, bins + 1).astype(int).tolist()
    return places


def imitate(log: BanditLog, near: Fit | None = None, *, tolerance: float = TOLERANCE) -> Fit:
    """Fit the rounds of a stretch, starting from a similar fit where there is one."""
    return minimise(SoftmaxObjective(log, l2=L2), near, tolerance=tolerance)


def imitated(log: BanditLog, near: Vector | None = None, weights: Vector | None = None) -> Vector:
    """The weights of the policy that explains the rounds of a stretch, or those that count; roughly, but fast.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 4, 2))
    >>> log = BanditLog.from_dense(X, chosen=(X @ [1.0, 2.0]).argmax(axis=1))
    >>> bool(np.allclose(imitated(log), imitate(log).theta, rtol=1e-3))
    True
    """
    found = short_fit(log, l2=L2, tolerance=FAST, weights=weights, near=near) if is_short(log, L2) else None
    if found is not None:
        return found
    return imitate(log if weights is None else log[np.flatnonzero(weights)], tolerance=FAST).theta


def held_out_hits(log: BanditLog, train: Index, test: Index) -> Flags:
    """In which of the rounds `test` the policy fitted to the rounds `train` makes the pick.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 4, 2))
    >>> log = BanditLog.from_dense(X, chosen=(X @ [1.0, 2.0]).argmax(axis=1))
    >>> bool(held_out_hits(log, np.arange(80), np.arange(80, 100)).mean() > 0.9)
    True
    """
    rest = log[test]
    return np.asarray(LinearPolicy(imitate(log[train]).theta).choose(rest) == rest.chosen)


def predict(log: BanditLog, theta: Vector) -> Predicted:
    """Let the softmax policy `theta` predict every round of the log.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.array([[[1.0], [0.0]], [[0.0], [1.0]]]), chosen=[0, 0])
    >>> predicted = predict(log, np.array([np.log(3.0)]))
    >>> predicted.hits, predicted.given, predicted.expected
    (array([ True, False]), array([0.75, 0.25]), array([0.625, 0.625]))
    """
    return _predicted(LinearPolicy(theta).scores(log), log)


def _predicted(scores: Vector, log: BanditLog) -> Predicted:
    """What scores of all rows predict."""
    probabilities = ragged.softmax(scores, log.offsets)
    return Predicted(
        hits=np.asarray(ragged.argmax(scores, log.offsets) == log.chosen),
        given=probabilities[log.chosen_rows],
        expected=np.add.reduceat(probabilities**2, log.offsets[:-1]),
    )


def cross_predict(log: BanditLog, start: int, near: Vector) -> Predicted:
    """Let the rounds from `start` on predict every round of the log, none of them by a policy that has seen it.

    Every fifth round is predicted by the policy fitted to the other rounds from `start` on; rounds before it by the
    same policies, so that the two can be compared. Fits start from `near`.
    """
    rounds = np.arange(log.n_rounds)
    trains = [((rounds >= start) & (rounds % FOLDS != fold)).astype(np.float64) for fold in range(FOLDS)]
    if is_short(log, L2):
        thetas = np.array([imitated(log, near, train) for train in trains])
        return _predicted(np.einsum("rj,rj->r", log.dense, thetas[np.repeat(rounds % FOLDS, log.n_arms)]), log)
    hits, given, expected = np.empty(len(rounds), dtype=bool), np.empty(len(rounds)), np.empty(len(rounds))
    for fold, train in enumerate(trains):
        part = predict(log[fold::FOLDS], imitated(log, near, train))
        hits[fold::FOLDS], given[fold::FOLDS], expected[fold::FOLDS] = part.hits, part.given, part.expected
    return Predicted(hits=hits, given=given, expected=expected)


def cross_predict_bins(log: BanditLog, bounds: list[int]) -> tuple[Matrix, Flags]:
    """Weights of the policy of each bin, shape (bins, d), and which picks a policy of the other folds of a bin makes.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 4, 2))
    >>> log = BanditLog.from_dense(X, chosen=(X @ [1.0, 2.0]).argmax(axis=1))
    >>> thetas, hits = cross_predict_bins(log, [0, 50, 100])
    >>> thetas.shape, bool(hits.mean() > 0.8)
    ((2, 2), True)
    """
    starts = np.array(bounds)
    found = short_bins(log, starts, FOLDS, l2=L2, tolerance=FAST) if is_short(log, L2) else None
    if found is not None:
        of = np.repeat(np.arange(len(found)), np.diff(starts))
        fold = (np.arange(log.n_rounds) - starts[of]) % FOLDS
        thetas = np.repeat(found[of, 1 + fold], log.n_arms, axis=0)
        best = ragged.argmax(np.einsum("rj,rj->r", log.dense, thetas), log.offsets)
        return found[:, 0], np.asarray(best == log.chosen)
    bins = [log[start:stop] for start, stop in pairwise(bounds)]
    own = [imitated(one) for one in bins]
    hits = [cross_predict(one, 0, theta).hits for one, theta in zip(bins, own, strict=True)]
    return np.array(own), np.concatenate(hits)
