"""From a long table, one row per offered arm, to the parts of a log."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.arrow_tables import in_arrow, opened
from onlooker.categories import MOST_LEVELS, Categories, Encoded, Encoding, level_order
from onlooker.checks import did_you_mean
from onlooker.encoding import (
    check_complete,
    check_gaps,
    feature_rows,
    has_gap,
    is_number,
    is_text,
    level_counts,
    place,
    some,
)
from onlooker.errors import ColumnsLeftOutWarning, InputError, OnlyOnPicksWarning
from onlooker.grouping import group_rounds, in_time, picks
from onlooker.moments import Falls, as_times, counts, may_be_time, tell_falls, tell_rounds
from onlooker.ragged import blocks
from onlooker.types import Features, Ids, Index

_REWARDS = ("reward", "rewards", "cost", "costs", "click", "clicks", "revenue")
_CHANCES = ("propensity", "propensity_score", "pscore", "prob", "probability", "action_prob", "action_probability")
OUTCOMES = frozenset({*_REWARDS, *_CHANCES})
"""Columns that an observer does not see, in small letters, so they are no features unless asked for."""

ROW_NUMBER = re.compile(r"|Unnamed: 0|__index_level_\d+__")
"""What pandas calls the row numbers that it saves with a table."""

_AMOUNT = re.compile(r"\s*[+-]?(?:[$€£¥]\s*[+-]?[\d.,' ]+|[\d.,' ]+\s*[$€£¥%])\s*")
"""A number with a currency or a per cent sign."""

_GROUPED = re.compile(
    r"\s*[+-]?(?:[1-9]\d{0,2}(?P<mark>[.,'\u2019 \u00a0\u202f])\d{3}(?P<more>(?:(?P=mark)\d{3})*)|\d{1,3})"
    r"(?P<part>[.,]\d+)?\s*"
)
"""A number whose thousands may be apart."""

_SURPRISE = 20.0
"""How improbable it is, as a logarithm, that a feature falls on picks alone by chance."""

MANY = 10_000
"""Levels beyond which nobody counts them."""


def check_once(names: Sequence[str]) -> None:
    """Refuse a table that has two columns of one name."""
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(f"the table has the column {name!r} twice: rename one of them")


def is_outcome(name: str) -> bool:
    """Whether a column's name says that it holds rewards or propensities.

    Examples
    --------
    >>> is_outcome("Reward"), is_outcome("price")
    (True, False)
    """
    return name.strip().lower() in OUTCOMES


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Which columns of a long table mean what; see `BanditLog.from_frame`."""

    round: str = "round"
    """Id of the round that a row belongs to."""
    chosen: str = "chosen"
    """1 for the arm that was picked."""
    arm: str | None = None
    """Id of the arm."""
    order_by: str | None = None
    """Time of the round."""
    by: str | None = None
    """Which of several learners or restarts a round belongs to; each numbers its rounds anew."""
    features: Sequence[str] | None = None
    """Columns that describe the arm, or None for all others that can."""
    categories: Sequence[str] | None = None
    """Columns that are categories even if they hold numbers."""
    like: Encoded | None = None
    """Encode as this was."""

    def __post_init__(self) -> None:
        for name in ("features", "categories"):
            if isinstance(getattr(self, name), str):
                raise InputError(f"{name} is {getattr(self, name)!r}: pass a list of columns")
        if self.like is not None and (self.features is not None or self.categories):
            raise InputError("`like` says which features there are: leave `features` and `categories` out")

    @property
    def keys(self) -> list[str]:
        """Columns that are no features."""
        return [name for name in (self.round, self.chosen, self.arm, self.order_by, self.by) if name is not None]

    @property
    def named(self) -> list[str] | None:
        """Columns of the features, where the user has said which."""
        if self.like is not None:
            return list(Encoding.of(self.like).columns)
        if self.features is None:
            return None
        return list(dict.fromkeys([*self.features, *(self.categories or ())]))

    def check(self, names: Sequence[str]) -> None:
        """Every wanted column is there, once, and is wanted for one thing."""
        wanted = {"round": self.round, "chosen": self.chosen, "arm": self.arm, "order_by": self.order_by, "by": self.by}
        check_columns(names, wanted)
        meaning = "like" if self.like is not None else "features"
        for name in [*(self.categories or ()), *(self.named or ())]:
            check_columns(names, {"categories" if name in (self.categories or ()) else meaning: name})
            if name in self.keys:
                raise InputError(f"column {name!r} cannot be a feature too: leave it out of the features")
        check_once(names)
        doubled = [name for name, count in Counter(self.features or ()).items() if count > 1]
        if doubled:
            raise InputError(f"the features have {doubled[0]!r} twice: name it once")


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts:
    """What a log is made of, checked; see `BanditLog`."""

    features: Features
    offsets: Index
    chosen: Index
    feature_names: tuple[str, ...]
    round_ids: Ids
    arm_ids: Ids | None
    categories: Categories | None
    times: NDArray[Any] | None
    """Time of every round, where there is one."""
    by: Ids | None
    """Which learner or restart each round belongs to, where that was asked for."""


