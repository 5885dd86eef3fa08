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

SAMPLE_ROUNDS, ROUNDS_A_WEIGHT = 1_000, 10
"""Rounds of the sample that the search begins with, at least and for each weight."""

MOST_STEPS = 40
"""Newton steps."""

UPDATES = 8
"""Updates of the variances between two of them."""

LAST_UPDATES = 25
"""Updates where few Newton steps follow."""

LARGEST_CHANGE = 3.0
"""By so much may the logarithm of a variance change between two Newton steps."""

LEAST, MOST = 1e-5, 1e4
"""Variances lie between: of scores that differ by nothing, and of picks that are always the same."""

DONE = 0.05
"""Change of the logarithm of all variances at which they are found."""


def sampled(log: BanditLog, weights: Vector | None, n_weights: int) -> tuple[BanditLog, Vector | None]:
    """As many of the rounds, evenly spread, as so many weights need, and the weights of those rounds.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.zeros((10_000, 2, 1)), chosen=np.zeros(10_000, dtype=int))
    >>> sampled(log, None, 10)[0].n_rounds
    1000
    """
    choices = np.flatnonzero((log.n_arms > 1) if weights is None else (log.n_arms > 1) & (weights > 0))
    stride = max(1, len(choices) // max(SAMPLE_ROUNDS, ROUNDS_A_WEIGHT * n_weights))
    if stride == 1:
        return log, weights
    return log[choices[::stride]], None if weights is None else weights[choices[::stride]]


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
    found, theta = np.ones(n_groups), np.zeros(log.n_features)
    if not n_groups:
        return found
    bounds = np.zeros(log.n_features, dtype=bool) if positive is None else positive
    some, counts = sampled(log, weights, log.n_features)
    problem = groups, penalties, bounds
    found, theta = _settled(SoftmaxObjective(some, l2=0.0, weights=counts), *problem, found, theta)
    if some is log:
        return found
    # A sample leads near, but does not see what only many rounds show: two looks at all of them do.
    objective = SoftmaxObjective(log, l2=0.0, weights=weights)
    here = objective.evaluate(theta, share=FAIR)
    found, goal = _updated(here, objective.total, found, *problem, updates=LAST_UPDATES)
    here = _stepped(objective, here, goal, _penalty(groups, found, penalties, objective.total))
    return _updated(here, objective.total, found, *problem, updates=LAST_UPDATES)[0]


def _settled(
    objective: SoftmaxObjective, groups: Index, penalties: Vector, positive: Flags, found: Vector, theta: Vector
) -> tuple[Vector, Vector]:
    """Variances and weights of the largest evidence, from others that are near."""
    here = objective.evaluate(theta, share=FAIR)
    for _ in range(MOST_STEPS):
        before = found
        found, goal = _updated(here, objective.total, found, groups, penalties, positive)
        ahead = _stepped(objective, here, goal, _penalty(groups, found, penalties, objective.total))
        change = np.abs(np.log(found / before))[found > 2 * LEAST].max(initial=0.0)
        moved = np.sqrt(max(0.0, float((ahead.theta - here.theta) @ ahead.hessian @ (ahead.theta - here.theta))))
        here = ahead
        if change < DONE and moved < DONE:
            break
    return found, here.theta


def _penalty(groups: Index, found: Vector, penalties: Vector, total: float) -> Vector:
    """Weight of each squared weight in the mean loss (twice), shape (d,)."""
    return np.where(groups >= 0, 1 / (total * found[groups]), penalties)


def _updated(
    here: CurvedPoint,
    total: float,
    found: Vector,
    groups: Index,
    penalties: Vector,
    positive: Flags,
    updates: int = UPDATES,
) -> tuple[Vector, Vector]:
    """Variances on the curvature of a point, and the weights that minimise the quadratic there."""
    n_groups, grouped = len(found), groups >= 0
    sizes = np.bincount(groups[grouped], minlength=n_groups)
    reach = np.e**LARGEST_CHANGE if updates == UPDATES else np.inf
    least, most = np.maximum(LEAST, found / reach), np.minimum(MOST, found * reach)
    theta = here.theta
    for _ in range(updates):
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
        before, found = found, np.clip(new, least, most)
        if np.abs(np.log(found / before)).max() < DONE / 5:
            break
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
