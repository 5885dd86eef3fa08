"""The imitation objective of a log in memory, block by block on all threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import as_number
from onlooker.base.errors import InputError
from onlooker.base.threads import ordered_map
from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.imitation.choice_model import revealed
from onlooker.imitation.leverage import VALUES, Lifted, lifted_gradients
from onlooker.imitation.objective import FINE, ArmsSeen, Objective, Pass, Point, Sums, Windows, added
from onlooker.imitation.scored import CURVED_ROWS, Block, scored_blocks
from onlooker.imitation.short import is_short, short_minimum
from onlooker.imitation.wide import by_hessian, by_variances, hessian_of
from onlooker.logs import ragged
from onlooker.logs.factored import FactoredRows
from onlooker.logs.factored_curvature import filled_hessian
from onlooker.logs.layouts import Layout
from onlooker.logs.log import BanditLog, feature_labels

MOST = 2.0**53
"""Weights may sum to no more: beyond, not every whole number is a float."""


LEAST = 1e-30
"""Weights that are not 0 are at least this: sums of their squares times those of features are proper numbers."""


def as_weights(weights: ArrayLike, n_rounds: int, name: str = "weights") -> Vector:
    """Give one finite weight of at least 0 for each round.

    Examples
    --------
    >>> as_weights([2, 0, 1], 3)
    array([2., 0., 1.])
    """
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} are not numbers: pass one number a round") from None
    if array.shape != (n_rounds,):
        raise InputError(f"{name} has shape {array.shape}, but the log has {n_rounds} rounds: pass one a round")
    # Not summed, which may overflow; most are right, and one look shows it.
    if not len(array) or (((array == 0) | (array >= LEAST)).all() and array.max() <= MOST / len(array)):
        return array
    wrong = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if len(wrong):
        raise InputError(f"the weight of round {wrong[0]} is {array[wrong[0]]}: weights are finite and not negative")
    tiny = np.flatnonzero((array > 0) & (array < LEAST))
    if len(tiny):
        raise InputError(f"the weight of round {tiny[0]} is {array[tiny[0]]:g}: that is too small, scale weights up")
    raise InputError(f"the weight of round {array.argmax()} is {array.max():g}: that is too large, scale weights down")


def not_whole(weights: Vector) -> int | None:
    """First round whose weight is no whole number; None where there is none.

    Examples
    --------
    >>> not_whole(np.array([1.0, 2.5])), not_whole(np.array([1.0, 2.0]))
    (1, None)
    """
    found = np.flatnonzero(weights != np.floor(weights))
    return int(found[0]) if len(found) else None


def after(weights: Vector, burn_in: int) -> tuple[int, Vector]:
    """Rounds that a burn-in of so many counted rounds discards altogether, and the weights of the others.

    Of a round that the burn-in ends in, what is left counts.

    Examples
    --------
    >>> after(np.array([2.0, 0.0, 3.0, 1.0]), 3)
    (2, array([2., 1.]))
    """
    ends = np.cumsum(weights)
    start = int(np.searchsorted(ends, burn_in, side="right"))
    left = weights[start:].copy()
    left[:1] = np.minimum(left[:1], ends[start : start + 1] - burn_in)
    return start, left


def split(log: BanditLog, weights: Vector, places: Index) -> tuple[BanditLog, Vector, Index]:
    """The same counted rounds with no round across any of the places, and where in the log those then are.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.zeros((2, 2, 1)), chosen=[0, 1])
    >>> pieces, weights, places = split(log, np.array([5.0, 1.0]), np.array([0, 2, 5]))
    >>> pieces.chosen, weights, places
    (array([0, 0, 1]), array([2., 3., 1.]), array([0, 1, 2]))
    """
    ends = np.cumsum(weights)
    inside = np.setdiff1d(places[(places > 0) & (places < ends[-1])], ends)
    of = np.searchsorted(ends, inside, side="right")
    rounds = np.insert(np.arange(log.n_rounds), of, of)
    borders = np.insert(ends, of, inside)
    pieces = np.diff(borders, prepend=0.0)
    return log[rounds] if len(inside) else log, pieces, np.searchsorted(np.append(0.0, borders), places)


BLOCKS, FEWEST_VALUES, MOST_VALUES = 16, 1 << 18, 1 << 22
"""Tasks that a pass is split into, so that all threads have some, and feature values in each.

