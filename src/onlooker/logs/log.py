"""The bandit log: what was offered and what was picked, oldest round first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlooker.base.checks import counted
from onlooker.base.errors import InputError
from onlooker.base.types import Features, Ids, Index
from onlooker.logs.categories import Categories, Encoded, as_categories
from onlooker.logs.frames import LogArrays
from onlooker.logs.layouts import Layout, as_rows
from onlooker.logs.ragged import as_ids, as_index, as_names, check_finite, check_rounds

_PARTS = ("features", "offsets", "chosen", "feature_names", "round_ids", "arm_ids", "times", "categories")


class BanditLog:
    """Offers and picks of a learner, ragged and immutable.

    Parameters
    ----------
    features
        One row per offered arm, shape (rows, d), float32 or float64. Kept without a copy where that is possible.
    offsets
        Shape (N + 1,): round `t` offers the rows `offsets[t]` to `offsets[t + 1] - 1`.
    chosen
        Shape (N,): position of the pick within its round.
    feature_names, round_ids, arm_ids
        Names, kept as they are: one per feature, per round and per row.
    times
        Time of each round, in any unit, where it is known.
    categories
        All levels of every column that became one-hot features, the reference level first; see `from_frame`.

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
    """

    __slots__ = _PARTS

    features: Features | Layout
    """One row per offered arm, shape (rows, d): an array, or a layout of rows that are not dense."""
    offsets: Index
    """Where each round's rows begin, shape (N + 1,)."""
    chosen: Index
    """Position of the pick within its round, shape (N,)."""
    feature_names: tuple[str, ...] | None
    """One name per feature, or None."""
    round_ids: Ids | None
    """One id per round, or None."""
    arm_ids: Ids | None
    """One id per row, or None."""
    times: Ids | None
    """Time of each round, or None; tables that were ordered by a column have that."""
    categories: Categories | None
    """Levels of every category by its column, the reference first, or None."""

    def __init__(
        self,
        features: ArrayLike | Layout,
        offsets: ArrayLike,
        chosen: ArrayLike,
        *,
        feature_names: Sequence[str] | None = None,
        round_ids: ArrayLike | None = None,
        arm_ids: ArrayLike | None = None,
        times: ArrayLike | None = None,
        categories: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        rows = as_rows(features)
        bounds = as_index(offsets, "offsets")
        picks = as_index(chosen, "chosen")
        names = as_names(feature_names, rows.shape[1])
        check_rounds(len(rows), bounds, picks)
        if isinstance(rows, Layout):
            rows.check_finite()
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
            as_categories(categories, names),
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a BanditLog is immutable: make a new one instead of setting {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a BanditLog is immutable: {name!r} cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, tuple(getattr(self, name) for name in _PARTS)

    @classmethod
    def from_dense(
        cls,
        X: ArrayLike,
        chosen: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        feature_names: Sequence[str] | None = None,
    ) -> BanditLog:
        """Take an array of shape (N, K, d); `mask` of shape (N, K) is true where an arm was offered.

        `chosen` counts among all K arms. Where every arm was offered nothing is copied.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.arange(12.0).reshape(2, 3, 2)
        >>> log = BanditLog.from_dense(X, chosen=[2, 0], mask=[[True, False, True], [True, True, True]])
        >>> log.offsets, log.chosen
        (array([0, 2, 5]), array([1, 0]))
        """
        dense = np.asarray(X)
        if dense.ndim != 3:
            raise InputError(f"X has shape {dense.shape}: pass an array of shape (rounds, arms, features)")
        n_rounds, n_arms, n_features = dense.shape
        picks = as_index(chosen, "chosen")
        if len(picks) != n_rounds:
            raise InputError(f"chosen has {len(picks)} entries, but X has {n_rounds} rounds: pass one pick per round")
        rows = dense.reshape(n_rounds * n_arms, n_features)
        if mask is None:
            offsets = np.arange(n_rounds + 1, dtype=np.int64) * n_arms
            return cls(rows, offsets, picks, feature_names=feature_names)
        offered = np.asarray(mask, dtype=bool)
        if offered.shape != (n_rounds, n_arms):
            raise InputError(f"mask has shape {offered.shape}, X offers {(n_rounds, n_arms)}: make them the same")
        outside = np.flatnonzero((picks < 0) | (picks >= n_arms))
        if len(outside):
            t = int(outside[0])
            raise InputError(f"round {t} picks position {picks[t]}, but X has {n_arms} arms: count from 0")
        hidden = np.flatnonzero(~offered[np.arange(n_rounds), picks])
        if len(hidden):
            t = int(hidden[0])
            raise InputError(f"round {t} picks arm {picks[t]}, which the mask says was not offered")
        if offered.all():
            return cls.from_dense(dense, picks, feature_names=feature_names)
        offsets = np.concatenate([[0], np.cumsum(offered.sum(axis=1))]).astype(np.int64)
        positions = np.cumsum(offered, axis=1)[np.arange(n_rounds), picks] - 1
        return cls(rows[offered.ravel()], offsets, positions, feature_names=feature_names)

    @classmethod
    def from_sparse(
        cls,
        rows: Any,
        offsets: ArrayLike,
        chosen: ArrayLike,
        *,
        feature_names: Sequence[str] | None = None,
    ) -> BanditLog:
        """Take a SciPy sparse matrix, one row per offered arm: it stays sparse.

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> rows = csr_array(([1.0, 1.0, 2.0], [0, 4, 4], [0, 1, 2, 3]), shape=(3, 5))
        >>> BanditLog.from_sparse(rows, offsets=[0, 2, 3], chosen=[1, 0])
        BanditLog(2 rounds, 1 to 2 arms, 5 features, sparse float64)
        """
        if not hasattr(rows, "tocsr"):
            raise InputError(f"rows is a {type(rows).__name__}: pass a scipy.sparse matrix, or make a BanditLog of it")
        return cls(rows, offsets, chosen, feature_names=feature_names)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        round: str = "round",
        chosen: str = "chosen",
        arm: str | None = None,
        features: Sequence[str] | None = None,
        order_by: str | None = None,
        categories: Sequence[str] | None = None,
        like: Encoded | None = None,
    ) -> BanditLog:
        """Take a long table (pandas, polars, pyarrow): one row per offered arm.

        Rounds come in the order of `order_by`, or else in which they first appear; the rows of a round need not be
        next to each other. `chosen` is 0/1 or boolean, with exactly one pick per round. `features` defaults to every
        other column of numbers or categories, rewards, propensities and row numbers aside.

        Text is a category, and so are the columns that `categories` names: one feature `column=level` for every level
        but the first, which is the reference. Unless it is named, text of more than 32 levels is left out with a
        warning. `like`, a log or a policy, encodes exactly as that was encoded, so that the two fit together.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = pa.table({"round": ["a", "a", "b", "b"], "chosen": [0, 1, 1, 0], "price": [9.0, 7.0, 5.0, 8.0]})
        >>> log = BanditLog.from_frame(table)
        >>> log.chosen, log.feature_names
        (array([1, 0]), ('price',))
        >>> table = table.append_column("colour", [["red", "blue", "blue", "red"]])
        >>> BanditLog.from_frame(table).feature_names, BanditLog.from_frame(table).categories["colour"]
        (('price', 'colour=red'), ('blue', 'red'))
        """
        from onlooker.logs.columns import Columns
        from onlooker.logs.frames import parts_of_frame

        columns = Columns(
            round=round,
            chosen=chosen,
            arm=arm,
            features=features,
            order_by=order_by,
            categories=categories,
            like=like,
        )
        return cls.from_parts(parts_of_frame(frame, columns))

    @classmethod
    def from_parts(cls, parts: LogArrays) -> BanditLog:
        """Take what a table was turned into, which was checked on the way."""
        check_rounds(len(parts.features), parts.offsets, parts.chosen)
        names = as_names(parts.feature_names, parts.features.shape[1])
        return _restore(
            parts.features,
            parts.offsets,
            parts.chosen,
            names,
            parts.round_ids,
            parts.arm_ids,
            parts.times,
            as_categories(parts.categories, names),
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
            if as_log(log).n_features != first.n_features:
                raise InputError(f"a log has {log.n_features} features, the first {first.n_features}: join like logs")
            if (log.feature_names, log.categories) != (first.feature_names, first.categories):
                raise InputError("the logs name or encode their features differently: read each with like= the first")
        return _restore(
            _concat_rows([log.features for log in logs]),
            np.concatenate([[0], np.cumsum(np.concatenate([log.n_arms for log in logs]))]).astype(np.int64),
            np.concatenate([log.chosen for log in logs]),
            first.feature_names,
            _concat_ids([log.round_ids for log in logs]),
            _concat_ids([log.arm_ids for log in logs]),
            _concat_ids([log.times for log in logs]),
            first.categories,
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
            self.chosen,
            feature_names=feature_names,
            round_ids=self.round_ids,
            arm_ids=self.arm_ids,
            times=self.times,
            categories=categories,
        )

    @property
    def n_rounds(self) -> int:
        """Number of rounds, N."""
        return len(self.chosen)

    @property
    def shape(self) -> tuple[int]:
        """`(N,)`, as of an array of rounds: scikit-learn's cross-validation then picks rounds by `log[rounds]`."""
        return (self.n_rounds,)

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return int(self.features.shape[1])

    @property
    def dense(self) -> Features:
        """The features as an array, for what works on nothing else; other layouts are refused."""
        if isinstance(self.features, Layout):
            raise InputError(
                "dense features are needed here: log.with_features(log.features.toarray(), log.feature_names) has "
                "them, if there is memory for all of them"
            )
        return self.features

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

        `log[rounds, ...]` is the same: scikit-learn's cross-validation asks in this form.
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
            self.chosen[start:stop],
            self.feature_names,
            None if self.round_ids is None else self.round_ids[start:stop],
            None if self.arm_ids is None else self.arm_ids[first:last],
            None if self.times is None else self.times[start:stop],
            self.categories,
        )

    def _gather(self, rounds: Index) -> BanditLog:
        sizes = self.n_arms[rounds]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][rounds] - offsets[:-1], sizes)
        return _restore(
            self.features[rows],
            offsets,
            self.chosen[rounds],
            self.feature_names,
            None if self.round_ids is None else self.round_ids[rounds],
            None if self.arm_ids is None else self.arm_ids[rows],
            None if self.times is None else self.times[rounds],
            self.categories,
        )

    def __repr__(self) -> str:
        sizes = self.n_arms
        few, many = (int(sizes.min()), int(sizes.max())) if len(sizes) else (0, 0)
        arms = counted(many, "arm") if few == many else f"{few} to {many} arms"
        rounds, features = counted(self.n_rounds, "round"), counted(self.n_features, "feature")
        kind = "sparse " if isinstance(self.features, Layout) else ""
        return f"BanditLog({rounds}, {arms}, {features}, {kind}{self.features.dtype})"


