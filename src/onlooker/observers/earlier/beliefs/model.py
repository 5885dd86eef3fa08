"""The learner that the Bayesian inverse contextual bandit supposes, as a log shows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from onlooker.base.numerics import inverse
from onlooker.base.types import Index, Matrix, Vector
from onlooker.logs.log import BanditLog

BLOCK_ROUNDS = 256
"""Rounds that are drawn together. Part of what a seed means: changing it changes every chain."""

NO_INFORMATION = 1e-10
"""A direction with less than this share of its features' squares is one that the picked features do not have."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BeliefModel:
    """A learner that samples from its belief and picks by softmax; its rewards are hidden.

    With `x_s` the features of pick s, all of them seen, and `y_t = sum of r_s x_s` over `s < t`,

        N_t = n0 I + sum of x_s x_s' over s < t
        rho_t ~ N(N_t^-1 y_t, noise^2 N_t^-1)
        pick_t ~ softmax(alpha * x rho_t)
        r_t ~ N(x_t' theta*, noise^2)

    Inside, features are in units of the picks' root mean squared length, so that no scale of theirs is too large or too
    small to square.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.array([[[3.0], [0.0]], [[0.0], [4.0]]]), chosen=[0, 1])
    >>> model = BeliefModel.of(log, alpha=20.0)
    >>> round(model.scale, 6), model.picked.ravel().round(6).tolist()
    (3.535534, [0.848528, 1.131371])
    """

    log: BanditLog
    alpha: float
    """Of the softmax, for features in the model's units."""
    scale: float
    """Root mean squared length of the picks' features: the model's unit."""
    picked: Matrix
    """Features of every pick, shape (T, d)."""

    @classmethod
    def of(cls, log: BanditLog, *, alpha: float) -> BeliefModel:
        """Look at a log."""
        # Every sweep goes over all rounds several times.
        log = log.written_out()
        picked = log.dense[log.chosen_rows].astype(np.float64)
        largest = float(np.abs(picked).max(initial=0.0)) or 1.0
        scale = largest * float(np.sqrt(np.square(picked / largest).sum(axis=1).mean())) or 1.0
        return cls(log=log, alpha=alpha / scale, scale=scale, picked=picked / scale)

    @property
    def n_rounds(self) -> int:
        """T."""
        return len(self.picked)

    @property
    def n_features(self) -> int:
        """The length of theta, d."""
        return self.log.n_features

    @cached_property
    def starts(self) -> Index:
        """First round of every block."""
        return np.arange(0, self.n_rounds, BLOCK_ROUNDS, dtype=np.int64)

    @property
    def blocks(self) -> Iterator[tuple[int, int, int]]:
        """Number, first round and the one after the last of every block."""
        for number, start in enumerate(self.starts.tolist()):
            yield number, start, min(start + BLOCK_ROUNDS, self.n_rounds)

    @cached_property
    def inverse(self) -> Matrix:
        """Of `sum of x x'` over all picks, in the directions that they have; zero in the others."""
        return inverse(self.picked.T @ self.picked, flat=NO_INFORMATION)

    def rewards(self, theta: Vector) -> Vector:
        """`x theta` of every pick."""
        # Not by BLAS, here and in `sums`: its threads would change the last digits, and with them the chain.
        return np.asarray(np.einsum("td,d->t", self.picked, theta))

    def sums(self, rewards: Vector) -> Vector:
        """`sum of r x` over all picks."""
        return np.asarray(np.einsum("td,t->d", self.picked, rewards))

    def least_squares(self, sums: Vector) -> Vector:
        """Theta* that explains the rewards best, from `sum of r x` over all picks."""
        return self.inverse @ sums


def square(values: Vector | Matrix) -> float:
    """Sum of all squares, in one order whatever the number of threads."""
    return float(np.square(values).sum())
