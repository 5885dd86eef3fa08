"""Bring freshly drawn feature rows to norm at most one."""

import numpy as np

from onlooker.kernels.kept import kept
from onlooker.types import Features


# The order of a sum is the compiler's, so that it can use wide registers; it is the same in every call.
@kept(fastmath={"reassoc", "contract"})
def scale_rows(features: Features) -> None:
    """Divide every row by `max(1, norm)`, in place."""
    for row in range(features.shape[0]):
        square = 0.0
        for j in range(features.shape[1]):
            value = np.float64(features[row, j])
            square += value * value
        if square > 1.0:
            factor = features.dtype.type(1.0 / np.sqrt(square))
            for j in range(features.shape[1]):
                features[row, j] *= factor
