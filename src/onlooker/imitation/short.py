"""Fits of short logs, of which thousands are made: one compiled search each, without the rest of the machinery."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onlooker.base.types import Index, Matrix, Vector
from onlooker.logs.layouts import Layout
from onlooker.logs.log import BanditLog

MOST_VALUES, MOST_FEATURES = 65_536, 32
"""Logs of at most so many values and features are short: above, passes over them are most of the cost."""

PASSES = 50
"""Newton steps after which the search gives up."""


def is_short(log: BanditLog, l2: float) -> bool:
    """Whether the log can be fitted by `short_fit`; regularisation makes its minimum unique."""
    rows = log.features
    if log.partial:
        return False
    return not isinstance(rows, Layout) and rows.size <= MOST_VALUES and rows.shape[1] <= MOST_FEATURES and l2 > 0


def short_fit(
    log: BanditLog,
    *,
    l2: float,
    tolerance: float,
    weights: Vector | None = None,
    start: int = 0,
    near: Vector | None = None,
) -> Vector | None:
    """The weights that explain a short log's rounds from `start` on; None where the search did not end.

    `weights`, one per round of the log, are 1 by default.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.array([[[1.0], [0.0]]] * 4), chosen=[0, 0, 0, 1])
    >>> short_fit(log, l2=1e-9, tolerance=1e-8).round(4), np.log(3).round(4)
    (array([1.0986]), np.float64(1.0986))
    """
    from onlooker.kernels.small_fits import fit_weighted

    counts = np.where(log.n_arms > 1, 1.0 if weights is None else weights, 0.0)
    if not counts[start:].any():
        return None
    theta = np.zeros(log.n_features) if near is None else near.copy()
    rounds = log.dense, log.offsets, log.chosen, counts, start, log.n_rounds
    return theta if fit_weighted(*rounds, l2, tolerance, PASSES, theta) else None


def short_minimum(
    log: BanditLog, weights: Vector, *, l2: float, tolerance: float, near: Vector | None = None
) -> tuple[Vector, int] | None:
    """The minimum of all rounds of a short log and the passes that it took; None where the search did not end."""
    from onlooker.kernels.small_fits import fit_weighted

    theta = np.zeros(log.n_features) if near is None else near.copy()
    passes = fit_weighted(log.dense, log.offsets, log.chosen, weights, 0, log.n_rounds, l2, tolerance, PASSES, theta)
    return (theta, passes) if passes else None


def short_suffixes(log: BanditLog, starts: Index, weights: Vector, *, l2: float, tolerance: float) -> Matrix | None:
    """The weights that explain a short log's rounds from each start on, which rise; None where a search did not end."""
    from onlooker.kernels.small_fits import fit_suffixes

    thetas = np.empty((len(starts), log.n_features))
    found = fit_suffixes(log.dense, log.offsets, log.chosen, weights, starts, l2, tolerance, PASSES, thetas)
    return thetas if found else None


def short_bins(log: BanditLog, bounds: Index, folds: int, *, l2: float, tolerance: float) -> NDArray[np.float64] | None:
    """The weights that explain each bin of a short log, and each without one of its folds, shape (bins, 1 + folds, d).

    None where a search did not end.
    """
    from onlooker.kernels.small_fits import fit_bins

    thetas = np.empty((len(bounds) - 1, 1 + folds, log.n_features))
    found = fit_bins(log.dense, log.offsets, log.chosen, bounds, l2, tolerance, PASSES, thetas)
    return thetas if found else None


def short_losses(log: BanditLog, thetas: Matrix) -> Matrix:
    """Softmax loss of every round of a short log under each theta, shape (m, N).

    Examples
    --------
    >>> log = BanditLog.from_dense(np.zeros((3, 4, 2)), chosen=[0, 1, 2])
    >>> short_losses(log, np.ones((2, 2))).shape, bool(np.allclose(short_losses(log, np.ones((2, 2))), np.log(4)))
    ((2, 3), True)
    """
    scores = thetas @ log.dense.T.astype(np.float64)
    picked = scores[:, log.chosen_rows]
    best = np.maximum.reduceat(scores, log.offsets[:-1], axis=1)
    scores -= np.repeat(best, log.n_arms, axis=1)
    np.exp(scores, out=scores)
    return np.asarray(np.log(np.add.reduceat(scores, log.offsets[:-1], axis=1)) + best - picked)
