"""How strongly groups of weights are regularised: the variance that makes the picks most probable.

Weights of a group are taken as draws from a normal distribution of mean zero. Its variance is the one with the largest
evidence, in Laplace's approximation: Newton's steps for the weights, and between them Fellner and Schall's updates of
the variances on the curvature that was found (Wood and Fasiolo, 2017).

Neighbouring rounds may be alike, as several choices of one person are: they then say less than as many independent
ones. How much less shows in the scatter of the gradients over windows of neighbours, beside the curvature. In the
evidence of a group, rounds count for so much less.
"""

from __future__ import annotations

import numpy as np

from onlooker.base.types import Index, Matrix, Vector
from onlooker.imitation.bounded import Flags, step_within
from onlooker.imitation.objective import FAIR, CurvedPoint, window_width
from onlooker.imitation.softmax import SoftmaxObjective, not_whole
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
    """Variance of the weights of every group, times the share for which its rounds count, shape (groups,).

    `groups` has the group of every column, -1 for those whose penalty on the mean loss is that of `penalties`;
    `positive` says which weights may not be negative. Columns should have spreads of about one. The inverse of what is
    found, divided by the number of rounds, is the penalty on the mean loss.
    """
    n_groups = int(groups.max(initial=-1)) + 1
    found, theta = np.ones(n_groups), np.zeros(log.n_features)
    if not n_groups:
        return found
    bounds = np.zeros(log.n_features, dtype=bool) if positive is None else positive
    some, counts = sampled(log, weights, log.n_features)
    problem = groups, penalties, bounds
    objective = SoftmaxObjective(some, l2=0.0, weights=counts)
    totals = np.full(n_groups, objective.total)
    found, here = _settled(objective, totals, *problem, found, objective.evaluate(theta, share=FAIR))
    whole = SoftmaxObjective(log, l2=0.0, weights=weights)
    if weights is None or not_whole(weights) is None:
        here, shares = _dependence(whole, found, here.theta, *problem)
    else:
        here, shares = whole.evaluate(here.theta, share=FAIR), np.ones(n_groups)
    totals = whole.total * shares
    if some is log:
        return shares * (found if (shares == 1).all() else _settled(whole, totals, *problem, found, here)[0])
    # A sample leads near, but does not see what only many rounds show: two looks at all of them do.
    found, goal = _updated(here, totals, found, *problem, updates=LAST_UPDATES)
    here = _stepped(whole, here, goal, _penalty(groups, found, penalties, totals))
    return shares * _updated(here, totals, found, *problem, updates=LAST_UPDATES)[0]


def _dependence(
    objective: SoftmaxObjective, found: Vector, theta: Vector, groups: Index, penalties: Vector, positive: Flags
) -> tuple[CurvedPoint, Vector]:
    """The point at `theta`, and for how much the rounds count in the evidence of each group: at most 1.

    That is the variance of its weights if rounds were independent, divided by the one that allows for neighbours.
    """
    width = window_width(objective, None)
    at = objective.at_minimum(theta, width)
    # The scatter is about zero; weights of a sample leave a mean gradient, which is no sign of dependence.
    meat = at.scatter / (width * objective.total) - width * np.outer(at.gradient, at.gradient)
    free = np.flatnonzero(~positive | (theta > 0))
    penalty = _penalty(groups, found, penalties, np.full(len(found), objective.total))
    inner = np.ix_(free, free)
    metric = np.linalg.inv(at.hessian[inner] + np.diag(penalty[free]))
    mine = groups[free] >= 0

    def spread(middle: Matrix) -> Vector:
        variances = np.einsum("ij,ij->i", metric @ middle[inner], metric)
        return np.bincount(groups[free][mine], variances[mine], len(found)).astype(np.float64)

    alone, allowing = spread(at.hessian), spread(meat)
    # Of independent rounds both are alike up to chance, which is about this large.
    beyond = allowing > alone * (1 + 2 * np.sqrt(2 * width / objective.total))
    shares = np.divide(alone, allowing, out=np.ones(len(found)), where=beyond)
    return at, np.maximum(shares, 1 / width)


def _settled(
    objective: SoftmaxObjective,
    totals: Vector,
    groups: Index,
    penalties: Vector,
    positive: Flags,
    found: Vector,
    here: CurvedPoint,
) -> tuple[Vector, CurvedPoint]:
    """Variances of the largest evidence and the point there, from others that are near."""
    for _ in range(MOST_STEPS):
        before = found
        found, goal = _updated(here, totals, found, groups, penalties, positive)
        ahead = _stepped(objective, here, goal, _penalty(groups, found, penalties, totals))
        change = np.abs(np.log(found / before))[found > 2 * LEAST].max(initial=0.0)
        moved = np.sqrt(max(0.0, float((ahead.theta - here.theta) @ ahead.hessian @ (ahead.theta - here.theta))))
        here = ahead
        if change < DONE and moved < DONE:
            break
    return found, here


def _penalty(groups: Index, found: Vector, penalties: Vector, totals: Vector) -> Vector:
    """Weight of each squared weight in the mean loss (twice), shape (d,); `totals`: rounds that count, by group."""
    return np.where(groups >= 0, 1 / (totals * found)[groups], penalties)


def _updated(
    here: CurvedPoint,
    totals: Vector,
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
        penalty = _penalty(groups, found, penalties, totals)
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
