"""What an additive score consists of: curves of features and surfaces of two, saved by their knots and coefficients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from onlooker.base.documents import numbers, table
from onlooker.base.errors import InputError
from onlooker.base.types import Matrix, Vector
from onlooker.imitation.scores.splines import Spline

MOST_COEFFICIENTS = 10_000
"""Of a term in a file; those that are fitted have far fewer."""


@dataclass(frozen=True, eq=False)
class Term:
    """A curve of one feature, or a surface of two: coefficients of the products of their B-splines.

    A feature without curve, as a yes or no, has knots 0 and 1: its B-splines then are only used as a straight line.
    """

    features: tuple[int, ...]
    """Places of the features: one or two."""
    splines: tuple[Spline, ...]
    """One for each."""
    coefficients: Vector
    """Of the B-splines, or of their products with the last feature's changing fastest."""
    covariance: Matrix
    """Of the middle of the band; empty where it is not known."""
    means: Vector
    """Mean of each of those columns over the rows that were fitted: effects are differences to it."""
    middle: Vector = field(default_factory=lambda: np.zeros(0))
    """Coefficients of the middle of the band: those above with hardly any penalty. Empty where they are the same."""
    model: Matrix = field(default_factory=lambda: np.zeros((0, 0)))
    """Covariance if the softmax holds and rounds are independent; the band has the larger error. Empty for none."""

    def __post_init__(self) -> None:
        size = int(np.prod([one.n_columns for one in self.splines]))
        if not 1 <= len(self.features) == len(self.splines) <= 2 or len(set(self.features)) < len(self.features):
            raise InputError("a term has one feature or two, and a list of knots for each")
        if self.coefficients.shape != (size,) or self.means.shape != (size,):
            raise InputError(f"a term with {size} B-splines needs as many coefficients and means")
        if any(one.shape not in {(0, 0), (size, size)} for one in (self.covariance, self.model)):
            raise InputError(f"the covariance of a term with {size} coefficients must have as many rows and columns")
        if self.middle.shape not in {(0,), (size,)}:
            raise InputError(f"the band of a term with {size} coefficients must have as many in its middle")
        if not np.isfinite(self.coefficients).all() or not np.isfinite(self.means).all():
            raise InputError("the coefficients of a term must be finite")

    def columns(self, values: Sequence[Vector]) -> Matrix:
        """The products of the B-splines at these values of the features, shape (n, coefficients)."""
        first, *others = (one.columns(x) for one, x in zip(self.splines, values, strict=True))
        for other in others:
            first = (first[:, :, None] * other[:, None, :]).reshape(len(first), -1)
        return first

    def scores(self, values: Sequence[Vector]) -> Vector:
        """What the term adds to the score."""
        if len(self.splines) == 1:
            return self.splines[0].values(values[0], self.coefficients)
        first, second = (one.columns(x) for one, x in zip(self.splines, values, strict=True))
        grid = self.coefficients.reshape(first.shape[1], second.shape[1])
        return np.asarray(np.einsum("ij,ij->i", first @ grid, second))

    def effect(self, values: Sequence[Vector], reach: float = 1.0) -> tuple[Vector, Vector, Vector]:
        """The same less its mean over the rows that were fitted, and its band: NaN where it is not known.

        The band reaches so many standard errors from its middle; the curve itself is always in it.
        """
        centred = self.columns(values) - self.means
        errors = np.full(len(centred), np.nan)
        known = [np.einsum("ij,ij->i", centred @ one, centred) for one in (self.covariance, self.model) if one.size]
        if known:
            errors = np.sqrt(np.maximum(np.max(known, axis=0), 0.0))
        found = np.asarray(centred @ self.coefficients)
        middle = centred @ self.middle if len(self.middle) else found
        return found, np.minimum(found, middle - reach * errors), np.maximum(found, middle + reach * errors)

    def document(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        covariance, model = (None if np.isnan(one).any() else one.tolist() for one in (self.covariance, self.model))
        limits = [[end if np.isfinite(end) else None for end in one.reach] for one in self.splines]
        return {
            "features": list(self.features),
            "knots": [one.knots.tolist() for one in self.splines],
            "reach": limits,
            "coefficients": self.coefficients.tolist(),
            "covariance": covariance or None,
            "model": model or None,
            "means": self.means.tolist(),
            "middle": self.middle.tolist() if len(self.middle) else None,
        }

    @classmethod
    def read(cls, document: Any, n_features: int) -> Term:
        """What `document` gave, checked."""
        if not isinstance(document, Mapping):
            raise InputError("a term must be an object")
        places, knots = document.get("features"), document.get("knots")
        if not isinstance(places, list) or not all(type(one) is int and 0 <= one < n_features for one in places):
            raise InputError(f"the features of a term must be places below {n_features}")
        if not isinstance(knots, list) or not 1 <= len(knots) <= 2:
            raise InputError("the knots of a term must be one or two lists of numbers")
        limits = document.get("reach", [[None, None]] * len(knots))
        if not isinstance(limits, list) or len(limits) != len(knots):
            raise InputError("'reach' must have two limits for each list of knots")
        splines = tuple(Spline(numbers(one, "knots"), _reach(ends)) for one, ends in zip(knots, limits, strict=True))
        if np.prod([float(one.n_columns) for one in splines]) > MOST_COEFFICIENTS:
            raise InputError(f"a term has more than {MOST_COEFFICIENTS} coefficients")
        coefficients = numbers(document.get("coefficients"), "coefficients")
        covariance, model = (
            np.zeros((0, 0)) if document.get(name) is None else table(document.get(name), name)
            for name in ("covariance", "model")
        )
        middle, means = document.get("middle"), numbers(document.get("means"), "means")
        known = np.zeros(0) if middle is None else numbers(middle, "middle")
        return cls(tuple(places), splines, coefficients, covariance, means, known, model)


def _reach(ends: Any) -> tuple[float, float]:
    """Limits of a spline in a file, None for none."""
    if not isinstance(ends, list) or len(ends) != 2:
        raise InputError("'reach' must have two limits for each list of knots")
    low, high = (None if one is None else float(numbers([one], "reach")[0]) for one in ends)
    return -np.inf if low is None else low, np.inf if high is None else high


def crossed(first: Matrix, second: Matrix) -> Matrix:
    """Coefficients of all products of two lists of splines, given as columns of coefficients.

    Examples
    --------
    >>> crossed(np.eye(2), np.array([[1.0], [2.0]])).T
    array([[1., 2., 0., 0.],
           [0., 0., 1., 2.]])
    """
    pairs = product(first.T, second.T)
    return np.column_stack([np.outer(a, b).ravel() for a, b in pairs])
