"""Products of features as score: a weight for every feature, for its square, and for every product of two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import counted
from onlooker.base.documents import numbers
from onlooker.base.errors import InputError
from onlooker.base.types import Index, Matrix, Vector
from onlooker.imitation.choice_model import LEAST_L2, MOST_COLUMNS, Band, Flags
from onlooker.imitation.scores.evidence import variances
from onlooker.logs.effects import Effect, as_curve, grid
from onlooker.logs.log import BanditLog, feature_labels
from onlooker.logs.policy import LinearPolicy, Named, Scoring, feature_place, saved_weights


@dataclass(frozen=True)
class Products:
    """A weight for every feature, for its square, and for its product with every other feature.

    How strongly the weights of the products are regularised is chosen by the evidence, apart from the features'.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.array([[[2.0, 3.0]]]), chosen=[0], feature_names=["a", "b"])
    >>> basis = ProductsBasis(l2=0.0, means=np.zeros(2), spreads=np.ones(2)).basis(log)
    >>> dict(zip(basis.feature_names, basis.features[0].tolist()))
    {'a': 2.0, 'b': 3.0, 'a*a': 4.0, 'a*b': 6.0, 'b*b': 9.0}
    """

    def prepared(self, log: BanditLog, *, l2: float, weights: Vector | None = None) -> ProductsBasis:
        """The penalty of the products, by the evidence of these rounds."""
        l2, d = max(l2, LEAST_L2), log.n_features
        rows = log.dense.astype(np.float64)
        means, spreads = rows.mean(axis=0), rows.std(axis=0)
        spreads = np.where(spreads > 0, spreads, 1.0)
        total = float(np.count_nonzero(log.n_arms > 1) if weights is None else weights[log.n_arms > 1].sum())
        plain = ProductsBasis(l2=l2, means=means, spreads=spreads)
        columns = plain.basis(log)
        units = np.ones(columns.n_features)
        units[:d] = 1 / spreads
        groups = np.where(np.arange(len(units)) < d, -1, 0)
        (found,) = variances(columns.with_features(columns.dense * units), groups, l2 * units**2, weights=weights)
        return ProductsBasis(l2=l2, means=means, spreads=spreads, scale=float(np.sqrt(found * total * l2)))


@dataclass(frozen=True, eq=False)
class ProductsBasis:
    """Features, and products of the features less their means in units of their spreads, times `scale`.

    The scale makes the penalty `l2` the one that was chosen for the products.
    """

    l2: float
    means: Vector
    spreads: Vector
    scale: float = 1.0
    loose = np.ones(1)
    positive: None = None

    @property
    def smooth(self) -> Flags:
        """The weights of products have a penalty that was chosen for them."""
        d = len(self.means)
        return np.arange(d * (d + 3) // 2) >= d

    def basis(self, log: BanditLog) -> BanditLog:
        """Features and their products, pair by pair."""
        rows, d = log.dense, log.n_features
        first, second = _pairs(d)
        if d + len(first) > MOST_COLUMNS:
            raise InputError(
                f"{counted(d, 'feature')} have {len(first)} products: name fewer features, or score them linearly"
            )
        values = np.empty((len(rows), d + len(first)))
        values[:, :d] = rows
        scaled = (rows - self.means) / self.spreads
        np.multiply(scaled[:, first], self.scale * scaled[:, second], out=values[:, d:])
        return log.with_features(values, self._names(log))

    def policy(self, theta: Vector, log: Named, band: Band | None = None) -> ProductsPolicy:  # noqa: ARG002
        """A policy on the features and their products."""
        return ProductsPolicy(self._turn() @ theta, log.feature_names, log.categories, self.means)

    def reported(self, theta: Vector, covariance: Matrix, log: Named) -> tuple[tuple[str, ...], Vector, Matrix]:
        """The weights of features and products in their own units."""
        turn = self._turn()
        return self._names(log), turn @ theta, turn @ covariance @ turn.T

    def _turn(self) -> Matrix:
        """From weights of the columns to weights of features and of their plain products."""
        d = len(self.means)
        first, second = _pairs(d)
        units = self.scale / (self.spreads[first] * self.spreads[second])
        turn = np.eye(d + len(first))
        places = np.arange(d, d + len(first))
        turn[places, places] = units
        # (x - a)(y - b) is xy less b times x and a times y, and a constant that no pick depends on.
        np.subtract.at(turn, (first, places), units * self.means[second])
        np.subtract.at(turn, (second, places), units * self.means[first])
        return turn

    def _names(self, log: Named) -> tuple[str, ...]:
        names = feature_labels(log.feature_names, len(self.means))
        return (*names, *(f"{names[i]}*{names[j]}" for i, j in zip(*_pairs(len(self.means)), strict=True)))


class ProductsPolicy(Scoring):
    """Scores `x'w + x'Ax` with a symmetric matrix `A`: weights for features and for their products.

    Parameters
    ----------
    theta
        Weights of the features, then of their products in the order of `Products`.
    feature_names, categories
        Of the features, as a `LinearPolicy` has them.
    typical
        Values of the features, usually their means, at which effects of the others are taken; 0 unless given.
    """

    schema: ClassVar[str] = "onlooker.products-policy/1"

    def __init__(
        self,
        theta: ArrayLike,
        feature_names: Sequence[str] | None = None,
        categories: Mapping[str, Sequence[str]] | None = None,
        typical: ArrayLike | None = None,
    ) -> None:
        self.theta = LinearPolicy(theta).theta
        d = _n_features(len(self.theta))
        first, second = _pairs(d)
        if d + len(first) != len(self.theta):
            raise InputError(
                f"theta has {len(self.theta)} weights: {d} features and their products have {d + len(first)}"
            )
        self.typical = np.zeros(d) if typical is None else np.array(typical, dtype=np.float64)
        if self.typical.shape != (d,) or not np.isfinite(self.typical).all():
            raise InputError(f"typical must have a finite value for each of the {d} features")
        self._describe(d, feature_names, categories)
        self._quadratic = np.zeros((d, d))
        self._quadratic[first, second] = self.theta[d:]

    @property
    def n_features(self) -> int:
        """How many features there are, products aside."""
        return len(self._quadratic)

    @property
    def quadratic(self) -> Matrix:
        """Weights of the products, shape (d, d): each pair once, above the diagonal or on it."""
        return self._quadratic.copy()

    def row_scores(self, rows: Matrix) -> Vector:
        """Score of every row of features, which are in the policy's order."""
        return np.asarray(rows @ self.theta[: self.n_features] + np.einsum("ij,ij->i", rows @ self._quadratic, rows))

    def effect(self, name: str, x: ArrayLike | None = None, *, level: float = 0.95) -> Effect:
        """What a feature adds to the score where all others have their typical values, less what its own adds.

        At `x`, or within 1 of the typical value. It has no band, since the weights alone do not say how certain they
        are: `SuffixImitation.effect` has one, over the range that was fitted.

        Examples
        --------
        >>> ProductsPolicy([0.0, 0.0, 1.0, 3.0, 0.0], ["a", "b"], typical=[0.0, 1.0]).effect("a", [0.0, 2.0]).effect
        array([ 0., 10.])
        """
        place = feature_place(self, name)
        own = self.typical[place]
        points = grid(own + np.array([-1.0, 1.0])) if x is None else as_curve(x)
        values = self.turned(place, points, own, own**2) @ self.theta
        unknown = np.full(len(points), np.nan)
        return Effect(name=name, x=points, effect=values, low=unknown, high=unknown, level=level)

    def turned(self, place: int, points: Vector, mean: float, square: float) -> Matrix:
        """What each weight is multiplied by in the effect of a feature at some points, shape (n, weights).

        Less the same at its mean, and at its mean square.
        """
        d, apart = self.n_features, points - mean
        first, second = _pairs(d)
        found = np.zeros((len(points), len(self.theta)))
        found[:, place] = apart
        other = np.where(first == place, second, first)
        mine = np.flatnonzero((first == place) != (second == place))
        found[:, d + mine] = apart[:, None] * self.typical[other[mine]]
        found[:, d + np.flatnonzero((first == place) & (second == place))] = (points**2 - square)[:, None]
        return found

    def content(self) -> dict[str, Any]:
        """The weights, and where effects are taken."""
        return {"theta": self.theta.tolist(), "typical": self.typical.tolist()}

    @classmethod
    def made_of(cls, document: Mapping[str, Any], names: Any, categories: Any) -> Self:
        """The policy with these weights, checked."""
        typical = document.get("typical")
        values = None if typical is None else numbers(typical, "typical")
        return cls(saved_weights(document), names, categories, values)

    def __reduce__(self) -> tuple[Any, ...]:
        known = self.categories and dict(self.categories)
        return ProductsPolicy, (self.theta, self.feature_names, known, self.typical)

    def __repr__(self) -> str:
        return f"ProductsPolicy({counted(len(self._quadratic), 'feature')} and their products)"


def _n_features(n_weights: int) -> int:
    """The number d of features that have so many weights: d, and d (d + 1) / 2 for their products."""
    return int((np.sqrt(8 * n_weights + 9) - 3) / 2)


def _pairs(n_features: int) -> tuple[Index, Index]:
    """Places of the features in every product."""
    pairs = np.array(list(combinations_with_replacement(range(n_features), 2)), dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]
