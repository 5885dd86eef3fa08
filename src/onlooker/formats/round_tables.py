"""Tables of one row per round in files and streams: read whole, or a part at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from onlooker.base.checks import counted
from onlooker.base.errors import InputError
from onlooker.base.memory_limit import check_memory
from onlooker.base.text import some_of
from onlooker.base.types import Ids
from onlooker.formats.format import Format, Source, check_text, named
from onlooker.formats.long_csv import IdKind
from onlooker.formats.scan import LogScan
from onlooker.formats.users import with_users
from onlooker.logs.categories import Categories, as_categories
from onlooker.logs.columns import CONSTANT, Columns
from onlooker.logs.crossing import Crossing
from onlooker.logs.encoding import check_gaps, is_text, level_counts
from onlooker.logs.frames import fallen_time
from onlooker.logs.log import BanditLog
from onlooker.logs.offered_ids import SEPARATORS, Arms, distinct, offers_of, plain_ids, separator, whole_ids
from onlooker.logs.round_table import (
    Items,
    Rounds,
    arms_of,
    category_columns,
    context_encoding,
    id_column,
    in_table,
    layout_of,
    log_of_rounds,
    names_of,
    resolved,
    rounds_of_table,
)
from onlooker.logs.timestamps import Counts, Falls, check_one_kind, falls_in, time_beside, warn_falls, warn_rounds

_SURVEY_ROWS = 1 << 16
"""Rows that are read together in the pass that finds arms and levels."""


def read_rounds(source: Source, columns: Columns) -> Rounds:
    """Read a table of one row per round into memory."""
    columns = resolved(source.names, columns)
    read, watched = _with_time(source, in_table(source.names, columns))
    table = source.table(read)
    check_text(table)
    found = rounds_of_table(table, columns)
    if watched and falls_in(table[watched], table[columns.by] if columns.by else None):
        warn_falls([watched])
    return found


def _with_time(source: Source, columns: Columns) -> tuple[Columns, str | None]:
    """Where no time is named, the column that looks like one, which is read to see whether it falls."""
    if columns.order_by is not None:
        return columns, None
    watched = time_beside(source.schema(columns), [*columns.keys, *columns.context])
    return replace(columns, order_by=watched), watched


class RoundScan:
    """The log in some tables of one row per round, files one after the other; arms and levels are found first."""

    def __init__(self, sources: Sequence[Source], columns: Columns, batch_rows: int) -> None:
        self._sources, self.batch_rows = sources, batch_rows
        with named(sources[0].path, "read"):
            self._columns = resolved(sources[0].names, columns)
            items = arms_of(self._columns)
        self._survey = _Survey(self._columns, arms=items is None)
        for source in sources:
            with named(source.path, "read"):
                self._survey.see(source)
        self._survey.warn_order()
        with named(sources[0].path, "read"):
            self._items = items or self._survey.items()
            self._encoding = context_encoding(self._survey.levels, self._columns)
        self._head = layout_of(self._items, np.zeros((0, len(self._encoding.feature_names))))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One name per feature of the context, or of the items where there is no context."""
        return names_of(self._items, self._encoding)[0]

    @property
    def n_features(self) -> int:
        """Number of weights."""
        return self._head.shape[1]

    @property
    def crossing(self) -> Crossing:
        """What each weight belongs to."""
        return self._head.crossing(self.feature_names)

    @property
    def arms(self) -> Ids:
        """Ids of all arms."""
        return self._items.arms.ids

    @property
    def categories(self) -> Categories | None:
        """Levels of the features that came from text."""
        items = () if self._items.encoding is None else self._items.encoding.feature_names
        return as_categories(names_of(self._items, self._encoding)[1], (*self.feature_names, *items))

    @property
    def row_bytes(self) -> int:
        """Memory that an offered arm takes: its share of the context, its id, and what is worked out for it."""
        return 8 * (4 + -(-len(self._encoding.feature_names) // self._survey.n_offered(len(self._items.arms))))

    def __iter__(self) -> Iterator[BanditLog]:
        last: Ids | None = None
        order_by = self._columns.order_by
        for path, first_row, table in self._tables():
            with named(path, "read"):
                log = log_of_rounds(
                    table,
                    self._columns,
                    self._encoding,
                    self._items,
                    first_row=first_row,
                    part=True,
                    mark=self._survey.mark,
                ).log
                if order_by is not None and log.times is not None:
                    last = _check_times(log.times, last, order_by, first_row)
            yield log

    def stretches(self) -> None:
        """Rows are read in order."""

    def _tables(self) -> Iterator[tuple[Path | str, int, Any]]:
        """Tables of about as many rounds as a part holds, with the file and the row in which they begin."""
        import pyarrow as pa

        for source in self._sources:
            columns, rest, begin = in_table(source.names, self._columns), [], 0
            rounds = max(1, self.batch_rows // self._survey.n_offered(len(self._items.arms)))
            for batch in source.batches(columns, list(dict.fromkeys([*columns.keys, *columns.context])), rounds):
                with named(source.path, "read"):
                    rest.append(self._survey.typed(pa.Table.from_batches([batch]), source))
                    check_memory(2 * sum(one.nbytes for one in rest))
                if sum(map(len, rest)) >= rounds:
                    table = pa.concat_tables(rest, promote_options="permissive")
                    full = len(table) - len(table) % rounds
                    for start in range(0, full, rounds):
                        yield source.path, begin + start, table.slice(start, rounds)
                    begin, rest = begin + full, [table.slice(full)] if full < len(table) else []
            if rest:
                yield source.path, begin, pa.concat_tables(rest, promote_options="permissive")


def _check_times(times: Ids, last: Ids | None, column: str, first_row: int) -> Ids:
    """Refuse decreasing times; returns the last one as an array."""
    first = first_row
    if last is not None:
        check_one_kind(times, last, column)
        times, first = np.concatenate([last, times]), first_row - 1
    falls = np.flatnonzero(times[1:] < times[:-1])
    if len(falls):
        at = int(falls[0]) + 1
        raise fallen_time(column, first + at, times[at], times[at - 1])
    return np.asarray(times[-1:])


class _Survey:
    """What a first pass finds: the arms, the levels of categories, how ids are written, how many arms are offered."""

    def __init__(self, columns: Columns, *, arms: bool) -> None:
        self._columns, self._arms = columns, arms
        self.levels: dict[str, Counter[str]] = {}
        self.mark: str | None = None
        """What stands between the ids that are offered, where that is text."""
        self._ids: list[Any] = []
        self._text_ids = self._blanks = False
        self._kinds = {columns.round: IdKind(columns.round)} if columns.round else {}
        self._counts = Counts(text=True)
        self._falls: dict[str, Falls] = {}
        self._rows = self._offered = 0

    def see(self, source: Source) -> None:
        """Update with a file."""
        import pyarrow as pa

        columns = self._columns
        resolved(source.names, columns)
        read, watched = _with_time(source, in_table(source.names, columns))
        schema = source.schema(read)
        texts = category_columns(schema, columns)
        if self._rows and set(texts) != set(self.levels):
            raise InputError("has other categories than the files before it: name them with `categories`")
        self.levels = self.levels or {name: Counter() for name in texts}
        names = [*texts, columns.arm, columns.offered, columns.round, watched]
        self._text_ids = self._text_ids or source.text_ids
        row = 0
        for batch in source.batches(read, list(dict.fromkeys(filter(None, names))), _SURVEY_ROWS):
            table = pa.Table.from_batches([batch])
            check_text(table)
            check_gaps(table, texts, row, part=True, free=False)
            for name in texts:
                self.levels[name].update(level_counts(table[name], name))
            self._see_ids(table, row)
            if watched is not None:
                self._falls.setdefault(watched, Falls()).see(table[watched].combine_chunks())
            for name, kind in self._kinds.items():
                self._counts.see(table[name].combine_chunks())
                if source.text_ids:
                    kind.see(table[name].combine_chunks())
            row += len(batch)
        self._rows += row

    def _see_ids(self, table: Any, row: int) -> None:
        columns = self._columns
        assert columns.arm is not None
        found = [plain_ids(table[columns.arm], columns.arm, row)]
        if columns.offered is not None:
            column = table[columns.offered]
            if is_text(column.type):
                self._see_separator(column)
            offers = offers_of(column, columns.offered, row, self.mark)
            self._offered += len(offers.ids)
            found.append(offers.ids)
        if self._arms:
            self._ids = [distinct([*self._ids, *found])]

    def _see_separator(self, column: Any) -> None:
        """Lists in text are written in one way, which the first rows need not show."""
        import pyarrow.compute as pc

        found = separator(column)
        if self._blanks and found != " ":
            raise InputError(
                f"column {self._columns.offered!r} has blanks and {found!r} between ids: write it in one way"
            )
        self._blanks = self._blanks or (found == " " and bool(pc.any(pc.match_substring(column, " ")).as_py()))
        self.mark = min((one for one in (self.mark, found) if one is not None), key=SEPARATORS.index)

    def warn_order(self) -> None:
        """Warn of rounds and times that are out of order."""
        if self._columns.order_by is None and self._counts.found:
            warn_rounds(self._columns.round)
        warn_falls([name for name, seen in self._falls.items() if seen.found])

    def items(self) -> Items:
        """The arms."""
        (ids,) = self._ids
        # As whole numbers they are in another order than as text: 9 comes before 10.
        return Items(arms=Arms(distinct([whole_ids(ids)]) if self._text_ids and is_text(ids.type) else ids))

    def n_offered(self, n_arms: int) -> int:
        """How many arms a round offers, about."""
        return max(1, self._offered // max(1, self._rows)) if self._columns.offered else n_arms

    def typed(self, table: Any, source: Source) -> Any:
        """A part with ids of rounds as all of them are written."""
        check_text(table)
        for name, kind in self._kinds.items():
            if source.text_ids:
                at = table.schema.get_field_index(name)
                table = table.set_column(at, name, table[name].cast(kind.type))
        return table


def item_columns(names: Sequence[str], options: Mapping[str, Any]) -> Columns:
    """All columns of a table of items, the ids as such; `options` are those of the log."""
    name = id_column(names, Columns(arm=options.get("arm"), offered=options.get("offered")))
    known = [one for one in options.get("categories") or () if one in names]
    others = [one for one in dict.fromkeys(names) if one != name]
    return Columns(round="", chosen="", arm=name, features=others, categories=known, decimal=options.get("decimal"))


def assumed_rounds(found: Format, file: Any, columns: Columns, log: BanditLog | LogScan) -> list[str]:
    """What a table of one row per round was taken to be, a line each."""
    assert found.source is not None
    source, columns = with_users(found.source(file), columns)
    columns = resolved(source.names, columns)
    guessed = found.guessed(file) if found.guessed is not None else []
    written = f" with {' and '.join(guessed)}" if guessed else ""
    meanings = {"rounds": columns.round, "picks": columns.arm, "offers": columns.offered, "time": columns.order_by}
    meanings["users"] = columns.user
    known = ", ".join(f"{word} from {name!r}" for word, name in meanings.items() if name)
    lines = [f"read as {found.name.removeprefix('long ')}, one row per round{written}: {known}"]
    names = log.feature_names or ()
    of = "context feature" if columns.context else "item feature"
    lines.append(f"{counted(len(names), of)}: {some_of(names, 5)}")
    if CONSTANT in names and CONSTANT not in columns.context:
        lines.append(f"{CONSTANT!r} is a column of ones, added because categories have a reference level")
    arms = np.asarray(log.all_arms if isinstance(log, LogScan) else getattr(log.features, "arms", ())).tolist()
    lines.append(f"{counted(len(arms), 'arm')}: {some_of(arms, 5)}")
    lines += [
        f"category {column!r}: {len(levels)} levels, the reference {levels[0]!r}"
        for column, levels in (log.categories or {}).items()
    ]
    return lines
