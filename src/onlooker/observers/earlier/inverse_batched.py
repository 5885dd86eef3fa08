"""The inverse problem of a learner that updates in batches: its objective, and the solver."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from onlooker.base.errors import InputError
from onlooker.base.numerics import backtrack
from onlooker.base.threads import ordered_map
from onlooker.base.types import Matrix, Vector
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog

BLOCK_VALUES = 1 << 20
"""Row values that one task of a thread goes through."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Smoothed:
    """The objective at one theta and one width."""

    theta: Vector
    """Where it was evaluated, shape (d,)."""
    value: float
    """Mean smoothed loss plus penalty."""
    gradient: Vector
    """Shape (d,)."""
    hessian: Matrix
    """Shape (d, d)."""
    hinge: float
    """Mean hinge loss plus penalty."""
    gap: float
    """How far that is above its minimum, at most: the shares of the rivals are a feasible point of the dual."""


class BatchedObjective:
    """Loss of a log's picks under a learner that updates in batches.

    Holds the offered rows once more, as the learner's estimate sees them, in double precision.

    Parameters
    ----------
    log
        The rounds to explain; at least one of them offers a choice.
    batch
        Rounds between the learner's updates.
    ridge
        Weight of the identity in `Phi`.
    alpha
        Strength of the exploration bonus.
    margin
        By how much a pick must beat its rivals.
    l2
        Strength of the penalty on the mean loss.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.array([[[1.0], [0.0]]] * 3), chosen=[0, 0, 0])
    >>> objective = BatchedObjective(log, batch=1, ridge=1.0, alpha=0.0, margin=0.5, l2=0.0)
    >>> objective.rows[objective.log.chosen_rows].ravel().round(3)
    array([0.   , 0.5  , 0.667])
    >>> round(objective.evaluate(np.array([0.5]), width=1e-9).hinge, 4)
    0.3056
    """

    def __init__(self, log: BanditLog, *, batch: int, ridge: float, alpha: float, margin: float, l2: float) -> None:
        from onlooker.kernels.batched import transform

        self.log = log
        self.margin, self.l2 = margin, l2
        self.n_rounds = int(np.count_nonzero(log.n_arms > 1))
        """Rounds that offer a choice."""
        if not self.n_rounds:
            raise InputError("no round offers a choice between two arms or more: there is nothing to imitate")
        self.rows = np.empty(log.features.shape)
        self.bonus = np.empty(len(log.features))
        self.inverse = np.eye(log.n_features) / ridge
        """Of `Phi`, as the learner's last pick saw it."""
        transform(log.dense, log.offsets, log.chosen, batch, ridge, self.inverse, self.rows, self.bonus)
        self.bonus *= alpha
        self._blocks = list(ragged.blocks(log.offsets, log.n_features, BLOCK_VALUES))

    def evaluate(self, theta: Vector, *, width: float) -> Smoothed:
        """Value, gradient and Hessian at `theta`, in one pass over the rows."""
        from onlooker.kernels.batched import accumulate

        d = len(theta)

        def block(bounds: tuple[int, int]) -> tuple[tuple[float, float, float], Vector, Matrix]:
            gradient, hessian = np.zeros(d), np.zeros((d, d))
            sums = accumulate(
                self.rows,
                self.bonus,
                self.log.offsets,
                self.log.chosen,
                *bounds,
                theta,
                self.margin,
                width,
                gradient,
                hessian,
            )
            return sums, gradient, hessian

        sums, gradient, upper = np.zeros(3), np.zeros(d), np.zeros((d, d))
        for part in ordered_map(block, self._blocks):
            sums += part[0]
            gradient += part[1]
            upper += part[2]
        smooth, hinge, weighted = (sums / self.n_rounds).tolist()
        slope = gradient / self.n_rounds + self.l2 * theta
        penalty = 0.5 * self.l2 * float(theta @ theta)
        left = float(slope @ slope) / (2 * self.l2) if self.l2 else 0.0
        return Smoothed(
            theta=theta,
            value=smooth + penalty,
            gradient=slope,
            hessian=(upper + np.triu(upper, 1).T) / self.n_rounds + self.l2 * np.eye(d),
            hinge=hinge + penalty,
            gap=hinge - weighted + left,
        )


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
    >>> from onlooker.logs.log import BanditLog
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
    >>> from onlooker.logs.log import BanditLog
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
