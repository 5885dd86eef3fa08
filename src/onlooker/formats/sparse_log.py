"""Rounds whose arms, and what they share, are described by sparse named features: from there to a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.checks import check_columns
from onlooker.base.errors import InputError, MixedFeatureWarning, SharedFeaturesWarning, warn
from onlooker.base.text import some_of
from onlooker.base.types import Index
from onlooker.formats.sparse_rows import Columns, Layout, SparseRows, as_ids, check_fits, name_of
from onlooker.logs import ragged
from onlooker.logs.categories import Encoded, Encoding, Growing, level_name
from onlooker.logs.layouts import SparseRows as KeptSparse
from onlooker.logs.layouts import stays_sparse
from onlooker.logs.log import BanditLog


@dataclass(eq=False)
class SparseLog:
    """Rounds as they are read: end arms on `arms`, what they share on `shared`, then end the round.

    Examples
    --------
    >>> rounds = SparseLog(features=None, cross=True)
    >>> rounds.shared.add("age", 30.0)
    >>> for price in (2.0, 3.0):
    ...     rounds.arms.add("price", price)
    ...     rounds.arms.end_row(line=1)
    >>> rounds.end_round(line=1, chosen=1)
    >>> log = rounds.log()
    >>> log.feature_names, log.features
    (('price', 'age x price'), array([[ 2., 60.], [ 3., 90.]]))
    """

    features: Sequence[str] | None
    """Names of the features to read, or None for all."""
    cross: bool
    """Whether every shared feature is multiplied with every feature of the arms."""
    like: Encoded | None = None
    """A log or a policy whose features are used; others are ignored."""
    arms: SparseRows = field(init=False)
    shared: SparseRows = field(init=False)
    round_ids: list[str] = field(default_factory=list)
    arm_ids: list[str] = field(default_factory=list)
    _chosen: list[int] = field(default_factory=list)
    _offsets: list[int] = field(default_factory=lambda: [0])

    def __post_init__(self) -> None:
        if not isinstance(self.cross, bool):
            raise InputError(f"option 'cross' is {self.cross!r}: pass True or False")
        if self.features is not None and self.like is not None:
            raise InputError("options 'features' and 'like' both say which features to take: pass one of them")
        self.arms = SparseRows(Columns(self.features))
        self.shared = SparseRows(Columns(self.features))

    def end_round(self, line: int, chosen: int) -> None:
        """Close the round of the arms that were ended since the last one; `line` is where the shared features stand."""
        self.shared.end_row(line)
        self._chosen.append(chosen)
        self._offsets.append(self.arms.n_rows)

    def log(self, order: Index | None = None) -> BanditLog:
        """All rounds, in `order` where one is given."""
        if not self._chosen:
            raise InputError("holds no rounds: nothing was offered")
        offsets = np.array(self._offsets, dtype=np.int64)
        self._check_features()
        self._warn_of_mixtures()
        names, table, categories = self._table(offsets)
        log = BanditLog(
            table,
            offsets,
            self._chosen,
            feature_names=names,
            round_ids=as_ids(self.round_ids) if len(self.round_ids) == len(self._chosen) else None,
            arm_ids=as_ids(self.arm_ids) if len(self.arm_ids) == table.shape[0] else None,
            categories=categories,
        )
        self._warn_of_shared()
        return log if order is None or (np.diff(order) == 1).all() else log[order]

    def _check_features(self) -> None:
        """Refuse requested features that are absent or do not vary within rounds."""
        here, common = self.arms.columns.names(), self.shared.columns.names()
        for name in self.features or ():
            if name in common and name not in here and not self.cross:
                raise InputError(
                    f"feature {name!r} is shared by the arms of a round, so it says nothing of the choice by itself: "
                    "leave it out or pass cross=True"
                )
            check_columns([*here, *common], {"features": name})

    def _warn_of_mixtures(self) -> None:
        for rows in (self.arms, self.shared):
            for name, (line, found) in rows.mixed().items():
                kind = "text" if found == "a number" else "a number"
                warn(
                    f"line {line} has {found} as its {name!r}, which is {kind} before: correct it, or the feature "
                    "becomes a number and a category besides",
                    MixedFeatureWarning,
                )

    def _warn_of_shared(self) -> None:
        common = self.shared.columns.names()
        if common and not self.cross and self.features is None and self.like is None:
            warn(
                f"shared by all arms of a round, so no pick depends on them by themselves: {some_of(common)}; left "
                "out, cross=True multiplies them with the features of the arms",
                SharedFeaturesWarning,
            )

    def _table(self, offsets: Index) -> tuple[list[str], Any, dict[str, tuple[str, ...]]]:
        """Names of the features, their rows as an array or as a sparse matrix, and the levels of categories."""
        own, common = self._layouts()
        if not own.names:
            raise InputError("has no feature that differs between arms: describe the arms")
        arms = self.arms.matrix(own)
        arms.eliminate_zeros()
        if common is None:
            return own.names, _as_kept(arms), own.categories
        context = self.shared.matrix(common)
        names = own.names + crossed(common.names, own.names)
        n_values = n_products(context, arms, offsets)
        check_fits(arms.shape[0], len(names), n_values)
        if stays_sparse(arms.shape[0], len(names), n_values):
            return names, sparse_products(context, arms, offsets), own.categories
        width = len(own.names)
        # Room for the products beside the arms' own features.
        arms.resize(arms.shape[0], len(names))
        table = arms.toarray()
        products(table[:, width:], context.toarray(), table[:, :width], offsets)
        return names, table, own.categories

    def _layouts(self) -> tuple[Layout, Layout | None]:
        """Columns for the arms and, if they are crossed, for what the arms share."""
        if self.like is None:
            return self.arms.layout(), self.shared.layout() if self.cross else None
        known = Encoding.of(self.like)
        if isinstance(self.like, Growing):
            known = self._grown(known)
        if not self.cross:
            return self.arms.layout_like(known.feature_names, known.categories), None
        common, own = uncrossed(known.feature_names)
        return self.arms.layout_like(own, known.categories), self.shared.layout_like(common, {})

    def _grown(self, known: Encoding) -> Encoding:
        """With the features of the arms that are new: they were 0 in all rounds before."""
        if self.cross:
            _, own = uncrossed(known.feature_names)
            kept = Encoding(tuple(own), known.categories).columns
            new = [name for name in self.arms.columns.names() if name not in kept]
            if new:
                raise InputError(
                    f"has features that the rounds before did not have: {some_of(new)}. Begin again with the whole log"
                )
            return known
        levels: dict[str, set[str]] = {column: set() for column in known.categories}
        for key in self.arms.columns:
            if not isinstance(key, str) and key[0] in levels:
                levels[key[0]].add(key[1])
        known = known.grown(levels)
        references = {level_name(column, all_[0]) for column, all_ in known.categories.items()}
        names = [name_of(key) for key, number in self.arms.columns.items() if number >= 0]
        # In the order in which they come, as in a file that has them all.
        new = [name for name in dict.fromkeys(names) if name not in {*known.feature_names, *references}]
        return Encoding((*known.feature_names, *new), known.categories)


def values_of(log: BanditLog, t: int, *, zeros: bool) -> list[list[tuple[int, float]]]:
    """Place and value of every feature that is not 0, for each arm of round `t`; of the first arm all with `zeros`.

    Examples
    --------
    >>> values_of(BanditLog(np.eye(2), [0, 2], [0]), 0, zeros=True)
    [[(0, 1.0), (1, 0.0)], [(1, 1.0)]]
    """
    rows: Any = log.features[log.offsets[t] : log.offsets[t + 1]]
    if isinstance(rows, KeptSparse):
        matrix = rows.matrix
        ends, places, values = matrix.indptr.tolist(), matrix.indices.tolist(), matrix.data.astype(float).tolist()
        found = [[*zip(places[a:b], values[a:b], strict=True)] for a, b in pairwise(ends)]
        if zeros:
            found[0] = [*enumerate(rows[:1].toarray()[0].astype(float).tolist())]
        return found
    return [
        [(place, value) for place, value in enumerate(row) if value or (zeros and k == 0)]
        for k, row in enumerate(log.arms(t).astype(float).tolist())
    ]


_TIMES = " x "


def crossed(shared: Sequence[str], own: Sequence[str]) -> list[str]:
    """Names of the products, those of the first shared feature first.

    Examples
    --------
    >>> crossed(["age"], ["price", "size"])
    ['age x price', 'age x size']
    """
    return [f"{common}{_TIMES}{name}" for common in shared for name in own]


def uncrossed(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Shared features and features of the arms behind the features of a crossed log.

    Examples
    --------
    >>> uncrossed(["price", "size", "age x price", "age x size"])
    (['age'], ['price', 'size'])
    """
    for width in range(1, len(names) + 1):
        if len(names) % width:
            continue
        own = list(names[:width])
        shared = [name.removesuffix(_TIMES + own[0]) for name in names[width::width]]
        if own + crossed(shared, own) == list(names):
            return shared, own
    raise InputError("what it should be like was not read with cross=True: read this without it too")


