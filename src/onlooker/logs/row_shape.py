"""Tables with one row per round whose columns or lists describe the arms: which shape they have, and their long rows.

Every shape becomes a long table, one row per offered arm, a part of the table at a time. All that is known of long
tables (categories, times, learners, scans) then holds for them too. Errors name rows of the table as it is written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.checks import check_columns, check_once, check_plain
from onlooker.base.errors import ColumnsLeftOutWarning, InputError, warn
from onlooker.base.numerics import arrow_values
from onlooker.base.text import some_of
from onlooker.base.types import Index
from onlooker.logs.columns import Columns, is_outcome, understood
from onlooker.logs.encoding import check_complete, is_text, place
from onlooker.logs.timestamps import as_times, falls_in, time_beside, warn_falls

ARM = "arm"
"""What the long table calls the arms' ids where the caller does not."""


_EXACT = 2.0**53
"""Whole numbers below this are exact as float64."""


@dataclass(frozen=True, eq=False)
class Layer:
    """Some rows of a table as offered arms."""

    rows: Index
    """Row of the table that each offered arm belongs to."""
    arms: Any
    """Arrow array of the arms' ids, or None where they have none."""
    picked: NDArray[np.bool_]
    """Which of them were picked."""
    features: dict[str, Any]
    """Arrow array of each feature, one entry per offered arm."""


class RowShape(ABC):
    """How a table with one row per round becomes a long table."""

    name: str
    """What it is called, such as "wide"."""
    needed: list[str]
    """Columns of the table that describe arms or picks."""
    features: list[str]
    """Columns of the long table that describe arms."""
    most_arms: int
    """About how many arms a row has, so that batches have the requested size."""
    has_arms: bool
    """Whether the arms have ids."""

    def __init__(self, names: Sequence[str], columns: Columns) -> None:
        check_once(names)
        columns = understood(names, columns)
        self.given = columns
        wanted = {"order_by": columns.order_by, "by": columns.by}
        if columns.round in names or columns.round != Columns().round:
            wanted["round"] = columns.round
        check_columns(names, wanted)
        self.keys = [name for name in wanted.values() if name is not None]

    @abstractmethod
    def layer(self, table: Any, first_row: int) -> Layer:
        """The offered arms of some rows."""

    @property
    @abstractmethod
    def assumed(self) -> str:
        """The assumptions, as reported to users."""

    @abstractmethod
    def see_picks(self, table: Any) -> None:
        """Decide by the first rows how the picks name arms."""

    def settle(self, names: Sequence[str]) -> None:
        """Decide which columns of the rounds are used: those that the caller names, in features or products."""
        wanted = self.given.named
        asked = [*(wanted or ()), *(self.given.categories or ()), *self.given.crossed]
        others = [name for name in names if name not in {*self.keys, *self.needed}]
        self.shared = [name for name in others if name in asked and name not in self.features]
        self.left_out = [] if wanted is not None else [name for name in others if name not in self.shared]
        twice = next((name for name in self.features if name in self.keys), None)
        if twice is not None:
            raise InputError(f"both a round and its arms have {twice!r}: rename one of them")

    def warn_left_out(self) -> None:
        """Warn of columns that are the same for all arms of a round, so that no pick depends on them alone."""
        named = [name for name in self.left_out if not is_outcome(name)]
        if named:
            message = (
                f"the same for all arms of a round, so not taken for features: {some_of(named)}; `cross` multiplies "
                "them with features of the arms"
            )
            warn(message, ColumnsLeftOutWarning)

    @property
    def reads(self) -> list[str]:
        """Columns of the table that are read."""
        return list(dict.fromkeys([*self.keys, *self.needed, *self.shared]))

    @property
    def columns(self) -> Columns:
        """What the columns of the long table mean."""
        arm = (self.given.arm or ARM) if self.has_arms else None
        return replace(self.given, arm=arm, wide=None, candidates=None)

    @property
    def names(self) -> list[str]:
        """Columns of the long table."""
        columns = self.columns
        arm = [] if columns.arm is None else [columns.arm]
        keys = [columns.round, columns.chosen, *arm, *(name for name in self.keys if name != columns.round)]
        slate = [] if columns.slate is None else [columns.slate]
        return list(dict.fromkeys([*keys, *slate, *self.shared, *self.features]))

    def long(self, table: Any, first_row: int = 0, first_round: int = 0) -> Any:
        """Rows of the table as rows of a long table.

        `first_row` is the number of its first row in the file, `first_round` that of the file's first round where
        rounds have no ids.
        """
        import pyarrow as pa

        if not len(table):
            raise InputError("the table has no rows: nothing was offered")
        for name in self.keys:
            check_known(table[name], name, first_row)
        self._check_ids(table, first_row)
        found, columns = self.layer(table, first_row), self.columns
        rows = pa.array(found.rows)
        ids = (
            table[columns.round]
            if columns.round in self.keys
            else pa.array(np.arange(len(table)) + first_row + first_round)
        )
        made = {columns.round: ids.take(rows)}
        if columns.chosen != columns.slate:
            made[columns.chosen] = pa.array(found.picked.astype(np.int8))
        if columns.arm is not None:
            made[columns.arm] = found.arms
        for name in [*self.keys, *self.shared]:
            made.setdefault(name, table[name].take(rows))
        for name in self.features:
            _check_finite(found.features[name], name, found.rows + first_row)
        return pa.table({**made, **found.features})

    def _check_ids(self, table: Any, first_row: int) -> None:
        """Every row is a round of its own, at a time that can be read."""
        columns = self.columns
        keys = [name for name in (columns.by, columns.round) if name in self.keys]
        if columns.round in self.keys and table.select(keys).group_by(keys).aggregate([]).num_rows < len(table):
            seen: dict[tuple[Any, ...], int] = {}
            for row, key in enumerate(zip(*(table[name].to_pylist() for name in keys), strict=True)):
                if key in seen:
                    raise InputError(
                        f"column {columns.round!r}, {place(first_row + row)} is {key[-1]!r} again, as in row "
                        f"{first_row + seen[key] + 1}: a row is a round, so give every row an id of its own"
                    )
                seen[key] = row
        if columns.order_by is not None:
            as_times(arrow_values(table[columns.order_by]), columns.order_by, first_row)

    def time_among(self, schema: Any) -> str | None:
        """A column of the table that looks like the rounds' time and is not used."""
        if self.given.order_by is not None:
            return None
        return time_beside(schema, [name for name in schema.names if name not in self.left_out])

    def warn_times(self, table: Any) -> None:
        """Warn of a column that looks like the rounds' time, falls from row to row and is not used."""
        name = self.time_among(table.schema)
        if name is not None and falls_in(table[name], None if self.given.by is None else table[self.given.by]):
            warn_falls([name])


