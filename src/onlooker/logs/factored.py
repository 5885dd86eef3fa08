"""Rows that are never written out: arms looked up by id, a context for every round, and the products of the two.

A log with one row per round has a context `c` of p numbers in every round, and K arms that keep their identity. The
row of arm `a` in round `t` is

    [own columns | item_a | context_t (x) item_a]        where arms have features of their own (`items`), or
    [own columns | e_a (x) context_t]                    where every arm has weights of its own (`e_a`: one-hot).

Contexts and own columns may be missing: then rows are `[own | item_a]` or `[own | e_a]`. Where every round offers all
arms, nothing is kept for a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlooker.base.checks import counted
from onlooker.base.errors import InputError
from onlooker.base.types import Features, Ids, Index, Matrix, Vector
from onlooker.logs.arm_ids import keys_of
from onlooker.logs.crossing import Crossing
from onlooker.logs.factored_products import FactoredProducts
from onlooker.logs.layouts import Layout


class FactoredRows(FactoredProducts):
    """Rows of arms that keep their identity, kept as contexts and items.

    Parameters
    ----------
    arms
        Ids of all arms, shape (K,).
    contexts
        Shape (R, p), one row a round, or None.
    items
        Features of the arms, shape (K, q), or None for weights of its own for each arm.
    item_names
        Names of these features, or None.
    own
        Columns that belong to one row alone, shape (rows, o), or None.
    which
        Position in `arms` of every row, shape (rows,), or None where every round offers all arms in their order.
    bounds
        Where each round's rows begin, shape (R + 1,); only needed with `which`.
    n_rounds
        R, where neither contexts nor `bounds` say it.

    Examples
    --------
    >>> rows = FactoredRows(arms=np.array(["a", "b"]), contexts=np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> rows.toarray()
    array([[1., 2., 0., 0.],
           [0., 0., 1., 2.],
           [3., 4., 0., 0.],
           [0., 0., 3., 4.]])
    >>> rows @ np.array([1.0, 0.0, 0.0, 1.0]), rows.T @ np.array([1.0, 0.0, 0.0, 1.0])
    (array([1., 2., 3., 4.]), array([1., 2., 3., 4.]))
    """

    kind = "factored "

    def __init__(
        self,
        *,
        arms: Ids,
        contexts: Features | None = None,
        items: Features | None = None,
        item_names: tuple[str, ...] | None = None,
        own: Features | None = None,
        which: Index | None = None,
        bounds: Index | None = None,
        n_rounds: int | None = None,
    ) -> None:
        self.arms, self.contexts, self.items, self.item_names, self.own = arms, contexts, items, item_names, own
        self.which, self.bounds = which, bounds
        if which is not None and bounds is None:
            raise InputError("the rows of some arms need bounds: where each round's rows begin")
        known = contexts if contexts is not None else None if bounds is None else bounds[1:]
        self.n_rounds = len(known) if known is not None else int(n_rounds or 0)
        self.shape = (self.n_rounds * len(arms) if which is None else len(which), self.n_own + self.n_crossed)
        parts = [part.dtype for part in (contexts, items, own) if part is not None]
        self.dtype = np.result_type(*parts) if parts else np.dtype(np.float64)

    @property
    def n_named(self) -> int:
        """How many names a log of such rows has: of its own columns and of the context, or else of the arms."""
        return self.n_own + (self.n_items if self.contexts is None else self.n_context)

    @property
    def per_arm(self) -> bool:
        """Whether every arm has weights of its own."""
        return self.items is None

    def crossing(self, feature_names: Sequence[str] | None) -> Crossing:
        """What the columns are, given the log's names."""
        names = tuple(feature_names or (f"x{j}" for j in range(self.n_named)))
        items = self.item_names or tuple(f"arm x{j}" for j in range(self.n_items))
        if self.items is not None and self.contexts is None and feature_names is not None:
            items = names[self.n_own :]
        return Crossing(
            arms=tuple(self.arms.tolist()) if self.items is None else None,
            own=names[: self.n_own],
            context=() if self.contexts is None else names[self.n_own :],
            items=items,
            named=feature_names is not None,
        )

    def row_arms(self) -> Index:
        """Position in `arms` of every row, shape (rows,)."""
        if self.which is not None:
            return self.which
        return np.tile(np.arange(self.n_arms), self.n_rounds)

    @property
    def has_ids(self) -> bool:
        """Whether rows know the ids of their arms: always."""
        return True

    def row_ids(self) -> Ids:
        """Id of every row's arm, shape (rows,)."""
        return np.asarray(self.arms[self.row_arms()])

    def variances(self, shares: Vector, weights: Vector, offsets: Index) -> Vector:
        """Mean squares of the rows: the variances, or somewhat more."""
        by_row = np.repeat(weights, np.diff(offsets)) * shares
        squared = FactoredRows(
            arms=self.arms,
            contexts=None if self.contexts is None else np.square(self.contexts, dtype=np.float64),
            items=None if self.items is None else np.square(self.items, dtype=np.float64),
            own=None if self.own is None else np.square(self.own, dtype=np.float64),
            which=self.which,
            bounds=self.bounds,
            n_rounds=self.n_rounds,
        )
        return squared.weighted_sum(by_row)

    def __getitem__(self, rows: slice | Index) -> FactoredRows:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self.shape[0])
            if step == 1:
                return self._range(start, max(start, stop))
            rows = np.arange(start, stop, step)
        return self._gather(_as_places(rows, self.shape[0]))

    def _range(self, start: int, stop: int) -> FactoredRows:
        """Rows that lie next to each other, as a view; of a round that is cut, those that are left."""
        if self.which is None:
            K = self.n_arms
            if start % K or stop % K:
                return self._gather(np.arange(start, stop))
            return self._with(slice(start // K, stop // K), slice(start, stop), None, None)
        assert self.bounds is not None
        first = int(np.searchsorted(self.bounds, start, side="right")) - 1
        last = max(first, int(np.searchsorted(self.bounds, stop, side="left")))
        bounds = np.clip(self.bounds[first : last + 1], start, stop) - start
        return self._with(slice(first, last), slice(start, stop), self.which[start:stop], bounds)

    def _gather(self, rows: Index) -> FactoredRows:
        """Some rows in any order; neighbours of one round share its context."""
        of = rows // self.n_arms if self.bounds is None else np.searchsorted(self.bounds, rows, side="right") - 1
        which = rows % self.n_arms if self.which is None else self.which[rows]
        new = np.ones(len(rows), dtype=bool)
        new[1:] = (np.diff(of) != 0) | (np.diff(rows) <= 0)
        starts = np.flatnonzero(new)
        if self.which is None and _is_full(which, starts, self.n_arms):
            return self._with(of[starts], rows, None, None)
        return self._with(of[starts], rows, which, np.append(starts, len(rows)))

    def _with(
        self, rounds: slice | Index, rows: slice | Index, which: Index | None, bounds: Index | None
    ) -> FactoredRows:
        n_rounds = rounds.stop - rounds.start if isinstance(rounds, slice) else len(rounds)
        return FactoredRows(
            arms=self.arms,
            contexts=None if self.contexts is None else self.contexts[rounds],
            items=self.items,
            item_names=self.item_names,
            own=None if self.own is None else self.own[rows],
            which=which,
            bounds=bounds,
            n_rounds=n_rounds,
        )

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Contexts, items, own columns and which arms are offered, those that there are."""
        kept = self.contexts, self.items, self.own, self.which, self.bounds
        return tuple(part for part in kept if part is not None)

    @property
    def size(self) -> int:
        """Values that are kept for the rows."""
        return sum(part.size for part in (self.contexts, self.own, self.which) if part is not None)

    def absolute_largest(self) -> Vector:
        """Bound of the absolute value of every feature; of products, that of its factors multiplied."""
        own, contexts, items = map(_largest, (self.own, self.contexts, self.items))
        if self.items is None:
            return np.concatenate([own, np.tile(np.ones(1) if self.contexts is None else contexts, self.n_arms)])
        return np.concatenate([own, items, np.outer(contexts, items).ravel()])

    def check_finite(self, feature_names: Sequence[str] | None = None) -> None:
        """Refuse missing and infinite values."""
        names = list(feature_names or ())
        check_table(self.own, "row", names[: self.n_own])
        check_table(self.contexts, "round", names[self.n_own :])
        check_table(self.items, "arm", self.item_names, self.arms)

    def toarray(self) -> Matrix:
        """The rows as an array."""
        which, parts = self.row_arms(), [] if self.own is None else [self.own]
        at = np.repeat(np.arange(self.n_rounds), self.sizes)
        if self.items is None:
            p = 1 if self.contexts is None else self.n_context
            blocks = np.zeros((len(which), self.n_arms, p), dtype=self.dtype)
            blocks[np.arange(len(which)), which] = 1.0 if self.contexts is None else self.contexts[at]
            parts.append(blocks.reshape(len(which), self.n_arms * p))
        else:
            items = self.items[which]
            parts.append(items)
            if self.contexts is not None:
                parts.append(
                    (self.contexts[at][:, :, None] * items[:, None, :]).reshape(
                        len(which), self.n_context * self.n_items
                    )
                )
        return np.hstack(parts)

    def check_like(self, other: Layout) -> None:
        """Refuse rows of other arms."""
        if not isinstance(other, FactoredRows) or keys_of(self.arms) != keys_of(other.arms):
            raise InputError("the logs have different arms: make each with arms= all of them, in one order")
        if (self.items is None) != (other.items is None) or not (
            self.items is None or np.array_equal(self.items, np.asarray(other.items))
        ):
            raise InputError("the logs describe their arms differently: make each with the same arm_features")

    @classmethod
    def concat(cls, layouts: Sequence[FactoredRows]) -> FactoredRows:
        """The rows of several, one after the other."""
        first = layouts[0]
        full = all(rows.which is None for rows in layouts)
        return FactoredRows(
            arms=first.arms,
            contexts=_stacked([rows.contexts for rows in layouts]),
            items=first.items,
            item_names=first.item_names,
            own=_stacked([rows.own for rows in layouts]),
            which=None if full else np.concatenate([rows.row_arms() for rows in layouts]),
            bounds=None if full else np.append(0, np.cumsum(np.concatenate([rows.sizes for rows in layouts]))),
            n_rounds=sum(rows.n_rounds for rows in layouts),
        )

    def described(self) -> str:
        """Short description of the features."""
        own = [counted(self.n_own, "feature")] if self.own is not None else []
        if self.items is None:
            arms = counted(self.n_arms, "arm")
            own.append(
                f"{counted(self.n_context, 'feature')} x {arms}" if self.contexts is not None else f"{arms} each"
            )
        else:
            own.append(counted(self.n_items, "arm feature"))
            if self.contexts is not None:
                own.append(f"{counted(self.n_items * self.n_context, 'product')} with the context")
        return " and ".join(own)


def check_table(table: Features | None, row: str, names: Sequence[str] | None, ids: Ids | None = None) -> None:
    """Refuse missing and infinite values of a table; `row` says what one row is."""
    if table is None:
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(table.sum(dtype=np.float64)):
            return
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        at, column = bad[0].tolist()
        name = repr(names[column]) if names else str(column)
        number = repr(ids[at].item() if hasattr(ids[at], "item") else ids[at]) if ids is not None else at
        raise InputError(
            f"{row} {number}, feature {name} is {table[at, column]}: fill missing values in or leave the {row} out"
        )


def _as_places(rows: ArrayLike, n_rows: int) -> Index:
    """What an index of numpy's points at, without a number for every row of the log: there may be billions.

    Examples
    --------
    >>> _as_places(np.array([-1, 0]), 4), _as_places(np.array([True, False, True]), 3)
    (array([3, 0]), array([0, 2]))
    """
    index = np.asarray(rows)
    if index.dtype == bool:
        if index.shape != (n_rows,):
            raise IndexError(f"{index.shape} marks for {n_rows} rows")
        return np.flatnonzero(index)
    index = index.astype(np.int64)
    outside = (index < -n_rows) | (index >= n_rows)
    if outside.any():
        raise IndexError(f"row {index[outside][0]} of {n_rows}")
    return np.where(index < 0, index + n_rows, index)


def _is_full(which: Index, starts: Index, n_arms: int) -> bool:
    """Whether rows are whole rounds that offer all arms in order."""
    if len(which) != len(starts) * n_arms:
        return False
    return bool((which.reshape(-1, n_arms) == np.arange(n_arms)).all() and (starts % n_arms == 0).all())


def _largest(table: Features | None) -> Vector:
    if table is None:
        return np.zeros(0)
    return np.asarray(np.abs(table).max(axis=0, initial=0.0), dtype=np.float64)


def _stacked(tables: Sequence[Features | None]) -> Features | None:
    known: list[Any] = [table for table in tables if table is not None]
    return np.concatenate(known) if known else None
