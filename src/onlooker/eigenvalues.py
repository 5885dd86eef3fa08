"""Bound the largest eigenvalue of a matrix: what it bounds need not be computed."""

import numpy as np

from onlooker.types import Matrix


def largest_eigenvalue(matrix: Matrix) -> float:
    """Bound the largest eigenvalue of a positive definite matrix from above, within 13% for d = 50.

    The norm of the 16th power exceeds its largest eigenvalue by a factor of at most `sqrt(d)`, of which the 16th root
    leaves little. That takes an eighth of the time of the eigenvalues; the last factor outweighs rounding.

    Examples
    --------
    >>> 3.0 <= largest_eigenvalue(np.diag([1.0, 3.0])) < 3.4
    True
    """
    norm = float(np.linalg.norm(matrix))
    power = matrix / norm
    for _ in range(4):
        power = power @ power
    return norm * float(np.linalg.norm(power) ** (1 / 16)) * (1 + 1e-9)
