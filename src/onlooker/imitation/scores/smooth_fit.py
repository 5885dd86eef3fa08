"""Fit of a basis whose weights have penalties that were chosen for them, and the covariance of those weights.

The penalty of a curve says how smooth the curve is taken to be. Its weights then are uncertain in two ways: by the
picks, as all weights are, and by what the penalty hides. The covariance `A^-1 (M + P) A^-1` has both, with `A` the
Hessian, `M` the scatter of the rounds' gradients and `P` the curvature of the penalty. With `M` as the model has it,
this is the Bayesian covariance `A^-1`, whose bands cover at their level on average over the curve (Nychka, 1988).

On average over smooth curves, that is. A curve with a corner is bent less by the penalty elsewhere and more there. So
the middle of a band is the curve less its bias as the fit itself has it, `A^-1 P theta` (Tukey's twicing). The band has
the variance of that middle, which is larger, and what the penalty hides, as if nothing had been corrected: the penalty
is itself estimated.
"""

from __future__ import annotations

import numpy as np

from onlooker.base.numerics import inverse_of
from onlooker.base.types import Matrix
from onlooker.imitation.bounded import minimise_bounded
from onlooker.imitation.newton import Fit, minimise_and_look
from onlooker.imitation.objective import (
    CurvedPoint,
    Objective,
    ScatteredPoint,
    model_covariance,
    sandwich_covariance,
)
from onlooker.imitation.score_models import Band, Basis


def smooth_estimate(objective: Objective, basis: Basis, width: int | None) -> tuple[Fit, CurvedPoint, Matrix, Band]:
    """The minimum, the curvature there, the covariance of the weights, and what bands of curves are made of.

    `width` is that of the sandwich's windows; None takes the model's covariance. Weights that their bound holds at 0
    have no variance.
    """

    def look(theta: np.ndarray) -> CurvedPoint:
        return objective.evaluate(theta) if width is None else objective.at_minimum(theta, width)

    at: CurvedPoint
    if basis.positive is not None and basis.positive.any():
        fit, free = minimise_bounded(objective, basis.positive)
        at = look(fit.theta)
        metric = np.zeros_like(at.hessian)
        metric[np.ix_(free, free)] = inverse_of(at.hessian[np.ix_(free, free)])
    else:
        fit, at = minimise_and_look(objective, look)
        metric = inverse_of(at.hessian)
    if isinstance(at, ScatteredPoint) and width is not None:
        covariance = sandwich_covariance(objective, at, width, metric)
    else:
        covariance = model_covariance(objective, at, metric)
    assert basis.smooth is not None
    bent = metric[:, basis.smooth]
    hidden = objective.l2 / objective.total * (bent @ bent.T)
    turn = np.eye(len(metric))
    turn[:, basis.smooth] += objective.l2 * bent
    return fit, at, covariance + hidden, Band(turn @ at.theta, turn @ covariance @ turn.T + hidden)
