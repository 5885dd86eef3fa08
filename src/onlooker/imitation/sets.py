"""The solver where picks are known only to a set: the loss is not convex, so steps are monotone and starts are several.

Newton's step is taken where the loss curves upwards in every direction. Elsewhere the curvature that picks would have
if they were seen takes its place, which is never smaller. Either step is halved until the loss falls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker.base.numerics import backtrack, cholesky_inverse, inverse, largest
from onlooker.base.types import Matrix, Vector
from onlooker.imitation.objective import CurvedPoint, Objective

MAX_PASSES = 300
"""The search from one start gives up after so many."""

STARTS = 4
"""Random starts, besides zero and its mirror image."""

REACH = 2.0
"""Size of a random start: how far apart it puts the scores of typical arms."""

TOLERANCE = 1e-8
"""Newton decrement, and largest component of the gradient, at the minimum."""

DIVERGED = 1e100
"""Weights of this size grow without bound: the sets are separable."""

ALIKE = 1.92
"""Log-likelihood by which a second minimum may be worse and still be as good: half of chi-square's 95% quantile."""

SKETCHED, ROUGHLY = 1e-3, 0.3
"""Decrement at which a search on some of the rounds is done, and how far apart its ends are that are followed."""

APART = 1e-3
"""Two minima are different if the scores of typical arms differ by more than this between them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Minimum:
    """Where one search ended."""

    at: CurvedPoint
    """The point, with the Hessian there."""
    metric: Matrix
    """Inverse of the Hessian there, or of its bound where it is not positive."""
    passes: int
    """That it took."""
    converged: bool
    """Whether the gradient vanished."""


def descend(objective: Objective, start: Vector, *, tolerance: float = TOLERANCE) -> Minimum:
    """Go down from one start; the objective never rises.

    Examples
    --------
    >>> from onlooker.logs.log import BanditLog
    >>> from onlooker.imitation.softmax import SoftmaxObjective
    >>> log = BanditLog(np.array([[1.0], [0.0], [0.0]] * 4), [0, 3, 6, 9, 12], None, possible=[1, 0, 0] * 3 + [0, 1, 1])
    >>> found = descend(SoftmaxObjective(log, l2=0.0), np.zeros(1))
    >>> bool(np.isclose(found.at.theta[0], np.log(6))), found.converged
    (True, True)
    """
    here, passes = objective.evaluate(start), 1
    while True:
        metric = _positive_inverse(objective, here)
        passes += metric is None
        if metric is None:
            metric = inverse(objective.filled(objective.bounded(here.theta).hessian))
        step = -(metric @ here.gradient)
        decrement = max(0.0, -float(here.gradient @ step)) ** 0.5
        done = max(decrement, largest(here.gradient)) <= tolerance
        if done or passes >= MAX_PASSES or largest(here.theta) > DIVERGED:
            return Minimum(at=here, metric=metric, passes=passes, converged=done)
        ahead, looks = backtrack(objective.evaluate, here, step, looks=30)
        passes += looks
        if ahead is None:
            # Rounding hides any further descent.
            return Minimum(at=here, metric=metric, passes=passes, converged=decrement <= tolerance**0.5)
        here = ahead


def minima(objective: Objective, *, tolerance: float = TOLERANCE) -> list[Minimum]:
    """The minima that searches from several starts end in, the best first; each once."""
    spread = objective.spread(full=False)
    size = np.sqrt(np.maximum(np.diag(spread), 1e-300))
    first = descend(objective, np.zeros(objective.n_features), tolerance=tolerance)
    random = np.random.default_rng(0).normal(size=(STARTS, objective.n_features)) / size
    random *= REACH / np.sqrt(objective.n_features)
    # Where they lead is found on some of the rounds, and only what is not the same there is followed on all.
    sketch = objective.sketch() or objective
    starts = [descend(sketch, start, tolerance=SKETCHED) for start in (first.at.theta, -first.at.theta, *random)]
    others = _distinct(starts, size, ROUGHLY)
    found = [first, *(descend(objective, one.at.theta, tolerance=tolerance) for one in others if one is not starts[0])]
    return _distinct(sorted(found, key=lambda one: one.at.value), size, APART)


def _distinct(found: list[Minimum], size: Vector, apart: float) -> list[Minimum]:
    """Each minimum once: those that are further apart than so much of a score; `size` is that of features."""
    kept: list[Minimum] = []
    for one in found:
        if all(float(np.abs((one.at.theta - other.at.theta) * size).max()) > apart for other in kept):
            kept.append(one)
    return kept


def rivals(objective: Objective, found: list[Minimum]) -> list[Minimum]:
    """Minima other than the best that explain what was seen about as well."""
    best = found[0].at.value
    return [one for one in found[1:] if objective.total * (one.at.value - best) <= ALIKE]


def _positive_inverse(objective: Objective, here: CurvedPoint) -> Matrix | None:
    """Inverse of the Hessian; None where it is not clearly positive definite."""
    found = cholesky_inverse(objective.filled(here.hessian))
    return None if found is None or found[1] <= 1e-10 else found[0]
