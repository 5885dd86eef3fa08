"""From a long table, one row per offered arm, to the parts of a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.checks import check_plain, counted, did_you_mean
from onlooker.base.errors import InputError, MissingValuesWarning, OnlyOnPicksWarning, warn
from onlooker.base.numerics import arrow_values
from onlooker.base.text import some_of
from onlooker.base.types import Features, Ids, Index, Vector
from onlooker.logs.categories import Categories, Encoding, Growing
from onlooker.logs.columns import Columns, feature_columns, settle, time_columns, understood
from onlooker.logs.doubtful import head_rows, without_doubtful
from onlooker.logs.encoding import check_complete, check_gaps, has_gap, level_counts, place
from onlooker.logs.grouping import Grouping, group_rounds, grouped_picks, in_time, kept_with, marked_picks, picks
from onlooker.logs.layouts import Layout, SparseRows, dense_rows
from onlooker.logs.partial import Marks
from onlooker.logs.ragged import blocks
from onlooker.logs.slates import slate_choices
from onlooker.logs.sparse_encoding import encoded_rows
from onlooker.logs.timestamps import Falls, as_times, counts, warn_falls, warn_rounds


def is_table(given: object) -> bool:
    """Whether something has named columns, as tables of pandas, polars and pyarrow have, and arrays and lists do not.

    Examples
    --------
    >>> import pyarrow as pa
    >>> is_table(pa.table({"price": [1.0]})), is_table([[1.0]])
    (True, False)
    """
    if isinstance(given, np.ndarray | list | tuple):
        return False
    return any(hasattr(given, name) for name in ("columns", "column_names", "__arrow_c_stream__"))


def opened(frame: Any) -> tuple[Any, list[str]]:
    """A table of any library behind one interface (narwhals), and the names of its columns."""
    import narwhals as nw

    try:
        table = nw.from_native(frame, eager_only=True)
        names = table.columns
    except TypeError as error:
        raise InputError(f"a {type(frame).__name__} is not a table: pass pandas, polars or pyarrow") from error
    except nw.exceptions.DuplicateError as error:
        raise InputError("the table has two columns of the same name: rename one of them") from error
    odd = next((name for name in names if not isinstance(name, str)), None)
    if odd is not None:
        raise InputError(f"the table has a column whose name, {odd!r}, is not text: rename it, or all by astype(str)")
    return table, names


def in_arrow(table: Any, names: Sequence[str]) -> Any:
    """Some columns of an opened table as an Arrow table.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table, names = opened(pa.table({"price": [9.0], "speed": [2.0]}))
    >>> names, in_arrow(table, ["speed"]).column_names
    (['price', 'speed'], ['speed'])
    """
    import pyarrow as pa

    native = table.to_native()
    if isinstance(native, pa.Table):
        return native.select(list(names))
    return pa.table({name: _column(table[name], name) for name in names})


def _column(series: Any, name: str) -> Any:
    import pyarrow as pa

    try:
        return series.to_arrow()
    except (pa.ArrowException, TypeError, OverflowError) as error:
        values = series.to_list()
        kinds = [str if isinstance(value, str) else float for value in values]
        row = next((row for row, kind in enumerate(kinds) if kind is not kinds[0] and values[row] is not None), None)
        if row is None:
            raise InputError(f"column {name!r} holds what is neither numbers nor text: leave it out") from error
        raise InputError(
            f"column {name!r}, {place(row)} is {values[row]!r}, but the rows before it are of another kind: "
            "make them all text or all numbers"
        ) from error


_SURPRISE = 20.0
"""How improbable it is, as a logarithm, that a feature falls on picks alone by chance."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LogArrays:
    """What a log is made of, checked; see `BanditLog`."""

    features: Features | Layout
    offsets: Index
    chosen: Index
    feature_names: tuple[str, ...]
    round_ids: Ids
    arm_ids: Ids | None
    categories: Categories | None
    times: NDArray[Any] | None
    """Time of every round, where there is one."""
    by: Ids | None
    """Which learner or restart each round belongs to, if `by` is given."""
    possible: Marks | None = None
    """Which arms may have been the pick, where only a set is known."""
    offer_probability: Vector | None = None
    """With what probability each row was kept, where offers are a sample."""


def parts_of_frame(frame: Any, columns: Columns) -> LogArrays:
    """Build the arrays of a log from a table of pandas, polars or pyarrow."""
    table, columns = as_table(frame, columns)
    table = without_missing(table, columns)
    return parts_of_table(table, columns, encoding_of(table, columns))


