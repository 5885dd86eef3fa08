"""Long tables that are not loaded: batches of rows become logs of whole rounds, one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onlooker.base.checks import check_plain
from onlooker.base.errors import InputError
from onlooker.base.memory_limit import check_memory
from onlooker.base.text import one_line
from onlooker.formats.format import Source, check_text, named, with_arm
from onlooker.formats.long_csv import IdKind
from onlooker.logs.categories import Categories, Encoding, Growing, as_categories
from onlooker.logs.columns import MANY, Columns, feature_columns, settle, time_columns
from onlooker.logs.doubtful import head_rows, without_doubtful
from onlooker.logs.encoding import check_gaps, level_counts, warn_unseen
from onlooker.logs.frames import LogArrays, OnPicks, fallen_time, parts_of_table, scattered_round
from onlooker.logs.grouping import run_starts
from onlooker.logs.log import BanditLog
from onlooker.logs.sparse_encoding import sparse_row_bytes
from onlooker.logs.timestamps import Counts, Falls, check_one_kind, warn_falls, warn_rounds

_SURVEY_ROWS = 1 << 16
_AHEAD = 1 << 24
"""Bytes of memory for what is found out about a batch, and for the next one."""


class LongScan:
    """The log in some long tables, files one after the other; what it needs of all rows is found when it is made."""

    def __init__(self, sources: Sequence[Source], columns: Columns, batch_rows: int) -> None:
        self._sources, self.batch_rows = sources, batch_rows
        self._reported = False
        if columns.missing is not None:
            raise InputError(
                "`missing` needs the log in memory: read it with read_log(path) instead of scan_log, on the command "
                "line without --memory-limit and --engine"
            )
        self._columns = with_arm(sources[0].names, columns)
        names, texts = self._checked()
        if columns.like is not None:
            texts = list(columns.like.categories or ())
        self._kinds = {name: IdKind(name) for name in (self._columns.round, self._columns.arm) if name is not None}
        levels: dict[str, Counter[str]] = {name: Counter() for name in texts}
        with named(sources[0].path, "read"):
            schema = sources[0].schema(self._columns)
        falls = {name: Falls() for name in time_columns(schema, self._columns)}
        counts: dict[str, Counts] = {}
        if self._columns.order_by is None and self._columns.by is None:
            counts[self._columns.round] = Counts(text=sources[0].text_ids)
        for source in sources:
            with named(source.path, "read"):
                self._survey(source, levels, {**falls, **counts})
        warn_falls([name for name, seen in falls.items() if seen.found])
        if any(seen.found for seen in counts.values()):
            warn_rounds(self._columns.round)
        if isinstance(columns.like, Growing):
            self._encoding = Encoding.of(columns.like, self._columns.cross).grown(levels)
        elif columns.like is not None:
            self._encoding = Encoding.of(columns.like, self._columns.cross)
            known = self._encoding.categories
            found = {
                (name, level): n for name in texts for level, n in levels[name].items() if level not in known[name]
            }
            warn_unseen(found, self._encoding)
        else:
            with named(sources[0].path, "read"):
                names = without_doubtful(self._head(names), self._columns, names)
                self._encoding = settle(names, levels, self._columns)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One name per feature."""
        return self._encoding.feature_names

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.feature_names)

    @property
    def row_bytes(self) -> int | None:
        """Memory that an offered arm takes where rows stay sparse."""
        return sparse_row_bytes(self._encoding)

    @property
    def categories(self) -> Categories | None:
        """Levels of the features that came from text."""
        return as_categories(self._encoding.categories, self.feature_names)

    def __iter__(self) -> Iterator[BanditLog]:
        last: LogArrays | None = None
        # Reported once, after the first full scan.
        seen = None if self._reported else OnPicks(self.n_features)
        for path, first_row, table in self._tables():
            with named(path, "read"):
                if last is not None:
                    self._check_returns(last, table, first_row)
                parts = parts_of_table(table, self._columns, self._encoding, first_row=first_row, adjacent=True)
                if last is not None:
                    self._check_time(last, parts, first_row)
                if seen is not None:
                    seen.see(parts)
                last = parts
                log = BanditLog.from_parts(parts)
            yield log
        if seen is not None:
            self._reported = True
            seen.warn(self.feature_names)

    def stretches(self) -> None:
        """Rounds may straddle files and row groups, so they are read in order."""

    def _checked(self) -> tuple[list[str], list[str]]:
        """Columns that may be features, and those of them that are text; the same in every file."""
        found: list[tuple[list[str], list[str]]] = []
        for source in self._sources:
            with named(source.path, "read"):
                self._columns.check(source.names)
                schema = source.schema(self._columns)
                for name in self._columns.keys:
                    check_plain(schema.field(name), name)
                found.append(([], []) if self._columns.like else feature_columns(schema, self._columns))
                if found[-1] != found[0]:
                    raise InputError(
                        f"has other features than {self._sources[0].path}: name the features, or scan it alone"
                    )
        return found[0]

    def _survey(self, source: Source, levels: dict[str, Counter[str]], falls: Mapping[str, Falls | Counts]) -> None:
        """Gather the levels of text columns, whether times fall, and whether ids that are text are whole numbers."""
        import pyarrow as pa

        ids = list(self._kinds) if source.text_ids else []
        columns = self._columns
        wanted = {*(columns.named or ()), *(columns.categories or ())}
        names = list(dict.fromkeys([*ids, *levels, *falls]))
        row = 0
        for batch in source.batches(columns, names, _SURVEY_ROWS) if names else ():
            table = pa.Table.from_batches([batch])
            check_text(table)
            for name in ids:
                self._kinds[name].see(table[name].combine_chunks())
            counted = [name for name, counts in levels.items() if name in wanted or len(counts) <= MANY]
            check_gaps(table, counted, row, part=True)
            for name in counted:
                levels[name].update(level_counts(table[name], name))
            for name, seen in falls.items():
                seen.see(table[name].combine_chunks())
            row += len(batch)

    def _head(self, names: Sequence[str]) -> Any:
        """First rows of the first file, as many as columns are judged by."""
        import pyarrow as pa

        keys = [name for name in (self._columns.by, self._columns.round) if name is not None]
        wanted, held, enough = list(dict.fromkeys([*keys, *names])), 0, head_rows(len(names))
        batches = []
        for batch in self._sources[0].batches(self._columns, wanted, enough):
            batches.append(pa.Table.from_batches([batch]))
            held += len(batch)
            if held >= enough:
                break
        if not batches:
            raise InputError("holds no rounds: nothing was offered")
        return _joined(batches, self._sources[0].path).slice(0, enough)

    def _tables(self) -> Iterator[tuple[Path | str, int, Any]]:
        """Tables of whole rounds with the file and the row in which they begin."""
        columns = self._columns
        names = list(dict.fromkeys([*columns.keys, *self._encoding.columns]))
        rest: list[Any] = []
        held = 0
        path = self._sources[0].path
        begin = 0
        for source in self._sources:
            path, begin = source.path, -sum(map(len, rest))
            enough = self.batch_rows
            for batch in self._batches(source, names):
                rest.append(batch)
                held += batch.nbytes
                with named(path, "read"):
                    # They will be put together, and become rows.
                    check_memory(2 * held)
                if sum(map(len, rest)) < enough:
                    continue
                table = _joined(rest, path)
                cut = self._last_round(table)
                # A round that fills the batch: wait for more before looking again.
                enough = self.batch_rows if cut else 2 * len(table)
                if cut:
                    yield path, begin, table[:cut]
                    begin += cut
                    rest = [table[cut:]]
                    held = rest[0].nbytes
            if rest:
                table = _joined(rest, path)
                cut = self._last_round(table)
                if cut:
                    yield path, begin, table[:cut]
                    begin += cut
                rest = [table[cut:]]
                held = rest[0].nbytes
        if rest and len(rest[0]):
            yield path, begin, rest[0]

    def _batches(self, source: Source, names: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        batches = source.batches(self._columns, names, self.batch_rows)
        while True:
            with named(source.path, "read"):
                batch = next(batches, None)
                if batch is None:
                    return
                table = pa.Table.from_batches([batch])
                check_text(table)
                check_memory(_AHEAD)
                if source.text_ids:
                    for name, kind in self._kinds.items():
                        at = table.schema.get_field_index(name)
                        table = table.set_column(at, name, table[name].cast(kind.type))
            yield table

    def _last_round(self, table: Any) -> int:
        """Row in which the table's last round begins."""
        column = table[self._columns.round]
        if column.null_count:
            # Reported when the rows are scanned.
            return len(table)
        return int(run_starts([column.combine_chunks()])[-1])

    def _check_returns(self, last: LogArrays, table: Any, first_row: int) -> None:
        """Check that no round occurs again, as far as the part before shows."""
        import pyarrow.compute as pc

        before = set(last.round_ids.tolist())
        again = next((name for name in pc.unique(table[self._columns.round]).to_pylist() if name in before), None)
        if again is not None:
            row = pc.index(table[self._columns.round], value=again).as_py()
            raise scattered_round(self._columns.round, first_row + row, again)

    def _check_time(self, last: LogArrays, parts: LogArrays, first_row: int) -> None:
        if self._columns.order_by is None or parts.times is None or last.times is None:
            return
        check_one_kind(parts.times, last.times, self._columns.order_by)
        if parts.times[0] < last.times[-1]:
            raise fallen_time(self._columns.order_by, first_row, parts.times[0], last.times[-1])


def _joined(tables: Sequence[Any], path: Path | str) -> Any:
    """Tables end to end; numbers of different kinds become one."""
    import pyarrow as pa

    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise InputError(
            f"{path}: has a column of another kind than before ({one_line(error)}): scan it alone"
        ) from error
