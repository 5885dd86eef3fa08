"""Inverses of a Hessian that may be flat in some directions: those are left alone."""

import numpy as np

from onlooker.errors import InputError
from onlooker.types import Matrix

_LEAST = float(np.finfo(np.float64).tiny / np.finfo(np.float64).eps)
"""Curvature below this has lost its digits: it is none."""


def inverse(hessian: Matrix) -> Matrix:
    """Invert on the directions that have curvature; leave the others alone.

    Examples
    --------
    >>> inverse(np.array([[4.0, 0.0], [0.0, 0.0]]))
    array([[0.25, 0.  ],
           [0.  , 0.  ]])
    """
    root = inverse_square_root(hessian)
    return np.asarray(root @ root.T)


def inverse_square_root(hessian: Matrix) -> Matrix:
    """`R` with `R R' = hessian^-1` on the directions that have curvature, zero on the others.

    The matrix is scaled to a unit diagonal first: features on very different scales are told apart from flat ones.
    """
    if not np.isfinite(hessian).all():
        raise InputError("the features are too large for double precision: put them on a smaller scale")
    diagonal = np.diag(hessian)
    known = diagonal > _LEAST
    scale = np.where(known, 1 / np.sqrt(np.where(known, diagonal, 1.0)), 0.0)
    # One after the other: the product of two scales may be too large for a number.
    values, vectors = np.linalg.eigh(scale[:, None] * hessian * scale)
    curved = values > 1e-13 * len(values)
    return np.asarray(scale[:, None] * vectors[:, curved] / np.sqrt(values[curved]))
