"""Covariance of a fitted theta: from the model alone, or from the scatter of the rounds (sandwich).

A learner's picks are not independent: what it believed a round ago it still believes. The sandwich therefore sums the
rounds' gradients over windows of neighbouring rounds before squaring them (Bartlett weights, as Newey and West), which
counts a run of alike rounds as the one piece of evidence that it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from onlooker.base.numerics import inverse_square_root
from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.logs.log import BanditLog

if TYPE_CHECKING:
    from onlooker.imitation.leverage import Lifted


@dataclass(frozen=True, eq=False)
class Windows:
    """Products of the windows inside some rows, and the rows at both ends that windows into other parts need.

    Examples
    --------
    Rows in two parts give what they give in one:

    >>> rows = np.random.default_rng(0).normal(size=(9, 2))
    >>> parts = Windows.of(rows[:2], 4).joined(Windows.of(rows[2:], 4))
    >>> bool(np.allclose(parts.products(), Windows.of(rows, 4).products()))
    True
    """

    width: int
    """Rows in a window."""
    inside: Matrix
    """Sum of `W W'` over the windows that lie inside, `W` the sum of a window's rows; shape (d, d)."""
    head: Matrix
    """The first `width - 1` rows, or all where there are fewer."""
    tail: Matrix
    """The last `width - 1` rows, or all where there are fewer."""

    @classmethod
    def of(cls, rows: Matrix, width: int, repeats: Index | None = None) -> Windows:
        """Of rows that lie next to each other, each as often in a row as `repeats` says; once by default.

        Windows that lie within the repeats of one row are all alike, so no row has to be repeated more than `width`
        times.

        >>> rows = np.random.default_rng(0).normal(size=(3, 2))
        >>> short, long = Windows.of(rows, 3, np.array([2, 0, 50])), Windows.of(np.repeat(rows, [2, 0, 50], axis=0), 3)
        >>> bool(np.allclose(short.products(), long.products()))
        True
        """
        alike = np.zeros((rows.shape[1],) * 2)
        if repeats is not None:
            shown = np.minimum(repeats, width)
            alike = width**2 * (rows.T @ ((repeats - shown)[:, None] * rows))
            rows = np.repeat(rows, shown, axis=0)
        edge = width - 1
        # Copies: a few rows of them would keep all in memory.
        head, tail = rows[:edge].copy(), rows[max(0, len(rows) - edge) :].copy()
        return cls(width, alike + _products(rows, width), head, tail)

    def joined(self, later: Windows) -> Windows:
        """Of these rows and those that come after them."""
        edge = self.width - 1
        astride = _products(np.vstack([self.tail, later.head]), self.width)
        head = self.head if len(self.head) == edge else np.vstack([self.head, later.head])[:edge]
        tail = later.tail if len(later.tail) == edge else np.vstack([self.tail, later.tail])
        # In place: with many weights every one of these matrices counts.
        astride += self.inside
        astride += later.inside
        return Windows(self.width, astride, head, tail[max(0, len(tail) - edge) :])

    def products(self) -> Matrix:
        """Sum of `W W'` over all windows, those that reach over the ends included."""
        nothing = Windows.of(np.zeros((self.width - 1, self.head.shape[1])), self.width)
        return nothing.joined(self).joined(nothing).inside


def _products(rows: Matrix, width: int) -> Matrix:
    """Sum of `W W'` over the windows of `width` rows; zero where there are fewer rows."""
    running = np.zeros((len(rows) + 1, rows.shape[1]))
    np.cumsum(rows, axis=0, out=running[1:])
    sums = running[width:] - running[:-width]
    return np.asarray(sums.T @ sums)


