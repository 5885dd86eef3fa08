"""How strongly groups of weights are regularised: the variance that makes the picks most probable.

Weights of a group are taken as draws from a normal distribution of mean zero. Its variance is the one with the largest
evidence, in Laplace's approximation: Newton's steps for the weights, and between them Fellner and Schall's updates of
the variances on the curvature that was found (Wood and Fasiolo, 2017).
"""

from __future__ import annotations

import numpy as np

from onlooker.base.types import Index, Vector
from onlooker.imitation.bounded import Flags, step_within
from onlooker.imitation.objective import FAIR, CurvedPoint
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.logs.log import BanditLog

SAMPLE_ROUNDS = 4_000
"""Rounds that variances are found by, per 100 weights: an even sample, where there are more."""

MOST_STEPS = 40
"""Newton steps."""

UPDATES = 8
"""Updates of the variances between two of them."""

LARGEST_CHANGE = 3.0
"""By so much may the logarithm of a variance change between two Newton steps."""

LEAST, MOST = 1e-5, 1e4
"""Variances lie between: of scores that differ by nothing, and of picks that are always the same."""

DONE = 0.02
"""Change of the logarithm of all variances at which they are found."""


def variances(
    log: BanditLog,
    groups: Index,
    penalties: Vector,
    *,
    weights: Vector | None = None,
    positive: Flags | None = None,
) -> Vector:
    """Variance of the weights of every group, shape (groups,).

    `groups` has the group of every column, -1 for those whose penalty on the mean loss is that of `penalties`;
    `positive` says which weights may not be negative. Columns should have spreads of about one.
    """
    n_groups = int(groups.max(initial=-1)) + 1
    found = np.ones(n_groups)
    if not n_groups:
        return found
    wanted = SAMPLE_ROUNDS * max(1.0, log.n_features / 100)
    stride = max(1, int(log.n_rounds / wanted))
    if weights is not None and not weights[::stride].any():
        stride = 1
    objective = SoftmaxObjective(log, l2=0.0, weights=weights, stride=stride)
    bounds = np.zeros(log.n_features, dtype=bool) if positive is None else positive
    here = objective.evaluate(np.zeros(log.n_features), share=FAIR)
    for _ in range(MOST_STEPS):
        before = found
        found, theta = _updated(here, objective.total, groups, found, penalties, bounds)
        ahead = _stepped(objective, here, theta, _penalty(groups, found, penalties, objective.total))
        change = np.abs(np.log(found / before))[found > 2 * LEAST].max(initial=0.0)
        moved = np.sqrt(max(0.0, float((ahead.theta - here.theta) @ ahead.hessian @ (ahead.theta - here.theta))))
        here = ahead
        if change < DONE and moved < DONE:
            break
    return found


def _penalty(groups: Index, found: Vector, penalties: Vector, total: float) -> Vector:
    """Weight of each squared weight in the mean loss (twice), shape (d,)."""
    return np.where(groups >= 0, 1 / (total * found[groups]), penalties)


def _updated(
    here: CurvedPoint, total: float, groups: Index, found: Vector, penalties: Vector, positive: Flags
) -> tuple[Vector, Vector]:
    """Variances on the curvature of a point, and the weights that minimise the quadratic there."""
    n_groups, grouped = len(found), groups >= 0
    sizes = np.bincount(groups[grouped], minlength=n_groups)
    first = found
    theta = here.theta
    for _ in range(UPDATES):
        penalty = _penalty(groups, found, penalties, total)
        curvature = here.hessian + np.diag(penalty)
        step, free = step_within(here.theta, here.gradient + penalty * here.theta, curvature, positive)
        theta = here.theta + step
        spread = np.zeros(len(theta))
        spread[free] = np.diag(np.linalg.inv(curvature[np.ix_(free, free)]))
        squares = np.bincount(groups[grouped], theta[grouped] ** 2, n_groups)
        left = np.bincount(groups[grouped], (penalty * spread)[grouped], n_groups)
        n_free = np.bincount(groups[grouped], free[grouped], n_groups)
        freedom = np.clip(np.where(n_free > 0, n_free - left, 0.0), 1e-8 * sizes, sizes)
        new = np.clip(squares / freedom, found / 20, found * 20)
        found = np.clip(
            new, np.maximum(LEAST, first / np.e**LARGEST_CHANGE), np.minimum(MOST, first * np.e**LARGEST_CHANGE)
        )
    return found, theta


def _stepped(objective: SoftmaxObjective, here: CurvedPoint, theta: Vector, penalty: Vector) -> CurvedPoint:
    """The point at `theta`, or nearer where the penalised loss would not fall."""

    def value(at: CurvedPoint) -> float:
        return at.loss + 0.5 * float(at.theta @ (penalty * at.theta))

    step = theta - here.theta
    for _ in range(20):
        ahead = objective.evaluate(here.theta + step, share=FAIR)
        if value(ahead) <= value(here) + 1e-10:
            return ahead
        step = step / 2
    return here
