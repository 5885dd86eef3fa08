"""Users by id, and what is known of each, for logs of one row per round that name their user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from onlooker.base.checks import check_columns, check_once
from onlooker.base.errors import InputError
from onlooker.base.text import some_of
from onlooker.logs.columns import ROW_NUMBER, Columns
from onlooker.logs.encoding import is_text, place
from onlooker.logs.offered_ids import Arms, check_unique, plain_ids

ID_NAMES = ("user", "user_id", "userid", "uid", "id")
"""Names that the column of user ids may have where none is given."""


def joined_by(table: Any, names: Sequence[str], columns: Columns) -> tuple[Users, Columns]:
    """The users of a log with these columns, and the columns with theirs: all of them, unless some are named."""
    found = Users.of(table, names, columns)
    columns = replace(columns, user=found.key)
    if not columns.context and columns.like is None:
        columns = replace(columns, context=tuple(found.names))
    return found, columns


def own_id(names: Sequence[str], user: str | None) -> str:
    """Which column of the users has their ids: the one that is called as in the log, or else by its name or place."""
    likely = [name for name in (user, *ID_NAMES) if name is not None and name in names]
    return (likely or [name for name in names if not ROW_NUMBER.fullmatch(name)] or list(names))[0]


class Users:
    """Users by id, and what is known of each."""

    def __init__(self, table: Any, own: str, key: str) -> None:
        self.key = key
        """Column of the log that has a round's user."""
        self.names = [name for name in table.column_names if name != own]
        """What is known of a user."""
        ids = plain_ids(table[own], own)
        check_unique(ids, own, "user")
        self._ids = Arms(ids)
        # Text once per level, not once per round.
        columns = {name: table[name].combine_chunks() for name in self.names}
        self._columns = {
            name: column.dictionary_encode() if is_text(column.type) else column for name, column in columns.items()
        }

    @classmethod
    def of(cls, table: Any, names: Sequence[str], columns: Columns) -> Users:
        """The users of a log with these columns."""
        if not len(table):
            raise InputError("the users: the table is empty, so no round has a user")
        own = own_id(table.column_names, columns.user)
        key = columns.user or next((name for name in (own, *ID_NAMES) if name in names), None)
        if key is None:
            raise InputError(
                f"no column has the ids of users: it has {some_of(names)}; name the one that has as `user`"
            )
        check_columns(names, {"user": key})
        try:
            check_once(table.column_names)
            found = cls(table, own, key)
        except InputError as error:
            raise InputError(f"the users: {error}") from error
        for name in found.names:
            if name in names and name in columns.context:
                raise InputError(f"column {name!r} is in the log and in the users: rename one of them")
        found.names = [name for name in found.names if name not in names]
        return found

    def fields(self, names: Sequence[str]) -> list[Any]:
        """Names and types of some of what is known."""
        import pyarrow as pa

        return [pa.field(name, self._columns[name].type) for name in names]

    def look_up(self, ids: Any, names: Sequence[str], first_row: int) -> list[Any]:
        """What is known of these users; `first_row` is where they begin in the log, for messages."""
        import pyarrow as pa

        found = plain_ids(ids, self.key, first_row)
        codes = self._ids.codes(found)
        unknown = np.flatnonzero(codes < 0)
        if len(unknown):
            at = int(unknown[0])
            who = repr(found[at].as_py())[:60]
            raise InputError(
                f"column {self.key!r}, {place(first_row + at)} has the user {who}, who is not known: add them to the "
                "users, or leave the round out"
            )
        return [self._columns[name].take(pa.array(codes)) for name in names]
