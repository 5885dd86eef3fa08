"""Policies: what all of them share, and the linear one, which scores every offered arm by `<x, theta>`."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlooker.base.documents import read_document
from onlooker.base.errors import InputError
from onlooker.base.files import write_text
from onlooker.base.text import one_line, shown
from onlooker.base.types import Index, Matrix, Vector
from onlooker.logs import ragged
from onlooker.logs.arm_ids import key_of
from onlooker.logs.categories import Categories, Encoding, as_categories, products_of
from onlooker.logs.crossing import Crossing
from onlooker.logs.effects import Effect, as_curve, grid
from onlooker.logs.encoding import feature_rows
from onlooker.logs.frames import arrow_table, is_table, opened
from onlooker.logs.layouts import Layout
from onlooker.logs.log import BanditLog, as_log, feature_labels
from onlooker.logs.parts import Parts
from onlooker.logs.ragged import as_names
from onlooker.logs.what_if import Offers, offers_in

_BEYOND = "has a score too large for double precision: put the features, or theta, on a smaller scale"


class Policy(Protocol):
    """What an observer recovers: it scores the arms on offer, and chooses the best."""

    def scores(self, log: BanditLog) -> Vector:
        """Score of every offered arm, one per row of the log."""

    def choose(self, log: BanditLog) -> Index:
        """Position of the chosen arm in every round, shape (N,)."""

    def probabilities(self, log: BanditLog) -> Vector:
        """Softmax of the scores within every round, one per row of the log."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file in which nothing is run."""