def parts_of_frame(frame: Any, columns: Columns) -> Parts:
    """Take a table of pandas, polars or pyarrow apart."""
    table = as_table(frame, columns)
    return parts_of_table(table, columns, encoding_of(table, columns))


def parts_of_table(
    table: Any, columns: Columns, encoding: Encoding, *, first_row: int = 0, adjacent: bool = False
) -> Parts:
    """Take an Arrow table apart, as `encoding` says.

    `first_row` is the number of the table's first row in its file, for messages; with `adjacent` rows of a round must
    be next to each other and rounds in order of time, and unseen levels have been told.
    """
    keys = {name: _plain(table[name]) for name in columns.keys}
    for name, column in keys.items():
        check_plain(column, name)
        check_complete(column, name, first_row, part=adjacent)
    apart = [columns.round] if columns.by is None else [columns.by, columns.round]
    grouping = group_rounds([keys[name] for name in apart])
    if adjacent and grouping.order is not None:
        row = int(grouping.order[np.flatnonzero(np.diff(grouping.order) != 1)[0] + 1])
        raise scattered_round(columns.round, first_row + row, keys[columns.round][row].as_py())
    times = None
    if columns.order_by is not None:
        appeared = grouping
        values = as_times(keys[columns.order_by].to_numpy(zero_copy_only=False), columns.order_by, first_row)
        grouping, times = in_time(grouping, values, columns.order_by, first_row)
        if adjacent and grouping is not appeared:
            falls = int(np.flatnonzero(values[1:] < values[:-1])[0]) + 1
            raise fallen_time(columns.order_by, first_row + falls, values[falls], values[falls - 1])
    free = columns.like is None
    rows = feature_rows(table, encoding, first_row=first_row, tell=not adjacent, free=free)
    ids = keys[columns.round].take(grouping.first).to_numpy(zero_copy_only=False)
    parts = Parts(
        features=grouping.in_order(rows),
        offsets=grouping.offsets,
        chosen=picks(keys[columns.chosen], columns.chosen, grouping, ids, first_row, by=columns.by),
        feature_names=encoding.feature_names,
        round_ids=ids,
        arm_ids=None if columns.arm is None else grouping.in_order(keys[columns.arm].to_numpy(zero_copy_only=False)),
        categories=encoding.categories or None,
        times=times,
        by=None if columns.by is None else keys[columns.by].take(grouping.first).to_numpy(zero_copy_only=False),
    )
    if not adjacent:
        if columns.order_by is None and _miscounted(parts):
            tell_rounds(columns.round)
        seen = OnPicks(len(parts.feature_names))
        seen.see(parts)
        seen.tell(parts.feature_names)
    return parts


def _miscounted(parts: Parts) -> bool:
    """Whether rounds are numbered and out of order, those of each learner by themselves."""
    ids = parts.round_ids
    if ids.dtype.kind not in "iu" or not len(ids):
        return False
    starts = np.zeros(1, dtype=np.int64)
    if parts.by is not None:
        learner = np.unique(parts.by, return_inverse=True)[1]
        order = np.argsort(learner, kind="stable")
        ids, starts = ids[order], np.searchsorted(learner[order], np.arange(learner.max() + 1))
    falls = np.append(False, ids[1:] < ids[:-1])
    falls[starts] = False
    rounds = np.diff(np.append(starts, len(ids)))
    ends = [ufunc.reduceat(ids, starts).tolist() for ufunc in (np.minimum, np.maximum)]
    fell = np.logical_or.reduceat(falls, starts).tolist()
    return any(
        down and counts(most - least, n) for down, least, most, n in zip(fell, *ends, rounds.tolist(), strict=True)
    )


