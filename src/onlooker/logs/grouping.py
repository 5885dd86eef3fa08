"""Rounds of a long table, from its key columns: which rows belong together, in which order, which may be the pick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.errors import InputError
from onlooker.base.numerics import arrow_values
from onlooker.base.types import Index, Vector
from onlooker.logs.encoding import is_number, place
from onlooker.logs.partial import Marks, picks_of


@dataclass(frozen=True, eq=False)
class Grouping:
    """The rounds of a long table."""

    offsets: Index
    """Where each round's rows begin, once in order."""
    first: Index
    """Row of the table in which each round first appears."""
    order: Index | None
    """The table's rows in order of rounds, or None where they are so already."""

    def in_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the rows, in order of rounds."""
        return values if self.order is None else values[self.order]


def group_rounds(keys: Sequence[Any]) -> Grouping:
    """Rows of the same keys are a round; rounds come in the order in which they first appear.

    Examples
    --------
    >>> import pyarrow as pa
    >>> found = group_rounds([pa.array(["b", "a", "b"])])
    >>> found.offsets, found.order
    (array([0, 2, 3]), array([0, 2, 1]))
    """
    starts = run_starts(keys)
    n_rows = len(keys[0])
    codes = _codes_of_runs([key.take(starts) for key in keys])
    sizes = np.diff(starts, append=n_rows)
    if codes is None:
        return Grouping(np.append(starts, n_rows), starts, None)
    group = np.repeat(codes, sizes)
    order = np.argsort(group, kind="stable")
    counts = np.bincount(codes, weights=sizes).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Grouping(offsets, order[offsets[:-1]], order)


def run_starts(keys: Sequence[Any]) -> Index:
    """Rows that differ from the row before them."""
    import pyarrow.compute as pc

    differs = np.ones(len(keys[0]), dtype=bool)
    differs[1:] = False
    for key in keys:
        differs[1:] |= arrow_values(pc.not_equal(key[1:], key[:-1]))
    return np.flatnonzero(differs).astype(np.int64)


def _codes_of_runs(ids: Sequence[Any]) -> Index | None:
    """Number of each run's round by first appearance, or None where every run is a round of its own."""
    import pyarrow as pa

    if len(ids) == 1 and pa.types.is_integer(ids[0].type):
        values = arrow_values(ids[0])
        if (values[1:] > values[:-1]).all():
            return None
    codes = np.zeros(len(ids[0]), dtype=np.int64)
    for one in ids:
        coded = one.dictionary_encode()
        both = codes * len(coded.dictionary) + arrow_values(coded.indices)
        codes = arrow_values(pa.array(both).dictionary_encode().indices).astype(np.int64)
    return None if len(codes) == codes.max(initial=-1) + 1 else codes


def in_time(grouping: Grouping, times: NDArray[Any], name: str, first_row: int) -> tuple[Grouping, NDArray[Any]]:
    """Rounds in order of time, ties in order of appearance, and the time of each; a round has a single time."""
    of_round = times[grouping.first]
    sizes = np.diff(grouping.offsets)
    differs = np.flatnonzero(grouping.in_order(times) != np.repeat(of_round, sizes))
    if len(differs):
        at = int(differs[0])
        row = at if grouping.order is None else int(grouping.order[at])
        t = int(np.searchsorted(grouping.offsets, at, side="right")) - 1
        raise InputError(
            f"column {name!r}, {place(first_row + row)} is {times[row]}, but the same round has {of_round[t]} "
            f"in row {first_row + grouping.first[t] + 1}: a round happens at one time; if several learners share ids, "
            "separate them with `by`"
        )
    rank = np.argsort(of_round, kind="stable")
    if np.array_equal(rank, np.arange(len(rank))):
        return grouping, of_round
    offsets = np.concatenate([[0], np.cumsum(sizes[rank])]).astype(np.int64)
    rows = np.arange(offsets[-1]) + np.repeat(grouping.offsets[:-1][rank] - offsets[:-1], sizes[rank])
    order = rows if grouping.order is None else grouping.order[rows]
    return Grouping(offsets, grouping.first[rank], order), of_round[rank]


def picks(column: Any, name: str, grouping: Grouping, ids: Any, first_row: int, *, by: str | None = None) -> Index:
    """Position of every round's pick; `column` is 1 or true for the picks, and 0 or false for all other rows.

    `by` is the column that identifies learners, if there is one.
    """
    values = arrow_values(column)
    if not is_number(column.type):
        # Text of numbers is odd from its first row; a stray word is odder.
        odd = np.array([row for row, value in enumerate(values) if value not in {"0", "1"}] or [0])
    else:
        flags = values.astype(bool)
        odd = np.flatnonzero(values != flags)
    if len(odd):
        raise odd_pick(name, first_row + int(odd[0]), values.tolist()[odd[0]])
    flags = grouping.in_order(flags)
    rows = np.flatnonzero(flags)
    starts = grouping.offsets[:-1]
    if len(rows) != len(starts) or (rows < starts).any() or (rows >= grouping.offsets[1:]).any():
        counts = np.add.reduceat(flags, starts, dtype=np.int64)
        t = int(np.flatnonzero(counts != 1)[0])
        found = "no pick" if counts[t] == 0 else f"{counts[t]} picks"
        id_, at = ids.tolist()[t], place(first_row + int(grouping.first[t]))
        apart = "; if several learners share ids, separate them with `by`"
        if by is not None:
            apart = f"; where {by!r} differs within a round, it cannot identify learners"
        raise InputError(
            f"round {id_!r} has {found} in column {name!r}, from {at} on: exactly one row of a round is 1{apart}"
            + ("; if they are the arms that may have been picked, name it as `possible`" if counts[t] > 1 else "")
        )
    return np.asarray(rows - starts, dtype=np.int64)


