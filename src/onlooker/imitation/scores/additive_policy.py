"""The policy of an additive score: a weight or a curve for every feature, and surfaces of two."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import as_level, counted
from onlooker.base.documents import read_document
from onlooker.base.errors import InputError
from onlooker.base.files import write_text
from onlooker.base.numerics import normal_reach
from onlooker.base.text import one_line, shown
from onlooker.base.types import Vector
from onlooker.imitation.scores.terms import Term
from onlooker.logs import ragged
from onlooker.logs.effects import Effect, as_curve, grid
from onlooker.logs.log import BanditLog
from onlooker.logs.policy import LinearPolicy, Scoring, feature_place, read_weights, weights_document

SCHEMA = "onlooker.additive-policy/1"
"""Written into every saved additive policy; a file with another one is refused."""

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

    def __init__(
        self,
        theta: ArrayLike,
        feature_names: Sequence[str] | None = None,
        categories: Mapping[str, Sequence[str]] | None = None,
        terms: Sequence[Term] = (),
    ) -> None:
        self._linear = LinearPolicy(theta, feature_names, categories)
        self.theta, self.feature_names = self._linear.theta, self._linear.feature_names
        self.categories = self._linear.categories
        self.terms = tuple(terms)
        if any(not 0 <= place < len(self.theta) for term in self.terms for place in term.features):
            raise InputError(f"a term is about a feature that is not among the {len(self.theta)} of the policy")

    def scores(self, log: BanditLog) -> Vector:
        """Score of every offered arm, one per row of `log.features`."""
        scores, places = self._linear.scores(log), self._linear.positions(log)
        where = np.argsort(places)
        for start, stop in ragged.blocks(log.offsets, log.n_features):
            rows = slice(log.offsets[start], log.offsets[stop])
            x = log[start:stop].dense
            for term in self.terms:
                scores[rows] += term.scores([x[:, where[j]].astype(np.float64) for j in term.features])
        if not np.isfinite(scores).all():
            raise InputError("some scores are too large for double precision: put the features on a smaller scale")
        return scores

    def effect(self, name: str, x: ArrayLike | None = None, *, level: float = 0.95) -> Effect:
        """What a feature adds to the score, less its mean over the rows that were fitted, with a pointwise band.

        At `x`, or at 101 points of the range that was fitted. Beyond that range curves continue as straight lines. Of a
        feature without curve it is a straight line from 0 to 1, without band: see `SuffixImitation.summary`.
        """
        place = feature_place(self._linear, name)
        reach = normal_reach(as_level(level))
        curve = next((term for term in self.terms if term.features == (place,)), None)
        if curve is None:
            return self._linear.effect(name, x, level=level)
        points = grid(curve.splines[0].knots) if x is None else as_curve(x)
        values, errors = curve.effect([points])
        return Effect(
            name=name,
            x=points,
            effect=values,
            low=values - reach * errors,
            high=values + reach * errors,
            level=level,
        )

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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy as JSON; `load` gives back exactly the same numbers.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     AdditivePolicy([0.1], feature_names=["price"]).save(f"{folder}/policy.json")
        ...     AdditivePolicy.load(f"{folder}/policy.json").theta
        array([0.1])
        """
        document = weights_document(SCHEMA, self) | {"terms": [term.document() for term in self.terms]}
        write_text(path, json.dumps(document, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AdditivePolicy:
        """Read a policy that `save` wrote. Nothing in the file is run."""
        document = read_document(path, [SCHEMA], "policy file", writer="AdditivePolicy.save")
        try:
            theta, names, categories = read_weights(document)
            return cls(theta, names, categories, _terms(document.get("terms", []), len(theta)))
        except InputError as error:
            raise InputError(f"{shown(path)}: {one_line(error, 500)}") from error


def _terms(documents: Any, n_features: int) -> list[Term]:
    """What was saved of curves and surfaces."""
    if not isinstance(documents, list) or len(documents) > MOST_TERMS:
        raise InputError("'terms' must be a list of terms")
    return [Term.read(one, n_features) for one in documents]
