"""Dense rows as a layout, for passes that go by way of the scores: rounds that do not simply reveal their pick."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.logs.layouts import Layout


class DenseRows(Layout):
    """Rows that are an array.

    Examples
    --------
    >>> rows = DenseRows(np.array([[1.0, 0.0], [0.0, 1.0]]))
    >>> rows.covariance(np.array([0.5, 0.5]), np.ones(1), np.array([0, 2]))
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    """

    def __init__(self, array: Features) -> None:
        self.array = array
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self.dtype = array.dtype

    def __matmul__(self, weights: Vector) -> Vector:
        return np.asarray(self.array @ weights, dtype=np.float64)

    def weighted_sum(self, values: Vector) -> Vector:
        """Sum of the rows, each times its value."""
        return np.asarray(self.array.T @ values, dtype=np.float64)

    def cross(self, values: Vector) -> Matrix:
        """Weighted cross-product."""
        return np.asarray(self.array.T @ (values[:, None] * self.array), dtype=np.float64)

    def round_sums(self, values: Vector, offsets: Index) -> Matrix:
        """Weighted sum of the rows of every round."""
        return np.asarray(np.add.reduceat(values[:, None] * self.array, offsets[:-1], axis=0), dtype=np.float64)

    def covariance(self, shares: Vector, weights: Vector, offsets: Index) -> Matrix:
        """Covariance within the rounds; rows are taken from their mean first, so that large ones lose no digits."""
        sizes = np.diff(offsets)
        centred = self.array - np.repeat(self.round_sums(shares, offsets), sizes, axis=0)
        return np.asarray(centred.T @ ((np.repeat(weights, sizes) * shares)[:, None] * centred))

    def __getitem__(self, rows: slice | Index) -> DenseRows:
        return DenseRows(self.array[rows])

    def absolute_largest(self) -> Vector:
        """Largest absolute value of every feature."""
        return np.asarray(np.abs(self.array).max(axis=0), dtype=np.float64)

    def check_finite(self, feature_names: Sequence[str] | None = None) -> None:
        """Nothing: those of a log were checked."""

    def toarray(self) -> Matrix:
        """The array."""
        return np.asarray(self.array)

    @classmethod
    def concat(cls, layouts: Sequence[DenseRows]) -> DenseRows:
        """The rows of several, one after the other."""
        return cls(np.concatenate([rows.array for rows in layouts]))

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """The array."""
        return (self.array,)

    @property
    def size(self) -> int:
        """Values that are kept."""
        return int(self.array.size)