def odd_pick(name: str, row: int, found: object) -> InputError:
    """The error for an invalid value in the column of picks."""
    if found in {"0", "1"}:
        return InputError(f"column {name!r}, {place(row)} is the text {found!r}: turn the column into numbers")
    return InputError(
        f"column {name!r}, {place(row)} is {found!r}: use 1 for the pick and 0 for the others, or true and false; if a "
        "row is a round, name the columns of its context with `context` and this one with `arm`"
    )


def marked_picks(column: Any, name: str, grouping: Grouping, ids: Any, first_row: int) -> tuple[Index, Marks]:
    """Picks and marks, where `column` is 1 or true for every arm that may have been the pick."""
    marks = grouping.in_order(_flags(column, name, first_row))
    return _of_marks(marks, grouping, ids, f"no arm is 1 in column {name!r}", first_row)


def grouped_picks(
    chosen: Any, groups: Any, names: tuple[str, str], grouping: Grouping, ids: Any, first_row: int
) -> tuple[Index, Marks]:
    """Picks and marks, where the pick is one of the arms of a group.

    `groups` has the group of every arm. `chosen` names the group of the pick, the same in all rows of a round; or it is
    1 for one or more arms of that group.
    """
    values = grouping.in_order(arrow_values(chosen))
    of_arm = grouping.in_order(arrow_values(groups))
    starts, sizes = grouping.offsets[:-1], np.diff(grouping.offsets)
    constant = bool((values == np.repeat(values[starts], sizes)).all())
    if constant:
        marks = _spelt(of_arm) == _spelt(values)
        return _of_marks(marks, grouping, ids, f"no arm has the {names[1]!r} that {names[0]!r} names", first_row)
    flags = grouping.in_order(_flags(chosen, names[0], first_row))
    counts = np.add.reduceat(flags, starts, dtype=np.int64)
    if not counts.all():
        raise _nothing(
            f"no arm is 1 in column {names[0]!r}", int(np.flatnonzero(counts == 0)[0]), grouping, ids, first_row
        )
    rows = np.flatnonzero(flags)
    picked = of_arm[rows[np.cumsum(counts) - counts]]
    marks = np.asarray(of_arm == np.repeat(picked, sizes))
    outside = np.flatnonzero(flags & ~marks)
    if len(outside):
        t = int(np.searchsorted(grouping.offsets, outside[0], side="right")) - 1
        raise InputError(
            f"round {ids.tolist()[t]!r} has picks of two {names[1]!r}: mark arms of one group, or name {names[0]!r} as "
            "`possible`"
        )
    return _of_marks(marks, grouping, ids, "", first_row)


def kept_with(column: Any, name: str, grouping: Grouping, first_row: int) -> Vector:
    """Probability with which every row was kept."""
    if not is_number(column.type):
        raise InputError(f"column {name!r} holds {column.type}: probabilities are numbers above 0 and at most 1")
    values = arrow_values(column).astype(np.float64)
    wrong = np.flatnonzero(~((values > 0) & (values <= 1)))
    if len(wrong):
        at = place(first_row + int(wrong[0]))
        raise InputError(
            f"column {name!r}, {at} is {values[wrong[0]]:g}: a row is kept with a probability above 0 and at most 1"
        )
    return np.asarray(grouping.in_order(values))


def _flags(column: Any, name: str, first_row: int) -> Marks:
    values = arrow_values(column)
    if not is_number(column.type):
        odd = [row for row, value in enumerate(values) if value not in {"0", "1"}] or [0]
        raise odd_pick(name, first_row + odd[0], values.tolist()[odd[0]])
    flags = values.astype(bool)
    wrong = np.flatnonzero(values != flags)
    if len(wrong):
        raise odd_pick(name, first_row + int(wrong[0]), values.tolist()[wrong[0]])
    return np.asarray(flags)


def _spelt(values: NDArray[Any]) -> NDArray[Any]:
    """Values as text; whole numbers without a fraction, so that 3 and 3.0 are the same."""
    if values.dtype.kind == "f" and (values == np.floor(values)).all():
        values = values.astype(np.int64)
    return values.astype(str)


def _of_marks(marks: Marks, grouping: Grouping, ids: Any, nothing: str, first_row: int) -> tuple[Index, Marks]:
    counts = np.add.reduceat(marks, grouping.offsets[:-1], dtype=np.int64)
    if not counts.all():
        raise _nothing(nothing, int(np.flatnonzero(counts == 0)[0]), grouping, ids, first_row)
    return picks_of(marks, grouping.offsets, None), marks


def _nothing(what: str, t: int, grouping: Grouping, ids: Any, first_row: int) -> InputError:
    at = place(first_row + int(grouping.first[t]))
    return InputError(f"round {ids.tolist()[t]!r}, from {at} on: {what}, but one of its arms was picked")
