"""Rows of a database by SQL: SQLite and PostgreSQL through ADBC, DuckDB by itself. They are copied here once.

A log is read several times, and a database may be written to in the meantime. One query sees one state of it, so its
rows go to a temporary Arrow file, batch by batch, and everything is worked out from that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from onlooker.base.errors import InputError
from onlooker.base.text import redacted
from onlooker.formats.spool import CHUNK, Spool, write_arrow
from onlooker.formats.stores import store_errors

DATABASES = ("sqlite", "postgresql", "postgres", "duckdb")
"""Schemes of the addresses of databases."""
_TABLE = re.compile(r"\s*[^\W\d]\w*(\.[^\W\d]\w*)*\s*")
"""The name of a table, in the place of a query."""
_PATIENCE = {"connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
"""Seconds until PostgreSQL's client gives up on a server that does not answer: at first, and while it sends."""
_ROWS = 1 << 16
"""Rows that DuckDB gives at a time; SQLite's driver infers a column's type from as many."""


def fetch_rows(address: str, sql: str | None, spool: Spool) -> Path:
    """Copy the rows that a query gives; the copy."""
    if sql is None or not sql.strip():
        raise InputError(f"{redacted(address)}: pass sql='SELECT ...', or sql='name' of a table")
    query = f"SELECT * FROM {_quoted(sql)}" if _TABLE.fullmatch(sql) else sql  # noqa: S608  a plain name
    scheme = address.partition("://")[0].lower()
    connect = {"sqlite": _sqlite, "duckdb": _duckdb}.get(scheme, _postgresql)
    name = redacted(address)
    with (
        store_errors(address, "the address and the query"),
        connect(address, query) as reader,
        spool.file(name, "rows.arrow") as (path, file),
    ):
        rows = write_arrow(_numbers(reader), file, spool.check_room)
        if not rows:
            raise InputError(f"{name}: the query gives no rows: nothing was offered")
        return path


def _quoted(name: str) -> str:
    return ".".join(f'"{part}"' for part in name.strip().split("."))


def _file(address: str) -> Path:
    """The file of `sqlite:///relative.db` or `sqlite:////absolute.db`."""
    parts = urlsplit(address)
    if parts.netloc or not parts.path.strip("/"):
        raise InputError(
            f"{redacted(address)}: write {parts.scheme}:///file.db, or {parts.scheme}:////folder/file.db from the root"
        )
    path = Path(unquote(parts.path[1:]))
    if not path.is_file():
        raise InputError(f"{redacted(address)}: there is no file {path}: check the path")
    return path


@contextmanager
def _sqlite(address: str, query: str) -> Iterator[Any]:
    path = _file(address)
    with _installed("sqlite"):
        from adbc_driver_sqlite import dbapi
    with (
        closing(dbapi.connect(f"file:{quote(os.fspath(path))}?mode=ro")) as connection,
        closing(connection.cursor(adbc_stmt_kwargs={"adbc.sqlite.query.batch_rows": _ROWS})) as cursor,
    ):
        cursor.execute(query)
        reader = cursor.fetch_record_batch()
        yield _blamed(reader)


@contextmanager
def _postgresql(address: str, query: str) -> Iterator[Any]:
    with _installed("postgresql"):
        from adbc_driver_postgresql import dbapi
    given = urlsplit(address).query
    waits = [f"{name}={seconds}" for name, seconds in _PATIENCE.items() if f"{name}=" not in given]
    if "PGCONNECT_TIMEOUT" in os.environ:
        waits = waits[1:]
    joint = "&" if given else "?"
    with (
        closing(dbapi.connect(f"{address}{joint}{'&'.join(waits)}")) as connection,
        closing(connection.cursor(adbc_stmt_kwargs={"adbc.postgresql.batch_size_hint_bytes": CHUNK})) as cursor,
    ):
        cursor.execute("SET TRANSACTION READ ONLY")
        cursor.execute(query)
        yield cursor.fetch_record_batch()


@contextmanager
def _duckdb(address: str, query: str) -> Iterator[Any]:
    path = _file(address)
    with _installed("duckdb"):
        import duckdb
    with open(path, "rb") as file:
        # DuckDB would take a table in another format for a database of its own.
        if file.read(12)[8:] != b"DUCK":
            raise InputError(f"{redacted(address)}: is not a DuckDB database: check the path")
    with closing(duckdb.connect(os.fspath(path), read_only=True)) as connection:
        found = connection.sql(query)
        if found is None:
            raise InputError(f"{redacted(address)}: the statement gives no rows: pass a SELECT")
        yield found.to_arrow_reader(_ROWS)


@contextmanager
def _installed(name: str) -> Iterator[None]:
    try:
        yield
    except ImportError:
        raise InputError(f"{name}: databases need an extra: pip install 'onlooker[sql]'") from None


def _blamed(reader: Any) -> Any:
    """The same stream; a column of SQLite's that changes its type is named."""
    import pyarrow as pa

    def batches() -> Iterator[Any]:
        try:
            yield from reader
        except OSError as error:
            found = re.search(r"Type mismatch in column (\d+): expected (\w+) but got (\w+)", str(error))
            if found is None:
                raise
            name = reader.schema.names[int(found[1])]
            raise InputError(
                f"column {name!r} holds {found[3]} after {found[2]}: make it one kind, as in "
                f"SELECT CAST({name} AS REAL) AS {name}"
            ) from None

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def _numbers(reader: Any) -> Any:
    """The same stream with decimals as float64; PostgreSQL's driver gives them as text."""
    import pyarrow as pa

    def kind(field: Any) -> Any:
        written = (field.metadata or {}).get(b"ADBC:postgresql:typname") == b"numeric"
        return pa.float64() if written or pa.types.is_decimal(field.type) else field.type

    schema = pa.schema([pa.field(field.name, kind(field)) for field in reader.schema])
    if schema.types == reader.schema.types:
        return reader
    return pa.RecordBatchReader.from_batches(schema, (batch.cast(schema) for batch in reader))
