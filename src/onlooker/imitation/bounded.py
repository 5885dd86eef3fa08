"""The solver where some weights may not be negative: Newton's method with the bounds in every quadratic."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onlooker.base.numerics import backtrack, inverse
from onlooker.base.types import Matrix, Vector
from onlooker.imitation.newton import Fit
from onlooker.imitation.objective import Objective

Flags = NDArray[np.bool_]
"""One flag per weight."""

TOLERANCE = 1e-8
"""Decrement of Newton's method at which a point is the minimum."""

MAX_PASSES = 100
"""The search gives up after so many."""


def step_within(theta: Vector, gradient: Vector, hessian: Matrix, positive: Flags) -> tuple[Vector, Flags]:
    """The step to the minimum of a convex quadratic with some weights at least 0, and which weights are free there.

    Lawson and Hanson's active sets: weights at their bound are freed one by one where that helps.

    Examples
    --------
    >>> step, free = step_within(np.zeros(2), np.array([1.0, -1.0]), np.eye(2), np.array([True, True]))
    >>> step.tolist(), free.tolist()
    ([0.0, 1.0], [False, True])
    """
    if not positive.any():
        return np.asarray(-np.linalg.solve(hessian, gradient)), np.ones(len(theta), dtype=bool)
    linear = gradient - hessian @ theta
    free = ~positive | (theta > 0)
    x = np.where(free, theta, 0.0)
    scale = 1e-12 * max(1.0, float(np.abs(linear).max(initial=0.0)))
    for _ in range(10 * len(theta) + 10):
        goal = np.zeros(len(theta))
        goal[free] = np.linalg.solve(hessian[np.ix_(free, free)], -linear[free])
        below = free & positive & (goal < 0)
        if below.any():
            # As far as the first bound, which then holds.
            shares = x[below] / np.maximum(x[below] - goal[below], 1e-300)
            x = x + shares.min() * (goal - x)
            hit = np.flatnonzero(below)[shares <= shares.min() + 1e-15]
            x[hit], free[hit] = 0.0, False
            continue
        x = goal
        pull = np.where(free, 0.0, linear + hessian @ x)
        if pull.min() >= -scale:
            break
        free[int(pull.argmin())] = True
    return x - theta, free


def minimise_bounded(objective: Objective, positive: Flags) -> tuple[Fit, Flags]:
    """The minimiser with some weights at least 0, and which weights are free there.

    Examples
    --------
    >>> from onlooker.logs.log import BanditLog
    >>> from onlooker.imitation.softmax import SoftmaxObjective
    >>> log = BanditLog.from_dense(np.array([[[1.0], [0.0]]] * 4), chosen=[1, 1, 1, 0])
    >>> fit, free = minimise_bounded(SoftmaxObjective(log, l2=0.01), np.array([True]))
    >>> fit.theta.tolist(), free.tolist()
    ([0.0], [False])
    """
    here = objective.evaluate(np.zeros(objective.n_features))
    passes, converged = 1, False
    free = np.ones(objective.n_features, dtype=bool)
    # Where the loss has no curvature, a little of it keeps the quadratic convex.
    slight = 1e-12 * np.eye(objective.n_features)
    while True:
        step, free = step_within(here.theta, here.gradient, here.hessian + np.trace(here.hessian) * slight, positive)
        decrement = max(0.0, -float(here.gradient @ step)) ** 0.5
        converged = decrement <= TOLERANCE
        if converged or passes >= MAX_PASSES:
            break
        ahead, looks = backtrack(objective.evaluate, here, step, looks=30)
        passes += looks
        if ahead is None:
            converged = decrement <= TOLERANCE**0.5
            break
        here = ahead
    theta = np.where(positive, np.maximum(here.theta, 0.0), here.theta)
    metric = np.zeros_like(here.hessian)
    metric[np.ix_(free, free)] = inverse(here.hessian[np.ix_(free, free)])
    fit = Fit(theta=theta, loss=here.loss, at=here, metric=metric, n_iter=passes, converged=converged)
    return fit, free
