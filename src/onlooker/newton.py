"""The solver: Newton's method far from the minimum, its quasi-Newton form near it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from onlooker.errors import InputError
from onlooker.objective import FAIR, ROUGH, CurvedPoint, Objective, Point
from onlooker.types import Matrix, Vector

TOLERANCE = 1e-8
"""A point is the minimum when no component of the gradient, nor the Newton decrement, is larger than this.

The decrement `sqrt(g' H^-1 g)` does not depend on the features' units, so tiny features are solved for as well.
"""

MAX_PASSES = 200

SLOW = 0.15
"""A step that leaves more than this of the gradient asks for the curvature where it leads."""

GAIN = 0.3
"""Near the minimum a step leaves at most about this part of what the step before it would have left."""

SKETCH_TOLERANCE = 3e-2
"""Gradient and decrement that are enough for a sketch, whose minimum is only where the full objective starts."""

Looked = TypeVar("Looked", bound=Point)
Seen = TypeVar("Seen", bound=CurvedPoint)


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """What the solver found, and how it got there."""

    at: Point
    """The objective at the minimiser."""

    metric: Matrix
    """About the inverse of the Hessian there, shape (d, d)."""

    n_iter: int
    """Passes over the data that the search took; a pass over a sketch does not count."""

    converged: bool
    """Whether the gradient vanished, to `TOLERANCE` or to rounding."""


def minimise(
    objective: Objective, near: Fit | None = None, *, here: Point | None = None, tolerance: float = TOLERANCE
) -> Fit:
    """Find the minimiser, starting from a fit of a similar objective or else from that of a sketch.

    `here` is the objective at `near`'s theta, where that is known already.

    Far from the minimum every step is Newton's. Near it the curvature hardly changes, so steps correct the last one by
    the gradients that they see (BFGS), and passes need not compute it.

    Examples
    --------
    >>> from onlooker.log import BanditLog
    >>> from onlooker.softmax import SoftmaxObjective
    >>> log = BanditLog.from_dense(np.array([[[1.0], [0.0]]] * 4), chosen=[0, 0, 0, 1])
    >>> fit = minimise(SoftmaxObjective(log, l2=0.0))
    >>> fit.converged, bool(np.isclose(fit.at.theta[0], np.log(3)))
    (True, True)
    """
    return _search(objective, near, here, tolerance, None)[0]


def minimise_and_look(objective: Objective, look: Callable[[Vector], Seen]) -> tuple[Fit, Seen]:
    """Find the minimiser, and look at the objective there: in the search's last pass, where that can be foretold.

    Examples
    --------
    >>> from onlooker.log import BanditLog
    >>> from onlooker.softmax import SoftmaxObjective
    >>> log = BanditLog.from_dense(np.array([[[1.0], [0.0]]] * 4), chosen=[0, 0, 0, 1])
    >>> objective = SoftmaxObjective(log, l2=0.0)
    >>> fit, at = minimise_and_look(objective, objective.evaluate)
    >>> at.hessian.round(6)
    array([[0.1875]])
    """
    fit, seen = _search(objective, None, None, TOLERANCE, look)
    return fit, look(fit.at.theta) if seen is None else seen


def inverse(hessian: Matrix) -> Matrix:
    """Invert on the directions that have curvature; leave the others alone.

    Examples
    --------
    >>> inverse(np.array([[4.0, 0.0], [0.0, 0.0]]))
    array([[0.25, 0.  ],
           [0.  , 0.  ]])
    """
    root = inverse_square_root(hessian)
    return np.asarray(root @ root.T)


def inverse_square_root(hessian: Matrix) -> Matrix:
    """`R` with `R R' = hessian^-1` on the directions that have curvature, zero on the others.

    The matrix is scaled to a unit diagonal first: features on very different scales are told apart from flat ones.
    """
    if not np.isfinite(hessian).all():
        raise InputError("the features are too large for double precision: put them on a smaller scale")
    diagonal = np.diag(hessian)
    scale = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
    values, vectors = np.linalg.eigh(hessian * np.outer(scale, scale))
    curved = values > 1e-13 * len(values)
    return np.asarray(scale[:, None] * vectors[:, curved] / np.sqrt(values[curved]))


def _search(
    objective: Objective,
    near: Fit | None,
    here: Point | None,
    tolerance: float,
    look: Callable[[Vector], Seen] | None,
) -> tuple[Fit, Seen | None]:
    """Find the minimiser, and what `look` saw there if the last pass was its."""
    share = ROUGH if objective.rough else FAIR
    sketch = objective.sketch() if near is None else None
    # A sketch's curvature leads nearer, where the curvature of all rounds is worth more.
    slow = near is None
    if sketch is not None:
        near = minimise(sketch, tolerance=SKETCH_TOLERANCE)
    if near is not None:
        here, metric = objective.slope(near.at.theta) if here is None else here, near.metric
    # A sketch may be separable where its objective is not: its theta is then further off than zero is.
    anew = here is None or here.value > objective.null_loss
    if here is None or anew:
        start = objective.evaluate(np.zeros(objective.n_features), share=share)
        here, metric = start, inverse(start.hessian)
    passes, rate = 2 if anew and near is not None else 1, 1.0
    seen: Seen | None = None
    while True:
        step = -metric @ here.gradient
        decrement = max(0.0, -float(here.gradient @ step)) ** 0.5
        left = max(decrement, _size(here))
        converged = left <= tolerance
        if converged or passes >= MAX_PASSES:
            break
        if decrement <= tolerance and not isinstance(here, CurvedPoint):
            # Only the curvature here can tell that the gradient left is rounding.
            curved, passes = objective.evaluate(here.theta, share=share), passes + 1
            here, metric = curved, inverse(curved.hessian)
            continue
        last: Seen | None = None
        ahead: Point | None
        halvings = 30 if anew else 8
        if look is not None and left * rate * GAIN <= tolerance:
            last, tried = _line_search(look, here, step, halvings)
            ahead = last
        elif slow:
            ahead, tried = _line_search(partial(objective.evaluate, share=share), here, step, halvings)
        else:
            ahead, tried = _line_search(objective.slope, here, step, halvings)
        passes += tried
        if (
            not anew
            and isinstance(here, CurvedPoint)
            and (ahead is None or (decrement <= tolerance and _is_flat(here, metric)))
        ):
            start, passes, anew = objective.evaluate(np.zeros(objective.n_features), share=share), passes + 1, True
            here, metric = start, inverse(start.hessian)
            continue
        if ahead is None and isinstance(here, CurvedPoint):
            # Rounding hides any further descent: huge features make gradients that cannot be told from zero.
            converged = decrement <= tolerance**0.5
            break
        if ahead is None:
            ahead, passes = objective.evaluate(here.theta, share=share), passes + 1
        rate = _size(ahead) / _size(here)
        slow = rate > SLOW
        if decrement <= tolerance and slow:
            # What is left of the gradient is rounding: it comes from features far above one.
            converged = True
            break
        if slow and isinstance(ahead, CurvedPoint):
            share *= 1e-2
        metric = inverse(ahead.hessian) if isinstance(ahead, CurvedPoint) else _corrected(metric, here, ahead)
        here, seen = ahead, last
    return Fit(at=here, metric=metric, n_iter=passes, converged=converged), seen


def _is_flat(here: Point, metric: Matrix) -> bool:
    """Whether the gradient points where there is no curvature: a theta that has run off."""
    left = here.gradient - here.hessian @ (metric @ here.gradient) if isinstance(here, CurvedPoint) else here.gradient
    return float(np.abs(left).max()) > 0.5 * _size(here)


def _size(here: Point) -> float:
    return float(np.abs(here.gradient).max())


def _corrected(metric: Matrix, here: Point, ahead: Point) -> Matrix:
    """Make the metric agree with the change of gradient that was seen (the BFGS formula)."""
    step, change = ahead.theta - here.theta, ahead.gradient - here.gradient
    curvature = float(step @ change)
    if curvature <= 0:
        return metric
    turned = metric @ change
    cross = np.outer(step, turned)
    return np.asarray(
        metric + (1 + change @ turned / curvature) / curvature * np.outer(step, step) - (cross + cross.T) / curvature
    )


def _line_search(
    look: Callable[[Vector], Looked], here: Point, step: Vector, halvings: int
) -> tuple[Looked | None, int]:
    """Halve the step until the objective falls; near the minimum, where it cannot be seen to, the gradient decides."""
    slope = float(here.gradient @ step)
    length = 1.0
    for tried in range(1, halvings + 1):
        ahead = look(here.theta + length * step)
        if ahead.value <= here.value + 1e-4 * length * slope:
            return ahead, tried
        rounding = 1e-14 * max(1.0, abs(here.value))
        if ahead.value <= here.value + rounding and _size(ahead) < _size(here):
            return ahead, tried
        length /= 2
    return None, tried
