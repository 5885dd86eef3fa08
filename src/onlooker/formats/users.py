"""A table of users beside a log of one row per round: what describes a round's user is looked up by the user's id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from onlooker.base.errors import InputError
from onlooker.formats.format import Source
from onlooker.logs.columns import Columns
from onlooker.logs.users import Users, joined_by, own_id


def with_users(source: Source, columns: Columns) -> tuple[Source, Columns]:
    """A log whose users are described in a table of their own, as one table; the same where there is none."""
    if columns.users is None:
        if columns.user is not None:
            raise InputError("`user` is the id of a round's user: pass the table of them as `users`")
        return source, columns
    found, columns = joined_by(columns.users, source.names, columns)
    return WithUsers(source, found), columns


def user_columns(names: Sequence[str], options: Mapping[str, Any]) -> Columns:
    """All columns of a table of users, the ids as such; `options` are those of the log."""
    name = own_id(names, options.get("user"))
    known = [one for one in options.get("categories") or () if one in names]
    others = [one for one in dict.fromkeys(names) if one != name]
    return Columns(round="", chosen="", arm=name, features=others, categories=known, decimal=options.get("decimal"))


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
