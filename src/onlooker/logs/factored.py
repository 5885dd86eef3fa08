"""Rows that are never written out: arms looked up by id, a context for every round, and the products of the two.

A log with a row a round has a context `c` of p numbers in every round, and K arms that keep their identity. The row of
arm `a` in round `t` is

    [own columns | item_a | context_t (x) item_a]        where arms have features of their own (`items`), or
    [own columns | e_a (x) context_t]                    where every arm has weights of its own (`e_a`: one-hot).

Contexts and own columns may be missing: then rows are `[own | item_a]` or `[own | e_a]`. Scores are small matrix
products, contexts (R, p) times weights (p, K). Where every round offers all arms, nothing is kept for a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlooker.base.checks import counted
from onlooker.base.errors import InputError
from onlooker.base.types import Features, Ids, Index, Matrix, Vector
from onlooker.logs.arm_ids import keys_of, places
from onlooker.logs.factored_curvature import Turned, arm_blocks, block_hessian, decorrelated, per_arm_preconditioner
from onlooker.logs.factored_windows import window_products
from onlooker.logs.layouts import Layout

PIECE_VALUES = 1 << 20
"""Numbers that a temporary array holds at most, about: 8 MB."""

FEW_OFFERS = 8
"""Where rounds offer less than one in so many of all arms, scores of the others are not computed beside theirs."""

MOST_INVERTED = 1000
"""Columns up to which a preconditioner is an inverse, where arms have features."""


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """What each weight of a factored log belongs to.

    Examples
    --------
    >>> Crossing(arms=("a", "b"), context=("one", "age")).weight_names
    ('a: one', 'a: age', 'b: one', 'b: age')
    >>> Crossing(items=("price",), context=("one", "age")).weight_names
    ('price', 'one*price', 'age*price')
    """

    arms: tuple[Any, ...] | None = None
    """Ids of the arms, where each has weights of its own."""
    own: tuple[str, ...] = ()
    """Names of the columns that belong to one row alone."""
    context: tuple[str, ...] = ()
    """Names of the context's features."""
    items: tuple[str, ...] = ()
    """Names of the arms' features."""
    named: bool = True
    """Whether the features have names, or are called x0, x1 and so on."""

    @property
    def weight_names(self) -> tuple[str, ...]:
        """One name per weight."""
        if self.arms is not None:
            arms = [str(arm) for arm in self.arms]
            blocks = [f"{arm}: {name}" for arm in arms for name in self.context] if self.context else arms
            return (*self.own, *blocks)
        return (*self.own, *self.items, *(f"{name}*{item}" for name in self.context for item in self.items))

    @property
    def n_weights(self) -> int:
        """How many there are."""
        if self.arms is not None:
            return len(self.own) + len(self.arms) * max(1, len(self.context))
        return len(self.own) + len(self.items) * (1 + len(self.context))

    @property
    def centring(self) -> Matrix | None:
        """Takes weights to their differences to the mean over the arms; None unless every arm has its own.

        What the weights of all arms have in common, no pick shows.

        Examples
        --------
        >>> Crossing(arms=("a", "b"), own=("slot",)).centring @ [1.0, 5.0, 7.0]
        array([ 1., -1.,  1.])
        """
        if self.arms is None:
            return None
        found, first, n = np.eye(self.n_weights), len(self.own), len(self.arms)
        found[first:, first:] -= np.kron(np.full((n, n), 1 / n), np.eye(max(1, len(self.context))))
        return found

    def positions(self, log: Crossing) -> Index | None:
        """Where the weights of a log's columns are among these; None where only their names can tell.

        Examples
        --------
        >>> here = Crossing(arms=("a", "b", "c"), context=("one", "age"))
        >>> here.positions(Crossing(arms=("c", "a"), context=("age", "one")))
        array([5, 4, 1, 0])
        """
        if self.arms is None or log.arms is None or len(self.own) != len(log.own):
            return None
        at = places(log.arms, np.array([*self.arms, None], dtype=object)[:-1])
        if (at < 0).any():
            unknown = [log.arms[place] for place in np.flatnonzero(at < 0).tolist()]
            raise InputError(f"the policy does not know the arms {unknown[:5]}: fit it on a log that offers them")
        named = self.named and log.named
        own, context = _places(log.own, self.own, named=named), _places(log.context, self.context, named=named)
        width = max(1, len(self.context))
        blocks = at[:, None] * width + (context if len(context) else np.zeros(1, dtype=np.int64))
        return np.concatenate([own, len(self.own) + blocks.ravel()])


