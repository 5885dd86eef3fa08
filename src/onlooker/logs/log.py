"""The bandit log: what was offered and what was picked, oldest round first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlooker.base.checks import counted
from onlooker.base.errors import InputError
from onlooker.base.memory_limit import check_work
from onlooker.base.types import Features, Ids, Index, Vector
from onlooker.logs.categories import Categories, as_categories
from onlooker.logs.constructors import Constructors
from onlooker.logs.crossing import Crossing
from onlooker.logs.factored import FactoredRows
from onlooker.logs.frames import LogArrays
from onlooker.logs.layouts import MOST_WEIGHTS, WIDEST, Layout, as_rows
from onlooker.logs.partial import (
    UNKNOWN,
    Marks,
    as_offer_probability,
    as_possible,
    check_even_sample,
    marks_of,
    picks_of,
    unseen_picks,
)
from onlooker.logs.ragged import as_features, as_ids, as_index, as_names, check_finite, check_rounds

if TYPE_CHECKING:
    from onlooker.logs.parts import Parts

_PARTS = (
    *("features", "offsets", "_chosen", "feature_names", "round_ids", "_arm_ids", "times", "categories"),
    *("possible", "offer_probability"),
)


class BanditLog(Constructors):
    """Offers and picks of a learner, ragged and immutable.

    Parameters
    ----------
    features
        One row per offered arm, shape (rows, d), float32 or float64. Kept without a copy where that is possible.
    offsets
        Shape (N + 1,): round `t` offers the rows `offsets[t]` to `offsets[t + 1] - 1`.
    chosen
        Shape (N,): position of the pick within its round. None if only `possible` is known.
    feature_names, round_ids, arm_ids
        Names, kept as they are: one per feature, per round and per row.
    times
        Time of each round, in any unit, where it is known.
    categories
        All levels of every column that became one-hot features, the reference level first; see `from_frame`.
    possible
        One mark per row: which arms may have been the pick, where only a set is known. A set of one arm is an
        observed pick. A set of several arms takes precedence over `chosen`.
    offer_probability
        Where the log keeps the pick and a sample of the other offers: one probability per row, with which the
        arm is kept in a round that does not pick it. Fits correct for it (McFadden 1978).

    Examples
    --------
    Two rounds, of two and of three arms:

    >>> import numpy as np
    >>> features = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.0], [0.0, 0.0]])
    >>> log = BanditLog(features, offsets=[0, 2, 5], chosen=[1, 0], feature_names=["price", "speed"])
    >>> log
    BanditLog(2 rounds, 2 to 3 arms, 2 features, float64)
    >>> log.arms(1)
    array([[1. , 1. ],
           [0.5, 0. ],
           [0. , 0. ]])
    >>> log[1:].n_rounds
    1

    The second round's pick is one of its first two arms:

    >>> BanditLog(features, [0, 2, 5], None, possible=[0, 1, 1, 1, 0])
    BanditLog(2 rounds, 2 to 3 arms, 2 features, float64, 1 pick known to a set)
    """

    __slots__ = _PARTS

    features: Features | Layout
    """One row per offered arm, shape (rows, d): an array, or a layout of rows that are not dense."""
    offsets: Index
    """Where each round's rows begin, shape (N + 1,)."""
    _chosen: Index
    feature_names: tuple[str, ...] | None
    """One name per feature, or None; of contexts, one per feature of the context."""
    round_ids: Ids | None
    """One id per round, or None."""
    _arm_ids: Ids | None
    times: Ids | None
    """Time of each round, or None; tables that were ordered by a column have that."""
    categories: Categories | None
    """Levels of every category by its column, the reference first, or None."""
    possible: Marks | None
    """Which arms may have been the pick, one mark per row; None where all picks are known."""
    offer_probability: Vector | None
    """With what probability each row is kept in a round that does not pick it; None where all offers are there."""

    def __init__(
        self,
        features: ArrayLike | Layout,
        offsets: ArrayLike,
        chosen: ArrayLike | None,
        *,
        feature_names: Sequence[str] | None = None,
        round_ids: ArrayLike | None = None,
        arm_ids: ArrayLike | None = None,
        times: ArrayLike | None = None,
        categories: Mapping[str, Sequence[str]] | None = None,
        possible: ArrayLike | None = None,
        offer_probability: ArrayLike | None = None,
    ) -> None:
        rows = as_features(features) if isinstance(features, np.ndarray) else as_rows(features)
        bounds = as_index(offsets, "offsets")
        names = as_names(feature_names, rows.n_named if isinstance(rows, Layout) else rows.shape[1])
        picks, marks = _picks(chosen, possible, bounds, len(rows))
        if isinstance(rows, Layout):
            rows.check_finite(names)
        else:
            check_finite(rows, bounds, names)
        _fill(
            self,
            rows,
            bounds,
            picks,
            names,
            as_ids(round_ids, len(picks), "round_ids"),
            as_ids(arm_ids, len(rows), "arm_ids"),
            as_ids(times, len(picks), "times"),
            as_categories(categories, (*(names or ()), *(getattr(rows, "item_names", None) or ())))
            if categories
            else None,
            marks,
            None if offer_probability is None else as_offer_probability(offer_probability, bounds, marks, picks),
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a BanditLog is immutable: make a new one instead of setting {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a BanditLog is immutable: {name!r} cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, tuple(getattr(self, name) for name in _PARTS)

    def split(self, by: ArrayLike) -> dict[str, BanditLog]:
        """Split the log by `by`, one value per round; the parts are in order of first appearance.

        Examples
        --------
        >>> log = BanditLog(np.eye(3), offsets=[0, 1, 2, 3], chosen=[0, 0, 0])
        >>> log.split(["b", "a", "b"])
        {'b': BanditLog(2 rounds, 1 arm, 3 features, float64), 'a': BanditLog(1 round, 1 arm, 3 features, float64)}
        """
        values = as_ids(by, self.n_rounds, "by")
        assert values is not None
        rounds: dict[str, list[int]] = {}
        for t, value in enumerate(values.tolist()):
            rounds.setdefault(str(value), []).append(t)
        return {value: self[np.array(places)] for value, places in rounds.items()}

    @classmethod
    def from_parts(cls, parts: LogArrays) -> BanditLog:
        """Build a log from arrays that were checked before."""
        chosen, marks = _picks(parts.chosen, parts.possible, parts.offsets, len(parts.features))
        chances = parts.offer_probability
        names = as_names(parts.feature_names, parts.features.shape[1])
        return _restore(
            parts.features,
            parts.offsets,
            chosen,
            names,
            parts.round_ids,
            parts.arm_ids,
            parts.times,
            as_categories(parts.categories, names),
            marks,
            None if chances is None else as_offer_probability(chances, parts.offsets, marks, chosen),
        )

    @classmethod
    def concat(cls, logs: Sequence[BanditLog]) -> BanditLog:
        """Join logs with the same features, one after the other; names and categories are the first log's.

        Examples
        --------
        >>> log = BanditLog(np.eye(3), offsets=[0, 1, 3], chosen=[0, 1])
        >>> BanditLog.concat([log[:1], log[1:]])
        BanditLog(2 rounds, 1 to 2 arms, 3 features, float64)
        """
        if not logs:
            raise InputError("there are no rounds: nothing was offered")
        first = as_log(logs[0])
        for log in logs[1:]:
            rows = as_log(log).features
            if isinstance(first.features, Layout) and isinstance(rows, Layout):
                first.features.check_like(rows)
            if as_log(log).n_features != first.n_features:
                raise InputError(f"a log has {log.n_features} features, the first {first.n_features}: join like logs")
            if (log.feature_names, log.categories) != (first.feature_names, first.categories):
                raise InputError("the logs name or encode their features differently: read each with like= the first")
        return _restore(
            _concat_rows([log.features for log in logs]),
            np.concatenate([[0], np.cumsum(np.concatenate([log.n_arms for log in logs]))]).astype(np.int64),
            np.concatenate([log.chosen_or_unknown for log in logs]),
            first.feature_names,
            _concat_ids([log.round_ids for log in logs]),
            _concat_ids([None if _has_ids(log.features) else log.arm_ids for log in logs]),
            _concat_ids([log.times for log in logs]),
            first.categories,
            *_concat_partial(logs),
        )

    def with_features(
        self,
        features: ArrayLike | Layout,
        feature_names: Sequence[str] | None = None,
        categories: Categories | None = None,
    ) -> BanditLog:
        """The same rounds, picks and ids with other features, one row for each offered arm as before.

        Examples
        --------
        >>> log = BanditLog(np.eye(3), offsets=[0, 1, 3], chosen=[0, 1], round_ids=["a", "b"])
        >>> log.with_features(log.features[:, :1] * 2.0, ["twice"]).round_ids
        array(['a', 'b'], dtype='<U1')
        """
        return BanditLog(
            features,
            self.offsets,
            self._chosen,
            feature_names=feature_names,
            round_ids=self.round_ids,
            arm_ids=None if _has_ids(features) else self.arm_ids,
            times=self.times,
            categories=categories,
            possible=self.possible,
            offer_probability=self.offer_probability,
        )

    @property
    def chosen(self) -> Index:
        """Position of the pick within its round, shape (N,); refused where some picks are known only to a set."""
        if self.possible is not None:
            raise unseen_picks(self.n_sets, self.n_rounds)
        return self._chosen

    @property
    def chosen_or_unknown(self) -> Index:
        """The same, with -1 where only a set is known."""
        return self._chosen

    def may_be(self, positions: Index) -> Marks:
        """Whether each position, one per round, is the pick, or is in the set that contains the pick.

        Examples
        --------
        >>> log = BanditLog(np.eye(4), [0, 2, 4], None, possible=[True, True, False, True])
        >>> log.may_be(np.array([0, 0]))
        array([ True, False])
        """
        if self.possible is None:
            return np.asarray(positions == self._chosen)
        return np.asarray(self.possible[self.offsets[:-1] + positions])

    def of_picks(self, values: Vector) -> Vector:
        """The value of each round's pick, given one value per row (last axis); for a set, the sum over it.

        Examples
        --------
        >>> log = BanditLog(np.eye(4), [0, 2, 4], None, possible=[True, True, False, True])
        >>> log.of_picks(np.array([0.5, 0.25, 1.0, 2.0]))
        array([0.75, 2.  ])
        """
        if self.possible is None:
            return np.asarray(values[..., self.chosen_rows])
        return np.add.reduceat(np.where(self.possible, values, 0.0), self.offsets[:-1], axis=-1)

    def expected_picks(self, probabilities: Vector) -> Vector:
        """Posterior probability that each row was picked: 1 or 0 where the pick was observed.

        `probabilities` are the prior ones, one per row.

        Examples
        --------
        >>> log = BanditLog(np.eye(4), [0, 2, 4], None, possible=[True, True, False, True])
        >>> log.expected_picks(np.array([0.3, 0.1, 0.3, 0.7]))
        array([0.75, 0.25, 0.  , 1.  ])
        """
        marks = marks_of(self._chosen, self.offsets) if self.possible is None else self.possible
        held = np.where(marks, probabilities, 0.0)
        totals = np.repeat(np.add.reduceat(held, self.offsets[:-1]), self.n_arms)
        alike = marks / np.repeat(np.add.reduceat(marks, self.offsets[:-1], dtype=np.int64), self.n_arms)
        return np.asarray(np.divide(held, totals, out=alike, where=totals > 0))

    @property
    def informative(self) -> Marks:
        """Which rounds offer a choice and are informative: not every offered arm may have been the pick."""
        choices = self.n_arms > 1
        if self.possible is None:
            return np.asarray(choices)
        return np.asarray(choices & ~np.logical_and.reduceat(self.possible, self.offsets[:-1]))

    @property
    def n_sets(self) -> int:
        """Number of rounds of which only a set that contains the pick is known."""
        return int(np.count_nonzero(self._chosen == UNKNOWN))

    @property
    def partial(self) -> bool:
        """Whether picks are known only to a set, or offers only by a sample."""
        return self.possible is not None or self.offer_probability is not None

    @property
    def dated(self) -> bool:
        """Whether the times of its rounds are dates."""
        return self.times is not None and len(self.times) > 0 and self.times.dtype.kind == "M"

    @property
    def n_rounds(self) -> int:
        """Number of rounds, N."""
        return len(self._chosen)

    @property
    def shape(self) -> tuple[int]:
        """`(N,)`, as of an array of rounds: scikit-learn's cross-validation then picks rounds by `log[rounds]`."""
        return (self.n_rounds,)

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return int(self.features.shape[1])

    @property
    def weight_names(self) -> tuple[str, ...] | None:
        """One name per weight, or None: the features' names, of contexts with the arm before each."""
        crossing = self.crossing
        return self.feature_names if crossing is None else crossing.weight_names

    @property
    def crossing(self) -> Crossing | None:
        """What each weight belongs to, where features are made of contexts and arms; else None."""
        rows = self.features
        return rows.crossing(self.feature_names) if isinstance(rows, FactoredRows) else None

    @property
    def arm_ids(self) -> Ids | None:
        """One id per row, or None; of contexts it is computed on access."""
        if self._arm_ids is None and isinstance(self.features, Layout):
            return self.features.row_ids()
        return self._arm_ids

    @property
    def dense(self) -> Features:
        """The features as an array.

        Other layouts are written out on every access: use `log[a:b].dense` for blocks of rounds. More than
        `WRITTEN_OUT` bytes are refused.
        """
        return self.features.written_out() if isinstance(self.features, Layout) else self.features

    def written_out(self) -> BanditLog:
        """The same log with its features as an array."""
        if not isinstance(self.features, Layout):
            return self
        categories = self.categories if self.crossing is None else None
        return self.with_features(self.dense, self.weight_names, categories)

    @property
    def nbytes(self) -> int:
        """Memory of the features in bytes."""
        return int(self.features.nbytes)

    @property
    def n_arms(self) -> Index:
        """How many arms each round offers, shape (N,)."""
        return np.diff(self.offsets)

    @property
    def chosen_rows(self) -> Index:
        """Row of each round's pick in `features`, shape (N,)."""
        return self.offsets[:-1] + self.chosen

    def __len__(self) -> int:
        return self.n_rounds

    def arms(self, t: int) -> Features:
        """Feature rows that round `t` offers, as a view; negative rounds count from the end."""
        n = self.n_rounds
        if not -n <= t < n:
            raise IndexError(f"round {t} of a log with {n} rounds")
        t %= n
        rows = self.features[self.offsets[t] : self.offsets[t + 1]]
        return rows.toarray() if isinstance(rows, Layout) else rows

    def suffix(self, T: int) -> BanditLog:
        """Leave out the first `T` rounds, as a view."""
        if not 0 <= T <= self.n_rounds:
            raise InputError(f"a suffix from round {T} of a log with {self.n_rounds} rounds: T must lie within it")
        return self[T:]

    def __getitem__(
        self, rounds: slice | Sequence[int] | NDArray[Any] | tuple[NDArray[Any], EllipsisType]
    ) -> BanditLog:
        """Select rounds: a slice of step one is a view, anything else gathers the rows that it needs.

        `log[rounds, ...]` is the same: scikit-learn's cross-validation uses this form.
        """
        if isinstance(rounds, tuple) and len(rounds) == 2 and rounds[1] is ...:
            rounds = rounds[0]
        if isinstance(rounds, slice):
            start, stop, step = rounds.indices(self.n_rounds)
            if step == 1:
                return self._range(start, max(start, stop))
            return self._gather(np.arange(start, stop, step))
        if np.ndim(rounds) == 0:
            raise TypeError(f"log[{rounds}] is one round: use log.arms({rounds}) and log.chosen[{rounds}]")
        # An empty list would make an index of floats.
        return self._gather(np.arange(self.n_rounds)[np.asarray(rounds, dtype=None if len(rounds) else np.int64)])

    def _range(self, start: int, stop: int) -> BanditLog:
        first, last = int(self.offsets[start]), int(self.offsets[stop])
        return _restore(
            self.features[first:last],
            self.offsets[start : stop + 1] - first,
            self._chosen[start:stop],
            self.feature_names,
            _some(self.round_ids, slice(start, stop)),
            _some(self._arm_ids, slice(first, last)),
            _some(self.times, slice(start, stop)),
            self.categories,
            _sets(_some(self.possible, slice(first, last)), self._chosen[start:stop]),
            _some(self.offer_probability, slice(first, last)),
        )

    def _gather(self, rounds: Index) -> BanditLog:
        sizes = self.n_arms[rounds]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][rounds] - offsets[:-1], sizes)
        return _restore(
            self.features[rows],
            offsets,
            self._chosen[rounds],
            self.feature_names,
            _some(self.round_ids, rounds),
            _some(self._arm_ids, rows),
            _some(self.times, rounds),
            self.categories,
            _sets(_some(self.possible, rows), self._chosen[rounds]),
            _some(self.offer_probability, rows),
        )

    def __repr__(self) -> str:
        sizes = self.n_arms
        few, many = (int(sizes.min()), int(sizes.max())) if len(sizes) else (0, 0)
        arms = counted(many, "arm") if few == many else f"{few} to {many} arms"
        rounds, features, kind = counted(self.n_rounds, "round"), counted(self.n_features, "feature"), ""
        if isinstance(self.features, Layout):
            features, kind = self.features.described(), self.features.kind
        known = f", {counted(self.n_sets, 'pick')} known to a set" if self.n_sets else ""
        known += ", sampled offers" if self.offer_probability is not None else ""
        return f"BanditLog({rounds}, {arms}, {features}, {kind}{self.features.dtype}{known})"


