"""The solver: Newton's method far from the minimum, its quasi-Newton form near it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from onlooker.base.numerics import backtrack, inverse, inverse_of, largest
from onlooker.base.types import Matrix, Vector
from onlooker.imitation.lbfgs import minimise_many
from onlooker.imitation.objective import FINE, ROUGH, CurvedPoint, Objective, Point
from onlooker.imitation.sets import descend, minima, rivals

TOLERANCE = 1e-8
"""A point is the minimum when no component of the gradient, nor the Newton decrement, is larger than this.

The decrement `sqrt(g' H^-1 g)` does not depend on the features' units, so tiny features are solved for as well.
"""

MAX_PASSES = 200
"""The search gives up after so many."""

SLOW = 0.15
"""A step that leaves more than this of the gradient asks for the curvature where it leads.

So much is what a step with the curvature of a similar objective is taken to leave, before one has shown it. This and
what follows trade passes for passes: what each buys is measured by `benchmarks/solver_constants.py`.
"""

BEND = 0.5
"""What a Newton step leaves of the decrement, as a part of its square, before one has shown it."""

CAUTION = 4.0
"""A step may leave so many times what steps before it have shown.

The end of the last step is not evaluated, so this buys digits: without it some fits would end just above `TOLERANCE`.
"""

SETTLED = 3e-5
"""Decrement at which the curvature of a long log is used as that of its minimum; of a short log it is found there.

It makes the last pass of the search the one that finds the intervals too.
"""

MANY_TOLERANCE = 1e-7
"""The same for many weights: it leaves a hundredth of a standard error in logs of ten billion rounds."""

SKETCH_TOLERANCE = 2.0
"""Decrement that is enough for a sketch, in units of the one that chance gives it at the minimum of all rounds.

