"""From one row per round (a context and the picked arm) to the parts of a factored log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.checks import check_columns, check_once, counted
from onlooker.base.errors import InputError
from onlooker.base.numerics import arrow_values
from onlooker.base.types import Features, Ids, Index
from onlooker.logs.arm_ids import as_arms, check_arms, encoded, in_order, key_of, places
from onlooker.logs.categories import Categories, Encoding
from onlooker.logs.columns import CONSTANT, Columns, feature_columns, settle
from onlooker.logs.encoding import check_gaps, feature_rows, has_gap, is_number, level_counts
from onlooker.logs.factored import FactoredRows, check_table
from onlooker.logs.frames import in_arrow, is_table, opened
from onlooker.logs.ragged import as_features, as_names

ID_COLUMNS = ("arm", "arm_id", "item", "item_id", "id", "arms", "action", "action_id")
"""Names under which a table of arms has their ids, in small letters."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Described:
    """Rows of numbers with what their columns are called."""

    rows: Features
    names: tuple[str, ...] | None
    categories: Categories | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class FactoredParts:
    """What a factored log is made of, checked."""

    rows: FactoredRows
    offsets: Index
    chosen: Index
    feature_names: tuple[str, ...] | None
    categories: Categories | None


def parts_of_contexts(
    contexts: Any,
    chosen: Any,
    *,
    arms: Any = None,
    arm_features: Any = None,
    offered: Any = None,
    feature_names: Sequence[str] | None = None,
) -> FactoredParts:
    """Build the parts of a log from contexts and picks; see `BanditLog.from_contexts`.

    Without contexts arms have their own features.
    """
    described = None if contexts is None else described_rows(contexts, "contexts", feature_names)
    if described is not None and described.categories and arm_features is None:
        described = _with_ones(described)
    picked, codes = encoded(chosen, "chosen", unit="round")
    n_rounds = len(codes)
    if not n_rounds:
        raise InputError("there are no rounds: chosen is empty")
    if described is not None and len(described.rows) != n_rounds:
        raise InputError(
            f"contexts has {counted(len(described.rows), 'row')}, chosen {n_rounds}: pass a context and a pick a round"
        )
    known = None if arms is None else as_arms(arms)
    offers = _offers(offered, n_rounds)
    table = None if arm_features is None else _arm_table(arm_features)
    if known is None:
        known = _found_arms(picked, offers, table)
    picks = _positions(picked, codes, known, "picks")
    which, offsets, positions = _laid_out(offers, picks, known)
    items, item_names = (None, None) if table is None else table.of(known)
    rows = FactoredRows(
        arms=known,
        contexts=None if described is None else described.rows,
        items=items,
        item_names=item_names,
        which=which,
        bounds=None if which is None else offsets,
        n_rounds=n_rounds,
    )
    names = (item_names if described is None else described.names) or None
    return FactoredParts(
        rows=rows,
        offsets=offsets,
        chosen=positions,
        feature_names=names,
        categories=None if described is None else described.categories,
    )


def _with_ones(described: Described) -> Described:
    """With a column of ones before categories: without one nothing would distinguish arms at the reference levels."""
    names = described.names or ()
    if CONSTANT in names:
        return described
    rows = np.column_stack([np.ones(len(described.rows), dtype=described.rows.dtype), described.rows])
    return Described(rows=rows, names=(CONSTANT, *names), categories=described.categories)


def described_rows(table: Any, what: str, names: Sequence[str] | None = None) -> Described:
    """Numbers of an array, or of a table whose text is encoded as categories; `names` are those of its columns.

    Examples
    --------
    >>> import pyarrow as pa
    >>> found = described_rows(pa.table({"age": [30.0, 40.0], "sex": ["f", "m"]}), "contexts")
    >>> found.names, found.rows.tolist()
    (('age', 'sex=m'), [[30.0, 0.0], [40.0, 1.0]])
    """
    if not is_table(table):
        rows = _as_array(table, what)
        found = as_names(names, rows.shape[1])
        check_table(rows, "arm" if what == "arm_features" else "round", found)
        return Described(rows=rows, names=found)
    arrow = as_arrow(table)
    if names is not None:
        check_columns(arrow.column_names, dict.fromkeys(["feature_names"], None))
        for name in names:
            check_columns(arrow.column_names, {"feature_names": name})
        arrow = arrow.select(list(names))
    encoding = _encoding(arrow, what)
    return Described(
        rows=feature_rows(arrow, encoding), names=encoding.feature_names, categories=encoding.categories or None
    )


def _encoding(arrow: Any, what: str) -> Encoding:
    """How the columns of a table that describes rounds or arms become features: all of them are wanted."""
    if not arrow.num_columns:
        raise InputError(f"{what} has no columns: nothing describes the rounds")
    columns = Columns(features=arrow.column_names)
    names, texts = feature_columns(arrow.schema, columns)
    odd = [field for field in arrow.schema if field.name not in texts and not is_number(field.type)]
    if odd:
        kind = str(odd[0].type)[:60]
        raise InputError(f"{what} has the column {odd[0].name!r}, which holds {kind}: leave it out, or make it numbers")
    if any(has_gap(arrow[name]) for name in texts):
        check_gaps(arrow, names)
    return settle(names, {name: level_counts(arrow[name], name) for name in texts}, columns)


