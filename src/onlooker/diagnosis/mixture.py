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
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.imitation.stretches import FAST, imitate
from onlooker.logs.log import BanditLog

RECENT = 20
"""A habit is a position that was picked often in so many rounds before; the round before has a share of its own."""

SHARPEST = 5.0
"""A stretch's picks are at most so many times as decisive as the whole log's: beyond, likelihoods are flat."""

LEAST_WEIGHT = 1e-3
"""Rounds whose picks are surely not the policy's keep this weight, so that no fit is left without any."""

TIE = 1e-100
"""Scores that differ by less are the same: squares of their differences would be no proper numbers."""

LEAST_EXPONENT = -200.0
"""Arms whose scores are further below the best are taken to be so far below it: products of theirs are numbers."""

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


class _Stretches:
    """The rounds of a log, each in its stretch: what all iterations need."""

    def __init__(self, log: BanditLog, scores: Vector, others: Matrix, bounds: Index) -> None:
        self.n, self.first, self.sizes, self.picks = len(bounds) - 1, log.offsets[:-1], log.n_arms, log.chosen_rows
        self.of = np.repeat(np.arange(self.n), np.diff(bounds))
        self.row_of = np.repeat(self.of, self.sizes)
        below = scores - np.repeat(np.maximum.reduceat(scores, self.first), self.sizes)
        self.scores = np.where(below > -TIE, 0.0, below)
        self.others = others[:, self.picks].T

    def sums(self, values: Vector) -> Vector:
        return np.bincount(self.of, values, self.n).astype(np.float64)

    def softmax(self, scale: Vector) -> tuple[Vector, Vector]:
        """Unnormalised probabilities of the rows, and their sums by round; the best arm of a round has 1."""
        weights = np.exp(np.maximum(scale[self.row_of] * self.scores, LEAST_EXPONENT))
        return weights, np.add.reduceat(weights, self.first)


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
    at = _Stretches(log, scores, others, bounds)
    scale, shares = np.ones(at.n), np.tile([0.85, 0.05, 0.05, 0.05], (at.n, 1))
    picked = at.scores[at.picks]
    for step in range(steps + 1):
        weights, total = at.softmax(scale)
        joint = np.column_stack([weights[at.picks] / total, at.others]) * shares[at.of]
        given = joint.sum(axis=1)
        ways = joint / given[:, None]
        if step == steps:
            break
        shares = np.column_stack([at.sums(way) for way in ways.T]) + BEFOREHAND
        shares /= shares.sum(axis=1, keepdims=True)
        moment = weights * at.scores
        mean = np.add.reduceat(moment, at.first) / total
        spread = np.add.reduceat(moment * at.scores, at.first) / total - mean**2
        newton = at.sums(ways[:, 0] * (picked - mean)) / np.maximum(at.sums(ways[:, 0] * spread), 1e-9)
        reach = np.maximum(scale, 0.2) / 2
        scale = np.clip(scale + np.clip(newton, -reach, reach), 0.0, SHARPEST)
    residuals = -weights / np.repeat(total, at.sizes)
    residuals[at.picks] += 1.0
    return Mixture(
        own=ways[:, 0],
        given=given,
        best=shares[at.of, 0] / total + shares[at.of, 1:].sum(axis=1) / at.sizes,
        residuals=np.repeat(ways[:, 0], at.sizes) * residuals,
        scale=scale,
        shares=shares,
    )


def fit_policy(log: BanditLog, others: Matrix, near: Fit | None = None) -> tuple[Fit, Vector]:
    """Fit one policy to the picks that look like its own; give how much each of them counted too."""
    fit, weights = imitate(log, near, tolerance=FAST), np.ones(log.n_rounds)
    for _ in range(REFITS):
        found = explain(log, log.features @ fit.theta, others, np.array([0, log.n_rounds]), steps=8)
        weights = np.maximum(found.own, LEAST_WEIGHT)
        fit = minimise(SoftmaxObjective(log, l2=L2, weights=weights), fit, tolerance=FAST)
    return fit, weights
