"""Stretches of a log: the policies fitted to them, how well those predict picks, and how picks come about.

Picks are the policy's, random, or by position out of habit. Random picks, habits and the policy's decisiveness are
about *how* a learner picks. They are estimated stretch by stretch, so that what is left to explain is *what it values*:
the direction of the weights.
"""

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


RECENT = 20
"""A habit is a position that was picked often in so many rounds before; the round before has a share of its own."""

LEAST_WEIGHT = 1e-3
"""Rounds whose picks are surely not the policy's keep this weight, so that no fit is left without any."""

BEFOREHAND = np.array([1.0, 0.5, 0.5, 0.5])
"""Rounds that each way to pick is assumed to have made beforehand, so that no share is 0."""

REFITS = 3
"""Times that the policy is fitted to the picks that look like its own. A fourth time moves a pick in a thousand."""


def other_ways(log: BanditLog) -> Matrix:
    """Probability of every row if the pick is random, repeats the last position, or one picked recently; shape (3, R).

    Examples
    --------
    >>> log = BanditLog.from_dense(np.zeros((3, 2, 1)), chosen=[1, 1, 0])
    >>> other_ways(log).round(2).tolist()
    [[0.5, 0.5, 0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.0, 1.0, 0.0, 1.0], [0.5, 0.5, 0.0, 1.0, 0.0, 1.0]]
    """
    sizes, first = log.n_arms, log.offsets[:-1]
    rounds = np.repeat(np.arange(log.n_rounds), sizes)
    place = np.arange(len(rounds)) - first[rounds]
    random = 1.0 / sizes[rounds]
    counts, last = np.zeros(len(rounds)), np.zeros(len(rounds))
    before = np.append(log.chosen, -1)
    for lag in range(1, min(RECENT, log.n_rounds) + 1):
        same = before[np.where(rounds >= lag, rounds - lag, -1)] == place
        counts += same
        if lag == 1:
            last = same.astype(np.float64)
    found = [random]
    for habit in (last, counts):
        total = np.add.reduceat(habit, first)[rounds]
        found.append(np.where(total > 0, habit / np.maximum(total, 1.0), random))
    return np.array(found)


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixture:
    """What each pick is taken for, given the scores of one policy."""

    own: Vector
    """Probability that the policy made the pick, shape (N,)."""
    given: Vector
    """Probability of the pick, shape (N,)."""
    best: Vector
    """Probability that the policy's best arm is picked, shape (N,)."""
    residuals: Vector
    """Pick less what the policy expects of each row, weighted by `own`, shape (R,)."""
    scale: Vector
    """Decisiveness of each stretch relative to the scores as given, shape (m,)."""
    shares: Matrix
    """Share of the policy, of random picks and of the two habits in each stretch, shape (m, 4)."""


def explain(log: BanditLog, scores: Vector, others: Matrix, bounds: Index, *, steps: int = 12) -> Mixture:
    """Estimate, in each stretch between `bounds`, the shares of all ways to pick and the policy's decisiveness.

    By expectation and maximisation. Half a round of each other way, and one of the policy, is assumed beforehand.

    Examples
    --------
    A policy whose picks are random in three rounds of ten:

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 5, 2))
    >>> picks = np.where(rng.random(4000) < 0.3, rng.integers(5, size=4000), (X @ [4.0, 2.0]).argmax(axis=1))
    >>> log = BanditLog.from_dense(X, picks)
    >>> found = explain(log, log.features @ [4.0, 2.0], other_ways(log), np.array([0, 4000]), steps=40)
    >>> float(found.shares[0, 0].round(1))
    0.7
    """
    from onlooker.kernels import mixture as kernels

    n, rounds = len(bounds) - 1, log.n_rounds
    below = np.array(scores, dtype=np.float64)
    kernels.below_best(below, log.offsets)
    scale, shares = np.ones(n), np.tile([0.85, 0.05, 0.05, 0.05], (n, 1))
    own, given, best, residuals = np.empty(rounds), np.empty(rounds), np.empty(rounds), np.empty(len(below))
    picks = log.chosen_rows
    kernels.explain(
        *(below, log.offsets, picks, others[:, picks], bounds, steps, BEFOREHAND),
        *(scale, shares, own, given, best, residuals),
    )
    return Mixture(own=own, given=given, best=best, residuals=residuals, scale=scale, shares=shares)


def fit_policy(log: BanditLog, others: Matrix, near: Fit | None = None) -> tuple[Fit, Vector]:
    """Fit one policy to the picks that look like its own; give how much each of them counted too."""
    short, weights = is_short(log, L2), np.ones(log.n_rounds)
    fit = near if short else imitate(log, near, tolerance=FAST)
    theta = imitated(log, None if fit is None else fit.theta) if short or fit is None else fit.theta
    for last in (*(False,) * (REFITS - 1), True):
        found = explain(log, log.features @ theta, others, np.array([0, log.n_rounds]), steps=8)
        weights = np.maximum(found.own, LEAST_WEIGHT)
        closer = short_fit(log, l2=L2, tolerance=FAST, weights=weights, near=theta) if short and not last else None
        if closer is not None:
            theta = closer
        else:
            fit = minimise(SoftmaxObjective(log, l2=L2, weights=weights), fit, tolerance=FAST)
            theta = fit.theta
    assert fit is not None
    return fit, weights