class Scoring(ABC):
    """What all policies share that score rows of features: features by name, tables of offers, choices."""

    __slots__ = ()

    schema: ClassVar[str]
    """Written into every saved policy; a file with another one is refused."""
    feature_names: tuple[str, ...] | None
    """One name per feature, or None: then features are matched by position."""
    categories: Categories | None
    """Levels of every category by its column, the reference first, or None; see `BanditLog.from_frame`."""
    crossing: Crossing | None = None
    """Which arm, and which feature of the context, each weight belongs to; None unless learned from contexts."""

    def _describe(
        self,
        n_features: int,
        feature_names: Sequence[str] | None,
        categories: Mapping[str, Sequence[str]] | None,
        crossing: Crossing | None = None,
    ) -> None:
        """Keep names and categories, checked."""
        names = as_names(feature_names, n_features)
        encoded = names if crossing is None else (*crossing.own, *crossing.context, *crossing.items)
        object.__setattr__(self, "feature_names", names)
        object.__setattr__(self, "categories", as_categories(categories, encoded) if categories else None)

    @property
    @abstractmethod
    def n_features(self) -> int:
        """How many features a row has."""

    @abstractmethod
    def row_scores(self, rows: Matrix) -> Vector:
        """Score of every row of features, which are in the policy's order."""

    def scores(self, log: BanditLog | Any) -> Vector:
        """Score of every offered arm, one per row of `log.features`, or of a table of offers.

        A table (pandas, polars, pyarrow) has the columns that the policy was learned from, and needs no picks: change
        a value, and see what the policy does. Rows with the same `round` are offered together; without that column
        all rows are one round. Where every arm has its own weights a row is a round, and values are those of all arms
        in the order of `arms`, round after round.

        Examples
        --------
        >>> import pyarrow as pa
        >>> policy = LinearPolicy([-1.0, 0.5], ["price", "speed"])
        >>> offers = pa.table({"round": [1, 1, 2], "price": [2.0, 1.0, 3.0], "speed": [1.0, 1.0, 0.0]})
        >>> policy.scores(offers), policy.choose(offers), policy.probabilities(offers).round(2)
        (array([-1.5, -0.5, -3. ]), array([1, 0]), array([0.27, 0.73, 1.  ]))
        """
        if not isinstance(log, BanditLog) and is_table(log):
            return self._of_offers(self._offers(log))
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._of_log(as_log(log, "a policy"))
        if not np.isfinite(scores).all():
            row = int(np.flatnonzero(~np.isfinite(scores))[0])
            t = int(np.searchsorted(log.offsets, row, side="right")) - 1
            raise InputError(f"round {t}, arm {row - log.offsets[t]} {_BEYOND}")
        return scores

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """What is saved of it besides names and categories, as plain values."""

    @classmethod
    @abstractmethod
    def made_of(cls, document: Mapping[str, Any], names: Any, categories: Any) -> Self:
        """The policy with this content, checked."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy as JSON; `load` gives back exactly the same numbers.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     policy = LinearPolicy([0.1, 0.2], feature_names=["price", "speed"])
        ...     policy.save(f"{folder}/policy.json")
        ...     LinearPolicy.load(f"{folder}/policy.json") == policy
        True
        """
        names = None if self.feature_names is None else list(self.feature_names)
        document: dict[str, Any] = {"schema": self.schema, "feature_names": names}
        if self.categories is not None:
            document["categories"] = dict(self.categories)
        write_text(path, json.dumps(document | self.content(), ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a policy that `save` wrote. Nothing in the file is run."""
        document = read_document(path, [cls.schema], "policy file", writer=f"{cls.__name__}.save")
        try:
            names, categories = document.get("feature_names"), document.get("categories")
            known = None if names is None else _list_of(names, "feature_names", (str,), "text, or null")
            return cls.made_of(document, known, None if categories is None else _levels(categories))
        except InputError as error:
            raise InputError(f"{shown(path)}: {one_line(error, 500)}") from error

    def _of_log(self, log: BanditLog) -> Vector:
        """Scores, which may be too large."""
        where = np.argsort(self.positions(log))
        scores = np.empty(len(log.features))
        for start, stop in ragged.blocks(log.offsets, log.n_features):
            rows = slice(log.offsets[start], log.offsets[stop])
            scores[rows] = self.row_scores(log[start:stop].dense[:, where].astype(np.float64))
        return scores

    def _offers(self, table: Any) -> Offers:
        return offers_in(table, self, self.crossing)

    def _of_offers(self, offers: Offers) -> Vector:
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self.row_scores(offers.rows.astype(np.float64, copy=False))
        if not np.isfinite(scores).all():
            raise InputError(f"offer {int(np.flatnonzero(~np.isfinite(scores))[0]) + 1} of the table {_BEYOND}")
        return scores

    def choose(self, log: BanditLog | Any) -> Index:
        """Position of the chosen arm in every round, shape (N,); of a table of offers too, see `scores`."""
        if not isinstance(log, BanditLog) and is_table(log):
            offers = self._offers(log)
            return offers.chosen(self._of_offers(offers))
        return ragged.argmax(self.scores(log), log.offsets)

    def probabilities(self, log: BanditLog | Any) -> Vector:
        """Softmax of the scores within every round, one per row of `log.features` or of a table; see `scores`."""
        if not isinstance(log, BanditLog) and is_table(log):
            offers = self._offers(log)
            return offers.probabilities(self._of_offers(offers))
        return ragged.softmax(self.scores(log), log.offsets)

    def pick(self, offers: Any) -> int:
        """Position of the best arm of one round, the first of equals.

        `offers` has one row per arm: an array of shape (K, d), or a table (pandas, polars, pyarrow) with the columns
        that the policy was learned from, which are encoded as they were then.

        Examples
        --------
        >>> import pyarrow as pa
        >>> policy = LinearPolicy([-1.0, 5.0], ["price", "colour=red"], {"colour": ["blue", "red"]})
        >>> policy.pick(pa.table({"colour": ["blue", "red", "blue"], "price": [9.0, 13.0, 7.5]}))
        2
        """
        rows = self._encoded(offers)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise InputError(
                f"the offers have shape {rows.shape}: pass one row per arm, {self.n_features} features each"
            )
        if not len(rows):
            raise InputError("no arm is on offer: there is nothing to pick")
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self.row_scores(rows.astype(np.float64, copy=False))
        if not np.isfinite(scores).all():
            arm = int(np.flatnonzero(~np.isfinite(scores))[0])
            known = bool(np.isfinite(rows[arm]).all())
            raise InputError(f"arm {arm} {_BEYOND if known else 'has a missing or infinite feature: fill it in'}")
        return int(np.argmax(scores))

    def _encoded(self, offers: Any) -> NDArray[Any]:
        """Offers as rows of features."""
        if isinstance(offers, np.ndarray | list | tuple):
            try:
                return np.asarray(offers, dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise InputError("the offers do not hold numbers: pass a table to encode text") from error
        encoding = Encoding.of(self, products_of(self, opened(offers)[1]))
        return feature_rows(arrow_table(offers, encoding.columns), encoding, free=False)

    def positions(self, log: BanditLog | Parts) -> Index:
        """Where the policy has each of the log's features: by name where both have names, else by position."""
        crossing = getattr(log, "crossing", None)
        if self.crossing is not None and crossing is not None:
            found = self.crossing.positions(crossing)
            if found is not None:
                return found
        names = log.feature_names if crossing is None else crossing.weight_names
        if self.feature_names is not None and names is not None:
            where = {name: position for position, name in enumerate(self.feature_names)}
            there = set(names)
            absent = [name for name in self.feature_names if name not in there]
            unknown = [name for name in names if name not in where]
            if absent or unknown:
                raise InputError(
                    "the policy and the log have different features: "
                    + "; ".join(
                        part
                        for part in (
                            f"the log lacks {absent[:5]}" if absent else "",
                            f"the policy does not know {unknown[:5]}" if unknown else "",
                        )
                        if part
                    )
                )
            return np.array([where[name] for name in names], dtype=np.int64)
        if self.n_features != log.n_features:
            raise InputError(f"the policy has {self.n_features} features, but the log has {log.n_features}")
        return np.arange(log.n_features)


def as_linear(policy: Policy, needed_by: str) -> LinearPolicy:
    """Refuse a policy that is not linear where its weights are needed."""
    if not isinstance(policy, LinearPolicy):
        raise InputError(f"{needed_by} needs a linear policy, and a {type(policy).__name__} is not")
    return policy


class LinearPolicy(Scoring):
    """Score `<x, theta>`; the first of equal best arms is chosen.

    Examples
    --------
    >>> import numpy as np
    >>> log = BanditLog.from_dense(np.array([[[1.0, 0.0], [0.0, 1.0]]]), chosen=[0])
    >>> policy = LinearPolicy([0.0, 2.0])
    >>> policy.choose(log)
    array([1])
    >>> policy.probabilities(log).round(3)
    array([0.119, 0.881])
    """

    __slots__ = ("categories", "crossing", "feature_names", "theta")

    schema: ClassVar[str] = "onlooker.policy/1"

    theta: Vector
    """Weight of each feature, shape (d,)."""

    def __init__(
        self,
        theta: ArrayLike,
        feature_names: Sequence[str] | None = None,
        categories: Mapping[str, Sequence[str]] | None = None,
        crossing: Crossing | None = None,
    ) -> None:
        try:
            weights = np.array(theta, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError("theta does not hold numbers: pass one weight per feature") from error
        if weights.ndim != 1 or not len(weights):
            raise InputError(f"theta has shape {weights.shape}: pass one weight per feature")
        if not np.isfinite(weights).all():
            raise InputError(f"theta[{np.flatnonzero(~np.isfinite(weights))[0]}] is not finite")
        if crossing is not None:
            if crossing.n_weights != len(weights):
                raise InputError(f"theta has {len(weights)} weights, but arms and context have {crossing.n_weights}")
            feature_names = crossing.weight_names
        weights.flags.writeable = False
        object.__setattr__(self, "theta", weights)
        object.__setattr__(self, "crossing", crossing)
        self._describe(len(weights), feature_names, categories, crossing)

    @classmethod
    def of(cls, theta: ArrayLike, log: Named) -> LinearPolicy:
        """The policy with these weights for logs like this one.

        Examples
        --------
        >>> log = BanditLog.from_contexts(np.eye(2), ["tea", "milk"], feature_names=["young", "old"])
        >>> policy = LinearPolicy.of([1.0, -1.0, 0.0, 0.0], log)
        >>> policy.arms, policy.feature_names
        (('milk', 'tea'), ('milk: young', 'milk: old', 'tea: young', 'tea: old'))
        """
        return cls(theta, log.feature_names, log.categories, getattr(log, "crossing", None))

    @property
    def arms(self) -> tuple[Any, ...] | None:
        """Ids of the arms, where each has weights of its own: `theta.reshape(len(arms), -1)` has one row per arm."""
        return None if self.crossing is None else self.crossing.arms

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a LinearPolicy is immutable: make a new one instead of setting {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a LinearPolicy is immutable: {name!r} cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        return LinearPolicy, (self.theta, self.feature_names, self.categories, self.crossing)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LinearPolicy):
            return NotImplemented
        mine, theirs = ((one.feature_names, one.categories, one.crossing) for one in (self, other))
        named = mine == theirs
        return named and np.array_equal(self.theta, other.theta)

    def __hash__(self) -> int:
        # Of the numbers, not of their bytes: 0.0 equals -0.0.
        return hash((tuple(self.theta.tolist()), self.feature_names))

    def __repr__(self) -> str:
        return f"LinearPolicy({len(self.theta)} features, |theta| = {np.linalg.norm(self.theta):.4g})"

    @property
    def n_features(self) -> int:
        """How many weights there are."""
        return len(self.theta)

    def row_scores(self, rows: Matrix) -> Vector:
        """Score of every row of features, which are in the policy's order."""
        return np.asarray(rows @ self.theta)

    def _of_log(self, log: BanditLog) -> Vector:
        theta = self.theta[self.positions(log)]
        if isinstance(log.features, Layout):
            return log.features @ theta
        scores = np.empty(len(log.features))
        for start, stop in ragged.blocks(log.offsets, log.n_features):
            rows = slice(log.offsets[start], log.offsets[stop])
            np.matmul(log.features[rows].astype(np.float64, copy=False), theta, out=scores[rows])
        return scores

    def effect(self, name: str, x: ArrayLike | None = None, *, level: float = 0.95) -> Effect:
        """What a feature adds to the score: a straight line, at `x` or from 0 to 1.

        A policy alone does not know how certain its weights are, so there is no band: `SuffixImitation.effect` has one.

        Examples
        --------
        >>> LinearPolicy([3.0, 0.0], feature_names=["speed", "price"]).effect("speed", [1.0, 2.0]).effect
        array([3., 6.])
        """
        points = grid(np.array([0.0, 1.0])) if x is None else as_curve(x)
        values = self.theta[feature_place(self, name)] * points
        unknown = np.full(len(points), np.nan)
        return Effect(name=name, x=points, effect=values, low=unknown, high=unknown, level=level)

    def content(self) -> dict[str, Any]:
        """The weights, and how they belong to arms and context."""
        crossed = {} if self.crossing is None else crossing_document(self.crossing)
        return {"theta": self.theta.tolist(), **crossed}

    @classmethod
    def made_of(cls, document: Mapping[str, Any], names: Any, categories: Any) -> Self:
        """The policy with these weights, checked."""
        return cls(saved_weights(document), names, categories, crossing_of(document))


def saved_weights(document: Mapping[str, Any]) -> list[Any]:
    """The weights in a saved policy."""
    return _list_of(document.get("theta"), "theta", (int, float), "numbers")


def feature_place(policy: Scoring, name: object) -> int:
    """Where a policy has a feature, by its name, or by its number where features have no names."""
    names = feature_labels(policy.feature_names, policy.n_features)
    if isinstance(name, str) and name in names:
        return names.index(name)
    some = ", ".join(repr(one) for one in names[:5])
    raise InputError(f"the policy has no feature {one_line(repr(name), 60)}: it has {some}{', ...' * (len(names) > 5)}")


class Named(Protocol):
    """What knows the names and categories of its features: a log, wherever it is."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """One name per feature, or None."""

    @property
    def categories(self) -> Categories | None:
        """Levels of every category by its column, the reference first, or None."""


_CROSSED = {"own_features": "own", "context_features": "context", "arm_features": "items"}
"""Names in a saved policy of what a `Crossing` has."""


def crossing_document(crossing: Crossing) -> dict[str, Any]:
    """What is saved of how weights belong to arms and context."""
    document: dict[str, Any] = {"arms": None, "features_named": crossing.named}
    if crossing.arms is not None:
        document["arms"] = [arm if type(arm) in (str, int, float, bool) else str(arm) for arm in crossing.arms]
    return document | {name: list(getattr(crossing, of)) for name, of in _CROSSED.items()}


def crossing_of(document: Mapping[str, Any]) -> Crossing | None:
    """The same, read back; None where the weights belong to features alone."""
    if not any(name in document for name in ("arms", *_CROSSED)):
        return None
    arms, named = document.get("arms"), document.get("features_named", True)
    if type(named) is not bool:
        raise InputError("'features_named' must be true or false")
    known = None if arms is None else _list_of(arms, "arms", (str, int, float, bool), "numbers or text")
    if known is not None and len({key_of(arm) for arm in known}) < len(known):
        raise InputError("'arms' has an arm twice: every arm must be there once")
    names = {of: tuple(_list_of(document.get(name, []), name, (str,), "text")) for name, of in _CROSSED.items()}
    return Crossing(arms=None if known is None else tuple(known), named=named, **names)


def _list_of(values: Any, name: str, kinds: tuple[type, ...], wanted: str) -> list[Any]:
    """What was saved under a name: a list whose every entry is of one of these kinds."""
    if not isinstance(values, list):
        raise InputError(f"{name!r} must be a list of {wanted}")
    for place, value in enumerate(values):
        # By its own type: true is not a number here.
        if type(value) not in kinds:
            raise InputError(f"{name}[{place}] is {one_line(repr(value), 40)}: {name!r} must be a list of {wanted}")
    return values


def _levels(categories: Any) -> dict[str, list[str]]:
    """What was saved of categories."""
    if not isinstance(categories, dict):
        raise InputError("'categories' must map columns to lists of their levels")
    return {column: _list_of(levels, f"categories.{column}", (str,), "text") for column, levels in categories.items()}