Blocks of one size, 1 << 19 values, took 3% more processor seconds, and leave threads idle on short logs.
"""

ROWS_PER_FEATURE = 4
"""A task has so many rows per feature at least: what it finds, up to two matrices of d x d, is then smaller than it.

It bounds the memory of fits with many features; tests/base/test_working_memory.py measures that.
"""

LONG = 1 << 22
"""Feature values in a pass from which on sparing one is worth a curvature that is a step old.

What this and the sketch's two constants buy is measured by `benchmarks/solver_constants.py`.
"""

COARSE = 1 << 19
"""Offered arms times the weights of one, from which on intervals of such weights are found by coarser sums."""

SKETCH_STRIDE = 4
"""A sketch uses every so many rounds."""

SKETCH_ROUNDS_PER_FEATURE = 3
"""A sketch needs about this many rounds per feature to lead nearer to the minimum."""

HARD_ROUNDS_PER_FEATURE = 10
"""Rounds per feature that are called the hardest, if they hold no more values than a long log."""

FEW_WEIGHTS = 200
"""Weights up to which rows that are not dense are fitted by Newton's method, with a Hessian for every step."""

WIDE = 128
"""The same for dense rows, whose Hessian is found faster."""

SAMPLE_ROUNDS = 2048
"""A preconditioner is made from about this many rounds: all of them would make it no better for the solver."""

SPREAD_ROUNDS = 512
"""A feature's spread within the rounds is first judged by about this many of them."""


SMALLEST = 1e-140
"""Sizes of features below this are refused: their squares times small probabilities would be no proper numbers."""
_SCALE_ROWS = 1 << 6, 1 << 12
"""Rows by which the size of features is judged: some first, then more."""


