"""Fits of short logs, of which thousands are made: one compiled search each, without the rest of the machinery."""

from __future__ import annotations

import numpy as np

from onlooker.base.types import Vector
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
