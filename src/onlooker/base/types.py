"""Names for the array types that modules exchange."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Features = NDArray[np.float32] | NDArray[np.float64]
"""One row per offered arm, shape (rows, d)."""

Vector = NDArray[np.float64]
"""One number per feature (or per round)."""

Matrix = NDArray[np.float64]
"""Shape (d, d) unless stated otherwise."""

Index = NDArray[np.int64]
"""Positions, counts and offsets."""

Ids = NDArray[Any]
"""Names of rounds or arms, kept as they came."""

Progress = Callable[[int, int], None]
"""Called with the amount of work done and the total."""