FINE, FAIR, ROUGH = 1e-6, 1e-2, 1e-1
"""Arms that together hold at most this share of a round's unpicked probability are left out of the Hessian.

A fine one is for intervals, a fair one points the way to the minimum. The solver starts from a rough one and asks for
as much more as its next step can use: `benchmarks/solver_constants.py` measures what that buys.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Point:
    """The objective at one theta."""

    theta: Vector
    """Where it was evaluated, shape (d,)."""

    value: float
    """Mean loss plus regularisation."""

    gradient: Vector
    """Shape (d,), regularisation included."""

    loss: float
    """Mean loss without the regularisation term."""

    explained: float
    """Weight of the rounds whose pick scores strictly above every other arm."""

    agreed: float
    """Weight of the rounds whose pick is the first of the best: what the policy chooses."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CurvedPoint(Point):
    """The objective at one theta, with its curvature."""

    hessian: Matrix
    """Shape (d, d), regularisation included."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ScatteredPoint(CurvedPoint):
    """The objective at one theta, with its curvature and the scatter of the rounds."""

    scatter: Matrix
    """Sum of `W W'` over all windows of neighbouring rounds, `W` a window's sum of gradients; shape (d, d)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pass:
    """What one pass over the rounds is to find, besides loss and gradient."""

    theta: Vector
    """Where to evaluate."""

    share: float | None = None
    """Arms left out of the Hessian (from `FINE` to `ROUGH`); None for no Hessian."""

    width: int = 0
    """Rounds in a window of neighbours; 0 for no scatter."""

    mean: Vector | None = None
    """Mean gradient, taken off every round's before they are summed over windows."""

    judged: bool = True
    """Whether to count the rounds whose pick scores best; where not, both counts are NaN."""

    coarse: bool = False
    """Whether single precision is enough for curvature and scatter, with windows that begin at every half of one."""

    bound: bool = False
    """Whether the Hessian is to be one that bounds it from above: of picks known to a set, as if they were seen."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sums:
    """What a pass found in some rounds; those of neighbouring stretches can be added."""

    loss: float
    """Weighted loss."""

    gradient: Vector
    """Of it, shape (d,)."""

    upper: Matrix
    """Upper triangle of its Hessian, shape (d, d); empty if that was not asked for."""

    explained: float
    """Weight of the rounds whose pick scores strictly above every other arm."""

    agreed: float
    """Weight of the rounds whose pick is the first of the best."""

    windows: Windows | None = None
    """Sums over windows of neighbouring rounds."""

    def __add__(self, later: Sums) -> Sums:
        joined = None if self.windows is None or later.windows is None else self.windows.joined(later.windows)
        return Sums(
            loss=self.loss + later.loss,
            gradient=self.gradient + later.gradient,
            upper=self.upper + later.upper,
            explained=self.explained + later.explained,
            agreed=self.agreed + later.agreed,
            windows=joined,
        )

    def point(self, theta: Vector, total: float, l2: float) -> Point:
        """The objective at `theta`, where this was found, of rounds whose weights sum to `total`."""
        loss = self.loss / total
        return Point(
            theta=theta,
            value=loss + 0.5 * l2 * float(theta @ theta),
            gradient=self.gradient / total + l2 * theta,
            loss=loss,
            explained=self.explained,
            agreed=self.agreed,
        )

    def curved_point(self, theta: Vector, total: float, l2: float) -> CurvedPoint:
        """The same with its curvature."""
        hessian = (self.upper + np.triu(self.upper, 1).T) / total + l2 * np.eye(len(theta))
        return CurvedPoint(**vars(self.point(theta, total, l2)), hessian=hessian)


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmsSeen:
    """Arms that have weights of their own, and what the rounds show of them."""

    ids: tuple[object, ...]
    """All of them."""
    groups: Index
    """Number of the group of arms that each is compared with, directly or by way of others, shape (K,)."""
    picked: Index
    """How many rounds pick each, shape (K,)."""
    first: int
    """Where their weights begin."""

    @property
    def alone(self) -> Index:
        """Arms that are never offered beside another."""
        return np.flatnonzero(np.bincount(self.groups)[self.groups] == 1)

    @property
    def unpicked(self) -> Index:
        """Arms that are offered beside others and never picked."""
        return np.setdiff1d(np.flatnonzero(self.picked == 0), self.alone)

    @property
    def n_groups(self) -> int:
        """Groups of two arms or more."""
        return int(np.count_nonzero(np.bincount(self.groups) > 1))


class Objective(ABC):
    """Mean conditional softmax loss of some rounds' picks, with L2 regularisation, wherever the rounds are stored."""

    l2: float
    """Strength of the L2 regularisation of the mean loss."""
    n_features: int
    """Number of features, d."""
    feature_names: tuple[str, ...] | None
    """One name per feature, or None."""
    n_rounds: int
    """Rounds that offer a choice, each as often as its weight says; rounded down."""
    total: float
    """Sum of their weights."""
    n_one_arm: int
    """Rounds that offer a single arm, counted in the same way: they are left out."""
    n_vague: int = 0
    """Rounds in which every offered arm may have been the pick, counted in the same way: they are left out."""
    null_loss: float
    """Mean loss of picking uniformly at random."""
    many: bool = False
    """Whether there are so many weights that a step should not need a matrix of d x d."""
    arms: ArmsSeen | None = None
    """What is known of the arms, where each has weights of its own."""
    sets: bool = False
    """Whether some picks are known only to a set of arms: then the loss is not convex."""
    n_redundant: int = 0
    """Directions of theta that no pick can depend on by design: with weights for each arm, one for each feature."""

    @property
    def effective_rounds(self) -> float:
        """Rounds that would tell as much if all weighed the same (Kish)."""
        return self.n_rounds

    @property
    def coarse(self) -> bool:
        """Whether intervals are found in single precision, from windows that begin at every half of one."""
        return False

    @abstractmethod
    def run(self, wanted: Pass) -> Sums:
        """Go over all rounds once."""

    @abstractmethod
    def lifted(self, theta: Vector, metric: Matrix) -> Lifted | None:
        """Every round's gradient at the theta of all other rounds (`lifted_gradients`); None if that is dear."""

    @abstractmethod
    def sketch(self) -> Objective | None:
        """About the same objective on fewer rounds, whose minimum is near; None where a sketch does not pay."""

    @abstractmethod
    def spread(self, *, full: bool) -> Matrix:
        """Covariance of the features within the rounds, averaged over (a sample of) them whatever their weights."""

    @abstractmethod
    def largest(self) -> Vector:
        """Largest absolute value of every feature, of all rounds or of a sample, shape (d,)."""

    @abstractmethod
    def rounding(self) -> Vector:
        """What rounding may add to a value of each feature, shape (d,)."""

    @abstractmethod
    def unpenalised(self) -> Objective:
        """The same rounds without regularisation."""

    @abstractmethod
    def hardest(self, theta: Vector) -> BanditLog | None:
        """Those rounds that theta explains least; None where that would be most of them."""

    @property
    @abstractmethod
    def long(self) -> bool:
        """Whether a pass takes so long that one more is worth avoiding."""

    def short_minimum(
        self,
        tolerance: float,  # noqa: ARG002  others depend on it
        near: Vector | None = None,  # noqa: ARG002  as above
    ) -> tuple[Vector, int] | None:
        """The minimiser and the passes that it took, for short logs; None where the longer way has to be taken."""
        return None

    def preconditioner(self, theta: Vector) -> Callable[[Vector], Vector]:  # noqa: ARG002  others depend on it
        """About the inverse of the Hessian at `theta`, times a vector; of use where there are many weights."""
        return np.copy

    def closer_preconditioner(self, theta: Vector) -> Callable[[Vector], Vector] | None:  # noqa: ARG002  as above
        """The same, closer and at a price, for searches that take long; None where there is none."""
        return None

    def variances(self, theta: Vector) -> Vector:
        """Diagonal of the Hessian at `theta`, without regularisation, shape (d,)."""
        return np.diag(self.evaluate(theta).hessian) - self.l2

    def filled(self, hessian: Matrix) -> Matrix:
        """The Hessian with some curvature in the directions that are redundant by design; the others are as before."""
        return hessian

    def evaluate(self, theta: Vector, *, share: float = FINE) -> CurvedPoint:
        """Value, gradient and Hessian at `theta`, in one pass over the features (`share`: from `FINE` to `ROUGH`)."""
        return self.run(Pass(theta=theta, share=share)).curved_point(theta, self.total, self.l2)

    def bounded(self, theta: Vector) -> CurvedPoint:
        """The same with a Hessian that bounds the true one from above, so that it is nowhere negative."""
        return self.run(Pass(theta=theta, share=FINE, bound=True)).curved_point(theta, self.total, self.l2)

    def slope(self, theta: Vector) -> Point:
        """Value and gradient at `theta`; the Hessian is most of the cost where many arms are likely."""
        return self.run(Pass(theta=theta, judged=not self.many)).point(theta, self.total, self.l2)

    def judged(self, theta: Vector) -> Point:
        """The same with the rounds counted whose pick scores best, which `slope` leaves out with many weights."""
        return self.run(Pass(theta=theta)).point(theta, self.total, self.l2)

    def scattered(self, at: Point, width: int) -> ScatteredPoint:
        """Curvature and scatter at a point whose gradient is known, in one pass; windows hold `width` rounds."""
        return self._scattered(at.theta, width, at.gradient - self.l2 * at.theta)

    def at_minimum(self, theta: Vector, width: int) -> ScatteredPoint:
        """The same near the minimum, where the rounds' mean gradient balances that of the regularisation term."""
        return self._scattered(theta, width, -self.l2 * theta)

    def _scattered(self, theta: Vector, width: int, mean: Vector) -> ScatteredPoint:
        sums = self.run(Pass(theta=theta, share=FINE, width=width, mean=mean, coarse=self.coarse))
        assert sums.windows is not None
        curved = sums.curved_point(theta, self.total, self.l2)
        scatter = sums.windows.products()
        # Each round is in as many windows as there are blocks in one, not in `width` of them.
        scatter *= width / sums.windows.width
        return ScatteredPoint(**vars(curved), scatter=scatter)


