"""Newton's method for the imitation objective, which is smooth and convex."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker.softmax import Evaluation, SoftmaxObjective
from onlooker.types import Matrix, Vector

TOLERANCE = 1e-8
"""A point is the minimum when no component of the gradient, nor the Newton decrement, is larger than this.

The decrement `sqrt(g' H^-1 g)` does not depend on the features' units, so tiny features are solved for as well.
"""

MAX_PASSES = 200

SKETCH_TOLERANCE = 1e-4
"""The same for a sketch, whose minimum is only where the full objective starts."""

SKETCH_ROUNDS_PER_FEATURE = 10
"""A sketch needs about this many rounds per feature to start close to the minimum."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """What the solver found, and how it got there."""

    at: Evaluation
    """The objective at the minimiser."""

    n_iter: int
    """Passes over the data that the search took; a pass over a sketch does not count."""

    converged: bool
    """Whether the gradient vanished, to `TOLERANCE` or to rounding."""


def minimise(objective: SoftmaxObjective, start: Vector | None = None) -> Fit:
    """Find the minimiser, from `start` or else from that of a sketch that looks at few of the rounds.

    Examples
    --------
    >>> from onlooker.log import BanditLog
    >>> log = BanditLog.from_dense(np.array([[[1.0], [0.0]]] * 4), chosen=[0, 0, 0, 1])
    >>> fit = minimise(SoftmaxObjective(log, l2=0.0))
    >>> fit.converged, bool(np.isclose(fit.at.theta[0], np.log(3)))
    (True, True)
    """
    here = objective.evaluate(_sketched_start(objective) if start is None else start)
    tolerance = TOLERANCE if objective.stride == 1 else SKETCH_TOLERANCE
    passes = 1
    while True:
        step = newton_step(here.hessian, here.gradient)
        decrement = max(0.0, -float(here.gradient @ step)) ** 0.5
        converged = max(decrement, float(np.abs(here.gradient).max())) <= tolerance
        if converged or passes >= MAX_PASSES:
            break
        ahead, tried = _line_search(objective, here, step)
        passes += tried
        if ahead is None:
            # Rounding hides any further descent: huge features make gradients that cannot be told from zero.
            converged = decrement <= tolerance**0.5
            break
        here = ahead
    return Fit(at=here, n_iter=passes, converged=converged)


def newton_step(hessian: Matrix, gradient: Vector) -> Vector:
    """Solve `hessian @ step = -gradient`; directions without curvature are left alone.

    Examples
    --------
    >>> newton_step(np.array([[4.0, 0.0], [0.0, 0.0]]), np.array([2.0, 0.0]))
    array([-0.5, 0. ])
    """
    inverse_root = inverse_square_root(hessian)
    return np.asarray(inverse_root @ (inverse_root.T @ -gradient))


def inverse_square_root(hessian: Matrix) -> Matrix:
    """`R` with `R R' = hessian^-1` on the directions that have curvature, zero on the others.

    The matrix is scaled to a unit diagonal first: features on very different scales are told apart from flat ones.
    """
    diagonal = np.diag(hessian)
    scale = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
    values, vectors = np.linalg.eigh(hessian * np.outer(scale, scale))
    curved = values > 1e-13 * len(values)
    return np.asarray(scale[:, None] * vectors[:, curved] / np.sqrt(values[curved]))


def _line_search(objective: SoftmaxObjective, here: Evaluation, step: Vector) -> tuple[Evaluation | None, int]:
    """Halve the step until the objective falls; near the minimum, where it cannot be seen to, the gradient decides."""
    slope = float(here.gradient @ step)
    length = 1.0
    for tried in range(1, 31):
        ahead = objective.evaluate(here.theta + length * step)
        if ahead.value <= here.value + 1e-4 * length * slope:
            return ahead, tried
        rounding = 1e-14 * max(1.0, abs(here.value))
        if ahead.value <= here.value + rounding and np.abs(ahead.gradient).max() < np.abs(here.gradient).max():
            return ahead, tried
        length /= 2
    return None, tried


def _sketched_start(objective: SoftmaxObjective) -> Vector:
    """Minimiser over every `stride`-th round, itself found from a coarser sketch; zero where a sketch does not pay."""
    log, stride = objective.log, objective.stride * 8
    if log.n_rounds // stride < SKETCH_ROUNDS_PER_FEATURE * log.n_features:
        return np.zeros(log.n_features)
    sketch = SoftmaxObjective(log, l2=objective.l2, weights=objective.weights, stride=stride)
    return minimise(sketch).at.theta
