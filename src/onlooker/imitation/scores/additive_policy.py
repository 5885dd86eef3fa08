"""The policy of an additive score: a weight or a curve for every feature, and surfaces of two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import as_level, counted
from onlooker.base.errors import InputError
from onlooker.base.numerics import normal_reach
from onlooker.base.types import Matrix, Vector
from onlooker.imitation.scores.terms import Term
from onlooker.logs.effects import Effect, as_curve, grid
from onlooker.logs.policy import LinearPolicy, Scoring, feature_place, saved_weights

MOST_TERMS = 10_000
"""Terms in a file."""


class AdditivePolicy(Scoring):
    """Scores that are sums: of weights times features, of curves of features, of surfaces of two features.

    Parameters
    ----------
    theta
        Weights of the features; those with a curve have 0.
    feature_names, categories
        Of the features, as a `LinearPolicy` has them.
    terms
        Curves and surfaces.
    """

    schema: ClassVar[str] = "onlooker.additive-policy/1"

    def __init__(
        self,
        theta: ArrayLike,
        feature_names: Sequence[str] | None = None,
        categories: Mapping[str, Sequence[str]] | None = None,
        terms: Sequence[Term] = (),
    ) -> None:
        self.theta = LinearPolicy(theta).theta
        self._describe(len(self.theta), feature_names, categories)
        self.terms = tuple(terms)
        if any(not 0 <= place < len(self.theta) for term in self.terms for place in term.features):
            raise InputError(f"a term is about a feature that is not among the {len(self.theta)} of the policy")

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return len(self.theta)

    def row_scores(self, rows: Matrix) -> Vector:
        """Score of every row of features, which are in the policy's order."""
        scores = rows @ self.theta
        for term in self.terms:
            scores += term.scores([rows[:, j] for j in term.features])
        return np.asarray(scores)

    def effect(self, name: str, x: ArrayLike | None = None, *, level: float = 0.95) -> Effect:
        """What a feature adds to the score, less its mean over the rows that were fitted, with a pointwise band.

        The middle of the band is the curve less its bias, so it may be nearer to one end than to the other.
        At `x`, or at 101 points of the range that was fitted. Beyond that range curves continue as straight lines. Of a
        feature without curve it is a straight line from 0 to 1, without band: see `SuffixImitation.summary`.
        """
        place = feature_place(self, name)
        reach = normal_reach(as_level(level))
        curve = next((term for term in self.terms if term.features == (place,)), None)
        if curve is None:
            return LinearPolicy(self.theta, self.feature_names).effect(name, x, level=level)
        points = grid(curve.splines[0].knots) if x is None else as_curve(x)
        values, low, high = curve.effect([points], reach)
        return Effect(name=name, x=points, effect=values, low=low, high=high, level=level)

    def __reduce__(self) -> tuple[Any, ...]:
        return AdditivePolicy, (
            self.theta,
            self.feature_names,
            self.categories and dict(self.categories),
            self.terms,
        )

    def __repr__(self) -> str:
        curves = sum(len(term.features) == 1 for term in self.terms)
        surfaces = len(self.terms) - curves
        also = f", {counted(surfaces, 'surface')}" if surfaces else ""
        return f"AdditivePolicy({counted(len(self.theta), 'feature')}, {counted(curves, 'curve')}{also})"

    def content(self) -> dict[str, Any]:
        """Weights, curves and surfaces."""
        return {"theta": self.theta.tolist(), "terms": [term.document() for term in self.terms]}

    @classmethod
    def made_of(cls, document: Mapping[str, Any], names: Any, categories: Any) -> Self:
        """The policy with these terms, checked."""
        theta = saved_weights(document)
        return cls(theta, names, categories, _terms(document.get("terms", []), len(theta)))


def _terms(documents: Any, n_features: int) -> list[Term]:
    """What was saved of curves and surfaces."""
    if not isinstance(documents, list) or len(documents) > MOST_TERMS:
        raise InputError("'terms' must be a list of terms")
    return [Term.read(one, n_features) for one in documents]