MOST_INFLATED = 20
"""Times that a variance may be as large as if the other weights were known, for single precision to do.

Standard errors are then right to 1e-5: with a factor of 100, to 3e-5; of 9,000, to 7e-4.
"""


def added(parts: Iterable[Sums]) -> Sums:
    """Sums of neighbouring stretches, oldest first, as those of the whole."""
    return reduce(Sums.__add__, parts)


def default_lags(n_rounds: int) -> int:
    """Newey and West's rule for how many neighbours to allow for.

    Examples
    --------
    >>> default_lags(100), default_lags(10_000)
    (4, 11)
    """
    return int(4 * (n_rounds / 100) ** (2 / 9))


def model_covariance(objective: Objective, at: CurvedPoint, metric: Matrix | None = None) -> Matrix:
    """Covariance if the softmax model holds and the rounds are independent; `metric`: the Hessian's inverse."""
    return _sandwich(at, (at.hessian - objective.l2 * np.eye(len(at.theta))) / objective.total, metric)


def window_width(objective: Objective, lags: int | None) -> int:
    """Rounds in a window that allows for dependence between `lags` neighbours, `default_lags` unless given."""
    return 1 + (default_lags(objective.n_rounds) if lags is None else min(lags, objective.n_rounds - 1))


def sandwich_covariance(
    objective: Objective,
    at: ScatteredPoint,
    width: int,
    metric: Matrix | None = None,
    n_weights: float | None = None,
) -> Matrix:
    """Covariance from the scatter of the rounds' gradients over windows of `width` neighbours.

    `n_weights` is how many weights the rounds decide on: all that are not redundant, unless it is given.
    """
    free = objective.n_features - objective.n_redundant if n_weights is None else n_weights
    few = objective.n_rounds / max(1, objective.n_rounds - free)
    meat = few * at.scatter / width / objective.total**2
    found = single_sandwich(meat, metric) if objective.coarse and metric is not None else None
    return _sandwich(at, meat, metric) if found is None else found


