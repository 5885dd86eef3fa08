"""Long tables, one row per offered arm: what the formats that hold one have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import numpy as np

from onlooker.base.errors import InputError
from onlooker.base.text import one_line
from onlooker.base.types import Ids
from onlooker.formats.format import Format, Scanned, named
from onlooker.formats.text_lines import LogFile
from onlooker.logs import ragged
from onlooker.logs.columns import OFFER_PROBABILITY, POSSIBLE, ROW_NUMBER, Columns, is_outcome, understood
from onlooker.logs.frames import LogArrays, encoding_of, parts_of_table
from onlooker.logs.log import BanditLog, feature_labels
from onlooker.logs.long_tables import known_picks
from onlooker.logs.round_table import Rounds

ROUND, ARM, CHOSEN = "round", "arm", "chosen"
"""What the columns are called unless the caller names others."""


class Source(Protocol):
    """Anything that holds a long table and yields it as Arrow batches: a file, or a table of another library."""

    names: list[str]
    """Its columns."""
    text_ids: bool
    """Whether ids come as text that may stand for whole numbers."""

    @property
    def path(self) -> Path | str:
        """Where it is, or what messages call it."""

    def table(self, columns: Columns) -> Any:
        """The columns that are needed, or all where features are not named, as an Arrow table."""

    def schema(self, columns: Columns) -> Any:
        """Names and types that `batches` would give; an error where those cannot be had more than once."""

    def batches(self, columns: Columns, names: Sequence[str], rows: int) -> Iterator[Any]:
        """Some columns as Arrow record batches, of about as many rows where the format allows."""


def long_format(
    *,
    name: str,
    suffixes: tuple[str, ...],
    source: Callable[[LogFile], Source] | None,
    write_parts: Callable[[Iterable[BanditLog], BinaryIO], None] | None = None,
    guessed: Callable[[LogFile], list[str]] | None = None,
) -> Format:
    """The format of files that `source` opens and `write_parts` writes; without `source`, of sources themselves."""

    def opened(file: Any) -> Source:
        from onlooker.formats.joined import Joined, LogFiles, Partitioned

        if source is None:
            return cast("Source", file)
        if isinstance(file, LogFiles):
            found_all = []
            for one in file:
                with named(one.path, "read"):
                    found_all.append(opened(one))
            return Joined(found_all, file.path)
        with file:
            found = cast("Source", file.once(source))
        return Partitioned(found, file.partitions) if file.partitions else found

    def shape_of(file: Any) -> str | None:
        from onlooker.formats.shaped import shape_in_words

        return shape_in_words(opened(file))

    def wanted(options: dict[str, Any]) -> Columns:
        columns = Columns(**options)
        if columns.decimal is not None and guessed is None:
            raise InputError(f"{name} has one way to write numbers: leave `decimal` out")
        return columns

    def parts(file: Any, options: dict[str, Any]) -> LogArrays:
        from onlooker.formats.shaped import columns_of, shaped

        columns = wanted(options)
        found = shaped(opened(file), columns)
        columns = with_arm(found.names, columns_of(found, columns))
        columns.check(found.names)
        table = found.table(columns)
        check_text(table)
        return parts_of_table(table, columns, encoding_of(table, columns))

    def rounds(file: Any, options: dict[str, Any]) -> Rounds | None:
        """The log of a table of one row per round; None where rows are offered arms."""
        from onlooker.formats.round_tables import read_rounds

        columns = wanted(options)
        return read_rounds(opened(file), columns) if columns.per_round else None

    def read(file: Any, **options: Any) -> BanditLog:
        found = rounds(file, options)
        return BanditLog.from_parts(parts(file, options)) if found is None else found.log

    def read_by(file: Any, **options: Any) -> dict[str, BanditLog]:
        several = rounds(file, options)
        if several is not None:
            assert several.by is not None
            return several.log.split(several.by)
        found = parts(file, options)
        assert found.by is not None
        return BanditLog.from_parts(found).split(found.by)

    def scan(files: Sequence[Any], *, batch_rows: int, **options: Any) -> Scanned:
        from onlooker.formats.long_scan import LongScan
        from onlooker.formats.round_tables import RoundScan
        from onlooker.formats.shaped import columns_of, shaped_files

        columns, sources = wanted(options), []
        for file in files:
            with named(file.path, "read"):
                sources.append(opened(file))
        if columns.per_round:
            return RoundScan(sources, columns, batch_rows)
        sources = shaped_files(sources, columns)
        return LongScan(sources, columns_of(sources[0], columns), batch_rows)

    return Format(
        name=name,
        suffixes=suffixes,
        recognises=lambda _: True,
        read=read,
        options=Columns,
        write=None if write_parts is None else lambda log, file: write_parts([log], file),
        read_by=read_by,
        scan=scan,
        write_parts=write_parts,
        columns=lambda file: opened(file).names,
        source=opened,
        guessed=guessed,
        shape=shape_of,
    )


def with_arm(names: Sequence[str], columns: Columns) -> Columns:
    """Take the column `arm` for the arms' ids where there is one and no other is named."""
    columns = understood(names, columns)
    return replace(columns, arm=ARM) if columns.arm is None and ARM in names else columns


