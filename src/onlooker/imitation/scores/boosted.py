"""Boosted trees as score: LightGBM with the conditional softmax loss, stopped by held-out rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from onlooker.base.checks import as_number, as_whole
from onlooker.base.errors import InputError
from onlooker.base.threads import n_threads
from onlooker.base.types import Vector
from onlooker.imitation.choice_model import pick_likelihood
from onlooker.imitation.scores.free_policy import choices, shares_before, typical_rows
from onlooker.imitation.scores.trees import BoostedPolicy, Tree
from onlooker.logs.log import BanditLog, feature_labels

HELD_OUT = 0.2
"""Share of the rounds, the last ones, that decide how many trees there are."""

PATIENCE = 30
"""Trees without gain on them, after which no more are grown."""

FEATURES_A_TREE, ROWS_A_TREE = 0.5, 0.8
"""Shares of the features and of the rows that a tree is grown on, drawn again for each: trees then err differently."""

THREADED_ROWS = 100_000
"""Rows from which on LightGBM uses all threads."""

LEAST_HESSIAN = 1e-6
"""Of a row: LightGBM divides by sums of them."""


@dataclass(frozen=True)
class Boosted:
    """Trees that are grown one after the other, each on what those before leave unexplained (LightGBM).

    Needs the extra `onlooker[trees]`. The last fifth of the rounds decides how many trees there are; all rounds then
    grow so many. Saved policies hold plain numbers, and need LightGBM neither to be read nor to score.

    Parameters
    ----------
    trees
        Trees at most.
    learning_rate
        Share of each tree that is added.
    leaves
        Leaves of a tree at most: 2 gives scores that are sums of functions of one feature each.
    min_rows
        Rows in every leaf at least.
    monotone
        Features with which the score may only rise (+1) or fall (-1), by name, or by number where features have none.
    """

    trees: int = 1000
    _: KW_ONLY
    learning_rate: float = 0.05
    leaves: int = 15
    min_rows: int = 30
    monotone: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        as_whole(self.trees, "trees", least=1)
        as_whole(self.leaves, "leaves", least=2)
        as_whole(self.min_rows, "min_rows", least=1)
        as_number(self.learning_rate, "learning_rate", above=0.0, most=1.0)
        if not isinstance(self.monotone, Mapping) or any(sign not in (1, -1) for sign in self.monotone.values()):
            raise InputError(f"monotone is {self.monotone!r}: map names of features to +1 (rising) or -1 (falling)")
        object.__setattr__(self, "monotone", dict(self.monotone))

    def __hash__(self) -> int:
        own = (self.trees, self.learning_rate, self.leaves, self.min_rows)
        return hash((*own, tuple(sorted(self.monotone.items()))))

    def fitted(self, log: BanditLog, *, weights: Vector | None = None, seed: int = 0) -> BoostedPolicy:
        """The trees that imitate these rounds."""
        names = feature_labels(log.weight_names, log.n_features)
        absent = [name for name in self.monotone if name not in names]
        if absent:
            raise InputError(f"the log has no feature {absent[0]!r}: it has {', '.join(names[:5])}")
        log, counts = choices(log, weights)
        settings = {
            "learning_rate": self.learning_rate,
            "num_leaves": self.leaves,
            "min_data_in_leaf": self.min_rows,
            "min_sum_hessian_in_leaf": 1e-3,
            "monotone_constraints": [self.monotone.get(name, 0) for name in names] if self.monotone else None,
            "boost_from_average": False,
            "deterministic": True,
            # LightGBM stops where its filter leaves no feature, as in a log of a few rounds.
            "feature_pre_filter": False,
            "force_row_wise": True,
            "seed": seed,
            # Below, threads wait for each other more than they work.
            "num_threads": n_threads() if len(log.features) >= THREADED_ROWS else 1,
            "feature_fraction": FEATURES_A_TREE,
            "bagging_fraction": ROWS_A_TREE,
            "bagging_freq": 1,
            "verbosity": -1,
        }
        trees: list[Tree] = []
        if (log.dense.min(axis=0) < log.dense.max(axis=0)).any():
            n_trees = self._n_trees(log, counts, settings)
            trees = _trees_of(_grown(log, counts, settings, n_trees).model_to_string())
        return BoostedPolicy(typical_rows(log), log.feature_names, log.categories, trees)

    def _n_trees(self, log: BanditLog, counts: Vector, settings: dict[str, Any]) -> int:
        """How many trees predict the held-out rounds best; few where there is nothing to hold out."""
        first = int(np.searchsorted(shares_before(counts), 1 - HELD_OUT))
        if not 0 < first < log.n_rounds:
            return min(self.trees, 10)
        lightgbm = _lightgbm()
        held, held_counts = log[first:], counts[first:]

        def held_loss(scores: Vector, _: Any) -> tuple[str, float, bool]:
            losses = pick_likelihood(np.asarray(scores, dtype=np.float64), held).losses
            return "loss", float(held_counts @ losses / held_counts.sum()), False

        stop = lightgbm.early_stopping(PATIENCE, verbose=False)
        found = _grown(log[:first], counts[:first], settings, self.trees, held, held_loss, [stop])
        return max(1, int(found.best_iteration))


def _grown(
    log: BanditLog,
    counts: Vector,
    settings: dict[str, Any],
    n_trees: int,
    held: BanditLog | None = None,
    judge: Any = None,
    callbacks: list[Any] | None = None,
) -> Any:
    """LightGBM's trees for the conditional softmax loss of a log."""
    lightgbm = _lightgbm()
    per_row = np.repeat(counts, log.n_arms)
    # Newton's steps of softmax scores overshoot by K / (K - 1) where only the diagonal is known.
    widened = np.repeat(log.n_arms / np.maximum(log.n_arms - 1, 1), log.n_arms)

    def slopes(scores: Vector, _: Any) -> tuple[Vector, Vector]:
        found = pick_likelihood(np.asarray(scores, dtype=np.float64), log)
        curvature = widened * found.predicted * (1 - found.predicted)
        return per_row * (found.predicted - found.expected), per_row * np.maximum(curvature, LEAST_HESSIAN)

    data = lightgbm.Dataset(log.dense, label=np.zeros(len(log.features)), free_raw_data=True)
    judged = [] if held is None else [data.create_valid(held.dense, label=np.zeros(len(held.features)))]
    return lightgbm.train(
        {**{k: v for k, v in settings.items() if v is not None}, "objective": slopes, "metric": "none"},
        data,
        num_boost_round=n_trees,
        valid_sets=judged,
        feval=judge,
        callbacks=callbacks,
    )


def _lightgbm() -> Any:
    try:
        import lightgbm
    except ImportError as error:
        raise InputError("Boosted needs LightGBM: pip install 'onlooker[trees]'") from error
    return lightgbm


def _trees_of(text: str) -> list[Tree]:
    """The trees in LightGBM's text, which was written a moment ago by LightGBM itself."""
    trees = []
    for block in text.split("\nTree=")[1:]:
        lines = dict(line.split("=", 1) for line in block.splitlines()[1:] if "=" in line)

        def row(name: str, kind: type, lines: dict[str, str] = lines) -> Any:
            return np.array(lines.get(name, "").split(), dtype=kind)

        values = row("leaf_value", np.float64)
        if len(values) == 1:
            nothing = np.zeros(0, dtype=np.int64)
            trees.append(Tree(nothing, np.zeros(0), nothing, nothing, values))
            continue
        splits = (row(name, np.int64) for name in ("split_feature", "left_child", "right_child"))
        feature, left, right = splits
        trees.append(Tree(feature, np.clip(row("threshold", np.float64), -1e299, 1e299), left, right, values))
    return trees
