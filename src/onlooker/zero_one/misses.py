"""The 0-1 loss: which picks are not what a linear policy would pick."""

from __future__ import annotations

from dataclasses import dataclass

from onlooker.inverses import Curvature
from onlooker.policy import LinearPolicy
from onlooker.softmax import SoftmaxObjective
from onlooker.types import Matrix, Vector


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
    >>> from onlooker.log import BanditLog
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