class OnPicks:
    """Features that differ from 0 in picked rows only, more often than chance would have it, seen part by part."""

    def __init__(self, n_features: int) -> None:
        self._others = np.zeros(n_features, dtype=np.int64)
        self._surprise = np.zeros(n_features)

    def see(self, parts: Parts) -> None:
        """Look at some rounds."""
        for start, stop in blocks(parts.offsets, parts.features.shape[1]):
            offsets = parts.offsets[start : stop + 1]
            rows = parts.features[offsets[0] : offsets[-1]]
            picked = rows[offsets[:-1] - offsets[0] + parts.chosen[start:stop]] != 0
            self._others += np.count_nonzero(rows, axis=0) - np.count_nonzero(picked, axis=0)
            self._surprise += np.log(np.diff(offsets)) @ picked

    def tell(self, names: Sequence[str]) -> None:
        """Warn of them, by name."""
        found = [names[j] for j in np.flatnonzero((self._others == 0) & (self._surprise > _SURPRISE)).tolist()]
        if found:
            what_to_do = "where that came of the pick, as a click does, leave it out: name the others with `features`"
            message = f"differing from 0 in picked rows only: {some(found)}; {what_to_do}"
            warnings.warn(message, OnlyOnPicksWarning, stacklevel=3)


def fallen_time(column: str, row: int, time: object, before: object) -> InputError:
    """What to say about a time that falls where it must not."""
    remedy = "a scan cannot sort, so sort the file or read it whole"
    return InputError(f"column {column!r}, {place(row)} is {time}, after {before}: {remedy}")


def scattered_round(column: str, row: int, round: object) -> InputError:
    """What to say about a round whose rows are not next to each other where they must be."""
    remedy = "a scan needs the rows of a round next to each other, so sort the file or read it whole"
    return InputError(f"column {column!r}, {place(row)} goes back to round {round!r}: {remedy}")


def encoding_of(table: Any, columns: Columns) -> Encoding:
    """How the columns of an Arrow table become features."""
    if not len(table):
        raise InputError("the table has no rows: nothing was offered")
    if columns.like is not None:
        return Encoding.of(columns.like)
    names, texts = feature_columns(table.schema, columns)
    for key in columns.keys:
        check_plain(table[key], key)
        check_complete(table[key], key)
    if any(has_gap(table[name]) for name in texts):
        check_gaps(table, names)
    found = settle(names, {name: level_counts(table[name], name) for name in texts}, columns)
    tell_times(table, columns)
    return found


def time_columns(schema: Any, columns: Columns) -> list[str]:
    """Columns that may hold the rounds' times without anybody having said so."""
    if columns.order_by is not None or columns.named is not None:
        return []
    chosen = columns.categories or ()
    return [
        field.name
        for field in schema
        if may_be_time(field.name, field.type) and field.name not in chosen and not _is_skipped(field.name, columns)
    ]


def tell_times(table: Any, columns: Columns) -> None:
    """Warn of columns that look like times and fall from a round to the next, each learner by itself."""
    names = time_columns(table.schema, columns)
    keys = [_plain(table[name]) for name in (columns.by, columns.round) if name is not None]
    if not names:
        return
    for key, name in zip(keys, [name for name in (columns.by, columns.round) if name is not None], strict=True):
        check_plain(key, name)
    # Gaps in the ids are told when the rows are looked through.
    if any(key.null_count for key in keys):
        return
    first = np.sort(group_rounds(keys).first)
    stretches = [first]
    if columns.by is not None:
        codes = keys[0].take(first).dictionary_encode().indices.to_numpy(zero_copy_only=False)
        stretches = [first[codes == code] for code in range(codes.max() + 1)]
    tell_falls([name for name in names if any(_falls(_plain(table[name]).take(rows)) for rows in stretches)])


def _falls(column: Any) -> bool:
    seen = Falls()
    seen.see(column)
    return seen.found


def feature_columns(schema: Any, columns: Columns) -> tuple[list[str], list[str]]:
    """Columns of an Arrow schema that may be features, and those of them that would be categories."""
    chosen = set(columns.categories or ())
    named = columns.named
    if named is not None:
        kinds = {name: schema.field(name).type for name in named}
        return named, [name for name, kind in kinds.items() if name in chosen or is_text(kind)]
    others = [field for field in schema if field.name in chosen or not _is_skipped(field.name, columns)]
    text = {field.name: field.name in chosen or is_text(field.type) for field in others}
    texts = [name for name, is_category in text.items() if is_category]
    names = [field.name for field in others if text[field.name] or is_number(field.type)]
    odd = [field.name for field in others if not (text[field.name] or is_number(field.type))]
    if not names:
        raise _no_features(columns, [*odd, *(name for name in schema.names if is_outcome(name))])
    if odd:
        what_to_do = "turn them into numbers, or sort by a time"
        message = f"neither numbers nor text, so not taken for features: {some(odd)}; {what_to_do}"
        warnings.warn(message, ColumnsLeftOutWarning, stacklevel=2)
    return names, texts


def _is_skipped(name: str, columns: Columns) -> bool:
    return name in columns.keys or is_outcome(name) or ROW_NUMBER.fullmatch(name) is not None