def single_sandwich(meat: Matrix, metric: Matrix) -> Matrix | None:
    """The sandwich in single precision, in two thirds of the time; None where fewer than five digits would be right.

    Rounding grows as the weights' variances do because other weights are estimated too.
    """
    units = np.sqrt(np.diag(metric))
    size = float(np.diag(meat) @ np.diag(metric)) / len(meat)
    if not 0 < size < np.inf:
        return None
    turned, scaled = _in_units(metric, 1 / units), _in_units(meat, units / size**0.5)
    found = turned @ scaled @ turned
    if not (np.diag(scaled) <= MOST_INFLATED * np.diag(found)).all():
        return None
    covariance = np.asarray(found, dtype=np.float64)
    covariance *= units
    covariance *= (size * units)[:, None]
    return covariance


def _in_units(matrix: Matrix, units: Vector) -> Features:
    """Rows and columns times their units, in single precision."""
    found = (matrix * units[:, None]).astype(np.float32)
    found *= units.astype(np.float32)
    return found


def _sandwich(at: CurvedPoint, meat: Matrix, metric: Matrix | None) -> Matrix:
    if metric is not None:
        return np.asarray(metric @ meat @ metric)
    root = inverse_square_root(at.hessian)
    half = root @ (root.T @ meat @ root)
    return np.asarray(half @ root.T)
