"""Small pieces of numerics: flat directions and inverses, a line search, p-values, arrays of Arrow columns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from onlooker.base.errors import InputError
from onlooker.base.types import Features, Matrix, Vector

ABREAST = 512
"""Values of several rows that are compared at once: of 20,000 rows of 20 features in 0.1 of the time, of 50 in 0.2."""

WIDE = 128
"""Rows from which on a bound of the eigenvalues by products of the matrix would take longer than what it saves."""


def largest_eigenvalue(matrix: Matrix) -> float:
    """Bound the largest eigenvalue of a positive definite matrix from above, within 13% for d = 50.

    The norm of the 16th power exceeds its largest eigenvalue by a factor of at most `sqrt(d)`, of which the 16th root
    leaves little. That takes an eighth of the time of the eigenvalues; the last factor outweighs rounding. Of more than
    `WIDE` rows, whose products take long, the largest sum of a row's absolute values is a bound as well, a looser one.

    Examples
    --------
    >>> 3.0 <= largest_eigenvalue(np.diag([1.0, 3.0])) < 3.4
    True
    """
    norm = _norm(matrix)
    if len(matrix) > WIDE:
        return min(norm, float(np.abs(matrix).sum(axis=1).max())) * (1 + 1e-9)
    power = matrix / norm
    for _ in range(4):
        power = power @ power
    return float(norm * _norm(power) ** (1 / 16) * (1 + 1e-9))


def _norm(matrix: Matrix) -> float:
    # A third of the time of `numpy.linalg.norm`, which is computed twice every few rounds.
    return math.sqrt(np.vdot(matrix, matrix))


ROUNDING = 1e-13
"""Eigenvalues of at most this times d are rounding: enough for an inverse, which any real curvature is to enter."""

UNIDENTIFIED = 1e-8
"""Eigenvalues of at most this count as not identified: so do features that differ in their last eight digits alone."""

_LEAST = float(np.finfo(np.float64).tiny / np.finfo(np.float64).eps)
"""Curvature below this is rounding error."""

_INVOLVED = 1e-4
"""A feature is part of a flat direction of unit length if its component is larger than this."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Curvature:
    """The directions of a positive semidefinite matrix: a Hessian, or the features' covariance within the rounds.

    Examples
    --------
    >>> found = Curvature.of(np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]), flat=UNIDENTIFIED)
    >>> found.rank, found.constant.tolist(), found.tangled.tolist()
    (1, [True, False, False], [False, True, True])
    """

    sizes: Vector
    """Roots of the diagonal, the features' own units, shape (d,); infinite where a feature does not vary."""
    values: Vector
    """Eigenvalues of the scaled matrix, rising, shape (d,); below zero for features that do not vary."""
    vectors: Matrix
    """Its eigenvectors, one per column, shape (d, d)."""
    n_flat: int
    """How many of them are flat, the first ones."""

    @classmethod
    def of(cls, matrix: Matrix, *, flat: float | None = None, noise: float | Vector = 0.0) -> Curvature:
        """Decompose a matrix; `flat` is `ROUNDING` times d unless given, a diagonal of at most `noise` counts as 0."""
        if not np.isfinite(matrix).all():
            raise InputError("the features are too large for double precision: put them on a smaller scale")
        diagonal = np.diag(matrix)
        constant = diagonal <= np.maximum(noise, _LEAST)
        sizes = np.sqrt(np.where(constant, np.inf, diagonal))
        units = 1 / sizes
        # One after the other: the product of two scales may be too large for a number.
        scaled = units[:, None] * matrix
        scaled *= units
        if constant.any():
            # Far from all other eigenvalues, so that no direction mixes what is constant with what is not.
            scaled[constant, constant] = -1.0
        values, vectors = np.linalg.eigh(scaled)
        bound = ROUNDING * len(values) if flat is None else flat
        return cls(sizes=sizes, values=values, vectors=vectors, n_flat=int(np.count_nonzero(values <= bound)))

    @classmethod
    def without_flat(cls, matrix: Matrix) -> Curvature:
        """Of a matrix that is known to have no flat direction: its directions are not computed."""
        d = len(matrix)
        return cls(sizes=np.sqrt(np.diag(matrix)), values=np.ones(d), vectors=np.zeros((d, 0)), n_flat=0)

    @property
    def rank(self) -> int:
        """Directions that have curvature."""
        return len(self.values) - self.n_flat

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Features that do not vary at all, shape (d,)."""
        return np.isinf(self.sizes)

    @property
    def tangled(self) -> NDArray[np.bool_]:
        """Features that vary, but only in combination with others: part of a flat direction, shape (d,)."""
        involved = np.abs(self.vectors[:, : self.n_flat]).max(axis=1, initial=0.0)
        return np.asarray((involved > _INVOLVED) & ~self.constant)

    @property
    def root(self) -> Matrix:
        """`R` with `R R'` the inverse on the directions that have curvature, zero on the others; shape (d, rank)."""
        return np.asarray(
            (1 / self.sizes)[:, None] * self.vectors[:, self.n_flat :] / np.sqrt(self.values[self.n_flat :])
        )

    @property
    def half(self) -> Matrix:
        """`H` with `H H'` the matrix on those directions, and `H' R` the identity; shape (d, rank)."""
        sizes = np.where(self.constant, 0.0, self.sizes)
        return np.asarray(sizes[:, None] * self.vectors[:, self.n_flat :] * np.sqrt(self.values[self.n_flat :]))

    def square(self, score: Vector) -> float:
        """`score' inverse score`: of a score and its information, chi-square with `rank` degrees of freedom."""
        return float(np.sum((score @ self.root) ** 2))


def inverse(matrix: Matrix, *, flat: float | None = None) -> Matrix:
    """Invert on the directions that have curvature; leave the others alone.

    Examples
    --------
    >>> inverse(np.array([[4.0, 0.0], [0.0, 0.0]]))
    array([[0.25, 0.  ],
           [0.  , 0.  ]])
    """
    root = inverse_square_root(matrix, flat=flat)
    return np.asarray(root @ root.T)


def inverse_of(matrix: Matrix) -> Matrix:
    """The same for large matrices: by Cholesky's factors where no direction is flat, in a tenth of the time.

    Examples
    --------
    >>> bool(np.allclose(inverse_of(np.diag([4.0, 2.0])), np.diag([0.25, 0.5])))
    True
    """
    found = cholesky_inverse(matrix)
    return inverse(matrix) if found is None or found[1] <= ROUNDING * len(matrix) else found[0]


def cholesky_inverse(matrix: Matrix) -> tuple[Matrix, float] | None:
    """The inverse, and a bound from below of the smallest eigenvalue after scaling to a diagonal of ones.

    None where the matrix is not clearly positive definite.

    Examples
    --------
    >>> inverse, least = cholesky_inverse(np.diag([4.0, 2.0]))
    >>> bool(least <= 1.0), cholesky_inverse(np.ones((2, 2))) is None
    (True, True)
    """
    from scipy.linalg import lapack

    diagonal = np.diag(matrix)
    if not np.isfinite(matrix).all() or not (diagonal > _LEAST).all():
        return None
    scale = 1 / np.sqrt(diagonal)
    scaled = scale[:, None] * matrix * scale
    factor, failed = lapack.dpotrf(scaled, lower=1, overwrite_a=1)
    if failed:
        return None
    found, failed = lapack.dpotri(factor, lower=1, overwrite_c=1)
    if failed or not np.isfinite(found).all():
        return None
    # The lower half holds the inverse: it is copied across row by row, in place.
    for row in range(1, len(found)):
        found[:row, row] = found[row, :row]
    least = 1 / max(_norm(found), 1e-300)
    found *= scale
    found *= scale[:, None]
    return np.ascontiguousarray(found), least


def inverse_square_root(matrix: Matrix, *, flat: float | None = None) -> Matrix:
    """`R` with `R R' = matrix^-1` on the directions that have curvature, zero on the others."""
    return Curvature.of(matrix, flat=flat).root


DESCENT = 1e-4
"""Part of what a step promises by its slope that it must keep (Armijo), as is usual."""


class Place(Protocol):
    """An objective at one theta."""

    @property
    def theta(self) -> Vector:
        """Where."""

    @property
    def value(self) -> float:
        """How large it is."""

    @property
    def gradient(self) -> Vector:
        """Its gradient."""


Looked = TypeVar("Looked", bound=Place)


def falls(ahead: float, here: float, slope: float) -> bool:
    """Whether a step from `here`, along which the objective falls by `slope` at first, falls enough.

    Examples
    --------
    >>> falls(0.99, 1.0, -0.1), falls(1.0, 1.0, -0.1)
    (True, False)
    """
    return ahead <= here + DESCENT * slope


def rounding(value: float) -> float:
    """By how much two values of an objective may differ that are the same."""
    return 1e-14 * max(1.0, abs(value))


def backtrack(look: Callable[[Vector], Looked], here: Place, step: Vector, *, looks: int) -> tuple[Looked | None, int]:
    """Halve the step until the objective falls; near the minimum, where it cannot be seen to, by the gradient.

    What was found ahead, None after so many `looks` without; and how many it took.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> square = lambda x: SimpleNamespace(theta=x, value=float(x @ x), gradient=2 * x)
    >>> ahead, looks = backtrack(square, square(np.ones(1)), np.full(1, -3.0), looks=8)
    >>> ahead.theta.tolist(), looks
    ([-0.5], 2)
    """
    slope, length = float(here.gradient @ step), 1.0
    for taken in range(1, looks + 1):
        ahead = look(here.theta + length * step)
        if falls(ahead.value, here.value, length * slope):
            return ahead, taken
        if ahead.value <= here.value + rounding(here.value) and largest(ahead.gradient) < largest(here.gradient):
            return ahead, taken
        length /= 2
    return None, looks


def extremes(rows: Features) -> tuple[Features, Features]:
    """Least and largest value of every column, each of shape (d,).

    Several rows are compared at once, as one: NumPy goes row by row, and short ones take nine times as long.

    Examples
    --------
    >>> low, high = extremes(np.array([[1.0, -2.0], [3.0, 0.0]]))
    >>> low, high
    (array([ 1., -2.]), array([3., 0.]))
    """
    n, d = rows.shape
    together = ABREAST // max(1, d)
    if together < 2 or n < 2 * together:
        return rows.min(axis=0), rows.max(axis=0)
    whole = n // together * together
    wide = rows[:whole].reshape(-1, together * d)
    low, high = wide.min(axis=0).reshape(together, d), wide.max(axis=0).reshape(together, d)
    rest = rows[whole:]
    return np.concatenate([low, rest]).min(axis=0), np.concatenate([high, rest]).max(axis=0)


def absolute_largest(rows: Features) -> Features:
    """Largest absolute value of every column, shape (d,); not by absolute values, which would be a second copy.

    Examples
    --------
    >>> absolute_largest(np.array([[1.0, -2.0], [-3.0, 0.0]]))
    array([3., 2.])
    """
    low, high = extremes(rows)
    return np.maximum(np.abs(low), np.abs(high))


def largest(gradient: Vector) -> float:
    """Largest absolute component."""
    return float(np.abs(gradient).max())


def chi_square_p(statistic: float, freedom: int) -> float:
    """Chance of a chi-square statistic at least as large; 1 without degrees of freedom, where there is nothing to test.

    Examples
    --------
    >>> round(chi_square_p(3.84, 1), 3), chi_square_p(0.0, 0)
    (0.05, 1.0)
    """
    from scipy.special import chdtrc

    return float(chdtrc(freedom, statistic)) if freedom else 1.0


def normal_reach(level: float) -> float:
    """Standard errors to each side of an estimate that an interval of this coverage spans.

    Examples
    --------
    >>> round(normal_reach(0.95), 4)
    1.96
    """
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))


def student_factor(freedom: float) -> float:
    """By how much a variance grows so that a normal 95% interval is as wide as Student's with so much freedom.

    Examples
    --------
    >>> round(student_factor(10.0), 3), round(student_factor(1000.0), 3)
    (1.292, 1.002)
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975) / normal_reach(0.95)) ** 2


def arrow_values(column: Any) -> NDArray[Any]:
    """Values of an Arrow array, chunked or not: a view where it holds plain numbers in one piece.

    Arrow's own conversion imports pandas wherever that is installed, which takes longer than reading a short log.

    Examples
    --------
    >>> import pyarrow as pa
    >>> arrow_values(pa.chunked_array([[1, 2], [3]])), arrow_values(pa.array([True, False]))
    (array([1, 2, 3]), array([ True, False]))
    """
    import pyarrow as pa

    kind = column.type
    if column.null_count or not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return np.asarray(whole.to_numpy(zero_copy_only=False))
    if pa.types.is_boolean(kind):
        return arrow_values(column.cast(pa.uint8())).astype(np.bool_)
    pieces = [np.from_dlpack(piece) for piece in getattr(column, "chunks", [column]) if len(piece)]
    if not pieces:
        return np.empty(0, dtype=kind.to_pandas_dtype())
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
