"""How features become an arm's score. Linear is one way; others are linear in a basis made from the features.

A score model, prepared for a log, turns it into the log that a linear fit sees, and the weights found there into a
policy for logs as they are. A new one is a frozen dataclass with `prepared`; a model that is not linear in any basis
has `fitted` instead. Those that take more than a few lines live in `scores/`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlooker.base.checks import counted
from onlooker.base.errors import InputError
from onlooker.base.types import Index, Matrix, Vector
from onlooker.logs import ragged
from onlooker.logs.categories import Categories
from onlooker.logs.effects import Effect, as_curve, grid
from onlooker.logs.log import BanditLog, feature_labels
from onlooker.logs.policy import LinearPolicy, Policy, Scoring, feature_place, load_weights, save_weights

SCHEMA = "onlooker.products-policy/1"
"""Written into every saved policy on products; a file with another one is refused."""

MOST_COLUMNS = 5000
"""Basis functions beyond which a dense fit is refused: its matrices would take gigabytes."""


LEAST_L2 = 1e-10
"""Penalty that the scales of a basis with own penalties refer to, where the observer's is smaller."""


class Named(Protocol):
    """What knows the names and categories of its features: a log, wherever it is."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """One name per feature, or None."""

    @property
    def categories(self) -> Categories | None:
        """Levels of every category by its column, the reference first, or None."""


Flags = NDArray[np.bool_]
"""One flag per weight."""


class Basis(Protocol):
    """A score that is linear in its weights, made ready for a log."""

    @property
    def l2(self) -> float:
        """The penalty on the mean loss, `l2/2 |theta|^2`, that its weights are to have."""

    @property
    def smooth(self) -> Flags | None:
        """Which weights have a penalty that was chosen for them; None for none."""

    @property
    def positive(self) -> Flags | None:
        """Which weights may not be negative; None for none."""

    def basis(self, log: BanditLog) -> BanditLog:
        """The same rounds with the basis functions in the place of the features."""

    def policy(self, theta: Vector, log: Named, covariance: Matrix | None = None) -> Policy:
        """The policy that scores arms of logs like `log`, given the weights of the basis functions."""

    def reported(self, theta: Vector, covariance: Matrix, log: Named) -> tuple[tuple[str, ...], Vector, Matrix]:
        """What a reader is shown of the weights: names, estimates and their covariance."""


@runtime_checkable
class ScoreModel(Protocol):
    """From features to scores, linear in the parameters."""

    def prepared(self, log: BanditLog, *, l2: float, weights: Vector | None = None) -> Basis:
        """What depends on the rounds is chosen from these, such as knots and smoothness; `weights` are the rounds'."""


@runtime_checkable
class FreeScore(Protocol):
    """From features to scores that are not linear in the parameters: such a model fits itself."""

    def fitted(self, log: BanditLog, *, weights: Vector | None = None, seed: int = 0) -> Policy:
        """The policy that imitates these rounds."""


@dataclass(frozen=True)
class Linear:
    """A weight for every feature: the paper's."""

    def prepared(self, log: BanditLog, *, l2: float, weights: Vector | None = None) -> LinearBasis:  # noqa: ARG002
        """Nothing depends on the rounds."""
        return LinearBasis(l2)


@dataclass(frozen=True)
class LinearBasis:
    """The features as they are."""

    l2: float
    smooth: None = None
    positive: None = None

    def basis(self, log: BanditLog) -> BanditLog:
        """The log as it is."""
        return log

    def policy(self, theta: Vector, log: Named, covariance: Matrix | None = None) -> LinearPolicy:  # noqa: ARG002
        """A linear policy."""
        return LinearPolicy.of(theta, log)

    def reported(self, theta: Vector, covariance: Matrix, log: Named) -> tuple[tuple[str, ...], Vector, Matrix]:
        """The weights as they are."""
        return feature_labels(self.policy(theta, log).feature_names, len(theta)), theta, covariance


AnyScore = ScoreModel | FreeScore
"""Every kind of score model."""

