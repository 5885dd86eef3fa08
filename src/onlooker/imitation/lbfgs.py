"""The solver for many weights: L-BFGS with a preconditioner, so that no matrix of d x d is needed.

It starts from a cheap approximation of the inverse Hessian that the layout of the rows gives, and corrects it by the
gradients that it sees. A pass finds loss and gradient only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from onlooker.base.numerics import backtrack, largest
from onlooker.base.types import Vector
from onlooker.imitation.objective import Objective, Point

PAIRS = 20
"""Steps that are remembered, each with its change of gradient; fewer where they would take much memory."""

PAIR_VALUES = 1 << 22
"""Numbers that are kept in remembered steps at most: 32 MB, and as much for the changes of gradient."""

CLOSER = 0.3
"""Decrement below which the preconditioner is made again: by then probabilities are about those of the minimum.

On contexts with rare arms this takes a third to an eighth of the passes of a preconditioner made at zero.
"""

PATIENCE = 12
"""Passes after which a search asks for a closer preconditioner, where there is one: it takes about as long as they."""

MAX_PASSES = 1000
"""The search gives up after so many."""

ROUNDING = 1e-4
"""Where no step leads down any more, a decrement of at most this is rounding: the minimum is found."""

Preconditioner = Callable[[Vector], Vector]
"""About the inverse of the Hessian, times a vector."""


def minimise_many(
    objective: Objective, near: Vector | None = None, *, here: Point | None = None, tolerance: float
) -> tuple[Point, int, bool]:
    """The minimiser of an objective with many weights, from that of a similar one or else from zero.

    Also how many passes it took, and whether the gradient vanished. `here` is the objective at `near`, if known.

    Examples
    --------
    >>> from onlooker.logs.log import BanditLog
    >>> from onlooker.imitation.softmax import SoftmaxObjective
    >>> log = BanditLog.from_contexts(np.ones((4, 1)), ["a", "a", "a", "b"])
    >>> found, passes, converged = minimise_many(SoftmaxObjective(log, l2=0.0), tolerance=1e-8)
    >>> bool(np.isclose(found.theta[0] - found.theta[1], np.log(3))), converged
    (True, True)
    """
    return _Search(objective, near, here, tolerance).run()


class _Search:
    """A running search: its position, and the steps that it remembers."""

    def __init__(self, objective: Objective, near: Vector | None, here: Point | None, tolerance: float) -> None:
        self.objective, self.tolerance, self.passes = objective, tolerance, 1
        zero = np.zeros(objective.n_features)
        self.here = here if here is not None else objective.slope(zero if near is None else near)
        if near is not None and self.here.value > objective.null_loss:
            self.passes, self.here = self.passes + 1, objective.slope(zero)
        # With the probabilities that the start has: those of a near fit are about right already.
        self.close, self.closer = near is not None, False
        self.precondition = objective.preconditioner(self.here.theta)
        most = max(3, min(PAIRS, PAIR_VALUES // objective.n_features))
        self.pairs: deque[tuple[Vector, Vector, float]] = deque(maxlen=most)

    def run(self) -> tuple[Point, int, bool]:
        """Find the minimiser."""
        while True:
            step = -self._turned(self.here.gradient)
            decrement = max(0.0, -float(self.here.gradient @ step)) ** 0.5
            if max(decrement, largest(self.here.gradient)) <= self.tolerance:
                return self.here, self.passes, True
            if not self.close and decrement < CLOSER:
                self.close, self.precondition = True, self.objective.preconditioner(self.here.theta)
                continue
            if self.passes >= MAX_PASSES:
                return self.here, self.passes, False
            if not self.closer and self.passes > PATIENCE:
                self.closer, found = True, self.objective.closer_preconditioner(self.here.theta)
                if found is not None:
                    self.precondition = found
                    self.pairs.clear()
                    continue
            ahead, looks = backtrack(self.objective.slope, self.here, step, looks=30)
            self.passes += looks
            if ahead is None and not self.pairs:
                return self.here, self.passes, decrement <= ROUNDING
            if ahead is None:
                self.pairs.clear()
                continue
            moved, change = ahead.theta - self.here.theta, ahead.gradient - self.here.gradient
            curvature = float(moved @ change)
            if curvature > 0:
                self.pairs.append((moved, change, curvature))
            self.here = ahead

    def _turned(self, gradient: Vector) -> Vector:
        """The remembered curvature's inverse times the gradient."""
        turned, parts = gradient.copy(), []
        for moved, change, curvature in reversed(self.pairs):
            part = float(moved @ turned) / curvature
            parts.append(part)
            turned -= part * change
        turned = self.precondition(turned)
        for (moved, change, curvature), part in zip(self.pairs, reversed(parts), strict=True):
            turned += (part - float(change @ turned) / curvature) * moved
        return turned
