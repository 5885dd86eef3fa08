"""Minimise the loss of batched picks: Newton's method on smoothings of the hinge that become ever narrower."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from onlooker.errors import InputError
from onlooker.inverse_batched.objective import BatchedObjective, Smoothed
from onlooker.line_search import backtrack
from onlooker.types import Vector

NARROWER = 0.25
"""From one width to the next on the way to the hinge."""

NARROWEST = 1e-9
"""Widths below this part of the margin drown in rounding."""

MAX_STEPS = 500
"""Newton steps before giving up, over all widths."""

ROUGH, FINE = 1e-8, 1e-14
"""A step that promises less than this part of the width ends the search: on the way to the hinge, and for good."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """What the solver found."""

    at: Smoothed
    """The objective there."""
    n_iter: int
    """Newton steps."""
    converged: bool
    """Whether the tolerance was met."""


def minimise_hinge(objective: BatchedObjective, *, tolerance: float = 1e-4) -> Solution:
    """Minimise the hinge loss, until the duality gap is at most `tolerance` of the value.

    The margin must be above 0, and the penalty: without one there is no dual.

    Examples
    --------
    >>> from onlooker.log import BanditLog
    >>> X = np.random.default_rng(0).normal(size=(200, 4, 2))
    >>> log = BanditLog.from_dense(X, chosen=(X @ [1.0, -2.0]).argmax(axis=1))
    >>> found = minimise_hinge(BatchedObjective(log, batch=10, ridge=1.0, alpha=0.0, margin=0.1, l2=0.01))
    >>> found.converged, bool(found.at.gap <= 1e-4 * found.at.hinge)
    (True, True)
    """
    width, steps = objective.margin, 0
    here = objective.evaluate(np.zeros(objective.log.n_features), width=width)
    while True:
        here, taken = _descend(objective, here, width, MAX_STEPS - steps, ROUGH)
        steps += taken
        converged = here.gap <= tolerance * here.hinge
        if converged or steps >= MAX_STEPS or width < NARROWEST * objective.margin:
            return Solution(at=here, n_iter=steps, converged=converged)
        width *= NARROWER
        here = objective.evaluate(here.theta, width=width)


def minimise_logit(objective: BatchedObjective) -> Solution:
    """Minimise the loss smoothed to a width of 1: that of picks drawn by softmax of `x' theta_n`.

    Examples
    --------
    >>> from onlooker.log import BanditLog
    >>> log = BanditLog.from_dense(np.array([[[1.0], [0.0]]] * 4), chosen=[0, 1, 0, 0])
    >>> found = minimise_logit(BatchedObjective(log, batch=1, ridge=1e-12, alpha=0.0, margin=0.0, l2=1e-9))
    >>> bool(np.isclose(found.at.theta[0], np.log(2), atol=1e-6))
    True
    """
    start = objective.evaluate(np.zeros(objective.log.n_features), width=1.0)
    at, steps = _descend(objective, start, 1.0, MAX_STEPS, FINE)
    return Solution(at=at, n_iter=steps, converged=steps < MAX_STEPS)


def _descend(
    objective: BatchedObjective, here: Smoothed, width: float, most: int, enough: float
) -> tuple[Smoothed, int]:
    """Newton's method with halved steps, until no step promises anything beside the width."""
    look = partial(objective.evaluate, width=width)
    for steps in range(most):
        step = _newton_step(here)
        slope = float(here.gradient @ step)
        if -slope <= enough * width:
            return here, steps
        ahead, _ = backtrack(look, here, step, looks=31)
        if ahead is None or ahead.value >= here.value:
            # Rounding hides any further descent.
            return here, steps
        here = ahead
    return here, most


def _newton_step(here: Smoothed) -> Vector:
    try:
        step: Vector = -np.asarray(np.linalg.solve(here.hessian, here.gradient), dtype=np.float64)
    except np.linalg.LinAlgError:
        step = np.full(len(here.gradient), np.nan)
    if not np.isfinite(step).all():
        raise InputError("the features are too large for double precision: put them on a smaller scale")
    return step