def as_log(log: object, needed_by: str = "this") -> BanditLog:
    """Refuse what is not a log in memory; the message names what needs one and how to make one."""
    if not isinstance(log, BanditLog):
        # Logs in parts are defined above this module; these two they have in common.
        if hasattr(log, "run") and hasattr(log, "feature_names"):
            kind = type(log).__name__
            raise InputError(f"{needed_by} needs the log in memory, and a {kind} is not: read it with read_log(path)")
        raise InputError(
            f"a {type(log).__name__} is not a BanditLog: make one with BanditLog.from_frame, "
            "BanditLog.from_dense or read_log"
        )
    return log


def as_narrow(log: object, needed_by: str) -> BanditLog:
    """Refuse what is not a log in memory, and a log with too many sparse features to finish in any reasonable time."""
    found = as_log(log, needed_by)
    if isinstance(found.features, Layout):
        check_narrow(found.n_features, needed_by)
    if found.offer_probability is not None:
        check_even_sample(found.offer_probability, found.offsets, needed_by)
    return found


def check_narrow(n_features: int, needed_by: str) -> None:
    """Refuse a sparse or factored log with too many features to finish in any reasonable time."""
    if n_features > WIDEST:
        raise InputError(
            f"{needed_by} takes up to {WIDEST:,} features where most are 0, and the log has {n_features:,}: name "
            "some with features=[...], or fit a SuffixImitation, which takes them all"
        )


