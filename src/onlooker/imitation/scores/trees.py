"""The policy of boosted trees: their splits and values as plain arrays, checked and walked by our own code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import counted
from onlooker.base.documents import numbers, table
from onlooker.base.errors import InputError
from onlooker.base.types import Index, Matrix, Vector
from onlooker.imitation.scores.free_policy import FreePolicy

MOST_TREES, MOST_LEAVES = 100_000, 100_000
"""In a file."""


@dataclass(frozen=True, eq=False)
class Tree:
    """Splits `x[feature] <= threshold`, left where that holds; children below 0 are leaves, -1 the first."""

    feature: Index
    threshold: Vector
    left: Index
    right: Index
    value: Vector
    """Of the leaves, one more than there are splits."""

    def __post_init__(self) -> None:
        n = len(self.value) - 1
        if n < 0 or any(one.shape != (n,) for one in (self.feature, self.threshold, self.left, self.right)):
            raise InputError("a tree needs a feature, a threshold and two children for every split, and one leaf more")
        own = np.arange(n)
        for child in (self.left, self.right):
            # Later splits only: no walk can go round in a circle.
            if not (((child > own) & (child < n)) | ((child < 0) & (child >= -n - 1))).all():
                raise InputError("the children of a split must be later splits or leaves")
        if not (np.isfinite(self.value).all() and np.isfinite(self.threshold).all()):
            raise InputError("the numbers of a tree must be finite")

    def scores(self, rows: Matrix) -> Vector:
        """Value of the leaf that every row falls into."""
        if not len(self.feature):
            return np.full(len(rows), self.value[0])
        node = np.zeros(len(rows), dtype=np.int64)
        inside = np.arange(len(rows))
        while len(inside):
            here = node[inside]
            goes_left = rows[inside, self.feature[here]] <= self.threshold[here]
            node[inside] = np.where(goes_left, self.left[here], self.right[here])
            inside = inside[node[inside] >= 0]
        return np.asarray(self.value[-node - 1])

    def document(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {name: getattr(self, name).tolist() for name in ("feature", "threshold", "left", "right", "value")}

    @classmethod
    def read(cls, document: Any, n_features: int) -> Tree:
        """What `document` gave, checked."""
        if not isinstance(document, Mapping):
            raise InputError("a tree must be an object")
        value = numbers(document.get("value"), "value")
        if len(value) > MOST_LEAVES:
            raise InputError(f"a tree has more than {MOST_LEAVES} leaves")
        feature, left, right = (_whole(document.get(name), name) for name in ("feature", "left", "right"))
        if len(feature) and not (0 <= feature.min() <= feature.max() < n_features):
            raise InputError(f"a tree splits by a feature that is not among the {n_features} of the policy")
        threshold = document.get("threshold")
        return cls(feature, np.zeros(0) if threshold == [] else numbers(threshold, "threshold"), left, right, value)


def _whole(values: Any, name: str) -> Index:
    if not isinstance(values, list) or not all(type(one) is int and abs(one) < 2**31 for one in values):
        raise InputError(f"{name!r} must be a list of whole numbers")
    return np.array(values, dtype=np.int64)


class BoostedPolicy(FreePolicy):
    """Scores that are sums over trees."""

    schema: ClassVar[str] = "onlooker.boosted-policy/1"

    def __init__(
        self,
        typical: ArrayLike,
        feature_names: Sequence[str] | None = None,
        categories: Mapping[str, Sequence[str]] | None = None,
        trees: Sequence[Tree] = (),
    ) -> None:
        super().__init__(typical, feature_names, categories)
        self.trees = tuple(trees)

    def row_scores(self, rows: Matrix) -> Vector:
        """Score of every row of features."""
        scores = np.zeros(len(rows))
        for tree in self.trees:
            scores += tree.scores(rows)
        return scores

    def content(self) -> dict[str, Any]:
        """The trees."""
        return {"typical": self.typical.tolist(), "trees": [tree.document() for tree in self.trees]}

    @classmethod
    def made_of(cls, document: Mapping[str, Any], names: Any, categories: Any) -> Self:
        """The policy with these trees, checked."""
        trees = document.get("trees")
        if not isinstance(trees, list) or len(trees) > MOST_TREES:
            raise InputError("'trees' must be a list of trees")
        typical = table(document.get("typical"), "typical")
        return cls(typical, names, categories, [Tree.read(one, typical.shape[1]) for one in trees])

    def __reduce__(self) -> tuple[Any, ...]:
        known = self.categories and dict(self.categories)
        return BoostedPolicy, (self.typical, self.feature_names, known, self.trees)

    def __repr__(self) -> str:
        return f"BoostedPolicy({self.typical.shape[1]} features, {counted(len(self.trees), 'tree')})"