def as_log(log: object, needed_by: str = "this") -> BanditLog:
    """Refuse what is not a log in memory, saying what needs one and how to make one."""
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


def finite_log(features: Features, offsets: Index, chosen: Index) -> BanditLog:
    """Make a log of features that are known to be finite: looking for others takes a pass over all of them.

    Examples
    --------
    >>> finite_log(np.ones((3, 2)), np.array([0, 1, 3]), np.array([0, 1]))
    BanditLog(2 rounds, 1 to 2 arms, 2 features, float64)
    """
    bounds, picks = as_index(offsets, "offsets"), as_index(chosen, "chosen")
    check_rounds(len(features), bounds, picks)
    return _restore(features, bounds, picks, None, None, None, None, None)


def feature_labels(feature_names: Sequence[str] | None, n_features: int) -> tuple[str, ...]:
    """Names to show: the features' own, or x0, x1 and so on.

    Examples
    --------
    >>> feature_labels(None, 2)
    ('x0', 'x1')
    """
    return tuple(f"x{j}" for j in range(n_features)) if feature_names is None else tuple(feature_names)


def _concat_rows(rows: Sequence[Features | Layout]) -> Features | Layout:
    """Feature rows of logs that are joined."""
    layouts = [one for one in rows if isinstance(one, Layout)]
    if not layouts:
        return np.concatenate([np.asarray(one) for one in rows])
    if len(layouts) < len(rows) or len({type(one) for one in layouts}) > 1:
        raise InputError("the logs lay out their features differently: make them alike by with_features")
    return type(layouts[0]).concat(layouts)


def _concat_ids(ids: Sequence[Ids | None]) -> Ids | None:
    """Ids of logs that are joined; None unless every log has some."""
    known = [one for one in ids if one is not None]
    return np.concatenate(known) if len(known) == len(ids) else None


def _fill(log: BanditLog, *parts: object) -> None:
    """Set the slots, in the order of `_PARTS`; arrays become read-only views."""
    for name, value in zip(_PARTS, parts, strict=True):
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