def _apart(levels: Mapping[str, int]) -> bool:
    """Whether text is nothing but numbers, some of which have their thousands apart."""
    if len(levels) < 3:
        return False
    found = [_GROUPED.fullmatch(level) for level in levels]
    # A point or a comma alone may as well be that of a fraction.
    return all(found) and any(
        one is not None and one["mark"] and (one["part"] or one["more"] or one["mark"] not in ".,") for one in found
    )


def settle(names: Sequence[str], levels: Mapping[str, Mapping[str, int]], columns: Columns) -> Encoding:
    """Decide which of the columns that could be categories are; those that are left out are named in a warning."""
    categories = {*(columns.categories or ())}
    for name, found in levels.items():
        if name not in categories and (
            (len(found) > MOST_LEVELS and all(map(_AMOUNT.fullmatch, found))) or _apart(found)
        ):
            raise InputError(
                f"column {name!r} holds {next(iter(found))[:40]!r} and the like, which is text: "
                "write plain numbers, or name it with `categories`"
            )
    wanted = {*(columns.named or ()), *categories}
    many = {name: len(found) for name, found in levels.items() if len(found) > MOST_LEVELS and name not in wanted}
    single = {name: None for name, found in levels.items() if len(found) == 1}
    kept = [name for name in names if name not in many and name not in single]
    if not kept:
        raise _no_features(columns, [*many, *single])
    told = [f"{name!r} (text of {'more than ' * (n > MANY)}{min(n, MANY)} levels)" for name, n in many.items()]
    told += [f"{name!r} (the same in every row)" for name in single]
    if told:
        shown = ", ".join(told[:12]) + (f" and {len(told) - 12} more" if len(told) > 12 else "")
        message = f"not taken for features: {shown}; name those that matter as categories"
        warnings.warn(message, ColumnsLeftOutWarning, stacklevel=2)
    return Encoding.of_columns(kept, {name: level_order(levels[name]) for name in kept if name in levels})


def _no_features(columns: Columns, others: Sequence[str]) -> InputError:
    found = f" (left out: {some(others)})" if others else ""
    return InputError(f"the table has no feature besides {some(columns.keys)}{found}: name the features")


def as_table(frame: Any, columns: Columns) -> Any:
    """A table of pandas, polars or pyarrow as an Arrow table of the columns that are needed."""
    table, names = opened(frame)
    columns.check(names)
    named = columns.named
    return in_arrow(table, names if named is None else list(dict.fromkeys([*columns.keys, *named])))


def arrow_table(frame: Any, wanted: Sequence[str]) -> Any:
    """Some columns of a table of pandas, polars or pyarrow as an Arrow table."""
    table, names = opened(frame)
    for name in wanted:
        if name not in names:
            hint = did_you_mean(name, names)
            raise InputError(
                f"the table has no column {name!r}, which is a feature: it has {some(names)}; {hint}".rstrip("; ")
            )
    return in_arrow(table, wanted)


def check_plain(column: Any, name: str) -> None:
    """Refuse a column, or a field of a schema, that holds lists or the like."""
    import pyarrow as pa

    if pa.types.is_nested(column.type):
        raise InputError(f"column {name!r} holds {str(column.type)[:60]}: it must hold one value a row")
    if pa.types.is_float16(column.type) or pa.types.is_time(column.type):
        raise InputError(f"column {name!r} holds {column.type}: write it as whole numbers, text or full times")


def _plain(column: Any) -> Any:
    """A column as one Arrow array of its own values."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_string(kind) and column.nbytes >= 1 << 31:
        kind = pa.large_string()
    if kind != column.type:
        column = column.cast(kind)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def check_columns(names: Sequence[str], wanted: Mapping[str, str | None]) -> None:
    """Every wanted column is there; `wanted` maps what a column means to its name."""
    missing = {meaning: name for meaning, name in wanted.items() if name is not None and name not in names}
    hints = []
    for meaning, name in missing.items():
        parts = [part.strip() for part in name.split(",")]
        if len(parts) > 1 and all(part in names for part in parts):
            raise InputError(f"the table has no column {name!r}: name {some(parts)} one by one")
        # What nobody typed is not mistyped.
        alike = [one for one in names if name in one.lower()] if name == meaning else names
        hints.append(did_you_mean(name, alike))
    if missing:
        what, them = ("columns", "them") if len(missing) > 1 else ("column", "it")
        hints.append(f"name {them} as {' and '.join(f'`{meaning}`' for meaning in missing)}")
        raise InputError(
            f"the table has no {what} {' and '.join(map(repr, missing.values()))}: it has {some(names)}; "
            + " ".join(filter(None, hints))
        )
