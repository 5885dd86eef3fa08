"""A table of users beside a log of one row per round: what describes a round's user is looked up by the user's id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from onlooker.base.errors import InputError
from onlooker.formats.format import Source
from onlooker.logs.columns import ROW_NUMBER, Columns, check_columns, check_once
from onlooker.logs.encoding import is_text, place, some
from onlooker.logs.offered_ids import Arms, plain_ids
from onlooker.logs.round_table import check_unique

ID_NAMES = ("user", "user_id", "userid", "uid", "id")
"""What the ids of users may be called where nobody says it."""


def with_users(source: Source, columns: Columns) -> tuple[Source, Columns]:
    """A log whose users are described in a table of their own, as one table; the same where there is none."""
    if columns.users is None:
        if columns.user is not None:
            raise InputError("`user` is the id of a round's user: pass the table of them as `users`")
        return source, columns
    found = Users.of(columns.users, source.names, columns)
    columns = replace(columns, user=found.key)
    if not columns.context and columns.like is None:
        columns = replace(columns, context=tuple(found.names))
    return WithUsers(source, found), columns


def user_columns(names: Sequence[str], options: Mapping[str, Any]) -> Columns:
    """All columns of a table of users, the ids as such; `options` are those of the log."""
    name = _own_id(names, options.get("user"))
    known = [one for one in options.get("categories") or () if one in names]
    others = [one for one in dict.fromkeys(names) if one != name]
    return Columns(round="", chosen="", arm=name, features=others, categories=known, decimal=options.get("decimal"))


def _own_id(names: Sequence[str], user: str | None) -> str:
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
            raise InputError("the users: there are none, so no round has a user")
        own = _own_id(table.column_names, columns.user)
        key = columns.user or next((name for name in (own, *ID_NAMES) if name in names), None)
        if key is None:
            raise InputError(f"no column has the ids of users: it has {some(names)}; name the one that has as `user`")
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


class WithUsers:
    """A table of one row per round with the columns of its users."""

    def __init__(self, source: Source, users: Users) -> None:
        self._source, self._users = source, users
        self.names = [*source.names, *users.names]
        self.text_ids = source.text_ids

    @property
    def path(self) -> Path | str:
        """Where the log is."""
        return self._source.path

    def table(self, columns: Columns) -> Any:
        """The columns that are needed, as an Arrow table."""
        import pyarrow as pa

        table, names = self._source.table(self._own(columns)), self._of_users(columns)
        more = self._users.look_up(table[self._users.key], names, 0)
        for field, column in zip(self._users.fields(names), more, strict=True):
            table = table.append_column(field, pa.chunked_array([column]))
        return table

    def schema(self, columns: Columns) -> Any:
        """Names and types that `batches` would give."""
        import pyarrow as pa

        own = self._source.schema(self._own(columns))
        return pa.schema([*own, *self._users.fields(self._of_users(columns))])

    def batches(self, columns: Columns, names: Sequence[str], rows: int) -> Iterator[Any]:
        """Some columns as Arrow record batches."""
        import pyarrow as pa

        of_users = [name for name in names if name in self._users.names]
        own = [name for name in names if name not in of_users]
        if of_users and self._users.key not in own:
            own.append(self._users.key)
        row = 0
        for batch in self._source.batches(self._own(columns), own, rows):
            if not of_users:
                yield batch
                continue
            more = self._users.look_up(batch[self._users.key], of_users, row)
            fields = [*batch.schema, *self._users.fields(of_users)]
            yield pa.RecordBatch.from_arrays([*batch.columns, *more], schema=pa.schema(fields))
            row += len(batch)

    def _of_users(self, columns: Columns) -> list[str]:
        return [name for name in columns.context if name in self._users.names]

    def _own(self, columns: Columns) -> Columns:
        """The columns that the log itself has."""
        return replace(columns, context=tuple(name for name in columns.context if name not in self._users.names))
