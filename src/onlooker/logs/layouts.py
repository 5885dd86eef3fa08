"""How the feature rows of a log are laid out in memory: dense rows are an array, all others are a `Layout`.

A log works with any of them. What only dense rows can do asks for an array by `as_log`. A new layout is a subclass of
`Layout` and one line in `as_rows`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.errors import InputError
from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.logs.ragged import as_features

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Layout(ABC):
    """Feature rows, one per offered arm, that are never written out as an array."""

    shape: tuple[int, int]
    """Rows and features."""
    dtype: np.dtype[Any]
    """Of the values."""

    @abstractmethod
    def __matmul__(self, weights: Vector) -> Vector:
        """Score of every row: `rows @ weights`, shape (rows,)."""

    @abstractmethod
    def weighted_sum(self, values: Vector) -> Vector:
        """Sum of the rows, each times its value: `rows.T @ values`, shape (d,)."""

    @abstractmethod
    def cross(self, values: Vector) -> Matrix:
        """Weighted cross-product: `rows.T @ diag(values) @ rows`, shape (d, d)."""

    @abstractmethod
    def round_sums(self, values: Vector, offsets: Index) -> Layout:
        """Weighted sum of the rows of every round, one row per round."""

    @abstractmethod
    def __getitem__(self, rows: slice | Index) -> Self:
        """Some of the rows; a slice is a view."""

    @abstractmethod
    def absolute_largest(self) -> Vector:
        """Largest absolute value of every feature, shape (d,)."""

    @abstractmethod
    def check_finite(self) -> None:
        """Refuse missing and infinite values."""

    @abstractmethod
    def toarray(self) -> Matrix:
        """The rows as an array, shape (rows, d)."""

    @classmethod
    @abstractmethod
    def concat(cls, layouts: Sequence[Self]) -> Self:
        """The rows of several, one after the other."""

    @property
    def T(self) -> Transposed:  # noqa: N802  NumPy's name
        """Transposed, for products with one value per row."""
        return Transposed(self)

    @property
    @abstractmethod
    def size(self) -> int:
        """Values that are kept for the rows."""

    def __len__(self) -> int:
        return self.shape[0]


class Transposed:
    """`rows.T`, which can be multiplied with one value per row."""

    def __init__(self, rows: Layout) -> None:
        self._rows = rows

    def __matmul__(self, values: Vector) -> Vector:
        return self._rows.weighted_sum(values)


class SparseRows(Layout):
    """Rows of which most values are zero, kept as a SciPy matrix in compressed rows.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> rows = SparseRows(csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
    >>> rows @ np.array([1.0, 1.0, 1.0]), rows.T @ np.array([1.0, 1.0])
    (array([3., 3.]), array([1., 3., 2.]))
    >>> rows.cross(np.array([1.0, 2.0])).tolist()
    [[1.0, 0.0, 2.0], [0.0, 18.0, 0.0], [2.0, 0.0, 4.0]]
    """

    def __init__(self, matrix: csr_array) -> None:
        self.matrix = matrix
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        self.dtype = matrix.dtype

    @classmethod
    def of(cls, rows: Any) -> SparseRows:
        """Take any SciPy sparse matrix of numbers; duplicate entries are added up."""
        from scipy.sparse import csr_array

        if rows.ndim != 2 or rows.shape[1] == 0:
            raise InputError(f"rows has shape {rows.shape}: pass one row per offered arm, shape (rows, features)")
        matrix = csr_array(rows)
        if matrix.dtype not in (np.float32, np.float64):
            if not (np.issubdtype(matrix.dtype, np.number) or matrix.dtype == bool) or np.iscomplexobj(matrix):
                raise InputError(f"rows has dtype {matrix.dtype}: pass real numbers")
            matrix = matrix.astype(np.float64)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return cls(matrix)

    def __matmul__(self, weights: Vector) -> Vector:
        return np.asarray(self.matrix @ weights, dtype=np.float64)

    def weighted_sum(self, values: Vector) -> Vector:
        """Sum of the rows, each times its value."""
        return np.asarray(self.matrix.T @ values, dtype=np.float64)

    def cross(self, values: Vector) -> Matrix:
        """Weighted cross-product."""
        wide = self.matrix.astype(np.float64, copy=False)
        return np.asarray((wide.T @ wide.multiply(values[:, None])).toarray())

    def round_sums(self, values: Vector, offsets: Index) -> SparseRows:
        """Weighted sum of the rows of every round."""
        from scipy.sparse import csr_array

        places = np.arange(len(values))
        rounds = csr_array((values, places, offsets), shape=(len(offsets) - 1, len(values)))
        return SparseRows(csr_array(rounds @ self.matrix.astype(np.float64, copy=False)))

    def __getitem__(self, rows: slice | Index) -> SparseRows:
        if not isinstance(rows, slice) or rows.step not in (None, 1):
            return SparseRows(self.matrix[rows])
        from scipy.sparse import csr_array

        start, stop, _ = rows.indices(self.shape[0])
        bounds = self.matrix.indptr[start : max(start, stop) + 1]
        entries = slice(int(bounds[0]), int(bounds[-1]))
        matrix = csr_array((len(bounds) - 1, self.shape[1]), dtype=self.dtype)
        # Set, as the constructor would copy them.
        matrix.data, matrix.indices = self.matrix.data[entries], self.matrix.indices[entries]
        matrix.indptr = bounds - bounds[0]
        return SparseRows(matrix)

    @property
    def size(self) -> int:
        """Values that are kept for the rows: those that are not zero."""
        return int(self.matrix.nnz)

    def absolute_largest(self) -> Vector:
        """Largest absolute value of every feature."""
        if not self.matrix.nnz:
            return np.zeros(self.shape[1])
        return np.asarray(abs(self.matrix).max(axis=0).toarray(), dtype=np.float64).ravel()

    def check_finite(self) -> None:
        """Refuse missing and infinite values."""
        bad = np.flatnonzero(~np.isfinite(self.matrix.data))
        if len(bad):
            row = int(np.searchsorted(self.matrix.indptr, bad[0], side="right")) - 1
            column, value = self.matrix.indices[bad[0]], self.matrix.data[bad[0]]
            raise InputError(f"row {row}, feature {column} is {value}: fill missing values in or leave the round out")

    def toarray(self) -> Matrix:
        """The rows as an array."""
        return np.asarray(self.matrix.toarray())

    @classmethod
    def concat(cls, layouts: Sequence[SparseRows]) -> SparseRows:
        """The rows of several, one after the other."""
        from scipy.sparse import vstack

        return cls(vstack([rows.matrix for rows in layouts], format="csr"))


def as_rows(features: ArrayLike | Layout) -> Features | Layout:
    """Feature rows as a log keeps them: an array, or a layout for what is not dense."""
    if isinstance(features, Layout):
        return features
    if hasattr(features, "tocsr"):
        return SparseRows.of(features)
    return as_features(features)
