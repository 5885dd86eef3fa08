"""A path of estimates for observers that have no standard errors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from onlooker.tracking.path import Path


def bare_path(rounds: Sequence[int], thetas: ArrayLike) -> Path:
    """Estimates after so many rounds, their standard errors NaN.

    Examples
    --------
    >>> path = bare_path([10, 20], [[0.0, 0.0], [3.0, 4.0]])
    >>> path.direction[1], path.standard_error[1]
    (array([0.6, 0.8]), array([nan, nan]))
    """
    theta = np.array(thetas, dtype=np.float64)
    lengths = np.linalg.norm(theta, axis=1, keepdims=True)
    return Path(
        rounds=np.array(rounds, dtype=np.int64),
        theta=theta,
        direction=theta / np.where(lengths > 0, lengths, 1.0),
        standard_error=np.full(theta.shape, np.nan),
    )
