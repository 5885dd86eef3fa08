"""Which parameter explains the picks of a learner that updates in batches: a convex problem in d variables.

After batch n the learner's own estimate is `theta_n = (I - ridge * Phi_n^-1) theta` if its rewards are `x' theta`, and
`Phi_n = ridge * I + sum of x x'` is known from its picks. A rival j of pick a violates what the learner would do by

    v_j = margin + (x_j - x_a)' theta_n + alpha (|x_j| - |x_a|),  |x|^2 = x' Phi_n^-1 x,  and v_a = 0.

With `loss_t = max_j v_j` (or smoothed, `width * log sum_j exp(v_j / width)`) and N rounds that offer a choice:

    value(theta) = 1/N * sum_t loss_t + l2/2 |theta|^2
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker import ragged
from onlooker.errors import InputError
from onlooker.log import BanditLog
from onlooker.threads import ordered_map
from onlooker.types import Matrix, Vector

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