def as_arrow(table: Any) -> Any:
    """A table of any kind as an Arrow table."""
    import pyarrow as pa

    if hasattr(table, "__arrow_c_stream__") and not hasattr(table, "iloc"):
        arrow = table if isinstance(table, pa.Table) else pa.table(table)
        check_once(arrow.column_names)
        return arrow
    frame, names = opened(table)
    check_once(names)
    return in_arrow(frame, names)


def _as_array(table: Any, what: str) -> Features:
    if hasattr(table, "tocsr"):
        raise InputError(f"{what} is sparse: pass an array or a table, or make the rows with BanditLog.from_sparse")
    shape = np.shape(table) if not isinstance(table, list | tuple) else None
    if shape is not None and len(shape) != 2:
        raise InputError(f"{what} has shape {shape}: pass one row a {'arm' if what == 'arm_features' else 'round'}")
    try:
        return as_features(table)
    except InputError as error:
        message = str(error).replace("one row per offered arm, shape (rows, features)", "two dimensions")
        raise InputError(message.replace("features has", f"{what} has", 1)) from None


@dataclass(frozen=True, eq=False)
class _ArmTable:
    """Features of the arms, with their ids where the table has them."""

    described: Described
    ids: list[Any] | None

    def of(self, arms: Ids) -> tuple[Features, tuple[str, ...] | None]:
        """Rows of these arms, in their order, and the names of the columns."""
        rows = self.described.rows
        if self.ids is None:
            if len(rows) != len(arms):
                raise InputError(
                    f"arm_features has {counted(len(rows), 'row')} for {len(arms)} arms: pass one row an arm, in order"
                )
            return rows, self.described.names
        at = places(arms.tolist(), np.asarray(self.ids, dtype=object))
        absent = np.flatnonzero(at < 0)
        if len(absent):
            raise InputError(f"arm_features has no row for arm {arms.tolist()[absent[0]]!r}: add one, or leave it out")
        return rows[at], self.described.names


def _arm_table(arm_features: Any) -> _ArmTable:
    """A table or an array of the arms' features; ids are a column of one of `ID_COLUMNS`, or pandas' index."""
    if not is_table(arm_features):
        return _ArmTable(described_rows(arm_features, "arm_features"), None)
    index = getattr(arm_features, "index", None)
    arrow = as_arrow(arm_features)
    named = [name for name in arrow.column_names if name.lower() in ID_COLUMNS]
    ids: Any = None
    if named:
        ids = arrow[named[0]]
        arrow = arrow.drop_columns([named[0]])
    elif index is not None and type(index).__name__ != "RangeIndex":
        ids = np.asarray(index)
    if ids is None:
        return _ArmTable(described_rows(arrow, "arm_features"), None)
    distinct, codes = encoded(ids, "arm_features")
    if len(distinct) < len(codes):
        twice = distinct[np.flatnonzero(np.bincount(codes) > 1)[0]]
        raise InputError(f"arm_features has the arm {twice!r} twice: keep one row an arm")
    return _ArmTable(described_rows(arrow, "arm_features"), [distinct[code] for code in codes.tolist()])


@dataclass(frozen=True, eq=False)
class _Offers:
    """What the rounds offer: a mask, or ids laid end to end."""

    mask: NDArray[np.bool_] | None = None
    distinct: Sequence[Any] = ()
    codes: Index | None = None
    sizes: Index | None = None


def _offers(offered: Any, n_rounds: int) -> _Offers | None:
    """Understand `offered`: nothing, a boolean mask of shape (N, K), or a list of ids for every round."""
    if offered is None:
        return None
    mask = _as_mask(offered)
    if mask is not None:
        if len(mask) != n_rounds:
            raise InputError(f"offered has {counted(len(mask), 'row')} for {n_rounds} rounds: pass one per round")
        return _Offers(mask=mask)
    flat, sizes = _flat(offered)
    if len(sizes) != n_rounds:
        raise InputError(f"offered has {counted(len(sizes), 'list')} for {n_rounds} rounds: pass one per round")
    distinct, codes = encoded(flat, "offered")
    return _Offers(distinct=distinct, codes=codes, sizes=sizes)


def _as_mask(offered: Any) -> NDArray[np.bool_] | None:
    """A mask where every entry is true or false, else None."""
    if hasattr(offered, "to_numpy") and hasattr(offered, "columns"):
        offered = offered.to_numpy()
    if isinstance(offered, np.ndarray) and offered.dtype == bool and offered.ndim == 2:
        return offered
    if not isinstance(offered, list | tuple) or not len(offered):
        return None
    first = offered[0]
    if not isinstance(first, list | tuple | np.ndarray) or not len(first) or not isinstance(first[0], bool | np.bool_):
        return None
    lengths = {len(row) for row in offered}
    if len(lengths) > 1:
        raise InputError(f"offered has rows of {min(lengths)} and of {max(lengths)} flags: pass one flag per arm")
    return np.array(offered, dtype=bool)