A Newton step from there leaves little beside what chance does: less is wasted on the sketch, more on all rounds.
"""

Looked = TypeVar("Looked", bound=Point)
Seen = TypeVar("Seen", bound=CurvedPoint)


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """What the solver found, and how it got there."""

    theta: Vector
    """The minimiser, shape (d,)."""

    loss: float
    """Mean loss there, without the regularisation term."""

    at: Point
    """The last point evaluated: the minimiser, or the point one step before it."""

    metric: Matrix | None
    """About the inverse of the Hessian there, shape (d, d); None with too many weights for it, and of short logs."""

    n_iter: int
    """Passes over the data that the search took; a pass over a sketch does not count."""

    converged: bool
    """Whether the gradient vanished, to the tolerance or to rounding."""

    rivals: tuple[Vector, ...] = ()
    """Other minimisers that explain what was seen about as well; there are none unless picks are known to sets."""


def minimise(
    objective: Objective, near: Fit | None = None, *, here: Point | None = None, tolerance: float = TOLERANCE
) -> Fit:
    """Find the minimiser, starting from a fit of a similar objective or else from that of a sketch.

    `here` is the objective at `near`'s theta, where that is known already.

    Far from the minimum every step is Newton's, with the curvature as exact as such a step can use. Where it hardly
    changes, steps correct the last one by the gradients that they see (BFGS), and passes need not compute it. The last
    step is not evaluated: the steps before it have shown how little is left.

    Examples
    --------
    >>> from onlooker.logs.log import BanditLog
    >>> from onlooker.imitation.softmax import SoftmaxObjective
    >>> log = BanditLog.from_dense(np.array([[[1.0], [0.0]]] * 4), chosen=[0, 0, 0, 1])
    >>> fit = minimise(SoftmaxObjective(log, l2=0.0))
    >>> fit.converged, bool(np.isclose(fit.theta[0], np.log(3)))
    (True, True)
    """
    if objective.many:
        return _many(objective, near, here, tolerance=max(tolerance, MANY_TOLERANCE))
    if objective.sets:
        return _of_sets(objective, near, tolerance=tolerance)
    short = objective.short_minimum(tolerance, None if near is None else near.theta)
    if short is not None:
        return _of_short(objective.slope(short[0]), short[1])
    return _Search(objective, near, here, tolerance=tolerance).run()[0]


def minimise_and_look(objective: Objective, look: Callable[[Vector], Seen]) -> tuple[Fit, Seen]:
    """Find the minimiser and evaluate `look` there, in the search's last pass where that pass can be predicted.

    Examples
    --------
    >>> from onlooker.logs.log import BanditLog
    >>> from onlooker.imitation.softmax import SoftmaxObjective
    >>> log = BanditLog.from_dense(np.array([[[1.0], [0.0]]] * 4), chosen=[0, 0, 0, 1])
    >>> objective = SoftmaxObjective(log, l2=0.0)
    >>> fit, at = minimise_and_look(objective, objective.evaluate)
    >>> at.hessian.round(6)
    array([[0.1875]])
    """
    if objective.many:
        near = SETTLED if objective.long or objective.coarse else MANY_TOLERANCE
        return _polished(objective, _many(objective, tolerance=near), look)
    if objective.sets:
        fit = _of_sets(objective, tolerance=TOLERANCE)
        return fit, look(fit.theta)
    short = objective.short_minimum(TOLERANCE)
    if short is not None:
        at = look(short[0])
        return _of_short(at, short[1]), at
    fit, seen = _Search(objective, look=look).run()
    if seen is None:
        return fit, look(fit.theta)
    value = fit.loss + 0.5 * objective.l2 * float(fit.theta @ fit.theta)
    return fit, replace(seen, theta=fit.theta, value=value, loss=fit.loss)


def _of_short(at: Point, passes: int) -> Fit:
    """The fit of a short log, looked at where its search ended."""
    return Fit(theta=at.theta, loss=at.loss, at=at, metric=None, n_iter=passes, converged=True)


def _of_sets(objective: Objective, near: Fit | None = None, *, tolerance: float) -> Fit:
    """The fit where picks are known only to sets: the best of several searches, or one from a fit that is near."""
    if near is None:
        found = minima(objective, tolerance=tolerance)
    else:
        found = [descend(objective, near.theta, tolerance=tolerance)]
        if found[0].at.value > objective.null_loss:
            found = [descend(objective, np.zeros(objective.n_features), tolerance=tolerance)]
    best = found[0]
    return Fit(
        theta=best.at.theta,
        loss=best.at.loss,
        at=best.at,
        metric=best.metric,
        n_iter=best.passes,
        converged=best.converged,
        rivals=tuple(one.at.theta for one in rivals(objective, found)),
    )


def _many(objective: Objective, near: Fit | None = None, here: Point | None = None, *, tolerance: float) -> Fit:
    """The fit of many weights."""
    start = None if near is None else near.theta
    at, passes, converged = minimise_many(objective, start, here=here, tolerance=tolerance)
    return Fit(theta=at.theta, loss=at.loss, at=at, metric=None, n_iter=passes, converged=converged)


def _polished(objective: Objective, fit: Fit, look: Callable[[Vector], Seen]) -> tuple[Fit, Seen]:
    """Look at the end of a search for many weights, and take Newton's step from there with the curvature seen."""
    seen = look(fit.theta)
    metric = inverse_of(objective.filled(seen.hessian))
    step = -(metric @ seen.gradient)
    theta, value = fit.theta + step, seen.value + 0.5 * float(seen.gradient @ step)
    loss = value - 0.5 * objective.l2 * float(theta @ theta)
    if not (fit.converged and np.isfinite(value)):
        return replace(fit, metric=metric, at=seen), seen
    fit = replace(fit, theta=theta, loss=loss, metric=metric, at=seen)
    return fit, replace(seen, theta=theta, value=value, loss=loss)