def _check_finite(values: Any, name: str, rows: Index) -> None:
    """Refuse numbers that are missing or infinite, by the row that they stand in."""
    import pyarrow as pa
    import pyarrow.compute as pc

    bad = pc.is_null(values, nan_is_null=True)
    if pa.types.is_floating(values.type):
        bad = pc.or_(bad, pc.fill_null(pc.is_inf(values), fill_value=False))
    at = pc.index(bad, value=True).as_py()
    if at >= 0:
        value = values[at].as_py()
        found = "missing" if value is None or value != value else str(value)  # noqa: PLR0124  not a number
        raise InputError(
            f"feature {name!r} of an arm in {place(int(rows[at]))} is {found}: fill it in or leave the round out"
        )


def check_known(column: Any, name: str, first_row: int) -> None:
    """Refuse a column of ids or times that has gaps; of text, blanks are gaps."""
    import pyarrow.compute as pc

    check_plain(column, name)
    check_complete(column, name, first_row)
    blank = pc.index(column, value="").as_py() if is_text(column.type) else -1
    if blank >= 0:
        raise InputError(f"column {name!r}, {place(first_row + blank)} is missing: fill it in or leave the round out")


def key_text(column: Any, name: str, first_row: int) -> Any:
    """Values of a column that names arms, as an Arrow array of text: whole numbers without a fraction.

    Examples
    --------
    >>> import pyarrow as pa
    >>> key_text(pa.array([2.0, 1.0]), "chosen", 0).to_pylist()
    ['2', '1']
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    check_known(column, name, first_row)
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_floating(values.type):
        if len(values) and pc.max(pc.abs(values)).as_py() >= _EXACT:
            raise InputError(f"column {name!r} has ids beyond 2^53, which are not exact as numbers: write them as text")
        if pc.all(pc.equal(pc.floor(values), values)).as_py():
            values = values.cast(pa.int64())
    elif pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    try:
        return values.cast(pa.string())
    except pa.ArrowException as error:
        raise InputError(f"column {name!r} holds {str(values.type)[:60]}: name arms by text or numbers") from error


def as_ids(labels: Any) -> Any:
    """Text as ids: whole numbers where every one is written as such."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = pc.all(pc.match_substring_regex(labels, "^(0|[1-9][0-9]{0,17})$")).as_py()
    return labels.cast(pa.int64()) if whole else labels


def one_pick(picked: NDArray[np.bool_], rows: Index, n_rows: int, first_row: int, name: str) -> None:
    """Refuse rows in which not exactly one arm is flagged."""
    counts = np.bincount(rows[picked], minlength=n_rows)
    if (counts != 1).any():
        row = int(np.flatnonzero(counts != 1)[0])
        found = "no pick" if counts[row] == 0 else f"{counts[row]} picks"
        raise InputError(f"{place(first_row + row)} has {found} in {name!r}: exactly one arm of a round is 1")