def check_room(log: BanditLog | Parts, matrices: int) -> None:
    """Refuse a log whose number of features would exceed the memory limit; see `check_work`.

    Examples
    --------
    >>> check_room(BanditLog.from_dense(np.zeros((3, 2, 1)), chosen=[0, 1, 0]), matrices=20)
    """
    if isinstance(log, BanditLog):
        if isinstance(log.features, Layout) and log.n_features > MOST_WEIGHTS:
            matrices = 0
        check_work(log.n_features, matrices, held=max(log.nbytes, 8 * log.features.size))
    elif hasattr(log, "memory_limit"):
        if getattr(log, "is_sparse", False) and log.n_features > MOST_WEIGHTS:
            matrices = 0
        check_work(log.n_features, matrices, limit=log.memory_limit)


def finite_log(
    features: Features | Layout,
    offsets: Index,
    chosen: Index,
    possible: Marks | None = None,
    offer_probability: Vector | None = None,
) -> BanditLog:
    """Build a log from features that are known to be finite, which saves the pass over all of them.

    Examples
    --------
    >>> finite_log(np.ones((3, 2)), np.array([0, 1, 3]), np.array([0, 1]))
    BanditLog(2 rounds, 1 to 2 arms, 2 features, float64)
    """
    bounds = as_index(offsets, "offsets")
    picks, marks = _picks(chosen, possible, bounds, len(features))
    return _restore(features, bounds, picks, None, None, None, None, None, marks, offer_probability)