LINEAR = Linear()
"""What observers take unless another is given."""


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
        from onlooker.imitation.scores.evidence import variances

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

    def policy(self, theta: Vector, log: Named, covariance: Matrix | None = None) -> ProductsPolicy:  # noqa: ARG002
        """A policy on the features and their products."""
        return ProductsPolicy(self._turn() @ theta, log.feature_names, log.categories)

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
    """

    def __init__(
        self,
        theta: ArrayLike,
        feature_names: Sequence[str] | None = None,
        categories: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.theta = LinearPolicy(theta).theta
        d = _n_features(len(self.theta))
        first, second = _pairs(d)
        if d + len(first) != len(self.theta):
            raise InputError(
                f"theta has {len(self.theta)} weights: {d} features and their products have {d + len(first)}"
            )
        self._linear = LinearPolicy(self.theta[:d], feature_names, categories)
        self.feature_names, self.categories = self._linear.feature_names, self._linear.categories
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

    def places(self, feature: int) -> list[int]:
        """Where `theta` has the weights of a feature and of its square."""
        d = self.n_features
        return [feature, d + feature * d - feature * (feature - 1) // 2]

    def scores(self, log: BanditLog) -> Vector:
        """Score of every offered arm, one per row of `log.features`."""
        scores, places = self._linear.scores(log), self._linear.positions(log)
        quadratic = self._quadratic[np.ix_(places, places)]
        for start, stop in ragged.blocks(log.offsets, log.n_features):
            rows = slice(log.offsets[start], log.offsets[stop])
            x = log[start:stop].dense.astype(np.float64, copy=False)
            scores[rows] += np.einsum("ij,ij->i", x @ quadratic, x)
        return scores

    def effect(self, name: str, x: ArrayLike | None = None, *, level: float = 0.95) -> Effect:
        """What a feature and its square add to the score where all other features are 0; at `x`, or from -1 to 1.

        It has no band: `SuffixImitation.effect` has one, over the range that was fitted.
        """
        place = feature_place(self._linear, name)
        points = grid(np.array([-1.0, 1.0])) if x is None else as_curve(x)
        values = points * (self.theta[place] + points * self._quadratic[place, place])
        unknown = np.full(len(points), np.nan)
        return Effect(name=name, x=points, effect=values, low=unknown, high=unknown, level=level)

    def __reduce__(self) -> tuple[Any, ...]:
        return ProductsPolicy, (self.theta, self.feature_names, self.categories and dict(self.categories))

    def __repr__(self) -> str:
        return f"ProductsPolicy({counted(len(self._quadratic), 'feature')} and their products)"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy as JSON; `load` gives back exactly the same numbers.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     ProductsPolicy([0.1, 0.2], feature_names=["price"]).save(f"{folder}/policy.json")
        ...     ProductsPolicy.load(f"{folder}/policy.json").theta
        array([0.1, 0.2])
        """
        save_weights(path, SCHEMA, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ProductsPolicy:
        """Read a policy that `save` wrote. Nothing in the file is run."""
        return load_weights(path, SCHEMA, cls)


def _n_features(n_weights: int) -> int:
    """The number d of features that have so many weights: d, and d (d + 1) / 2 for their products."""
    return int((np.sqrt(8 * n_weights + 9) - 3) / 2)


def _pairs(n_features: int) -> tuple[Index, Index]:
    """Places of the features in every product."""
    pairs = np.array(list(combinations_with_replacement(range(n_features), 2)), dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def as_score(score: object) -> AnyScore | str:
    """The score model that a `score` parameter stands for; `"auto"` stays.

    Examples
    --------
    >>> as_score("additive")
    Additive(knots=8, monotone={}, interactions=())
    """
    if isinstance(score, Linear):
        return score
    from onlooker.imitation.scores.choice import NAMED

    if score == "auto":
        return "auto"
    if isinstance(score, str) and score in NAMED:
        return NAMED[score]()
    if isinstance(score, (ScoreModel, FreeScore)) and not isinstance(score, type):
        return score
    raise InputError(
        f"score is {score!r}: use 'auto', Linear(), Additive(), Products(), Neural() or Boosted(), or the name of one"
    )
