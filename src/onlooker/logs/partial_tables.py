"""From the columns of a long table to what is known of picks and offers: marks of arms, groups, probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.errors import InputError
from onlooker.base.numerics import arrow_values
from onlooker.base.types import Index, Vector
from onlooker.logs.encoding import is_number, place
from onlooker.logs.grouping import Grouping, odd_pick
from onlooker.logs.partial import Marks, picks_of


def marked_picks(column: Any, name: str, grouping: Grouping, ids: Any, first_row: int = 0) -> tuple[Index, Marks]:
    """Picks and marks, where `column` is 1 or true for every arm that may have been the pick."""
    marks = grouping.in_order(_flags(column, name, first_row))
    return _of_marks(marks, grouping, ids, f"no arm is 1 in column {name!r}", first_row)


def grouped_picks(
    chosen: Any, groups: Any, names: tuple[str, str], grouping: Grouping, ids: Any, first_row: int = 0
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


def kept_with(column: Any, name: str, grouping: Grouping, first_row: int = 0) -> Vector:
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
