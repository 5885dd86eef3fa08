"""How the feature rows of a log are laid out in memory: dense rows are an array, all others are a `Layout`.

A log works with any of them. What needs an array takes that of some rounds at a time (`log[a:b].dense`). A new layout
is a subclass of `Layout` and one line in `as_rows`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlooker.base.checks import counted
from onlooker.base.errors import InputError
from onlooker.base.memory_limit import check_memory
from onlooker.base.types import Features, Ids, Index, Matrix, Vector
from onlooker.logs.ragged import as_features, blocks

if TYPE_CHECKING:
    from scipy.sparse import csr_array

WRITTEN_OUT = 1 << 30
"""Bytes of rows that are written out as an array at most: blocks of rounds take a thousandth of it.

What needs all rounds at once as an array works on logs of this size within some minutes.
"""

WIDEST = 2000
"""Features of a log that is not an array for which other observers than `SuffixImitation` are not refused.

They work with matrices of d x d or with all features of every arm, round by round: with so many features tracking takes
some 20 ms a round and pass, and time grows with their square.
"""
SPARSE_FEATURES, SPARSE_SHARE = 256, 1 / 32
"""Rows with more features than this, of which less than this share is not 0, are kept sparse when they are read.

Below, an array is as fast (measured with `SuffixImitation`: at 200 features, sparse rows take 0.6 of the time where a
fortieth is not 0, and 2 to 3 times as long where a twentieth is), and everything works on it without a detour.
"""
SPARSER = 1 / 8
"""The same share where the array would be larger than `WRITTEN_OUT`: compressed rows take less than a fifth of it."""


def stays_sparse(n_rows: int, n_features: int, n_values: int) -> bool:
    """Whether rows that are read are kept sparse, given the number of non-zero values.

    Examples
    --------
    >>> stays_sparse(1000, 200, 2000), stays_sparse(1000, 5000, 10_000), stays_sparse(1000, 5000, 2_500_000)
    (False, True, False)
    """
    cells = n_rows * n_features
    if 8 * cells > WRITTEN_OUT:
        return n_values <= SPARSER * cells
    return n_features > SPARSE_FEATURES and n_values <= SPARSE_SHARE * cells


MOST_WEIGHTS = 3000
"""Features beyond which rows that are not dense get no covariance: it, and what finds it, would take a gigabyte."""


class Layout(ABC):
    """Feature rows, one per offered arm, that are never written out as an array."""

    shape: tuple[int, int]
    """Rows and features."""
    dtype: np.dtype[Any]
    """Of the values."""
    kind = ""
    """The name of the layout in a log's `repr`, followed by a blank."""

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
    def round_sums(self, values: Vector, offsets: Index) -> Layout | Matrix:
        """Weighted sum of the rows of every round, one row per round; an array where sums are dense."""

    def along(self, steps: Matrix, offsets: Index) -> Vector:
        """Every row times the weights of its round, of which there is a row each: shape (rows,)."""
        found = np.empty(self.shape[0])
        for start, stop in blocks(offsets, self.shape[1]):
            rows = slice(int(offsets[start]), int(offsets[stop]))
            own = np.repeat(steps[start:stop], np.diff(offsets[start : stop + 1]), axis=0)
            found[rows] = np.einsum("ij,ij->i", self[rows].toarray(), own)
        return found

    def covariance(self, shares: Vector, weights: Vector, offsets: Index) -> Matrix:
        """Covariance of the rows within each round by their shares, times the round's weight, summed; shape (d, d)."""
        means = self.round_sums(shares, offsets)
        outer = means.cross(weights) if isinstance(means, Layout) else means.T @ (weights[:, None] * means)
        return self.cross(np.repeat(weights, np.diff(offsets)) * shares) - outer

    @property
    def sampled(self) -> bool:
        """Whether some of the rounds are enough for a preconditioner: no feature is rare."""
        return True

    def variances(self, shares: Vector, weights: Vector, offsets: Index) -> Vector:
        """Diagonal of the `covariance`, or an approximation of it, shape (d,)."""
        return np.diag(self.covariance(shares, weights, offsets)).copy()

    def preconditioner(
        self,
        shares: Vector,
        weights: Vector,
        offsets: Index,
        l2: float,
        groups: Index | None = None,  # noqa: ARG002  for rows that have weights for each arm
    ) -> Callable[[Vector], Vector]:
        """About the inverse of `covariance` plus `l2`, times a vector; `groups` are those of all rounds."""
        from onlooker.logs.factored_curvature import diagonal_preconditioner

        return diagonal_preconditioner(self.variances(shares, weights, offsets), l2)

    @abstractmethod
    def __getitem__(self, rows: slice | Index) -> Self:
        """Some of the rows; a slice is a view."""

    @abstractmethod
    def absolute_largest(self) -> Vector:
        """Largest absolute value of every feature, shape (d,)."""

    @abstractmethod
    def check_finite(self, feature_names: Sequence[str] | None = None) -> None:
        """Refuse missing and infinite values."""

    @abstractmethod
    def toarray(self) -> Matrix:
        """The rows as an array, shape (rows, d)."""

    @classmethod
    @abstractmethod
    def concat(cls, layouts: Sequence[Self]) -> Self:
        """The rows of several, one after the other."""

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What holds the rows."""
        return (self.toarray(),)

    @property
    def nbytes(self) -> int:
        """Memory of the rows in bytes."""
        return sum(array.nbytes for array in self.arrays)

    def written_out(self) -> Features:
        """The rows as an array such as a dense log has, where it is not too large: for blocks of rounds."""
        rows, d = self.shape
        needed = rows * d * self.dtype.itemsize
        if needed > WRITTEN_OUT:
            raise InputError(
                f"{rows:,} offered arms with {d:,} features would take {needed / 1e9:,.1f} GB as an array, which is "
                "needed here: choose fewer features or rounds, or fit a SuffixImitation, which needs no array"
            )
        check_memory(needed)
        found = np.ascontiguousarray(self.toarray())
        # As those of logs are: kernels are compiled for either.
        found.setflags(write=False)
        return found

    def columns(self, places: Index) -> Features | Layout:
        """Some of the features, in this order."""
        return columns(self.written_out(), places)

    def divided(self, units: Vector) -> Features | Layout:
        """Every feature in a unit of its own."""
        return divided(self.written_out(), units)

    @property
    def n_named(self) -> int:
        """How many names a log of such rows has: one per feature, unless features are made of others."""
        return self.shape[1]

    @property
    def has_ids(self) -> bool:
        """Whether the rows know the ids of their arms."""
        return False

    def row_ids(self) -> Ids | None:
        """Id of every row's arm, where the rows know it."""
        return None

    def check_like(self, other: Layout) -> None:
        """Refuse rows of another layout that cannot be joined with these."""
        if type(self) is not type(other):
            raise InputError("the logs lay out their features differently: make them alike by with_features")

    def described(self) -> str:
        """Short description of the features."""
        return counted(self.shape[1], "feature")

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

    kind = "sparse "

    def __init__(self, matrix: csr_array) -> None:
        self.matrix = matrix
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        self.dtype = matrix.dtype

    @classmethod
    def of(cls, rows: Any) -> SparseRows:
        """Convert any SciPy sparse matrix of numbers; duplicate entries are summed."""
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
        if matrix.indices.dtype != np.int32 and max(*matrix.shape, matrix.nnz) < 1 << 31:
            # Half of the memory, and what slices and products of such rows have.
            parts = matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
            matrix = csr_array(parts, shape=matrix.shape)
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

    @property
    def sampled(self) -> bool:
        """Features may be rare: all rounds are needed."""
        return False

    def variances(self, shares: Vector, weights: Vector, offsets: Index) -> Vector:
        """Variance of the features within the rounds."""
        means = self.round_sums(shares, offsets).matrix
        squares = self.matrix.astype(np.float64).power(2).T @ (np.repeat(weights, np.diff(offsets)) * shares)
        return np.asarray(np.maximum(squares - means.power(2).T @ weights, 0.0))

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

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Values, their columns, and where rows begin."""
        return self.matrix.data, self.matrix.indices, self.matrix.indptr

    def counts(self, weights: Vector | None = None) -> NDArray[Any]:
        """How many rows have each feature, or the sum of their weights."""
        counted = None if weights is None else np.repeat(weights, np.diff(self.matrix.indptr))
        return np.bincount(self.matrix.indices, counted, minlength=self.shape[1])

    def columns(self, places: Index) -> SparseRows:
        """Some of the features, in this order."""
        matrix = self.matrix[:, places]
        matrix.sort_indices()
        return SparseRows(matrix)

    def divided(self, units: Vector) -> SparseRows:
        """Every feature in a unit of its own."""
        from scipy.sparse import csr_array

        data = (self.matrix.data / units[self.matrix.indices]).astype(self.dtype)
        return SparseRows(csr_array((data, self.matrix.indices, self.matrix.indptr), shape=self.shape))

    def absolute_largest(self) -> Vector:
        """Largest absolute value of every feature."""
        if not self.matrix.nnz:
            return np.zeros(self.shape[1])
        return np.asarray(abs(self.matrix).max(axis=0).toarray(), dtype=np.float64).ravel()

    def check_finite(self, feature_names: Sequence[str] | None = None) -> None:
        """Refuse missing and infinite values."""
        bad = np.flatnonzero(~np.isfinite(self.matrix.data))
        if len(bad):
            row = int(np.searchsorted(self.matrix.indptr, bad[0], side="right")) - 1
            column, value = int(self.matrix.indices[bad[0]]), self.matrix.data[bad[0]]
            name = repr(feature_names[column]) if feature_names else str(column)
            raise InputError(f"row {row}, feature {name} is {value}: fill missing values in or leave the round out")

    def toarray(self) -> Matrix:
        """The rows as an array."""
        return np.asarray(self.matrix.toarray())

    @classmethod
    def concat(cls, layouts: Sequence[SparseRows]) -> SparseRows:
        """The rows of several, one after the other."""
        from scipy.sparse import vstack

        return cls(vstack([rows.matrix for rows in layouts], format="csr"))


def dense_rows(features: Features | Layout) -> Features:
    """Rows as an array; see `Layout.written_out`."""
    return features.written_out() if isinstance(features, Layout) else features


def columns(features: Features | Layout, places: Index) -> Features | Layout:
    """Some of the features, in this order.

    Examples
    --------
    >>> columns(np.array([[1.0, 2.0, 3.0]]), np.array([2, 0]))
    array([[3., 1.]])
    """
    if isinstance(features, Layout):
        return features.columns(places)
    return as_features(features[:, places])


def divided(features: Features | Layout, units: Vector) -> Features | Layout:
    """Every feature in a unit of its own; divided as float64, which holds what float32 would round to nothing.

    Examples
    --------
    >>> divided(np.array([[1.0, 6.0]]), np.array([1.0, 2.0]))
    array([[1., 3.]])
    """
    if isinstance(features, Layout):
        return features.divided(units)
    return np.divide(features, units, out=np.empty_like(features), casting="same_kind")


def as_rows(features: ArrayLike | Layout) -> Features | Layout:
    """Feature rows as a log keeps them: an array, or a layout for what is not dense."""
    if isinstance(features, Layout):
        return features
    if hasattr(features, "tocsr"):
        return SparseRows.of(features)
    return as_features(features)
