"""What policies share whose scores are a function of the features and no sum of weights: names, effects, saving."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.documents import read_document
from onlooker.base.errors import InputError
from onlooker.base.files import write_text
from onlooker.base.text import one_line, shown
from onlooker.base.types import Matrix, Vector
from onlooker.logs import ragged
from onlooker.logs.effects import Effect, as_curve, grid
from onlooker.logs.log import BanditLog
from onlooker.logs.policy import LinearPolicy, Scoring, feature_place, read_weights, weights_document

TYPICAL_ROWS = 200
"""Rows that are kept with a policy, for the effects of its features."""


class FreePolicy(Scoring, ABC):
    """A policy that scores rows of features by a function of its own.

    Parameters
    ----------
    typical
        Some of the rows that were fitted, shape (n, d): the effect of a feature is a mean over them.
    feature_names, categories
        Of the features, as a `LinearPolicy` has them.
    """

    schema: ClassVar[str]
    """Written into every saved policy; a file with another one is refused."""

    def __init__(
        self,
        typical: ArrayLike,
        feature_names: Sequence[str] | None = None,
        categories: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.typical = np.asarray(typical, dtype=np.float64)
        if self.typical.ndim != 2 or not self.typical.size or not np.isfinite(self.typical).all():
            raise InputError("typical must be rows of finite features")
        self._layout = LinearPolicy(np.zeros(self.typical.shape[1]), feature_names, categories)
        self.feature_names, self.categories = self._layout.feature_names, self._layout.categories

    @abstractmethod
    def row_scores(self, rows: Matrix) -> Vector:
        """Score of every row of features, in the policy's order."""

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """What is saved of the function, as plain values."""

    @classmethod
    @abstractmethod
    def made_of(cls, document: Mapping[str, Any], typical: Matrix, names: Any, categories: Any) -> Self:
        """The policy with this content, checked."""

    def scores(self, log: BanditLog) -> Vector:
        """Score of every offered arm, one per row of `log.features`."""
        where = np.argsort(self._layout.positions(log))
        scores = np.empty(len(log.features))
        for start, stop in ragged.blocks(log.offsets, log.n_features):
            rows = slice(log.offsets[start], log.offsets[stop])
            scores[rows] = self.row_scores(log[start:stop].dense[:, where].astype(np.float64))
        if not np.isfinite(scores).all():
            raise InputError("some scores are too large for double precision: put the features on a smaller scale")
        return scores

    def effect(self, name: str, x: ArrayLike | None = None, *, level: float = 0.95) -> Effect:
        """Mean score over typical rows with the feature set to each `x`, less its mean over their own values.

        That is its partial dependence. It has no band: how certain it is, is not known.
        """
        place = feature_place(self._layout, name)
        own = self.typical[:, place]
        points = grid(own) if x is None else as_curve(x)
        values = np.array([self._with(place, value) for value in (*points, *own)])
        unknown = np.full(len(points), np.nan)
        effect = values[: len(points)] - values[len(points) :].mean()
        return Effect(name=name, x=points, effect=effect, low=unknown, high=unknown, level=level)

    def _with(self, place: int, value: float) -> float:
        rows = self.typical.copy()
        rows[:, place] = value
        return float(self.row_scores(rows).mean())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy as JSON; `load` gives back exactly the same numbers."""
        document = weights_document(self.schema, self._layout)
        del document["theta"]
        document |= {"typical": self.typical.tolist(), **self.content()}
        write_text(path, json.dumps(document, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a policy that `save` wrote. Nothing in the file is run."""
        document = read_document(path, [cls.schema], "policy file", writer=f"{cls.__name__}.save")
        try:
            typical = table(document.get("typical"), "typical")
            _, names, categories = read_weights({**document, "theta": []})
            return cls.made_of(document, typical, names, categories)
        except InputError as error:
            raise InputError(f"{shown(path)}: {one_line(error, 500)}") from error


def typical_rows(log: BanditLog) -> Matrix:
    """An even sample of a log's rows."""
    rows = log.dense
    return np.asarray(rows[:: max(1, len(rows) // TYPICAL_ROWS)][:TYPICAL_ROWS], dtype=np.float64)


def table(values: Any, name: str) -> Matrix:
    """A list of lists of finite numbers in a file, all equally long."""
    from onlooker.imitation.scores.terms import numbers

    if not isinstance(values, list) or not values:
        raise InputError(f"{name!r} must be a list of lists of numbers")
    rows = [numbers(row, name) for row in values]
    if any(len(row) != len(rows[0]) for row in rows):
        raise InputError(f"the lists of {name!r} must be equally long")
    return np.array(rows)