def without_missing(table: Any, columns: Columns) -> Any:
    """The table without the rounds that miss a feature, where they are to be left out; a warning gives their number."""
    if columns.missing is None or not len(table):
        return table
    import pyarrow as pa
    import pyarrow.compute as pc

    named = columns.named
    names = feature_columns(table.schema, columns)[0] if named is None else [*named, *columns.crossed]
    marks = np.zeros(len(table), dtype=bool)
    for name in names:
        gaps = pc.is_null(table[name], nan_is_null=pa.types.is_floating(table[name].type))
        marks |= gaps.to_numpy(zero_copy_only=False)
    if not marks.any():
        return table
    keys = [_plain(table[name]) for name in (columns.by, columns.round) if name is not None]
    if any(key.null_count for key in keys):
        # A row without an id belongs to no known round: the check of the ids reports it.
        return table
    grouping = group_rounds(keys)
    incomplete = np.logical_or.reduceat(grouping.in_order(marks), grouping.offsets[:-1])
    if incomplete.all():
        raise InputError("every round misses a feature: fill values in, or name the columns to take with `features`")
    dropped = grouping.in_order(np.arange(len(table)))[np.repeat(incomplete, np.diff(grouping.offsets))]
    kept = np.ones(len(table), dtype=bool)
    kept[dropped] = False
    warn(
        f"{counted(int(incomplete.sum()), 'round')} of {len(incomplete):,} ({counted(len(dropped), 'row')}) miss a "
        "feature and are left out: weights are off if that has to do with what was picked, and draw_missing then "
        "draws the values",
        MissingValuesWarning,
    )
    return table.filter(pa.array(kept))


def parts_of_table(
    table: Any, columns: Columns, encoding: Encoding, *, first_row: int = 0, adjacent: bool = False
) -> LogArrays:
    """Build the arrays of a log from an Arrow table and its encoding.

    `first_row` is the number of the table's first row in its file, for messages; with `adjacent` rows of a round must
    be next to each other and rounds in order of time, and unseen levels have been reported.
    """
    keys = {name: _plain(table[name]) for name in columns.keys}
    for name, column in keys.items():
        check_plain(column, name)
        if name != columns.slate:
            check_complete(column, name, first_row, part=adjacent)
    apart = [columns.round] if columns.by is None else [columns.by, columns.round]
    grouping = group_rounds([keys[name] for name in apart])
    if adjacent and grouping.order is not None:
        row = int(grouping.order[np.flatnonzero(np.diff(grouping.order) != 1)[0] + 1])
        raise scattered_round(columns.round, first_row + row, keys[columns.round][row].as_py())
    times = None
    if columns.order_by is not None:
        appeared = grouping
        values = as_times(arrow_values(keys[columns.order_by]), columns.order_by, first_row)
        grouping, times = in_time(grouping, values, columns.order_by, first_row)
        if adjacent and grouping is not appeared:
            falls = int(np.flatnonzero(values[1:] < values[:-1])[0]) + 1
            raise fallen_time(columns.order_by, first_row + falls, values[falls], values[falls - 1])
    free = columns.like is None
    rows = encoded_rows(table, encoding, first_row=first_row, whole=not adjacent, free=free)
    ids = arrow_values(keys[columns.round].take(grouping.first))
    arms = None if columns.arm is None else arrow_values(keys[columns.arm])
    marks = None
    if columns.possible is not None:
        chosen, marks = marked_picks(keys[columns.chosen], columns.chosen, grouping, ids, first_row)
    elif columns.picked_group is not None:
        names = columns.chosen, columns.picked_group
        chosen, marks = grouped_picks(keys[names[0]], keys[names[1]], names, grouping, ids, first_row)
    elif columns.slate is None:
        chosen = picks(keys[columns.chosen], columns.chosen, grouping, ids, first_row, by=columns.by)
    else:
        flags = None if columns.chosen == columns.slate else keys[columns.chosen]
        names = columns.slate, columns.chosen
        slates = slate_choices(grouping, keys[columns.slate], flags, arms, ids, names, first_row)
        grouping, chosen, ids = slates.grouping, slates.chosen, ids[slates.of_round]
        times = None if times is None else times[slates.of_round]
    parts = LogArrays(
        features=rows if grouping.order is None else rows[grouping.order],
        offsets=grouping.offsets,
        chosen=chosen,
        feature_names=encoding.feature_names,
        round_ids=ids,
        arm_ids=None if arms is None else grouping.in_order(arms),
        categories=encoding.categories or None,
        times=times,
        by=None if columns.by is None else arrow_values(keys[columns.by].take(grouping.first)),
        possible=marks,
        offer_probability=_kept_with(keys, columns, grouping, first_row),
    )
    if not adjacent:
        if columns.order_by is None and _miscounted(parts):
            warn_rounds(columns.round)
        seen = OnPicks(len(parts.feature_names))
        seen.see(parts)
        seen.warn(parts.feature_names)
    return parts


def _kept_with(keys: Mapping[str, Any], columns: Columns, grouping: Grouping, first_row: int) -> Vector | None:
    name = columns.offer_probability
    return None if name is None else kept_with(keys[name], name, grouping, first_row)


