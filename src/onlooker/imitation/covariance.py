"""Covariance of a fitted theta: from the model alone, or from the scatter of the rounds (sandwich).

A learner's picks are not independent: what it believed a round ago it still believes. The sandwich therefore sums the
rounds' gradients over windows of neighbouring rounds before squaring them (Bartlett weights, as Newey and West), which
counts a run of alike rounds as the one piece of evidence that it is.
"""

from __future__ import annotations

import numpy as np

from onlooker.base.linear_algebra import inverse_square_root
from onlooker.base.types import Matrix
from onlooker.imitation.objective import CurvedPoint, Objective, ScatteredPoint


def default_lags(n_rounds: int) -> int:
    """Newey and West's rule for how many neighbours to allow for.

    Examples
    --------
    >>> default_lags(100), default_lags(10_000)
    (4, 11)
    """
    return int(4 * (n_rounds / 100) ** (2 / 9))


def model_covariance(objective: Objective, at: CurvedPoint) -> Matrix:
    """Covariance if the softmax model holds and the rounds are independent."""
    return _sandwich(at, (at.hessian - objective.l2 * np.eye(len(at.theta))) / objective.total)


def window_width(objective: Objective, lags: int | None) -> int:
    """Rounds in a window that allows for dependence between `lags` neighbours, `default_lags` unless given."""
    return 1 + (default_lags(objective.n_rounds) if lags is None else min(lags, objective.n_rounds - 1))


def sandwich_covariance(objective: Objective, at: ScatteredPoint, width: int) -> Matrix:
    """Covariance from the scatter of the rounds' gradients over windows of `width` neighbours."""
    few = objective.n_rounds / max(1, objective.n_rounds - len(at.theta))
    return _sandwich(at, few * at.scatter / width / objective.total**2)


def _sandwich(at: CurvedPoint, meat: Matrix) -> Matrix:
    root = inverse_square_root(at.hessian)
    half = root @ (root.T @ meat @ root)
    return np.asarray(half @ root.T)
