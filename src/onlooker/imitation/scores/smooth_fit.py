"""Fit of a basis whose weights have penalties that were chosen for them, and the covariance of those weights.

The penalty of a curve says how smooth the curve is taken to be. Its weights then are uncertain in two ways: by the
picks, as all weights are, and by what the penalty hides. The covariance `A^-1 (M + P) A^-1` has both, with `A` the
Hessian, `M` the scatter of the rounds' gradients and `P` the curvature of the penalty. With `M` as the model has it,
this is the Bayesian covariance `A^-1`, whose bands cover at their level on average over the curve (Nychka, 1988).

On average, that is: what the penalty hides is always the same at a peak or at a corner, and bands there hold the truth
too seldom. So bands of curves are those of a fit with a far weaker penalty, which hides next to nothing: one step of
Newton's from the minimum leads there. They have the chance in the picks alone, which is then larger. Where picks are
rare the rounds' gradients scatter by chance too little, as all are alike until one is picked. So bands take the larger
of two errors: the sandwich's, which allows for neighbours that are alike, and the model's.
"""

from __future__ import annotations

import numpy as np

from onlooker.base.numerics import inverse_of
from onlooker.base.types import Matrix
from onlooker.imitation.bounded import Flags, minimise_bounded
from onlooker.imitation.choice_model import Band, Basis
from onlooker.imitation.newton import Fit, minimise_and_look
from onlooker.imitation.objective import CurvedPoint, Objective, ScatteredPoint, model_covariance, sandwich_covariance


def smooth_estimate(objective: Objective, basis: Basis, width: int | None) -> tuple[Fit, CurvedPoint, Matrix, Band]:
    """The minimum, the curvature there, the covariance of the weights, and what bands of curves are made of.

    `width` is that of the sandwich's windows; None takes the model's covariance. Weights that their bound holds at 0
    have no variance.
    """

    def look(theta: np.ndarray) -> CurvedPoint:
        return objective.evaluate(theta) if width is None else objective.at_minimum(theta, width)

    def spread(metric: Matrix) -> Matrix:
        if width is None or not isinstance(at, ScatteredPoint):
            return model_covariance(objective, at, metric)
        # A weight that its penalty decides on counts for nothing.
        decided = float(np.sum(metric * at.hessian) - objective.l2 * np.trace(metric))
        return sandwich_covariance(objective, at, width, metric, decided)

    at: CurvedPoint
    free = np.ones(objective.n_features, dtype=bool)
    if basis.positive is not None and basis.positive.any():
        fit, free = minimise_bounded(objective, basis.positive)
        at = look(fit.theta)
    else:
        fit, at = minimise_and_look(objective, look)
    metric = _inverse(at.hessian, free)
    assert basis.smooth is not None
    bent = metric[:, basis.smooth]
    hidden = objective.l2 / objective.total * (bent @ bent.T)
    less = objective.l2 * (1 - basis.loose)
    rough = _inverse(at.hessian - np.diag(less), free)
    moved = at.theta + rough @ (less * at.theta)
    return fit, at, spread(metric) + hidden, Band(moved, spread(rough), model_covariance(objective, at, rough))


def _inverse(hessian: Matrix, free: Flags) -> Matrix:
    """Of the weights that are free; zero for those that a bound holds."""
    if free.all():
        return inverse_of(hessian)
    found, inner = np.zeros_like(hessian), np.ix_(free, free)
    found[inner] = inverse_of(hessian[inner])
    return found
