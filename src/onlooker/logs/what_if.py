"""Offers in a table without picks, for asking a policy what it would do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onlooker.base.errors import InputError
from onlooker.base.numerics import arrow_values
from onlooker.base.text import some_of
from onlooker.base.types import Features, Index, Vector
from onlooker.logs import ragged
from onlooker.logs.categories import Encoded, Encoding, products_of
from onlooker.logs.columns import CONSTANT
from onlooker.logs.crossing import Crossing
from onlooker.logs.encoding import check_complete, feature_rows
from onlooker.logs.frames import in_arrow, opened

ROUND = "round"
"""Column that says which rows are offered together."""


@dataclass(frozen=True, eq=False)
class Offers:
    """Rows of offered arms in a table's own order."""

    rows: Features
    """Shape (n, d)."""
    order: Index
    """Rows round by round, the first round to appear first."""
    offsets: Index
    """Where each round begins in that order."""

    def chosen(self, scores: Vector) -> Index:
        """Position of the best arm of every round, rounds in the order in which they appear."""
        return ragged.argmax(scores[self.order], self.offsets)

    def probabilities(self, scores: Vector) -> Vector:
        """Softmax within every round, one per row."""
        found = np.empty(len(scores))
        found[self.order] = ragged.softmax(scores[self.order], self.offsets)
        return found


def offers_in(frame: Any, policy: Encoded, crossing: Crossing | None) -> Offers:
    """Offers of a table with the policy's columns; without `round` all rows are one round.

    Where every arm has weights of its own a row is a round, and offers all arms in their order.
    """
    if policy.feature_names is None:
        raise InputError("the policy has no names of features: fit it on a log that has them, or pass a log")
    table, names = opened(frame)
    if not len(table):
        raise InputError("the table has no rows: nothing is on offer")
    if crossing is not None:
        return _of_contexts(table, names, policy, crossing)
    encoding = Encoding.of(policy, products_of(policy, names))
    _check_there(encoding, names)
    columns = in_arrow(table, list(dict.fromkeys([*encoding.columns, *([ROUND] if ROUND in names else [])])))
    rows = feature_rows(columns, encoding, free=False)
    if ROUND not in names or ROUND in encoding.columns:
        return Offers(rows, np.arange(len(rows)), np.array([0, len(rows)]))
    check_complete(columns[ROUND], ROUND, 0)
    codes = arrow_values(columns[ROUND].combine_chunks().dictionary_encode().indices)
    offsets = np.append(0, np.cumsum(np.bincount(codes))).astype(np.int64)
    return Offers(rows, np.argsort(codes, kind="stable"), offsets)


def _of_contexts(table: Any, names: list[str], policy: Encoded, crossing: Crossing) -> Offers:
    """Every row with all arms."""
    if crossing.arms is None or crossing.own or not crossing.named:
        raise InputError("the policy has features of the arms beside the context: pass a log, with the items")
    ones = CONSTANT in crossing.context and CONSTANT not in names
    features = tuple(name for name in crossing.context if not (ones and name == CONSTANT))
    encoding = Encoding(features, policy.categories or {})
    _check_there(encoding, names)
    found = feature_rows(in_arrow(table, list(encoding.columns)), encoding, free=False) if features else None
    columns = {} if found is None else {name: found[:, place] for place, name in enumerate(features)}
    ones_column = np.ones(len(table))
    contexts = np.column_stack(
        [np.asarray(columns.get(name, ones_column), dtype=np.float64) for name in crossing.context or (CONSTANT,)]
    )
    arms = len(crossing.arms)
    rows = (np.eye(arms)[None, :, :, None] * contexts[:, None, None, :]).reshape(len(table) * arms, -1)
    return Offers(rows, np.arange(len(rows)), np.arange(len(table) + 1) * arms)


def _check_there(encoding: Encoding, names: list[str]) -> None:
    absent = [name for name in encoding.columns if name not in names]
    if absent:
        raise InputError(
            f"the table lacks {some_of(absent)}, which the policy was learned from: it has {some_of(names)}"
        )
