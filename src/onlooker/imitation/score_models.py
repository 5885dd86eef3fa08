"""How features become an arm's score. Linear is one way; others are linear in a basis made from the features.

A score model turns a log into the log that a linear fit sees, and the weights found there into a policy for logs as
they are. A new one is a frozen dataclass with these two methods.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import counted
from onlooker.base.errors import InputError
from onlooker.base.types import Index, Vector
from onlooker.logs import ragged
from onlooker.logs.categories import Categories
from onlooker.logs.log import BanditLog, feature_labels
from onlooker.logs.policy import LinearPolicy, Policy, load_weights, save_weights

SCHEMA = "onlooker.products-policy/1"
"""Written into every saved policy on products; a file with another one is refused."""

MOST_PRODUCTS = 5000
"""Basis functions beyond which a dense fit is refused: its matrices would take gigabytes."""


class Named(Protocol):
    """What knows the names and categories of its features: a log, wherever it is."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """One name per feature, or None."""

    @property
    def categories(self) -> Categories | None:
        """Levels of every category by its column, the reference first, or None."""


@runtime_checkable
class ScoreModel(Protocol):
    """From features to scores, linear in the parameters."""

    def basis(self, log: BanditLog) -> BanditLog:
        """The same rounds with the basis functions in the place of the features."""

    def policy(self, theta: Vector, log: Named) -> Policy:
        """The policy that scores arms of logs like `log`, given the weights of the basis functions."""


@dataclass(frozen=True)
class Linear:
    """A weight for every feature: the paper's."""

    def basis(self, log: BanditLog) -> BanditLog:
        """The log as it is."""
        return log

    def policy(self, theta: Vector, log: Named) -> LinearPolicy:
        """A linear policy."""
        return LinearPolicy.of(theta, log)


LINEAR = Linear()
"""What observers take unless another is given."""


@dataclass(frozen=True)
class Products:
    """A weight for every feature, for its square, and for its product with every other feature.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.array([[[2.0, 3.0]]]), chosen=[0], feature_names=["a", "b"])
    >>> basis = Products().basis(log)
    >>> dict(zip(basis.feature_names, basis.features[0].tolist()))
    {'a': 2.0, 'b': 3.0, 'a*a': 4.0, 'a*b': 6.0, 'b*b': 9.0}
    """

    def basis(self, log: BanditLog) -> BanditLog:
        """Features and their products, pair by pair."""
        rows, d = log.dense, log.n_features
        first, second = _pairs(d)
        if d + len(first) > MOST_PRODUCTS:
            raise InputError(
                f"{counted(d, 'feature')} have {len(first)} products: name fewer features, or score them linearly"
            )
        values = np.hstack([rows, rows[:, first] * rows[:, second]])
        names = feature_labels(log.weight_names, d)
        return log.with_features(
            values, [*names, *(f"{names[i]}*{names[j]}" for i, j in zip(first, second, strict=True))]
        )

    def policy(self, theta: Vector, log: Named) -> ProductsPolicy:
        """A policy on the features and their products."""
        return ProductsPolicy(theta, log.feature_names, log.categories)


class ProductsPolicy:
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
        # n weights are those of d features and of their d (d + 1) / 2 products.
        d = int((np.sqrt(8 * len(self.theta) + 9) - 3) / 2)
        first, second = _pairs(d)
        if d + len(first) != len(self.theta):
            raise InputError(
                f"theta has {len(self.theta)} weights: {d} features and their products have {d + len(first)}"
            )
        self._linear = LinearPolicy(self.theta[:d], feature_names, categories)
        self.feature_names, self.categories = self._linear.feature_names, self._linear.categories
        self._quadratic = np.zeros((d, d))
        self._quadratic[first, second] = self.theta[d:]

    def scores(self, log: BanditLog) -> Vector:
        """Score of every offered arm, one per row of `log.features`."""
        scores, places = self._linear.scores(log), self._linear.positions(log)
        quadratic = self._quadratic[np.ix_(places, places)]
        for start, stop in ragged.blocks(log.offsets, log.n_features):
            rows = slice(log.offsets[start], log.offsets[stop])
            x = log[start:stop].dense.astype(np.float64, copy=False)
            scores[rows] += np.einsum("ij,ij->i", x @ quadratic, x)
        return scores

    def choose(self, log: BanditLog) -> Index:
        """Position of the chosen arm in every round, shape (N,)."""
        return ragged.argmax(self.scores(log), log.offsets)

    def probabilities(self, log: BanditLog) -> Vector:
        """Softmax of the scores within every round, one per row of `log.features`."""
        return ragged.softmax(self.scores(log), log.offsets)

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


def _pairs(n_features: int) -> tuple[Index, Index]:
    """Places of the features in every product."""
    pairs = np.array(list(combinations_with_replacement(range(n_features), 2)), dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]