def _places(wanted: Sequence[str], known: Sequence[str], *, named: bool) -> Index:
    """Where the known names have each of the wanted ones; by position where either has no names."""
    absent = [name for name in known if name not in wanted] if named else []
    unknown = [name for name in wanted if name not in known] if named else []
    if absent or unknown:
        parts = [f"the log lacks {absent[:5]}"] * bool(absent)
        parts += [f"the policy does not know {unknown[:5]}"] * bool(unknown)
        raise InputError(f"the policy and the log have different features: {'; '.join(parts)}")
    if len(wanted) != len(known):
        raise InputError(f"the policy has {len(known)} features, but the log has {len(wanted)}")
    return np.array([known.index(name) for name in wanted] if named else range(len(known)), dtype=np.int64)


class FactoredRows(Layout):
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
    def n_arms(self) -> int:
        """Arms that there are, K."""
        return len(self.arms)

    @property
    def n_own(self) -> int:
        """Columns that belong to one row alone."""
        return 0 if self.own is None else self.own.shape[1]

    @property
    def n_context(self) -> int:
        """Features of the context, p."""
        return 0 if self.contexts is None else self.contexts.shape[1]

    @property
    def n_items(self) -> int:
        """Features of the arms, q; 0 where each has its own weights."""
        return 0 if self.items is None else self.items.shape[1]

    @property
    def n_crossed(self) -> int:
        """Columns that follow from the arm and the context."""
        if self.items is None:
            return self.n_arms * (1 if self.contexts is None else self.n_context)
        return self.n_items * (1 + self.n_context)

    @property
    def n_named(self) -> int:
        """How many names a log of such rows has: of its own columns and of the context, or else of the arms."""
        return self.n_own + (self.n_items if self.contexts is None else self.n_context)

    @property
    def per_arm(self) -> bool:
        """Whether every arm has weights of its own."""
        return self.items is None

    @property
    def only_blocks(self) -> bool:
        """Whether all weights are those of the arms, a block each."""
        return self.items is None and self.own is None

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
        """Yes."""
        return True

    def row_ids(self) -> Ids:
        """Id of every row's arm, shape (rows,)."""
        return np.asarray(self.arms[self.row_arms()])

    @property
    def sizes(self) -> Index:
        """Rows of each round, shape (R,)."""
        return np.full(self.n_rounds, self.n_arms) if self.bounds is None else np.diff(self.bounds)

    def __matmul__(self, weights: Vector) -> Vector:
        own, rest = weights[: self.n_own], weights[self.n_own :]
        scores = self._crossed_scores(rest)
        if self.own is not None:
            scores += self.own @ own
        return scores

    def _crossed_scores(self, weights: Vector) -> Vector:
        """Scores by arm and context."""
        if self.which is None and self.items is None and self.contexts is not None:
            return np.asarray(self.contexts @ weights.reshape(self.n_arms, -1).T, dtype=np.float64).ravel()
        by_arm, by_context = self._by_arm(weights)
        if self.which is None:
            scores = np.tile(by_arm, (self.n_rounds, 1))
            if by_context is not None and self.contexts is not None:
                scores += self.contexts @ by_context.T
            return scores.ravel()
        scores = by_arm[self.which]
        if by_context is not None and self.bounds is not None and self.contexts is not None:
            few = FEW_OFFERS * len(self.which) < self.n_rounds * self.n_arms
            for rounds, rows in self._pieces(self.n_context * self._most_offers if few else self.n_arms):
                contexts = self.contexts[rounds].astype(np.float64, copy=False)
                which = self.which[rows]
                at = np.repeat(np.arange(len(contexts)), np.diff(self.bounds[rounds.start : rounds.stop + 1]))
                if self.items is not None and len(which) * self.n_items < len(contexts) * self.n_arms * self.n_context:
                    turned = contexts @ weights[self.n_items :].reshape(self.n_context, -1)
                    scores[rows] += np.einsum("rj,rj->r", turned[at], self.items[which])
                elif few:
                    scores[rows] += np.einsum("rj,rj->r", contexts[at], by_context[which])
                else:
                    scores[rows] += (contexts @ by_context.T)[at, which]
        return scores

    @property
    def _most_offers(self) -> int:
        """Rows of the largest round."""
        return int(self.sizes.max(initial=1))

    def _by_arm(self, weights: Vector) -> tuple[Vector, Matrix | None]:
        """What every arm scores in any context, shape (K,), and its weights of the context, shape (K, p)."""
        if self.items is None:
            if self.contexts is None:
                return weights.copy(), None
            return np.zeros(self.n_arms), weights.reshape(self.n_arms, -1)
        q = self.n_items
        by_arm = np.asarray(self.items @ weights[:q], dtype=np.float64)
        return by_arm, None if self.contexts is None else self.items @ weights[q:].reshape(-1, q).T

    def weighted_sum(self, values: Vector) -> Vector:
        """Sum of the rows, each times its value."""
        own = np.zeros(0) if self.own is None else self.own.T @ values
        if self.which is None:
            by_round: Any = values.reshape(self.n_rounds, self.n_arms)
        else:
            by_round = self._by_round(values)
        if self.items is None and self.contexts is not None:
            rest = np.asarray(by_round.T @ self.contexts).ravel()
            return np.concatenate([own, rest]).astype(np.float64, copy=False)
        totals = np.asarray(by_round.sum(axis=0)).ravel()
        if self.items is None:
            return np.concatenate([own, totals]).astype(np.float64, copy=False)
        parts = [own, totals @ self.items]
        if self.contexts is not None:
            parts.append((self.contexts.T @ (by_round @ self.items)).ravel())
        return np.concatenate(parts).astype(np.float64, copy=False)

    def _by_round(self, values: Vector) -> Any:
        """One value per row as a sparse matrix, shape (R, K)."""
        from scipy.sparse import csr_array

        parts: Any = (values, self.which, self.bounds)
        return csr_array(parts, shape=(self.n_rounds, self.n_arms))

    def cross(self, values: Vector) -> Matrix:
        """Weighted cross-product."""
        found = np.zeros((self.shape[1],) * 2)
        for part, rows in self._parts():
            block = part.toarray().astype(np.float64, copy=False)
            found += block.T @ (values[rows, None] * block)
        return found

    def round_sums(self, values: Vector, offsets: Index) -> Matrix:
        """Weighted sum of the rows of every round, as an array: shape (R, d)."""
        parts = [] if self.own is None else [np.add.reduceat(values[:, None] * self.own, offsets[:-1], axis=0)]
        if self.items is None:
            by_round = self.by_round(values)
            blocks = by_round if self.contexts is None else by_round[:, :, None] * self.contexts[:, None, :]
            parts.append(blocks.reshape(len(by_round), -1))
        else:
            # Sparse: a round offers few of many items.
            items = (self.by_round(values) if self.which is None else self._by_round(values)) @ self.items
            parts.append(items)
            if self.contexts is not None:
                parts.append((self.contexts[:, :, None] * items[:, None, :]).reshape(len(items), -1))
        return np.hstack(parts) if len(parts) > 1 else np.asarray(parts[0], dtype=np.float64)

    def by_round(self, values: Vector) -> Matrix:
        """One value per row as a matrix, shape (R, K): 0 where an arm is not offered."""
        if self.which is None:
            return values.reshape(self.n_rounds, self.n_arms)
        return np.asarray(self._by_round(values).toarray())

    def window_products(
        self, values: Vector, counts: NDArray[np.bool_], mean: Vector, width: int, *, coarse: bool
    ) -> tuple[int, Matrix, Matrix, Matrix] | None:
        """Sums over windows of the rounds' own sums of rows; see `window_products`. None where rows are no blocks."""
        if not self.only_blocks:
            return None
        contexts, by_round, turned = self.block_contexts, self.by_round(values), self.turned if coarse else None
        if not counts.all():
            contexts, by_round = contexts[counts], by_round[counts]
            turned = turned and (turned[0], turned[1][counts])
        return window_products(contexts, by_round, mean, width, turned)

    def covariance(self, shares: Vector, weights: Vector, offsets: Index, *, coarse: bool = False) -> Matrix:
        """Covariance of the rows within the rounds; coarse: in single precision."""
        if not self.only_blocks:
            return super().covariance(shares, weights, offsets)
        turned = self.turned if coarse else None
        return block_hessian(self.block_contexts, self.by_round(shares), weights, turned)

    @property
    def block_contexts(self) -> Features:
        """Contexts that each arm's block of weights is for: 1 where there are none."""
        return np.ones((self.n_rounds, 1)) if self.contexts is None else self.contexts

    @cached_property
    def turned(self) -> Turned:
        """Contexts decorrelated, in single precision: what curvature and scatter both need."""
        return decorrelated(self.block_contexts)

    def preconditioner(
        self, shares: Vector, weights: Vector, offsets: Index, l2: float, groups: Index | None = None
    ) -> Callable[[Vector], Vector]:
        """About the inverse of the `covariance`: a block for each arm where it has weights of its own."""
        if self.shape[1] <= MOST_INVERTED and (self.items is not None or self.own is not None):
            inverse = np.linalg.pinv(self.covariance(shares, weights, offsets) + l2 * np.eye(self.shape[1]))
            return lambda vector: inverse @ vector
        blocks = None
        if self.only_blocks:
            by_round = self.by_round(shares) if self.which is None else self._by_round(shares)
            blocks = arm_blocks(self.block_contexts, by_round, weights)
        if blocks is None:
            return super().preconditioner(shares, weights, offsets, l2)
        return per_arm_preconditioner(blocks, l2, self.groups if groups is None else groups)

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

    @property
    def groups(self) -> Index:
        """Which arms are compared, directly or by way of others: the number of each arm's group, shape (K,)."""
        if self.which is None:
            return np.zeros(self.n_arms, dtype=np.int64)
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        assert self.bounds is not None
        inside = np.ones(max(0, len(self.which) - 1), dtype=bool)
        inside[self.bounds[1:-1][(self.bounds[1:-1] > 0) & (self.bounds[1:-1] < len(self.which))] - 1] = False
        found: Index = np.arange(self.n_arms)
        for start in range(0, len(inside), PIECE_VALUES):
            some = start + np.flatnonzero(inside[start : start + PIECE_VALUES])
            # What is known already, and neighbours in a round.
            firsts = np.unique(found, return_index=True)[1][found]
            ends = np.append(firsts, self.which[some]), np.append(np.arange(self.n_arms), self.which[some + 1])
            entries: Any = (np.ones(len(ends[0]), dtype=np.int32), ends)
            graph = csr_array(entries, shape=(self.n_arms, self.n_arms))
            n_groups, labels = connected_components(graph, directed=False)
            found = np.asarray(labels, dtype=np.int64)
            if n_groups == 1:
                break
        return found

    @property
    def n_block(self) -> int:
        """Weights that each arm has of its own: p, or 1 without contexts."""
        return 1 if self.contexts is None else self.n_context

    def _parts(self) -> Iterator[tuple[FactoredRows, slice]]:
        """The rows piece by piece, each small enough to be written out."""
        step = max(1, PIECE_VALUES // max(1, self.shape[1]))
        for start in range(0, self.shape[0], step):
            rows = slice(start, min(start + step, self.shape[0]))
            yield self[rows], rows

    def _pieces(self, values: int) -> Iterator[tuple[slice, slice]]:
        """Ranges of rounds, and their rows, for `values` numbers a round in a temporary array."""
        assert self.bounds is not None
        step = max(1, PIECE_VALUES // max(1, values))
        for start in range(0, self.n_rounds, step):
            stop = min(start + step, self.n_rounds)
            yield slice(start, stop), slice(int(self.bounds[start]), int(self.bounds[stop]))

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
        """What the features are, in a few words."""
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


def check_table(
    table: Features | None, row: str, names: Sequence[str] | None, ids: Ids | None = None, remedy: str = ""
) -> None:
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
        what = remedy or f"fill missing values in or leave the {row} out"
        raise InputError(f"{row} {number}, feature {name} is {table[at, column]}: {what}")


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
