"""The imitation objective of a log in memory, block by block on all threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from onlooker import ragged
from onlooker.checks import as_number
from onlooker.errors import InputError
from onlooker.log import BanditLog
from onlooker.objective import FINE, Objective, Pass, Point, Sums, added
from onlooker.threads import ordered_map
from onlooker.types import Index, Matrix, Vector
from onlooker.windows import Windows

BLOCKS, FEWEST_VALUES, MOST_VALUES = 16, 1 << 18, 1 << 22
"""Tasks that a pass is split into, so that all threads have some, and feature values that one goes through."""

LONG = 1 << 22
"""Feature values in a pass from which on sparing one is worth a curvature that is a step old."""

SKETCH_STRIDE = 4
"""A sketch looks at every so many rounds."""

SKETCH_ROUNDS_PER_FEATURE = 3
"""A sketch needs about this many rounds per feature to lead nearer to the minimum."""

HARD_ROUNDS_PER_FEATURE = 10
"""Rounds per feature that are called the hardest, if they hold no more values than a long log."""

SPREAD_ROUNDS = 512
"""A feature's spread within the rounds is first judged by about this many of them."""


SMALLEST = 1e-140
"""Sizes of features below this are refused: their squares times small probabilities would be no proper numbers."""
HEAVIEST = 1e30
"""Weights lie below this and above its inverse: sums of their squares times those of features are proper numbers."""
_SCALE_ROWS = 1 << 12
"""Rows by which the size of features is judged."""


class SoftmaxObjective(Objective):
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
        self.n_features, self.feature_names = log.n_features, log.feature_names
        self._blocks = [(-(-start // stride) * stride, stop) for start, stop in _blocks(log, stride)]
        used, sizes = self.weights[::stride], log.n_arms[::stride]
        self.n_rounds = int(np.count_nonzero(used))
        self.total = float(used.sum())
        self.n_one_arm = int(np.count_nonzero(sizes == 1))
        if not used.any() and (sizes > 1).any():
            raise InputError("every round that offers a choice has weight 0: there is nothing to imitate")
        if not self.n_rounds:
            raise InputError("no round offers a choice between two arms or more: there is nothing to imitate")
        self.null_loss = float(np.log(sizes) @ used / self.total)
        _check_scale(log)

    @property
    def long(self) -> bool:
        """Whether a pass takes so long that one more is worth avoiding."""
        return self.log.features.size > LONG * self.stride

    def run(self, wanted: Pass) -> Sums:
        """Go over all rounds once."""
        return added(ordered_map(lambda bounds: self._block(bounds, wanted), self._blocks))

    def _block(self, bounds: tuple[int, int], wanted: Pass) -> Sums:
        from onlooker.kernels.softmax import accumulate

        log, d = self.log, self.n_features
        size = 0 if wanted.share is None else d
        gradient, upper = np.zeros(d), np.zeros((size, size))
        gradients = np.empty((bounds[1] - bounds[0] if wanted.width else 0, d))
        share = FINE if wanted.share is None else wanted.share
        loss, explained, agreed = accumulate(
            *(log.features, log.offsets, log.chosen, self.weights, *bounds),
            *(self.stride, wanted.theta, share, gradient, upper, gradients),
        )
        sums = Sums(loss=loss, gradient=gradient, upper=upper, explained=explained, agreed=agreed)
        return sums if not wanted.width else replace(sums, windows=self._windows(bounds, wanted, gradients))

    def _windows(self, bounds: tuple[int, int], wanted: Pass, gradients: Matrix) -> Windows:
        weights = self.weights[slice(*bounds)]
        if wanted.mean is not None:
            gradients -= weights[:, None] * wanted.mean
        return Windows.of(gradients[weights > 0], wanted.width)

    def sketch(self) -> SoftmaxObjective | None:
        """Every so many of the rounds; None where they would be too few."""
        stride = self.stride * SKETCH_STRIDE
        if np.count_nonzero(self.weights[::stride]) < SKETCH_ROUNDS_PER_FEATURE * self.n_features:
            return None
        return SoftmaxObjective(self.log, l2=self.l2, weights=self.weights, stride=stride)

    def spread(self, *, full: bool) -> Matrix:
        """Covariance of the features within the rounds, averaged over (a sample of) them whatever their weights."""
        stride = 1 if full else max(1, self.log.n_rounds // SPREAD_ROUNDS)
        weights = (self.weights > 0).astype(np.float64)
        if not weights[::stride].any():
            stride = 1
        sample = SoftmaxObjective(self.log, l2=0.0, weights=weights, stride=stride)
        return sample.evaluate(np.zeros(self.n_features)).hessian

    def rounding(self) -> Vector:
        """What rounding may add to a value of each feature, shape (d,)."""
        features = self.log.features
        sample = features[:: max(1, len(features) // 10_000)]
        return np.asarray(8 * np.finfo(features.dtype).eps * np.abs(sample).max(axis=0).astype(np.float64))

    def unpenalised(self) -> Self:
        """The same rounds without the penalty."""
        return type(self)(self.log, l2=0.0, weights=self.weights, stride=self.stride)

    def hardest(self, theta: Vector) -> BanditLog | None:
        """Those rounds that theta explains least; None where that would be most of them."""
        if 2 * HARD_ROUNDS_PER_FEATURE * self.n_features > self.n_rounds:
            return None
        losses = np.where(self.weights > 0, round_losses(self.log, theta), -1.0)
        return self.log[hardest_places(self.log, losses, LONG)]

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

    for _ in ordered_map(block, _blocks(log)):
        pass
    return losses


def hardest_places(log: BanditLog, losses: Vector, n_values: int) -> Index:
    """Which rounds have the largest losses, in order: some per feature, and no more than hold so many values."""
    worst = np.argsort(-losses, kind="stable")[: HARD_ROUNDS_PER_FEATURE * log.n_features]
    return np.sort(worst[np.cumsum(log.n_arms[worst]) * log.n_features <= n_values])


def _blocks(log: BanditLog, stride: int = 1) -> Iterator[tuple[int, int]]:
    """Ranges of rounds for a task each, whatever the number of threads."""
    values = log.features.size // BLOCKS
    return ragged.blocks(log.offsets, log.n_features, min(max(values, FEWEST_VALUES * stride), MOST_VALUES * stride))


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
    wrong = np.flatnonzero((array > 0) & ~((array > 1 / HEAVIEST) & (array < HEAVIEST)))
    if len(wrong):
        bounds = f"those that are not 0 lie between {1 / HEAVIEST:g} and {HEAVIEST:g}"
        raise InputError(f"the weight of round {wrong[0]} is {array[wrong[0]]:g}: {bounds}, rescale them")
    return array


def _informative(log: BanditLog, weights: Vector) -> Vector:
    """Weights with zero for the rounds that offer one arm."""
    return np.where(log.n_arms > 1, weights, 0.0)


def _check_scale(log: BanditLog) -> None:
    """Refuse features that are so small that the curvature of the loss would vanish, as if they were all the same."""
    largest = np.abs(log.features[:_SCALE_ROWS]).max(axis=0)
    tiny = np.flatnonzero((largest > 0) & (largest < SMALLEST))
    if len(tiny):
        name = log.feature_names[tiny[0]] if log.feature_names else f"x{tiny[0]}"
        size = f"{largest[tiny[0]]:.3g} at most"
        raise InputError(f"feature {name!r} is {size}, too small for double precision: put it on a larger scale")