def join_rounds(first: BanditLog, second: BanditLog) -> BanditLog:
    """The rounds of two logs of the same features, without names and ids; an array where one of them has one.

    Examples
    --------
    >>> log = BanditLog(np.eye(3), offsets=[0, 1, 3], chosen=[0, 1])
    >>> join_rounds(log[:1], log[1:])
    BanditLog(2 rounds, 1 to 2 arms, 3 features, float64)
    """
    rows = [first.features, second.features]
    if len({type(one) for one in rows}) > 1:
        rows = [first.dense, second.dense]
    return finite_log(
        _concat_rows(rows),
        np.concatenate([first.offsets, first.offsets[-1] + second.offsets[1:]]),
        np.concatenate([first.chosen_or_unknown, second.chosen_or_unknown]),
        *_concat_partial([first, second]),
    )


def feature_labels(feature_names: Sequence[str] | None, n_features: int) -> tuple[str, ...]:
    """Names to show: the features' own, or x0, x1 and so on.

    Examples
    --------
    >>> feature_labels(None, 2)
    ('x0', 'x1')
    """
    return tuple(f"x{j}" for j in range(n_features)) if feature_names is None else tuple(feature_names)


def _has_ids(features: ArrayLike | Layout) -> bool:
    """Whether the rows know the ids of their arms themselves."""
    return isinstance(features, Layout) and features.has_ids