def n_products(context: Any, arms: Any, offsets: Index) -> int:
    """How many values the rows of arms and their products with their round's context have."""
    by_row = np.repeat(np.diff(context.indptr), np.diff(offsets))
    return int(np.diff(arms.indptr) @ (1 + by_row))


def products(out: NDArray[Any], context: NDArray[Any], arms: NDArray[Any], offsets: Index) -> None:
    """Fill `out` with the products of every feature of a round's `context` with every feature of its arms."""
    for start, stop in ragged.blocks(offsets, out.shape[1]):
        rows = slice(offsets[start], offsets[stop])
        repeated = np.repeat(context[start:stop], np.diff(offsets[start : stop + 1]), axis=0)
        # Overflow is reported, with its place, when the log is made.
        with np.errstate(over="ignore", invalid="ignore"):
            out[rows] = (repeated[:, :, None] * arms[rows, None, :]).reshape(len(repeated), out.shape[1])


def sparse_products(context: Any, arms: Any, offsets: Index) -> Any:
    """Rows of the arms, then the products of every feature of their round's context with every one of theirs; sparse.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> sparse_products(csr_array([[30.0]]), csr_array([[2.0, 0.0], [3.0, 1.0]]), np.array([0, 2])).toarray()
    array([[ 2.,  0., 60.,  0.],
           [ 3.,  1., 90., 30.]])
    """
    from scipy.sparse import csr_array, hstack

    (n_rows, width), sizes = arms.shape, np.diff(offsets)
    own, shared = np.diff(arms.indptr), np.repeat(np.diff(context.indptr), sizes)
    # Entry by entry of the arms, every entry of its round's context.
    of = np.repeat(np.arange(n_rows), own)
    entry = np.repeat(np.arange(len(of)), shared[of])
    first = np.cumsum(shared[of]) - shared[of]
    begin = np.repeat(context.indptr[:-1], sizes)[of]
    partner = np.arange(len(entry)) - (first - begin)[entry]
    # Overflow is reported, with its place, when the log is made.
    with np.errstate(over="ignore", invalid="ignore"):
        values = arms.data[entry] * context.data[partner]
    columns = context.indices[partner].astype(np.int64) * width + arms.indices[entry]
    ends = np.concatenate([[0], np.cumsum(own * shared)])
    crossed_rows = csr_array((values, columns, ends), shape=(n_rows, context.shape[1] * width))
    found = hstack([arms, crossed_rows], format="csr")
    found.sort_indices()
    return found


def _as_kept(rows: Any) -> Any:
    """Sparse rows as a log keeps them: as an array, unless `stays_sparse`."""
    n_rows, width = rows.shape
    if stays_sparse(n_rows, width, rows.nnz):
        return rows
    check_fits(n_rows, width, rows.nnz)
    return rows.toarray()
