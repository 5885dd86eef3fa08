"""Exact line searches of the 0-1 loss: a policy is a direction, so a line of them is a circle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker.base.numerics import Curvature
from onlooker.base.threads import ordered_map
from onlooker.base.types import Matrix, Vector
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.logs import ragged
from onlooker.logs.policy import LinearPolicy


# eq=False: `==` on arrays is elementwise, so a generated __eq__ would raise.
@dataclass(frozen=True, kw_only=True, eq=False)
class ZeroOneFit:
    """A policy, and what it misses."""

    theta: Vector
    """Shape (d,); only its direction counts."""

    loss: float
    """Weight of the rounds where the policy does not pick what was picked, as a part of all."""

    agreed: float
    """Weight of the rounds where it does."""

    n_iter: int = 0
    """Circles that were searched."""


def count_misses(objective: SoftmaxObjective, theta: Vector) -> ZeroOneFit:
    """What the policy with `theta` misses of the objective's rounds; the first of equal best arms is its pick.

    Examples
    --------
    >>> from onlooker.logs.log import BanditLog
    >>> log = BanditLog.from_dense(np.array([[[1.0], [0.0]]] * 4), chosen=[0, 0, 0, 1])
    >>> count_misses(SoftmaxObjective(log, l2=0.0), np.array([2.0])).loss
    0.25
    """
    log = objective.log
    right = (LinearPolicy(theta).choose(log) == log.chosen) & (objective.weights > 0)
    explained = float(objective.weights[right].sum())
    return ZeroOneFit(theta=theta, loss=1 - explained / objective.total, agreed=explained)


def directions_identified(objective: SoftmaxObjective) -> tuple[Matrix, Matrix]:
    """Directions of theta that choices depend on, as columns of shape (d, rank), and their dual.

    Along each, scores spread within the rounds by one, so neither units nor features that are constant or combinations
    of others matter to a search among `columns @ u`. The dual gives `u` back: `dual.T @ columns` is the identity.
    """
    found = Curvature.of(objective.spread(full=True), noise=objective.rounding() ** 2)
    return found.root, found.half


BLOCK_VALUES = 1 << 20
"""Feature values that one task of a thread goes through."""

NARROW = 1e-11
"""Stretches of a circle shorter than this are rounding: ends of arcs that coincide."""

SLACK = 1e-9
"""Weights that differ by less than this part of all are equal: they were summed in different orders."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Stretches:
    """Where on a circle the policy explains the most."""

    covered: float
    """Weight of the rounds that it explains there."""

    middles: Vector
    """Angle in the middle of each stretch."""

    widths: Vector
    """Length of each stretch."""


class Circles:
    """Circles through one theta after the other, each searched exactly in one pass over the features.

    On a circle through `theta` and a direction each pick is explained on one arc or nowhere; sorting the arcs' ends
    tells where most weight lies. Theta with ties between unlike arms are left out: they are ends of arcs.

    Examples
    --------
    Two picks want the first feature or the second; theta between the two explains both:

    >>> from onlooker.logs.log import BanditLog
    >>> log = BanditLog.from_dense(np.array([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]]), chosen=[0, 0])
    >>> circles = Circles(SoftmaxObjective(log, l2=0.0))
    >>> circles.stand(np.array([1.0, 0.0]))
    >>> best = circles.look(np.array([0.0, 1.0]))
    >>> best.covered, best.middles / np.pi
    (2.0, array([0.25]))
    """

    def __init__(self, objective: SoftmaxObjective) -> None:
        log = objective.log
        self._log, self._weights = log, objective.weights
        self._slack = SLACK * objective.total
        self._blocks = list(ragged.blocks(log.offsets, log.n_features, BLOCK_VALUES))
        self._here, self._ahead = np.zeros(len(log.features)), np.zeros(len(log.features))
        self._low, self._length = np.zeros(log.n_rounds), np.zeros(log.n_rounds)

    def stand(self, theta: Vector) -> None:
        """Let the next circles go through `theta`."""

        def block(bounds: tuple[int, int]) -> None:
            self._lead(bounds, theta, self._here)

        for _ in ordered_map(block, self._blocks):
            pass

    def look(self, direction: Vector) -> Stretches:
        """Search `cos(angle) * theta + sin(angle) * direction` over all angles."""
        from onlooker.kernels.zero_one import arcs

        log = self._log

        def block(bounds: tuple[int, int]) -> None:
            self._lead(bounds, direction, self._ahead)
            arcs(log.offsets, log.chosen, self._weights, *bounds, self._here, self._ahead, self._low, self._length)

        for _ in ordered_map(block, self._blocks):
            pass
        return deepest(self._low, self._length, self._weights, slack=self._slack)

    def _lead(self, bounds: tuple[int, int], direction: Vector, out: Vector) -> None:
        """Fill how far the picks of some rounds score above each arm."""
        from onlooker.kernels.zero_one import leads

        part, rows = self._log[slice(*bounds)], slice(*self._log.offsets[list(bounds)])
        weights = self._weights[slice(*bounds)]
        leads(part.dense, part.offsets, part.chosen, weights, 0, part.n_rounds, direction, out[rows])

    def turn(self, angle: float) -> None:
        """Stand at this angle of the circle looked at last."""
        self._here *= np.cos(angle)
        self._here += np.sin(angle) * self._ahead


def deepest(low: Vector, length: Vector, weights: Vector, *, slack: float) -> Stretches:
    """Stretches of the circle where arcs of the most weight overlap; weights within `slack` are equal.

    Examples
    --------
    >>> deepest(np.array([-1.0, 0.0, 2.0]), np.array([2.0, 3.0, 0.5]), np.ones(3), slack=1e-9)
    Stretches(covered=2.0, middles=array([0.5 , 2.25]), widths=array([1. , 0.5]))
    """
    whole = length == 2 * np.pi
    bound = (length > 0) & ~whole
    begins, steps = low[bound], weights[bound]
    ends = begins + length[bound]
    wraps = ends > np.pi
    always = float(weights[whole].sum())
    if not len(begins):
        return Stretches(covered=always, middles=np.zeros(1), widths=np.full(1, 2 * np.pi))
    angles = np.concatenate([begins, np.where(wraps, ends - 2 * np.pi, ends)])
    order = np.argsort(angles, kind="stable")
    angles = angles[order]
    covered = always + float(steps[wraps].sum()) + np.cumsum(np.concatenate([steps, -steps])[order])
    widths = np.append(angles[1:], angles[0] + 2 * np.pi) - angles
    covered[widths <= NARROW] = -np.inf
    most = float(covered.max())
    best = covered >= most - slack
    return Stretches(covered=most, middles=(angles + widths / 2)[best], widths=widths[best])