def _concat_rows(rows: Sequence[Features | Layout]) -> Features | Layout:
    """Feature rows of logs that are joined."""
    layouts = [one for one in rows if isinstance(one, Layout)]
    if not layouts:
        return np.concatenate([np.asarray(one) for one in rows])
    if len(layouts) < len(rows):
        raise InputError("the logs lay out their features differently: make them alike by with_features")
    return type(layouts[0]).concat(layouts)


def _concat_ids(ids: Sequence[Ids | None]) -> Ids | None:
    """Ids of logs that are joined; None unless every log has some."""
    known = [one for one in ids if one is not None]
    return np.concatenate(known) if len(known) == len(ids) else None


def _picks(
    chosen: ArrayLike | None, possible: ArrayLike | None, offsets: Index, n_rows: int
) -> tuple[Index, Marks | None]:
    """Positions of the picks, and the marks of the arms that may be where some picks are not known; checked."""
    picks = None if chosen is None else as_index(chosen, "chosen")
    if possible is None:
        if picks is None:
            raise InputError("chosen is None: pass the position of every pick, or `possible`, the arms that may be it")
        check_rounds(n_rows, offsets, picks)
        return picks, None
    shown = np.zeros(len(offsets) - 1, dtype=np.int64) if picks is None else np.where(picks == UNKNOWN, 0, picks)
    check_rounds(n_rows, offsets, shown)
    marks = as_possible(possible, n_rows)
    found = picks_of(marks, offsets, picks)
    return found, _sets(marks, found)


