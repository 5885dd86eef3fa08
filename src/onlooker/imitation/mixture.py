"""How picks come about: by the policy, at random, or by position out of habit.

Random picks, a habit of position and the policy's decisiveness are about *how* a learner picks. They are estimated
stretch by stretch, so that what is left to explain is *what it values*: the direction of the weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker.base.defaults import L2
from onlooker.base.types import Index, Matrix, Vector
from onlooker.imitation.newton import Fit, minimise
from onlooker.imitation.short import is_short, short_fit
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.imitation.stretches import FAST, imitate, imitated
from onlooker.logs.log import BanditLog

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