class _Search(Generic[Seen]):
    """A running search: its position, what is known of the curvature there, and how fast steps converge."""

    here: Point
    """Where it is."""
    metric: Matrix
    """About the inverse of the Hessian here."""
    share: float
    """What the last look at the curvature left out (see `FINE`), and what the next is to leave out."""
    before: float | None
    """Decrement before the last step; None where the search has restarted or evaluated the curvature since."""
    curved: bool
    """Whether that step was Newton's, with the curvature where it started."""
    rate: float | None
    """Part of the decrement that the last step left, or is taken to leave; None where nothing is known of it."""
    bend: float
    """What a Newton step leaves of the decrement, as a part of its square."""
    passes: int
    """Over the data, so far."""
    last: Seen | None
    """What `look` saw, if the last pass was its."""
    from_zero: bool
    """Whether it set out from zero: then there is no better point to restart from."""
    known: bool
    """Whether it set out with the curvature of a similar objective."""
    settled: float
    """Decrement at which the curvature is as good as that of the minimum."""

    def __init__(
        self,
        objective: Objective,
        near: Fit | None = None,
        here: Point | None = None,
        *,
        tolerance: float = TOLERANCE,
        look: Callable[[Vector], Seen] | None = None,
    ) -> None:
        self.objective, self.tolerance, self.look = objective, tolerance, look
        self.settled = SETTLED if objective.long else tolerance
        self.known = near is not None
        self.rate, self.bend = None if near is None else SLOW, BEND
        self.share = ROUGH
        self.passes, self.last, self.before, self.curved = 1, None, None, False
        sketch = objective.sketch() if near is None else None
        if near is not None and near.metric is None:
            self._curve(near.theta)
        elif near is not None and near.metric is not None:
            self.here, self.metric = objective.slope(near.theta) if here is None else here, near.metric
        elif sketch is not None:
            chance = (sketch.n_features / sketch.n_rounds) ** 0.5
            self._curve(minimise(sketch, tolerance=SKETCH_TOLERANCE * chance).theta)
        # A sketch may be separable where its objective is not: its theta is then further off than zero is.
        self.from_zero = near is None and sketch is None
        if self.from_zero:
            self._curve(np.zeros(objective.n_features))
        elif self.here.value > objective.null_loss:
            self._restart()

    def run(self) -> tuple[Fit, Seen | None]:
        """Find the minimiser, and what `look` saw there (or a step before it) if the last pass was its."""
        while True:
            step = -self.metric @ self.here.gradient
            decrement = max(0.0, -float(self.here.gradient @ step)) ** 0.5
            left = max(decrement, _size(self.here))
            self._learn(left)
            if left <= self.tolerance or self._ends(left):
                return self._found(step, converged=True)
            if self.passes >= MAX_PASSES:
                return self._found(None, converged=False)
            if decrement <= self.tolerance and not isinstance(self.here, CurvedPoint):
                # Only the curvature here shows whether the rest of the gradient is rounding error.
                self._look_closer()
                continue
            ahead = self._advance(step, left)
            curved = isinstance(self.here, CurvedPoint)
            flat = decrement <= self.tolerance and _is_flat(self.here, self.metric)
            if not self.from_zero and curved and (ahead is None or flat):
                self._restart()
                continue
            if ahead is None and curved:
                # Rounding hides any further descent: with huge features a gradient may not differ from zero by more.
                return self._found(None, converged=decrement <= self.tolerance**0.5)
            if ahead is None:
                self._look_closer()
                continue
            if decrement <= self.tolerance and _size(ahead) > SLOW * _size(self.here):
                # What is left of the gradient is rounding: it comes from features far above one.
                return self._found(None, converged=True)
            self.metric = inverse(ahead.hessian) if isinstance(ahead, CurvedPoint) else self._corrected(ahead)
            self.before, self.curved, self.here = left, curved, ahead

    def _learn(self, left: float) -> None:
        """Note what the last step left of the decrement."""
        if self.before is None:
            return
        self.rate = left / self.before
        if self.curved:
            self.bend = self.rate / self.before

    def _leaves(self, left: float, margin: float = 1.0) -> float:
        """What a step from here leaves of the decrement, as far as steps before it have shown."""
        if isinstance(self.here, CurvedPoint):
            return min(1.0, max(margin * self.bend * left, self.share))
        return SLOW if self.rate is None else min(1.0, CAUTION * self.rate if self.curved else self.rate)

    def _ends(self, left: float) -> bool:
        """Whether the next step leads to the minimum, with a margin."""
        return self.rate is not None and self._leaves(left, CAUTION) * left <= self.tolerance

    def _advance(self, step: Vector, left: float) -> Point | None:
        """Step, and evaluate only what the search can use there: the curvature only if the next step needs it.

        None where the objective does not fall.
        """
        leaves = self._leaves(left)
        expected, goal = leaves * left, self.tolerance if self.look is None else self.settled
        self.share, self.last = min(ROUGH, max(FINE, ROUGH * expected)), None
        ahead: Point | None
        if self.look is not None and expected <= self.settled and CAUTION * self.bend * expected**2 <= self.tolerance:
            self.share = FINE
            ahead = self.last = self._line_search(self.look, step)
        elif leaves <= SLOW and (self.known or CAUTION * leaves * expected <= goal):
            ahead = self._line_search(self.objective.slope, step)
        else:
            ahead = self._line_search(partial(self.objective.evaluate, share=self.share), step)
        return ahead

    def _line_search(self, look: Callable[[Vector], Looked], step: Vector) -> Looked | None:
        """Step, halved until the objective falls; sooner given up where the search can start again from zero."""
        ahead, looks = backtrack(look, self.here, step, looks=30 if self.from_zero else 8)
        self.passes += looks
        return ahead

    def _curve(self, theta: Vector) -> None:
        """Evaluate the curvature at theta, and continue from there."""
        self.here = curved = self.objective.evaluate(theta, share=self.share)
        self.metric = inverse(curved.hessian)

    def _look_closer(self) -> None:
        """Evaluate the curvature here."""
        self.passes, self.before = self.passes + 1, None
        self._curve(self.here.theta)

    def _restart(self) -> None:
        """Start again from zero."""
        self.from_zero, self.share, self.passes, self.before = True, ROUGH, self.passes + 1, None
        self._curve(np.zeros(self.objective.n_features))

    def _corrected(self, ahead: Point) -> Matrix:
        """Make the metric agree with the change of gradient that was seen (the BFGS formula)."""
        step, change = ahead.theta - self.here.theta, ahead.gradient - self.here.gradient
        curvature = float(step @ change)
        if curvature <= 0:
            return self.metric
        turned = self.metric @ change
        cross = np.outer(step, turned)
        longer = (1 + change @ turned / curvature) / curvature * np.outer(step, step)
        return np.asarray(self.metric + longer - (cross + cross.T) / curvature)

    def _found(self, step: Vector | None, *, converged: bool) -> tuple[Fit, Seen | None]:
        """The result: the current point, or the end of one more step, which need not be evaluated."""
        theta, loss = self.here.theta, self.here.loss
        if step is not None:
            theta = theta + step
            value = self.here.value + 0.5 * float(self.here.gradient @ step)
            loss = value - 0.5 * self.objective.l2 * float(theta @ theta)
        fit = Fit(
            theta=theta,
            loss=loss,
            at=self.here,
            metric=self.metric,
            n_iter=self.passes,
            converged=converged,
        )
        return fit, self.last


def _is_flat(here: Point, metric: Matrix) -> bool:
    """Whether the gradient points where there is no curvature: theta has diverged."""
    left = here.gradient - here.hessian @ (metric @ here.gradient) if isinstance(here, CurvedPoint) else here.gradient
    return float(np.abs(left).max()) > 0.5 * _size(here)


def _size(here: Point) -> float:
    return largest(here.gradient)
