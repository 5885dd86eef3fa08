"""Covariance of a fitted theta: from the model alone, or from the scatter of the rounds (sandwich).

A learner's picks are not independent: what it believed a round ago it still believes. The sandwich therefore sums the
rounds' gradients over windows of neighbouring rounds before squaring them (Bartlett weights, as Newey and West), which
counts a run of alike rounds as the one piece of evidence that it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from onlooker import ragged
from onlooker.newton import inverse_square_root
from onlooker.softmax import CurvedPoint, SoftmaxObjective
from onlooker.threads import ordered_map
from onlooker.types import Matrix, Vector


def default_lags(n_rounds: int) -> int:
    """Newey and West's rule for how many neighbours to allow for.

    Examples
    --------
    >>> default_lags(100), default_lags(10_000)
    (4, 11)
    """
    return int(4 * (n_rounds / 100) ** (2 / 9))


def model_covariance(objective: SoftmaxObjective, at: CurvedPoint) -> Matrix:
    """Covariance if the softmax model holds and the rounds are independent."""
    return _sandwich(at, (at.hessian - objective.l2 * np.eye(len(at.theta))) / objective.total)


def sandwich_covariance(objective: SoftmaxObjective, at: CurvedPoint, *, lags: int | None = None) -> Matrix:
    """Covariance from the scatter of the rounds' gradients, allowing for dependence between `lags` neighbours."""
    d = len(at.theta)
    width = 1 + (default_lags(objective.n_rounds) if lags is None else min(lags, objective.n_rounds - 1))
    mean = at.gradient - objective.l2 * at.theta
    meat = np.zeros((d, d))
    window = np.zeros((width, d))
    for gradients in _gradient_blocks(objective, at.theta, mean):
        joined = np.vstack([window, gradients])
        meat += _window_products(joined, width)
        window = joined[-width:]
    meat += _window_products(np.vstack([window, np.zeros((width - 1, d))]), width)
    few = objective.n_rounds / max(1, objective.n_rounds - d)
    return _sandwich(at, few * meat / width / objective.total**2)


def _sandwich(at: CurvedPoint, meat: Matrix) -> Matrix:
    root = inverse_square_root(at.hessian)
    half = root @ (root.T @ meat @ root)
    return np.asarray(half @ root.T)


def _gradient_blocks(objective: SoftmaxObjective, theta: Vector, mean: Vector) -> Iterator[Matrix]:
    """Centred gradients of consecutive rounds, one row a round that carries weight."""
    from onlooker.kernels.softmax import round_gradients

    log, weights = objective.log, objective.weights

    def block(bounds: tuple[int, int]) -> Matrix:
        gradients = np.empty((bounds[1] - bounds[0], log.n_features))
        round_gradients(log.features, log.offsets, log.chosen, weights, *bounds, theta, gradients)
        gradients -= weights[slice(*bounds), None] * mean
        return gradients[weights[slice(*bounds)] > 0]

    return ordered_map(block, ragged.blocks(log.offsets, log.n_features, 1 << 20))


def _window_products(gradients: Matrix, width: int) -> Matrix:
    """Sum of `W W'` over the windows `W` that end after the first `width` rows."""
    running = np.cumsum(gradients, axis=0)
    windows = running[width:] - running[:-width]
    return np.asarray(windows.T @ windows)