def _sets(possible: Marks | None, chosen: Index) -> Marks | None:
    """Marks of the arms that may have been picked; None where all picks are known."""
    return None if possible is None or (chosen != UNKNOWN).all() else possible


def _concat_partial(logs: Sequence[BanditLog]) -> tuple[Marks | None, Vector | None]:
    """Marks and probabilities of logs that are joined."""
    marks = chances = None
    if any(log.possible is not None for log in logs):
        marks = np.concatenate(
            [marks_of(log.chosen, log.offsets) if log.possible is None else log.possible for log in logs]
        )
    if any(log.offer_probability is not None for log in logs):
        chances = np.concatenate(
            [np.ones(len(log.features)) if log.offer_probability is None else log.offer_probability for log in logs]
        )
    return marks, chances


def _some(values: Any, rows: slice | Index) -> Any:
    """Some values of a part that a log may not have."""
    return None if values is None else values[rows]


def _fill(log: BanditLog, *parts: object) -> None:
    """Set the slots, in the order of `_PARTS`; arrays become read-only views."""
    # Older pickles lack the last two.
    for name, value in zip(_PARTS, (*parts, *(None,) * (len(_PARTS) - len(parts))), strict=True):
        object.__setattr__(log, name, _read_only(value) if isinstance(value, np.ndarray) else value)


def _restore(*parts: object) -> BanditLog:
    """Make a log of parts that were checked before."""
    log = BanditLog.__new__(BanditLog)
    _fill(log, *parts)
    return log


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