class SoftmaxObjective(Objective):
    """Mean conditional softmax loss of a log's picks, with L2 regularisation.

    Parameters
    ----------
    log
        The rounds to explain; at least one of them offers a choice.
    l2
        Strength of the L2 regularisation of the mean loss.
    weights
        One non-negative weight per round; 1 by default. A weight of two counts as two rounds next to each other.
    scaled
        Whether weights scale rounds instead: each is one piece of evidence, however large its weight.
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

    def __init__(
        self,
        log: BanditLog,
        *,
        l2: float,
        weights: ArrayLike | None = None,
        stride: int = 1,
        scaled: bool = False,
    ) -> None:
        self.log = log
        self._most: Vector | None = None
        self.scaled = scaled
        self.l2 = as_number(l2, "l2", least=0.0)
        self.stride = stride
        given = np.ones(log.n_rounds) if weights is None else as_weights(weights, log.n_rounds)
        informative = log.informative
        self._given, self.weights = given, np.where(informative, given, 0.0)
        self.n_features, self.feature_names = log.n_features, log.weight_names
        self._blocks = [(-(-start // stride) * stride, stop) for start, stop in _blocks(log, stride)]
        used, sizes = self.weights[::stride], log.n_arms[::stride]
        self.total = float(used.sum())
        self.n_rounds = int(np.count_nonzero(used)) if scaled else int(self.total)
        self.n_one_arm = self.n_vague = 0
        if not informative.all():
            left_out = np.where(informative, 0.0, given)[::stride]
            self.n_one_arm, self.n_vague = int(left_out[sizes == 1].sum()), int(left_out[sizes > 1].sum())
        if not used.any():
            raise _nothing(sizes, self.n_vague)
        self.sets = log.possible is not None
        self.null_loss = float(_null_losses(log[::stride] if log.partial else log, sizes) @ used / self.total)
        if stride == 1:
            # A sketch is of rounds that were checked.
            _check_scale(log)
        rows = log.features
        by_scores = isinstance(rows, Layout) or log.partial
        self._scored = scored_blocks(log[::stride], used, scaled=scaled) if by_scores else None
        self.many = _many(rows, self.n_rounds) and (isinstance(rows, Layout) or not log.partial)
        if isinstance(rows, FactoredRows) and rows.per_arm:
            self.arms = _arms_seen(rows, log, self.weights)
            self.n_redundant = self.arms.n_groups * rows.n_block

    @property
    def long(self) -> bool:
        """Whether a pass takes so long that one more is worth avoiding."""
        rows = self.log.features
        work = rows.shape[0] * rows.n_block if isinstance(rows, FactoredRows) else rows.size
        return work > LONG * self.stride

    @property
    def effective_rounds(self) -> float:
        """Rounds that would tell as much if all weighed the same: fewer where weights scale them."""
        used = self.weights[:: self.stride]
        return float(used.sum() ** 2 / (used @ used)) if self.scaled else self.n_rounds

    @property
    def coarse(self) -> bool:
        """Logs with weights for each arm that are not short: there intervals take most of a fit."""
        rows = self.log.features
        once = bool(((self.weights == 0) | (self.weights == 1)).all())
        if not (isinstance(rows, FactoredRows) and rows.only_blocks and once):
            return False
        return rows.shape[0] * rows.n_block > COARSE * self.stride

    def run(self, wanted: Pass) -> Sums:
        """Go over all rounds once."""
        if self._scored is not None:
            blocks = self._scored
            if wanted.coarse:
                rounds, weights = self.log[:: self.stride], self.weights[:: self.stride]
                blocks = scored_blocks(rounds, weights, CURVED_ROWS, scaled=self.scaled)
            # One after the other: the products inside use all threads.
            return added(block.run(wanted) for block in blocks)
        return added(ordered_map(lambda bounds: self._block(bounds, wanted), self._blocks))

    def _block(self, bounds: tuple[int, int], wanted: Pass) -> Sums:
        rounds = (*bounds, self.stride)
        if self.many and wanted.share is not None:
            # The kernel is faster with few features, where it leaves out arms that count little.
            part = slice(*rounds)
            sums, gradients = _dense_sums(self.log, self.weights, rounds, replace(wanted, share=None))
            upper = np.triu(hessian_of(self.log[part], self.weights[part], wanted.theta))
            sums = replace(sums, upper=upper)
        else:
            sums, gradients = _dense_sums(self.log, self.weights, rounds, wanted)
        return sums if not wanted.width else replace(sums, windows=self._windows(bounds, wanted, gradients))

    def lifted(self, theta: Vector, metric: Matrix) -> Lifted | None:
        """Every round's gradient at the theta of all other rounds; None if that is dear."""
        if isinstance(self.log.features, Layout) and self.n_rounds * self.n_features > VALUES:
            return None
        rounds, weights = self.log[:: self.stride], self.weights[:: self.stride]
        return lifted_gradients(rounds, weights, theta, -self.l2 * theta, metric, scaled=self.scaled)

    def short_minimum(self, tolerance: float, near: Vector | None = None) -> tuple[Vector, int] | None:
        """The minimiser and the passes that it took, for short logs; None where the longer way has to be taken."""
        if self.stride > 1 or not is_short(self.log, self.l2):
            return None
        return short_minimum(self.log, self.weights, l2=self.l2, tolerance=tolerance, near=near)

    def preconditioner(self, theta: Vector) -> Callable[[Vector], Vector]:
        """About the inverse of the Hessian at `theta`, times a vector, from a sample of the rounds."""
        rows = self.log.features
        if not isinstance(rows, Layout):
            return by_variances(self.log[:: self.stride], self.weights[:: self.stride], theta, self.l2)
        stride = max(1, len(self.weights) // SAMPLE_ROUNDS) if rows.sampled else 1
        if not self.weights[::stride].any():
            stride = 1
        sample = Block(self.log[::stride] if stride > 1 else self.log, self.weights[::stride])
        shares = sample.weights / sample.weights.sum()
        groups = None if self.arms is None else self.arms.groups
        predicted, offsets = sample.predicted(theta), sample.log.offsets
        return sample.rows.preconditioner(predicted, shares, offsets, self.l2, groups)

    def closer_preconditioner(self, theta: Vector) -> Callable[[Vector], Vector] | None:
        """Of dense rows: the inverse of a sample's Hessian."""
        if isinstance(self.log.features, Layout):
            return None
        return by_hessian(self.log[:: self.stride], self.weights[:: self.stride], theta, self.l2)

    def variances(self, theta: Vector) -> Vector:
        """Diagonal of the Hessian at `theta`, without regularisation, or about so much, shape (d,)."""
        if self._scored is None:
            return super().variances(theta)
        found = np.zeros(self.n_features)
        for block in self._scored:
            found += block.rows.variances(block.predicted(theta), block.weights, block.log.offsets)
        return found / self.total

    def filled(self, hessian: Matrix) -> Matrix:
        """The Hessian with curvature where the same weights are added to all arms that are compared."""
        rows = self.log.features
        if self.arms is None or not isinstance(rows, FactoredRows):
            return hessian
        return filled_hessian(hessian, self.arms.groups, rows.n_block, rows.n_own)

    def _windows(self, bounds: tuple[int, int], wanted: Pass, gradients: Matrix) -> Windows:
        weights = self.weights[slice(*bounds)]
        if wanted.mean is not None:
            gradients -= wanted.mean
        counts = weights > 0
        if not counts.all():
            gradients, weights = gradients[counts], weights[counts]
        if self.scaled:
            return Windows.of(gradients * weights[:, None], wanted.width)
        return Windows.of(gradients, wanted.width, None if (weights == 1).all() else weights.astype(np.int64))

    def sketch(self) -> SoftmaxObjective | None:
        """Every so many of the rounds; None where they would be too few."""
        stride = self.stride * SKETCH_STRIDE
        if np.count_nonzero(self.weights[::stride]) < SKETCH_ROUNDS_PER_FEATURE * self.n_features:
            return None
        return SoftmaxObjective(self.log, l2=self.l2, weights=self.weights, stride=stride, scaled=self.scaled)

    def spread(self, *, full: bool) -> Matrix:
        """Covariance of the features within the rounds, averaged over (a sample of) them whatever their weights."""
        stride = 1 if full else max(1, self.log.n_rounds // SPREAD_ROUNDS)
        weights = (self.weights > 0).astype(np.float64)
        if not weights[::stride].any():
            stride = 1
        sample = SoftmaxObjective(self.log, l2=0.0, weights=weights, stride=stride)
        return sample.bounded(np.zeros(self.n_features)).hessian

    def largest(self) -> Vector:
        """Largest absolute value of every feature, of a sample."""
        if self._most is None:
            self._most = _largest(self.log.features, 10_000)
        return self._most

    def rounding(self) -> Vector:
        """What rounding may add to a value of each feature, shape (d,)."""
        return np.asarray(8 * np.finfo(self.log.features.dtype).eps * self.largest())

    def unpenalised(self) -> Self:
        """The same rounds without regularisation."""
        return type(self)(self.log, l2=0.0, weights=self._given, stride=self.stride, scaled=self.scaled)

    def hardest(self, theta: Vector) -> BanditLog | None:
        """Those rounds that theta explains least; None where that would be most of them."""
        if 2 * HARD_ROUNDS_PER_FEATURE * self.n_features > np.count_nonzero(self.weights):
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


def accumulated(log: BanditLog, weights: Vector, rounds: slice, wanted: Pass) -> Sums:
    """What a pass finds in some rounds, whatever the layout of their features; no scatter.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.array([[[1.0], [0.0]], [[0.0], [2.0]]]), chosen=[0, 0])
    >>> accumulated(log, np.ones(2), slice(1, None), Pass(theta=np.zeros(1))).gradient
    array([1.])
    """
    if isinstance(log.features, Layout) or log.partial:
        return Block(log[rounds], weights[rounds]).run(wanted)
    return _dense_sums(log, weights, rounds.indices(log.n_rounds), wanted)[0]


def _dense_sums(log: BanditLog, weights: Vector, rounds: tuple[int, int, int], wanted: Pass) -> tuple[Sums, Matrix]:
    """The same of dense rows with picks that were seen, and the rounds' gradients where windows need them."""
    from onlooker.kernels.softmax import accumulate

    d, (start, stop, stride) = len(wanted.theta), rounds
    size = 0 if wanted.share is None else d
    gradient, upper = np.zeros(d), np.zeros((size, size))
    gradients = np.empty((stop - start if wanted.width else 0, d))
    share = FINE if wanted.share is None else wanted.share
    loss, explained, agreed = accumulate(
        *(log.dense, log.offsets, log.chosen, weights, start, stop),
        *(stride, wanted.theta, share, gradient, upper, gradients),
    )
    return Sums(loss=loss, gradient=gradient, upper=upper, explained=explained, agreed=agreed), gradients


def round_losses(log: BanditLog, theta: Vector) -> Vector:
    """Softmax loss of every round, shape (N,).

    Examples
    --------
    >>> import numpy as np
    >>> log = BanditLog.from_dense(np.zeros((3, 4, 2)), chosen=[0, 1, 2])
    >>> round_losses(log, np.ones(2)) - np.log(4)
    array([0., 0., 0.])
    """
    if isinstance(log.features, Layout) or log.partial:
        return revealed(Block(log, np.zeros(0)).rows @ theta, log).losses
    from onlooker.kernels import softmax as kernels

    losses = np.empty(log.n_rounds)

    def block(bounds: tuple[int, int]) -> None:
        out = losses[bounds[0] : bounds[1]]
        kernels.round_losses(log.dense, log.offsets, log.chosen, *bounds, theta, out)

    for _ in ordered_map(block, _blocks(log)):
        pass
    return losses


def hardest_places(log: BanditLog, losses: Vector, n_values: int) -> Index:
    """Which rounds have the largest losses, in order: some per feature, and no more than hold so many values."""
    worst = np.argsort(-losses, kind="stable")[: HARD_ROUNDS_PER_FEATURE * log.n_features]
    return np.sort(worst[np.cumsum(log.n_arms[worst]) * log.n_features <= n_values])


def _blocks(log: BanditLog, stride: int = 1) -> Iterator[tuple[int, int]]:
    """Ranges of rounds for a task each, whatever the number of threads."""
    values, least = log.features.size // BLOCKS, ROWS_PER_FEATURE * log.n_features**2
    by_row = -(-log.features.size // max(1, len(log.features)))
    fewest, most = max(FEWEST_VALUES, least), max(MOST_VALUES, least)
    return ragged.blocks(log.offsets, by_row, min(max(values, fewest * stride), most * stride))


def _nothing(sizes: Index, n_vague: int) -> InputError:
    """Why no round has anything to imitate."""
    from onlooker.logs.offers import NO_OFFERS

    if n_vague:
        return InputError("every offered arm may have been the pick in all rounds: there is nothing to imitate")
    if (sizes > 1).any():
        return InputError("every round that offers a choice has weight 0: there is nothing to imitate")
    return InputError(f"no round offers a choice between two arms or more: there is nothing to imitate; {NO_OFFERS}")


def _null_losses(log: BanditLog, sizes: Index) -> Vector:
    """Loss of every round if all arms score the same."""
    return revealed(np.zeros(len(log.features)), log).losses if log.partial else np.log(sizes)


def _many(rows: Features | Layout, n_rounds: int) -> bool:
    """Whether there are too many weights for a Hessian in every step."""
    if not isinstance(rows, Layout):
        return bool(WIDE < rows.shape[1] < n_rounds)
    return rows.shape[1] > FEW_WEIGHTS or (isinstance(rows, FactoredRows) and rows.per_arm)


def _arms_seen(rows: FactoredRows, log: BanditLog, weights: Vector) -> ArmsSeen:
    """What the rounds show of arms that have weights of their own."""
    if log.possible is not None:
        may = np.repeat(weights > 0, log.n_arms) & log.possible
        picked = np.bincount(rows.row_arms()[may], minlength=rows.n_arms)
    else:
        chosen = log.chosen if rows.which is None else rows.which[log.chosen_rows]
        picked = np.bincount(chosen[weights > 0], minlength=rows.n_arms)
    return ArmsSeen(ids=tuple(rows.arms.tolist()), groups=rows.groups, picked=picked, first=rows.n_own)


def _largest(rows: Features | Layout, some: int) -> Vector:
    """Largest absolute value of every feature, in every so many rows that there are about `some`."""
    if isinstance(rows, Layout):
        return rows[:: max(1, len(rows) // some)].absolute_largest()
    from onlooker.kernels.scattered import row_ranges

    low, high, _ = row_ranges(rows, np.arange(0, len(rows), max(1, len(rows) // some)))
    return np.maximum(np.abs(low), np.abs(high)).astype(np.float64)


def _check_scale(log: BanditLog) -> None:
    """Refuse features that are so small that the curvature of the loss would vanish, as if they were all the same."""
    for n_rows in _SCALE_ROWS:
        largest = _largest(log.features[:n_rows], n_rows)
        if (largest >= SMALLEST).all():
            return
    tiny = np.flatnonzero((largest > 0) & (largest < SMALLEST))
    if len(tiny):
        name = feature_labels(log.weight_names, log.n_features)[tiny[0]]
        size = f"{largest[tiny[0]]:.3g} at most"
        raise InputError(f"feature {name!r} is {size}, too small for double precision: put it on a larger scale")
