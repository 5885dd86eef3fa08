"""Coordinates in which the weights of many groups are pooled: those that picks can identify, and how they may vary.

Where every arm has weights of its own, picks show their differences alone. These are kept in orthonormal contrasts of
the arms, so that arms are alike beforehand: weights of an arm vary between groups with a covariance between features
of the context that all arms share, and which contrasts are taken makes no difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onlooker.base.types import Index, Matrix, Vector
from onlooker.imitation.objective import CurvedPoint
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.logs.factored import FactoredRows
from onlooker.logs.log import BanditLog

GROUPS_PER_FEATURE = 2
"""Groups per feature from which on covariances between weights are estimated; with fewer, variances alone."""


@dataclass(frozen=True, eq=False)
class Coordinates:
    """How weights and coordinates belong together; without `basis` they are the same.

    Examples
    --------
    >>> log = BanditLog.from_contexts(np.eye(3), chosen=["a", "b", "c"])
    >>> found = Coordinates.of([log])
    >>> found.basis.shape, found.n_contrasts, found.width
    ((9, 6), 2, 3)
    >>> weights = found.basis @ np.ones(6)
    >>> weights.reshape(3, 3).sum(axis=0).round(9)
    array([0., 0., 0.])
    """

    n_own: int
    """Coordinates that are weights of their own."""
    n_contrasts: int = 0
    """Contrasts between arms."""
    width: int = 0
    """Weights of an arm."""
    basis: Matrix | None = None
    """Takes coordinates to weights, its columns orthonormal."""

    @classmethod
    def of(cls, logs: Sequence[BanditLog]) -> Coordinates:
        """Those of logs with the same features, and the same arms where each has weights of its own."""
        rows = logs[0].features
        if not (isinstance(rows, FactoredRows) and rows.per_arm):
            return cls(logs[0].n_features)
        arms, width, own = rows.n_arms, rows.n_block, rows.n_own
        # Helmert's contrasts: each arm against the mean of those before it.
        contrasts = np.triu(np.ones((arms, arms)), 1)[:, 1:] - np.diag(np.arange(arms, dtype=np.float64))[:, 1:]
        contrasts /= np.linalg.norm(contrasts, axis=0)
        # Arms in an order of their own, so that neither names nor their order change the answer.
        contrasts = contrasts[np.argsort(_arm_order(logs, arms))]
        basis = np.zeros((own + arms * width, own + (arms - 1) * width))
        basis[:own, :own] = np.eye(own)
        basis[own:, own:] = np.kron(contrasts, np.eye(width))
        return cls(own, arms - 1, width, basis)

    @property
    def n(self) -> int:
        """How many there are."""
        return self.n_own + self.n_contrasts * self.width

    def inside(self, weights: Vector) -> Vector:
        """Coordinates of some weights."""
        return weights if self.basis is None else np.asarray(self.basis.T @ weights)

    def weights(self, inside: Vector) -> Vector:
        """Weights at some coordinates, or several a row."""
        return inside if self.basis is None else np.asarray(inside @ self.basis.T)

    def narrowed(self, matrix: Matrix) -> Matrix:
        """A curvature of the weights as one of the coordinates."""
        return matrix if self.basis is None else np.asarray(self.basis.T @ matrix @ self.basis)

    def widened(self, matrix: Matrix) -> Matrix:
        """A covariance of the coordinates as one of the weights."""
        return matrix if self.basis is None else np.asarray(self.basis @ matrix @ self.basis.T)

    def evaluate(self, objective: SoftmaxObjective, inside: Vector) -> CurvedPoint:
        """Loss, gradient and curvature at some coordinates."""
        at = objective.evaluate(self.weights(inside))
        if self.basis is None:
            return at
        return CurvedPoint(
            theta=inside,
            value=at.value,
            gradient=self.inside(at.gradient),
            loss=at.loss,
            explained=at.explained,
            agreed=at.agreed,
            hessian=self.narrowed(at.hessian),
        )

    def structured(self, found: Matrix, n_groups: int) -> Matrix:
        """A covariance between groups as far as so many can show it; that of the arms is the same for all contrasts."""
        own = found[: self.n_own, : self.n_own]
        result = np.zeros_like(found)
        few = n_groups < GROUPS_PER_FEATURE * self.n_own
        result[: self.n_own, : self.n_own] = np.diag(np.diag(own)) if few else own
        if not self.n_contrasts:
            return result
        places = self.n_own + np.arange(self.n_contrasts * self.width).reshape(self.n_contrasts, self.width)
        shared = np.mean([found[np.ix_(at, at)] for at in places], axis=0)
        if n_groups * self.n_contrasts < GROUPS_PER_FEATURE * self.width:
            shared = np.diag(np.diag(shared))
        for at in places:
            result[np.ix_(at, at)] = shared
        return result

    def typical(self, variation: Vector) -> Vector:
        """How much coordinates vary within rounds, the same for all contrasts."""
        found = variation.copy()
        if self.n_contrasts:
            mean = (found[self.n_own :].reshape(self.n_contrasts, self.width) ** 2).mean(axis=0) ** 0.5
            found[self.n_own :] = np.tile(mean, self.n_contrasts)
        return found


def _arm_order(logs: Sequence[BanditLog], n_arms: int) -> Index:
    """The arms by how often they were picked, and by the contexts in which they were."""
    keys = np.zeros((n_arms, 1))
    for log in logs:
        rows = log.features
        assert isinstance(rows, FactoredRows)
        picked = log.chosen if rows.which is None else rows.which[log.chosen_rows]
        contexts = np.zeros((log.n_rounds, 0)) if rows.contexts is None else rows.contexts
        keys = keys + np.column_stack(
            [np.bincount(picked, values, n_arms) for values in (np.ones(log.n_rounds), *contexts.T)]
        )
    return np.lexsort(keys.T[::-1])


def scores(log: BanditLog, thetas: Matrix) -> Matrix:
    """Scores of all rows under each theta, shape (rows, m)."""
    rows = log.features
    if not isinstance(rows, FactoredRows):
        return np.asarray(log.dense @ thetas.T)
    if rows.which is None and rows.per_arm and rows.contexts is not None and not rows.n_own:
        by_arm = thetas.reshape(len(thetas), rows.n_arms, rows.n_context)
        found = np.einsum("rp,mkp->rkm", rows.contexts, by_arm, optimize=True)
        return np.asarray(found.reshape(-1, len(thetas)))
    return np.stack([rows @ theta for theta in thetas], axis=1)
