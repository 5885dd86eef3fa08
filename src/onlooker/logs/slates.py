"""Slates: rounds with several picks, one after the other, each among the arms that are left (Plackett-Luce).

A round that fills m positions becomes m rounds of one pick each, in the order of the positions; they keep the round's
id and time. Rows may describe a slate in two ways. One row per offered arm: the position is that of the arm on the
page, and missing (or 0) where it was not shown. Or one row per position and arm that was offered there: the rows of a
position have one pick.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.errors import InputError
from onlooker.base.numerics import arrow_values
from onlooker.base.types import Ids, Index, Vector
from onlooker.logs.encoding import is_number, place
from onlooker.logs.grouping import Grouping, odd_pick

ASSUMED = "positions in rising order, each a choice among the arms not yet picked (Plackett-Luce)"
"""The assumption about slates, as reported to users."""


@dataclass(frozen=True, eq=False)
class Slates:
    """The choices that slates consist of."""

    grouping: Grouping
    """Rows of every choice; a row that is offered at several positions stands several times."""
    chosen: Index
    """Position of every choice's pick among its rows."""
    of_round: Index
    """Number of the round that each choice belongs to."""


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of a table in the order of its rounds."""

    round: Index
    position: Vector
    """NaN where there is none."""
    picked: NDArray[np.bool_]
    arms: NDArray[Any] | None
    ids: Ids
    """Of the rounds."""
    row: Index
    """Number in the file."""

    def where(self, at: int) -> str:
        """Describe the round and the position of a row."""
        return f"round {self.ids.tolist()[self.round[at]]!r}, {place(int(self.row[at]))}"


def slate_choices(
    grouping: Grouping,
    position: Any,
    chosen: Any,
    arms: NDArray[Any] | None,
    ids: Ids,
    names: tuple[str, str],
    first_row: int,
) -> Slates:
    """Choices of the rounds of a table.

    `position` and `chosen` are Arrow arrays, the second None where the positions alone say what was picked; `names` is
    what they are called.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rounds = Grouping(np.array([0, 3]), np.array([0]), None)
    >>> found = slate_choices(rounds, pa.array([2, None, 1]), None, None, np.array([7]), ("position", "chosen"), 0)
    >>> found.grouping.offsets, found.grouping.order, found.chosen
    (array([0, 3, 5]), array([0, 1, 2, 0, 1]), array([2, 0]))
    """
    order = np.arange(grouping.offsets[-1]) if grouping.order is None else grouping.order
    places = _positions(position, names[0], first_row)[order]
    flags = None if chosen is None else _flags(chosen, names[1], first_row)[order]
    if flags is None:
        places, flags = _shown(places, grouping.offsets, names[0])
    sizes = np.diff(grouping.offsets)
    rows = _Rows(
        np.repeat(np.arange(len(sizes)), sizes),
        places,
        flags,
        None if arms is None else arms[order],
        ids,
        order + first_row,
    )
    gap = np.flatnonzero(rows.picked & np.isnan(rows.position))
    if len(gap):
        raise InputError(f"{rows.where(int(gap[0]))} is picked but has no {names[0]!r}: say at which position")
    empty = np.flatnonzero(np.bincount(rows.round[rows.picked], minlength=len(sizes)) == 0)
    if len(empty):
        at = int(grouping.offsets[empty[0]])
        raise InputError(f"{rows.where(at)} has no pick: a slate has one at every position")
    by_position = bool((~rows.picked & (rows.position > 0)).any())
    found = _per_position(rows, names[0]) if by_position else _per_arm(rows, names[0])
    return _as_choices(found, rows, order)


def _positions(column: Any, name: str, first_row: int) -> Vector:
    import pyarrow as pa

    if not (is_number(column.type) or pa.types.is_null(column.type)):
        raise InputError(f"column {name!r} holds {column.type}: positions of a slate are numbers")
    values = np.asarray(column.cast(pa.float64()).fill_null(np.nan))
    odd = np.flatnonzero(~np.isnan(values) & ((values != np.floor(values)) | np.isinf(values)))
    if len(odd):
        raise InputError(
            f"column {name!r}, {place(first_row + int(odd[0]))} is {values[odd[0]]:g}: positions are whole numbers"
        )
    # Copied: what is not shown is marked.
    return np.where(values < 0, np.nan, values)


def _flags(column: Any, name: str, first_row: int) -> NDArray[np.bool_]:
    values = arrow_values(column)
    if not is_number(column.type):
        raise odd_pick(name, first_row, values.tolist()[0])
    odd = np.flatnonzero(values != values.astype(bool))
    if len(odd):
        raise odd_pick(name, first_row + int(odd[0]), values.tolist()[odd[0]])
    return np.asarray(values.astype(bool))


def _shown(places: Vector, offsets: Index, name: str) -> tuple[Vector, NDArray[np.bool_]]:
    """Positions, and which rows have one, where nothing else says what was picked: 0 is none, unless gaps are."""
    zero = places == 0
    if zero.any() and not np.isnan(places).any():
        counts = np.add.reduceat(zero, offsets[:-1], dtype=np.int64)
        if (counts == 1).all():
            raise InputError(
                f"column {name!r} is 0 once in every round: that may be the first position or an arm that was not "
                "shown; count positions from 1, or leave those that were not shown empty"
            )
        places = np.where(zero, np.nan, places)
    return places, ~np.isnan(places)


def _per_arm(rows: _Rows, name: str) -> tuple[Index, Index, NDArray[np.bool_]]:
    """Rows, numbers of choices and picks, of slates with one row per arm."""
    picks = np.flatnonzero(rows.picked)
    ranked = picks[np.lexsort((rows.position[picks], rows.round[picks]))]
    same = (np.diff(rows.round[ranked]) == 0) & (np.diff(rows.position[ranked]) == 0)
    if same.any():
        at = int(ranked[1:][same][0])
        raise InputError(f"{rows.where(at)} has the {name!r} of another pick: a position has one pick")
    starts = np.searchsorted(rows.round[ranked], rows.round[ranked])
    rank = np.full(len(rows.round), len(ranked), dtype=np.int64)
    rank[ranked] = np.arange(len(ranked)) - starts
    filled = np.bincount(rows.round[picks], minlength=len(rows.ids))
    before = np.concatenate([[0], np.cumsum(filled)[:-1]])
    parts: list[Index] = []
    choice: list[Index] = []
    for k in range(int(filled.max())):
        here = np.flatnonzero((rank >= k) & (filled[rows.round] > k))
        parts.append(here)
        choice.append(before[rows.round[here]] + k)
    where, number = np.concatenate(parts), np.concatenate(choice)
    in_order = np.argsort(number, kind="stable")
    where, number = where[in_order], number[in_order]
    return where, number, rank[where] == number - before[rows.round[where]]


def _per_position(rows: _Rows, name: str) -> tuple[Index, Index, NDArray[np.bool_]]:
    """The same for slates with one row per position and arm; arms that were picked before are no longer offered."""
    gap = np.flatnonzero(np.isnan(rows.position))
    if len(gap):
        raise InputError(f"{rows.where(int(gap[0]))} has no {name!r}, but rows that were not picked have one")
    where = np.lexsort((rows.position, rows.round))
    if rows.arms is not None:
        where = where[~_picked_before(rows, where)]
    changes = (np.diff(rows.round[where]) != 0) | (np.diff(rows.position[where]) != 0)
    number = np.concatenate([[0], np.cumsum(changes)])
    picked = rows.picked[where]
    counts = np.bincount(number, weights=picked)
    wrong = np.flatnonzero(counts != 1)
    if len(wrong):
        at = int(where[np.searchsorted(number, wrong[0])])
        found = "no pick" if counts[wrong[0]] == 0 else f"{int(counts[wrong[0]])} picks"
        raise InputError(f"{rows.where(at)} on has {found} at position {rows.position[at]:g}: a position has one pick")
    return where, number, picked


def _picked_before(rows: _Rows, where: Index) -> NDArray[np.bool_]:
    """Rows of arms that an earlier position of the round took."""
    assert rows.arms is not None
    taken: dict[tuple[int, Any], float] = {}
    arms, positions = rows.arms.tolist(), rows.position.tolist()
    before = np.zeros(len(where), dtype=bool)
    for at in where[rows.picked[where]].tolist():
        key = (int(rows.round[at]), arms[at])
        if key in taken:
            raise InputError(f"{rows.where(at)} picks arm {arms[at]!r} again: a slate shows an arm once")
        taken[key] = positions[at]
    for number, at in enumerate(where.tolist()):
        first = taken.get((int(rows.round[at]), arms[at]))
        before[number] = first is not None and first < positions[at]
    return before


def _as_choices(found: tuple[Index, Index, NDArray[np.bool_]], rows: _Rows, order: Index) -> Slates:
    where, number, picked = found
    offsets = np.append(np.flatnonzero(np.diff(number, prepend=-1)), len(number)).astype(np.int64)
    expanded = order[where]
    chosen = np.flatnonzero(picked) - offsets[:-1]
    grouping = Grouping(offsets, expanded[offsets[:-1]], expanded)
    return Slates(grouping, chosen.astype(np.int64), rows.round[where[offsets[:-1]]])