def _miscounted(parts: LogArrays) -> bool:
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
    """Features that differ from 0 in picked rows only, more often than by chance, counted part by part."""

    def __init__(self, n_features: int) -> None:
        self._others = np.zeros(n_features, dtype=np.int64)
        self._surprise = np.zeros(n_features)

    def see(self, parts: LogArrays) -> None:
        """Update with some rounds."""
        if parts.possible is not None:
            # Which rows were picked is not known.
            self._others += 1
            return
        if isinstance(parts.features, SparseRows):
            on_picks = parts.features[parts.offsets[:-1] + parts.chosen]
            self._others += parts.features.counts() - on_picks.counts()
            self._surprise += on_picks.counts(np.log(np.diff(parts.offsets)))
            return
        for start, stop in blocks(parts.offsets, parts.features.shape[1]):
            offsets = parts.offsets[start : stop + 1]
            rows = dense_rows(parts.features[offsets[0] : offsets[-1]])
            picked = rows[offsets[:-1] - offsets[0] + parts.chosen[start:stop]] != 0
            self._others += np.count_nonzero(rows, axis=0) - np.count_nonzero(picked, axis=0)
            self._surprise += np.log(np.diff(offsets)) @ picked

    def warn(self, names: Sequence[str]) -> None:
        """Warn of them, by name."""
        found = [names[j] for j in np.flatnonzero((self._others == 0) & (self._surprise > _SURPRISE)).tolist()]
        if found:
            what_to_do = "where that came of the pick, as a click does, leave it out: name the others with `features`"
            message = f"differing from 0 in picked rows only: {some_of(found)}; {what_to_do}"
            warn(message, OnlyOnPicksWarning)


def fallen_time(column: str, row: int, time: object, before: object) -> InputError:
    """The error for times that are out of order where they must not be."""
    remedy = "a scan cannot sort, so sort the file or read it whole"
    return InputError(f"column {column!r}, {place(row)} is {time}, after {before}: {remedy}")


def scattered_round(column: str, row: int, round: object) -> InputError:
    """The error for a round whose rows are not next to each other where they must be."""
    remedy = "a scan needs the rows of a round next to each other, so sort the file or read it whole"
    return InputError(f"column {column!r}, {place(row)} goes back to round {round!r}: {remedy}")


def encoding_of(table: Any, columns: Columns) -> Encoding:
    """How the columns of an Arrow table become features."""
    if not len(table):
        raise InputError("the table has no rows: nothing was offered")
    if isinstance(columns.like, Growing):
        known = Encoding.of(columns.like, columns.cross)
        check_gaps(table, list(known.categories), free=False)
        return known.grown({name: level_counts(table[name], name) for name in known.categories})
    if columns.like is not None:
        return Encoding.of(columns.like, columns.cross)
    names, texts = feature_columns(table.schema, columns)
    for key in columns.keys:
        check_plain(table[key], key)
        if key != columns.slate:
            check_complete(table[key], key)
    names = without_doubtful(table.slice(0, head_rows(len(names))), columns, names)
    if any(has_gap(table[name]) for name in texts):
        check_gaps(table, names)
    found = settle(names, {name: level_counts(table[name], name) for name in texts}, columns)
    warn_times(table, columns)
    return found


def warn_times(table: Any, columns: Columns) -> None:
    """Warn of columns that look like times and decrease from a round to the next, each learner on its own."""
    names = time_columns(table.schema, columns)
    keys = [_plain(table[name]) for name in (columns.by, columns.round) if name is not None]
    if not names:
        return
    for key, name in zip(keys, [name for name in (columns.by, columns.round) if name is not None], strict=True):
        check_plain(key, name)
    # Gaps in the ids are reported when the rows are scanned.
    if any(key.null_count for key in keys):
        return
    first = np.sort(group_rounds(keys).first)
    stretches = [first]
    if columns.by is not None:
        codes = arrow_values(keys[0].take(first).dictionary_encode().indices)
        stretches = [first[codes == code] for code in range(codes.max() + 1)]
    warn_falls([name for name in names if any(_falls(_plain(table[name]).take(rows)) for rows in stretches)])


def _falls(column: Any) -> bool:
    seen = Falls()
    seen.see(column)
    return seen.found


def as_table(frame: Any, columns: Columns) -> tuple[Any, Columns]:
    """A table of pandas, polars or pyarrow as a long Arrow table, and what its columns mean."""
    from onlooker.logs.long_tables import as_written
    from onlooker.logs.shapes import long_table, may_be_rounds

    table, names = opened(frame)
    columns = as_written(frame, columns)
    if may_be_rounds(names, columns):
        found, columns = long_table(in_arrow(table, names), columns)
        names = found.column_names
        columns = understood(names, columns)
        columns.check(names)
        return found.select(columns.needed or names), columns
    columns = understood(names, columns)
    columns.check(names)
    return in_arrow(table, columns.needed or names), columns


def arrow_table(frame: Any, wanted: Sequence[str]) -> Any:
    """Some columns of a table of pandas, polars or pyarrow as an Arrow table."""
    table, names = opened(frame)
    for name in wanted:
        if name not in names:
            hint = did_you_mean(name, names)
            raise InputError(
                f"the table has no column {name!r}, which is a feature: it has {some_of(names)}; {hint}".rstrip("; ")
            )
    return in_arrow(table, wanted)


def _plain(column: Any) -> Any:
    """A column as one Arrow array of its own values."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_string(kind) and column.nbytes >= 1 << 31:
        kind = pa.large_string()
    if kind != column.type:
        column = column.cast(kind)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