def _flat(offered: Any) -> tuple[Any, Index]:
    """Ids of all rounds laid end to end, and how many each round has."""
    import pyarrow as pa

    if hasattr(offered, "to_arrow"):
        offered = offered.to_arrow()
    if isinstance(offered, pa.ChunkedArray):
        offered = offered.combine_chunks()
    if isinstance(offered, pa.Array) and pa.types.is_list(offered.type) | pa.types.is_large_list(offered.type):
        if offered.null_count:
            raise InputError(f"round {offered.is_null().index(True).as_py()} has no list of offered arms: fill it in")
        return offered.flatten(), np.diff(arrow_values(offered.offsets))
    if not hasattr(offered, "__iter__") or isinstance(offered, str | bytes):
        raise InputError(
            f"offered is a {type(offered).__name__}: pass a boolean mask, or a list of ids for every round"
        )
    lists = list(offered)
    for t, one in enumerate(lists):
        if isinstance(one, str | bytes) or not hasattr(one, "__len__"):
            raise InputError(f"offered, round {t}, is {str(one)[:40]!r}: pass a list of arm ids for every round")
    sizes = np.array([len(one) for one in lists], dtype=np.int64)
    return list(chain.from_iterable(lists)), sizes


def _found_arms(picked: Sequence[Any], offers: _Offers | None, table: _ArmTable | None) -> Ids:
    """All arms, where they are not listed: those of the table, else those offered or picked."""
    if table is not None and table.ids is not None:
        return check_arms(in_order(table.ids))
    distinct = picked if offers is None or offers.mask is not None else [*offers.distinct]
    seen = {key_of(arm): arm for arm in [*distinct, *picked]}
    arms = in_order(list(seen.values()))
    wanted = None if offers is None or offers.mask is None else offers.mask.shape[1]
    if wanted is None and table is not None:
        wanted = len(table.described.rows)
    if wanted is not None and wanted != len(arms):
        what = "offered has a column" if offers is not None and offers.mask is not None else "arm_features has a row"
        raise InputError(f"{what} for each of {wanted} arms, but {len(arms)} are picked: pass arms= with all of them")
    return check_arms(arms)


def _positions(distinct: Sequence[Any], codes: Index, arms: Ids, verb: str, rounds: Index | None = None) -> Index:
    """Position of every id among the arms."""
    at = places(distinct, arms)
    unknown = np.flatnonzero(at < 0)
    if len(unknown):
        row = int(np.flatnonzero(np.isin(codes, unknown))[0])
        t = row if rounds is None else int(rounds[row])
        raise InputError(
            f"round {t} {verb} {distinct[codes[row]]!r}, which is not one of the {len(arms)} arms: add it to arms, or "
            "leave the round out"
        )
    return np.asarray(at[codes])


def _laid_out(offers: _Offers | None, picks: Index, arms: Ids) -> tuple[Index | None, Index, Index]:
    """Arm of every row (None: all arms in every round), where rounds begin, and the position of each pick."""
    n_rounds, K = len(picks), len(arms)
    everything = None, np.arange(n_rounds + 1, dtype=np.int64) * K, picks
    if offers is None:
        return everything
    if offers.mask is not None:
        if offers.mask.shape[1] != K:
            raise InputError(f"offered has {offers.mask.shape[1]} columns for {K} arms: pass one flag per arm")
        if offers.mask.all():
            return everything
        places_ = np.flatnonzero(offers.mask)
        sizes = offers.mask.sum(axis=1)
    else:
        assert offers.codes is not None
        assert offers.sizes is not None
        sizes = offers.sizes
        rounds = np.repeat(np.arange(n_rounds), sizes)
        places_ = rounds * K + _positions(offers.distinct, offers.codes, arms, "offers", rounds)
        if (np.diff(places_) <= 0).any():
            places_ = np.sort(places_)
            twice = np.flatnonzero(np.diff(places_) == 0)
            if len(twice):
                t, arm = divmod(int(places_[twice[0]]), K)
                hint = "; a mask must be boolean" if set(map(key_of, offers.distinct)) <= {"0", "1"} else ""
                raise InputError(f"round {t} offers the arm {arms.tolist()[arm]!r} twice: name it once{hint}")
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        raise InputError(f"round {empty[0]} offers no arm: leave such rounds out")
    if (sizes == K).all():
        return everything
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    wanted = np.arange(n_rounds) * K + picks
    at = np.minimum(np.searchsorted(places_, wanted), len(places_) - 1)
    hidden = np.flatnonzero(places_[at] != wanted)
    if len(hidden):
        t = int(hidden[0])
        raise InputError(f"round {t} picks {arms.tolist()[picks[t]]!r}, which it does not offer: correct the log")
    return np.asarray(places_ % K), offsets, np.asarray(at - offsets[:-1])
