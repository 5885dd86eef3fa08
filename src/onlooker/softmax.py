"""The imitation objective: mean conditional softmax loss of the picks, plus a quadratic penalty.

With shapes (d,) for `theta` and the gradient, (d, d) for the Hessian, and weights `w` that sum to `total`:

    value(theta) = 1/total * sum_t w_t [ log sum_a exp<x_a, theta> - <x_pick, theta> ] + l2/2 |theta|^2

Rounds that offer one arm have no loss and no weight, so that adding some changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from onlooker import ragged
from onlooker.checks import as_number
from onlooker.errors import InputError
from onlooker.log import BanditLog
from onlooker.threads import ordered_map
from onlooker.types import Matrix, Vector

BLOCK_VALUES = 1 << 22
"""Feature values that one task of a thread goes through."""

FINE, FAIR, ROUGH = 0.0, 1e-2, 1e-1
"""Arms that together hold at most this share of a round's unpicked probability are left out of the Hessian.

A fine one is exact, for intervals; a fair one points the way to the minimum, a rough one to that of a sketch.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Point:
    """The objective at one theta."""

    theta: Vector
    """Where it was evaluated, shape (d,)."""

    value: float
    """Mean loss plus penalty."""

    gradient: Vector
    """Shape (d,), penalty included."""

    loss: float
    """Mean loss without the penalty."""

    explained: int
    """Rounds whose pick scores strictly above every other arm."""

    agreed: int
    """Rounds whose pick is the first of the best: what the policy chooses."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CurvedPoint(Point):
    """The objective at one theta, with its curvature."""

    hessian: Matrix
    """Shape (d, d), penalty included."""


class SoftmaxObjective:
    """Mean conditional softmax loss of a log's picks, with an L2 penalty.

    Parameters
    ----------
    log
        The rounds to explain; at least one of them offers a choice.
    l2
        Strength of the penalty on the mean loss.
    weights
        One non-negative weight per round; 1 by default.
    stride
        Look at every `stride`-th round only: a cheap sketch of the same objective.

    Examples
    --------
    >>> import numpy as np
    >>> log = BanditLog.from_dense(np.array([[[1.0], [0.0]], [[0.0], [2.0]]]), chosen=[0, 0])
    >>> at_zero = SoftmaxObjective(log, l2=0.0).evaluate(np.zeros(1))
    >>> round(at_zero.value, 6), at_zero.gradient
    (0.693147, array([0.25]))
    """

    def __init__(self, log: BanditLog, *, l2: float, weights: ArrayLike | None = None, stride: int = 1) -> None:
        self.log = log
        self.l2 = as_number(l2, "l2", least=0.0)
        self.stride = stride
        self.weights = _informative(log, _checked_weights(log, weights))
        self._blocks = [
            (-(-start // stride) * stride, stop)
            for start, stop in ragged.blocks(log.offsets, log.n_features, BLOCK_VALUES * stride)
        ]
        used = self.weights[::stride]
        self.n_rounds = int(np.count_nonzero(used))
        """Rounds that carry weight and offer a choice."""
        self.total = float(used.sum())
        """Sum of their weights."""
        if not used.any() and (log.n_arms[::stride] > 1).any():
            raise InputError("every round that offers a choice has weight 0: there is nothing to imitate")
        if not self.n_rounds:
            raise InputError("no round offers a choice between two arms or more: there is nothing to imitate")

    def evaluate(self, theta: Vector, *, share: float = FINE) -> CurvedPoint:
        """Value, gradient and Hessian at `theta`, in one pass over the features (`share`: `FINE`, `FAIR`, `ROUGH`)."""
        point, hessian = self._pass(theta, share, size=len(theta))
        return CurvedPoint(**vars(point), hessian=hessian)

    def slope(self, theta: Vector) -> Point:
        """Value and gradient at `theta`; the Hessian is most of the cost where many arms are likely."""
        return self._pass(theta, 0.0, size=0)[0]

    def _pass(self, theta: Vector, share: float, *, size: int) -> tuple[Point, Matrix]:
        from onlooker.kernels.softmax import accumulate

        log = self.log

        def block(bounds: tuple[int, int]) -> tuple[float, int, int, Vector, Matrix]:
            gradient, hessian = np.zeros(log.n_features), np.zeros((size, size))
            loss, explained, agreed = accumulate(
                log.features,
                log.offsets,
                log.chosen,
                self.weights,
                *bounds,
                self.stride,
                theta,
                share,
                gradient,
                hessian,
            )
            return loss, explained, agreed, gradient, hessian

        loss, explained, agreed = 0.0, 0, 0
        gradient, upper = np.zeros(log.n_features), np.zeros((size, size))
        for part in ordered_map(block, self._blocks):
            loss += part[0]
            explained += part[1]
            agreed += part[2]
            gradient += part[3]
            upper += part[4]
        point = Point(
            theta=theta,
            value=loss / self.total + 0.5 * self.l2 * float(theta @ theta),
            gradient=gradient / self.total + self.l2 * theta,
            loss=loss / self.total,
            explained=explained,
            agreed=agreed,
        )
        return point, (upper + np.triu(upper, 1).T) / self.total + self.l2 * np.eye(size)

    def without(self, whole: Point, dropped: SoftmaxObjective) -> Point:
        """Value and gradient without the rounds of `dropped`, from those with them, reading only `dropped`."""
        part = dropped.slope(whole.theta)
        total = self.total - dropped.total
        loss = (self.total * whole.loss - dropped.total * part.loss) / total
        pull = self.l2 * whole.theta
        gradient = self.total * (whole.gradient - pull) - dropped.total * (part.gradient - dropped.l2 * whole.theta)
        return Point(
            theta=whole.theta,
            value=loss + 0.5 * float(pull @ whole.theta),
            gradient=gradient / total + pull,
            loss=loss,
            explained=whole.explained - part.explained,
            agreed=whole.agreed - part.agreed,
        )

    def null_loss(self) -> float:
        """Mean loss of picking uniformly at random."""
        return float(np.log(self.log.n_arms[:: self.stride]) @ self.weights[:: self.stride] / self.total)


def round_losses(log: BanditLog, theta: Vector) -> Vector:
    """Softmax loss of every round, shape (N,).

    Examples
    --------
    >>> import numpy as np
    >>> log = BanditLog.from_dense(np.zeros((3, 4, 2)), chosen=[0, 1, 2])
    >>> round_losses(log, np.ones(2)) - np.log(4)
    array([0., 0., 0.])
    """
    from onlooker.kernels import softmax as kernels

    losses = np.empty(log.n_rounds)

    def block(bounds: tuple[int, int]) -> None:
        out = losses[bounds[0] : bounds[1]]
        kernels.round_losses(log.features, log.offsets, log.chosen, *bounds, theta, out)

    for _ in ordered_map(block, ragged.blocks(log.offsets, log.n_features, BLOCK_VALUES)):
        pass
    return losses


def _checked_weights(log: BanditLog, weights: ArrayLike | None) -> Vector:
    if weights is None:
        return np.ones(log.n_rounds)
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("weights are not numbers: pass one number a round") from None
    if array.shape != (log.n_rounds,):
        raise InputError(f"weights has shape {array.shape}, but the log has {log.n_rounds} rounds: pass one a round")
    wrong = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if len(wrong):
        raise InputError(f"the weight of round {wrong[0]} is {array[wrong[0]]}: weights are finite and not negative")
    return array


def _informative(log: BanditLog, weights: Vector) -> Vector:
    """Weights with zero for the rounds that offer one arm."""
    return np.where(log.n_arms > 1, weights, 0.0)