def check_text(table: Any) -> None:
    """Refuse text that is not UTF-8, which Arrow passes on."""
    import pyarrow as pa

    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid as error:
                raise InputError(
                    f"column {name!r} is not text in UTF-8 ({one_line(error)}): save it as UTF-8"
                ) from error


def plain_text(schema: Any) -> Any:
    """The same schema with plain text for views of it, which little can be done with."""
    import pyarrow as pa

    views = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return pa.schema([field.with_type(views.get(field.type, field.type)) for field in schema], schema.metadata)


def long_tables(logs: Iterable[BanditLog], *, widen: bool, values: int = ragged.BLOCK_VALUES) -> Iterator[Any]:
    """Logs as Arrow tables of whole rounds, about `values` features each; names are made up where there are none.

    `widen` makes float32 float64: the shortest text of 0.1 as float32 would come back as another float64.
    """
    first_round = 0
    for log in logs:
        yield from _tables(log, first_round, values, widen=widen)
        first_round += log.n_rounds


def _tables(log: BanditLog, first_round: int, values: int, *, widen: bool) -> Iterator[Any]:
    import pyarrow as pa

    features = feature_labels(log.weight_names, log.n_features)
    ids = np.arange(first_round, first_round + log.n_rounds) if log.round_ids is None else log.round_ids
    rounds = id_array(ids, "round_ids")
    named = log.arm_ids
    arms = None if named is None else id_array(named, "arm_ids")
    _check_writable(features, rounds, arms)
    for start, stop in ragged.blocks(log.offsets, log.n_features, values):
        part = log[start:stop]
        columns = {ROUND: rounds.take(np.repeat(np.arange(start, stop), part.n_arms))}
        if arms is not None:
            columns[ARM] = arms.slice(log.offsets[start], len(part.features))
        columns |= {name: pa.array(values) for name, values in known_picks(part, sets=log.possible is not None).items()}
        rows = part.dense
        rows = rows.astype(np.float64, copy=False) if widen else rows
        yield pa.table(columns | {name: pa.array(rows[:, j]) for j, name in enumerate(features)})


def id_array(ids: Ids, name: str) -> Any:
    """Ids as an Arrow array."""
    import pyarrow as pa

    try:
        array = pa.array(ids)
    except (pa.ArrowException, OverflowError) as error:
        raise InputError(f"{name} cannot be written: make them all text or all whole numbers of 64 bits") from error
    if array.null_count:
        raise InputError(f"{name} has a missing id: give every one a name")
    return array


def _check_writable(features: Sequence[str], round_ids: Any, arm_ids: Any) -> None:
    """A long table tells rounds apart by their ids, features from the rest by their names, and a blank is a gap."""
    import pyarrow.compute as pc

    for name in features:
        if name in {ROUND, ARM, CHOSEN, POSSIBLE, OFFER_PROBABILITY} or is_outcome(name) or ROW_NUMBER.fullmatch(name):
            raise InputError(f"a long table cannot hold a feature called {name!r}: rename it or write .parquet")
    for name, ids in {"round_ids": round_ids, "arm_ids": arm_ids}.items():
        if ids is not None and ids.type == "string" and pc.index(ids, value="").as_py() >= 0:
            raise InputError(f"{name} has an empty id, which a long table cannot hold: fill it in or write .parquet")
    tally = pc.value_counts(round_ids)
    most = int(np.argmax(tally.field("counts").to_numpy()))
    times = tally.field("counts")[most].as_py()
    if times > 1:
        twice = tally.field("values")[most].as_py()
        raise InputError(
            f"round id {twice!r} stands for {times} rounds, as in a slate, and a long table has one id per round: "
            "make ids distinct, or write lists (`onlooker convert` to .parquet)"
        )
