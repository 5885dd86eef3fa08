"""A nested Parquet file: one row per round, its columns found and checked, read whole, by row group or in batches.

Parquet's nesting levels take more memory than the values that they arrange, so a column is never read at once: many
small reads go into one array, large row groups are a stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.checks import check_columns, check_once, check_plain, is_list, parsed
from onlooker.base.errors import InputError
from onlooker.base.memory_limit import check_memory
from onlooker.base.numerics import arrow_values
from onlooker.base.threads import ordered_map
from onlooker.base.types import Features, Ids, Index
from onlooker.formats.format import arrow_errors
from onlooker.formats.parquet_size import Footer, check_size, text_entries
from onlooker.formats.text_lines import LogFile
from onlooker.logs.categories import Encoded, aligned
from onlooker.logs.encoding import is_number
from onlooker.logs.log import BanditLog
from onlooker.logs.timestamps import as_times


def feature_type(type: Any, name: str) -> np.dtype[Any]:
    """What to keep the features of column `name` in: float32 as it is, any other number as float64."""
    import pyarrow as pa

    if not (is_list(type) and is_list(type.value_type)):
        raise InputError(f"column {name!r} holds {str(type)[:60]}: it must hold lists (of arms) of lists (of features)")
    value = type.value_type.value_type
    if pa.types.is_float32(value):
        return np.dtype(np.float32)
    if is_number(value):
        return np.dtype(np.float64)
    raise InputError(f"column {name!r} holds lists of lists of {str(value)[:60]}: features must be numbers")


def check_whole(type: Any, name: str) -> None:
    """Refuse a column of picks that does not hold whole numbers."""
    import pyarrow as pa

    if not pa.types.is_integer(type):
        raise InputError(f"column {name!r} holds {str(type)[:60]}: it must hold the pick's position, a whole number")


def feature_rows(column: Any, name: str, first: int) -> tuple[Features, Index]:
    """One row per offered arm, a view where Arrow holds plain numbers, and how many arms each round offers.

    `first` is the number of the first round, for messages.

    Examples
    --------
    >>> import pyarrow as pa
    >>> feature_rows(pa.array([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]]), "arms", first=0)
    (array([[1., 2.], [3., 4.], [5., 6.]]), array([1, 2]))
    """
    sizes = _list_sizes(column, name, first)
    arms = column.flatten()
    missing = _first_null(arms)
    if missing is not None:
        raise InputError(f"{_arm(missing, sizes, first)} is missing: leave it out")
    widths = _lengths(arms)
    uneven = np.flatnonzero(widths != widths[:1])
    if len(uneven):
        place, odd, usual = _arm(int(uneven[0]), sizes, first), widths[uneven[0]], widths[0]
        raise InputError(f"{place} has {odd} features, but {round_place(first)}, arm 0 has {usual}: make them the same")
    values = arms.flatten()
    n_features = len(values) // max(1, len(arms))
    missing = _first_null(values)
    if missing is not None:
        row, feature = divmod(missing, n_features)
        raise InputError(f"{_arm(row, sizes, first)}, feature {feature} is missing: fill it in or leave the round out")
    return arrow_values(values).reshape(len(arms), n_features), sizes


def arm_ids(column: Any, name: str, sizes: Index, first: int) -> Ids:
    """Ids of the arms, laid end to end; every round has as many as it has arms."""
    if not is_list(column.type):
        raise InputError(f"column {name!r} holds {str(column.type)[:60]}: it must hold lists, one id per arm")
    found = _list_sizes(column, name, first)
    wrong = np.flatnonzero(found != sizes)
    if len(wrong):
        t = int(wrong[0])
        raise InputError(
            f"{round_place(first + t)} has {found[t]} ids in column {name!r}, but offers {sizes[t]} arms: give one each"
        )
    ids = _decoded(column.flatten())
    missing = _first_null(ids)
    if missing is not None:
        raise InputError(f"{_arm(missing, sizes, first)} has no id in column {name!r}: name every arm")
    return arrow_values(ids)


def round_values(column: Any, name: str, first: int) -> NDArray[Any]:
    """One value per round, none missing."""
    check_plain(column, name)
    column = _decoded(column)
    missing = _first_null(column)
    if missing is not None:
        raise InputError(
            f"{round_place(first + missing)} has nothing in column {name!r}: fill it in or leave the round out"
        )
    return arrow_values(column)


def round_place(t: int) -> str:
    """Describe the position of a round.

    Examples
    --------
    >>> round_place(41)
    'round 41 (counting from 0)'
    """
    return f"round {t} (counting from 0)"


def _decoded(column: Any) -> Any:
    """A column's own values: those of a dictionary may be missing too."""
    import pyarrow as pa

    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _list_sizes(column: Any, name: str, first: int) -> Index:
    missing = _first_null(column)
    if missing is not None:
        raise InputError(f"{round_place(first + missing)} has nothing in column {name!r}: leave such rounds out")
    sizes = _lengths(column)
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        raise InputError(
            f"{round_place(first + int(empty[0]))} offers no arm in column {name!r}: leave such rounds out"
        )
    return sizes


def _lengths(lists: Any) -> Index:
    import pyarrow.compute as pc

    return np.asarray(arrow_values(pc.list_value_length(lists)), dtype=np.int64)


def _first_null(array: Any) -> int | None:
    if not array.null_count:
        return None
    return int(np.flatnonzero(arrow_values(array.is_null()))[0])


def _arm(row: int, sizes: Index, first: int) -> str:
    """Describe the position of a row."""
    ends = np.cumsum(sizes)
    t = int(np.searchsorted(ends, row, side="right"))
    return f"{round_place(first + t)}, arm {row - (ends[t] - sizes[t])}"


@dataclass(frozen=True, kw_only=True)
class NestedColumns:
    """Which columns of a nested table mean what."""

    arms: str = "arms"
    """Features of the arms on offer: a list of lists."""
    chosen: str = "chosen"
    """Position of the pick."""
    round: str | None = None
    """Id of the round."""
    arm: str | None = None
    """Ids of the arms: a list."""
    order_by: str | None = None
    """Time of the round."""
    like: Encoded | None = None
    """Put features in the order that this has."""
    by: str | None = None
    """Which of several learners or restarts the round belongs to."""

    @property
    def meanings(self) -> dict[str, str | None]:
        """Columns by what they mean."""
        return {name: getattr(self, name) for name in ("arms", "chosen", "round", "arm", "order_by", "by")}

    @property
    def names(self) -> list[str]:
        """Columns that are read, each once."""
        return list(dict.fromkeys(name for name in self.meanings.values() if name is not None))


@dataclass(frozen=True, eq=False)
class Rounds:
    """Some rounds of a nested table."""

    features: Features
    """One row per offered arm, shape (rows, d)."""
    sizes: Index
    """How many arms each round offers."""
    chosen: Index
    """Position of the pick within its round."""
    round_ids: Ids | None
    """One id per round, or None."""
    arm_ids: Ids | None
    """One id per row, or None."""
    times: NDArray[Any] | None
    """Time of every round, or None."""
    by: Ids | None
    """What each round belongs to, or None."""

    @classmethod
    def of_table(cls, table: Any, columns: NestedColumns, first: int) -> Rounds:
        """Take an Arrow table apart whose first row is round `first`."""
        arrays = {name: _combined(table[name]) for name in columns.names}
        features, sizes = feature_rows(arrays[columns.arms], columns.arms, first)

        def values(name: str | None) -> NDArray[Any] | None:
            return None if name is None else round_values(arrays[name], name, first)

        return cls(
            features,
            sizes,
            round_values(arrays[columns.chosen], columns.chosen, first).astype(np.int64, copy=False),
            values(columns.round),
            None if columns.arm is None else arm_ids(arrays[columns.arm], columns.arm, sizes, first),
            values(columns.order_by),
            values(columns.by),
        )

    @property
    def offsets(self) -> Index:
        """Where each round's rows begin."""
        return np.concatenate([[0], np.cumsum(self.sizes)])


def assemble(groups: Iterable[Rounds], n_values: int, dtype: np.dtype[Any]) -> Rounds:
    """Lay the row groups end to end in one array of `n_values` features, which is what the file declares."""
    rows: Features | None = None
    filled = 0
    parts: list[Rounds] = []
    for part in groups:
        width = part.features.shape[1]
        if rows is None:
            rows = np.empty((n_values // max(1, width), width), dtype=dtype)
        if width != rows.shape[1]:
            place = round_place(sum(len(part.sizes) for part in parts))
            raise InputError(f"{place} has {width} features, but round 0 has {rows.shape[1]}: make them the same")
        end = filled + len(part.features)
        if end > len(rows):
            break
        rows[filled:end] = part.features
        filled = end
        parts.append(replace(part, features=rows[:0]))
    if rows is None or not filled:
        raise InputError("holds no rounds: nothing was offered")
    if filled != len(rows):
        raise InputError("holds other numbers of arms than it declares: write it again")
    sizes, chosen = (np.concatenate([getattr(part, name) for part in parts]) for name in ("sizes", "chosen"))
    rest = ("round_ids", "arm_ids", "times", "by")
    return Rounds(rows, sizes, chosen, *(_joined([getattr(part, name) for part in parts]) for name in rest))


def _joined(arrays: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    known = [array for array in arrays if array is not None]
    return np.concatenate(known) if known else None


def _combined(column: Any) -> Any:
    import pyarrow as pa

    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


_VERSION = 1
_KEY = b"onlooker"


def metadata_of(log: BanditLog) -> dict[bytes, str]:
    """What to write beside the columns: rows are written out, so contexts and arms are features like any other."""
    document: dict[str, Any] = {"format": _VERSION, "feature_names": log.weight_names}
    if log.categories is not None and log.crossing is None:
        document["categories"] = dict(log.categories)
    return {_KEY: json.dumps(document)}


def names_and_categories(metadata: dict[bytes, bytes]) -> tuple[list[str] | None, dict[str, list[str]] | None]:
    """Names and levels that `metadata_of` gave; other people's files have none."""
    if _KEY not in metadata:
        return None, None
    try:
        document = parsed(metadata[_KEY])
        version, names, categories = document["format"], document["feature_names"], document.get("categories")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError("has damaged metadata under 'onlooker': write it again") from error
    if version != _VERSION:
        raise InputError(f"has format {str(version)[:20]!r}, this onlooker reads {_VERSION}: install a newer one")
    lists = isinstance(categories, dict) and all(isinstance(levels, list) for levels in categories.values())
    if not (names is None or isinstance(names, list)) or not (categories is None or lists):
        raise InputError("has damaged metadata under 'onlooker': write it again")
    return names, categories


def recognises(file: LogFile) -> bool:
    """Whether the Parquet file has a column of lists of lists."""
    with arrow_errors("Parquet"):
        return any(is_list(kind) and is_list(kind.value_type) for kind in file.once(Footer).schema.types)


class NestedFile:
    """A file whose columns were found and checked."""

    def __init__(self, file: LogFile, columns: NestedColumns) -> None:
        self.path = file.path
        with arrow_errors("Parquet"):
            self._footer = file.once(Footer)
        self.metadata, schema = self._footer.metadata, self._footer.schema
        if columns.round is None and "round" in schema.names:
            columns = replace(columns, round="round")
        if columns.arm is None and "arm_ids" in schema.names:
            columns = replace(columns, arm="arm_ids")
        self.columns = columns
        check_columns(schema.names, columns.meanings)
        check_once([name for name in schema.names if name in columns.names])
        self.dtype = feature_type(schema.field(columns.arms).type, columns.arms)
        check_whole(schema.field(columns.chosen).type, columns.chosen)
        self.names, self.categories = names_and_categories(schema.metadata or {})
        leaves = self.metadata.schema
        leaf = next(j for j in range(len(leaves)) if leaves.column(j).path.startswith(f"{columns.arms}."))
        groups = range(self.metadata.num_row_groups)
        with arrow_errors("Parquet"):
            self.values = [chunk.num_values for (chunk,) in self._footer.chunks([leaf])]
        """Feature values in every row group."""
        self._checked: set[int] = set()
        self._firsts = np.cumsum([0, *(self.metadata.row_group(i).num_rows for i in groups)])

    def read(self) -> tuple[BanditLog, Ids | None]:
        """The log, and what each round belongs to."""
        # Beside the features themselves, the current row group: its values and their nesting levels.
        features = self.dtype.itemsize * (sum(self.values) + 3 * max(self.values, default=0))
        check_memory(features + text_entries(self._footer, self.columns.names))
        check_size(self._footer, self.columns.names)
        groups = ordered_map(self._read_group, range(len(self.values)))
        rounds = self._timed(assemble(groups, sum(self.values), self.dtype), 0)
        log = self.log(rounds)
        if rounds.times is None:
            return log, rounds.by
        order = np.argsort(rounds.times, kind="stable")
        if np.array_equal(order, np.arange(len(order))):
            return log, rounds.by
        return log[order], None if rounds.by is None else rounds.by[order]

    def log(self, rounds: Rounds) -> BanditLog:
        """Some of the file's rounds as a log."""
        return BanditLog(
            rounds.features,
            rounds.offsets,
            rounds.chosen,
            feature_names=self.names,
            round_ids=rounds.round_ids,
            arm_ids=rounds.arm_ids,
            times=rounds.times,
            categories=self.categories,
        )

    def batches(self, batch_rows: int) -> Iterator[Rounds]:
        """The rounds in parts of about `batch_rows` offered arms."""
        first = 0
        self.check(1)
        with arrow_errors("Parquet"), self._footer.opened(streamed=True) as file:
            size = max(1, int(batch_rows / self._arms_a_round(file)))
            self.check(size)
            # Group by group: asked for all at once, Arrow keeps those that are done with.
            for group in range(file.num_row_groups):
                for batch in file.iter_batches(batch_size=size, row_groups=[group], columns=self.columns.names):
                    rounds = self._timed(Rounds.of_table(batch, self.columns, first), first)
                    first += len(batch)
                    yield rounds

    def check(self, n_rounds: int) -> None:
        """Refuse a file of which `n_rounds` rounds at a time would not fit into memory."""
        if n_rounds not in self._checked:
            check_size(self._footer, self.columns.names, n_rounds)
            self._checked.add(n_rounds)

    def neighbours(self, n_values: int) -> Iterator[range]:
        """Row groups in runs of at most `n_values` feature values, or of one."""
        begin, held = 0, 0
        for group, values in enumerate(self.values):
            if group > begin and held + values > n_values:
                yield range(begin, group)
                begin, held = group, 0
            held += values
        if self.values:
            yield range(begin, len(self.values))

    def n_rounds(self, groups: range) -> int:
        """How many rounds some row groups hold."""
        return int(self._firsts[groups.stop] - self._firsts[groups.start])

    def read_groups(self, groups: range) -> Rounds:
        """Read some row groups; threads may read side by side."""
        return self._timed(self._read_groups(groups), int(self._firsts[groups.start]))

    def _read_group(self, i: int) -> Rounds:
        return self._read_groups(range(i, i + 1))

    def _read_groups(self, groups: range) -> Rounds:
        """The same, with times as they are."""
        with arrow_errors("Parquet"), self._footer.opened() as file:
            table = file.read_row_groups(list(groups), columns=self.columns.names, use_threads=False)
            return Rounds.of_table(table, self.columns, int(self._firsts[groups.start]))

    def _timed(self, rounds: Rounds, first: int) -> Rounds:
        """The same rounds, with times that can be put in order."""
        if rounds.times is None or self.columns.order_by is None:
            return rounds
        return replace(rounds, times=as_times(rounds.times, self.columns.order_by, first, round_place))

    def _arms_a_round(self, file: Any) -> float:
        """Average number of arms of a round, from the file's number of values and the width of an arm."""
        if not file.num_row_groups:
            return 1.0
        head = next(file.iter_batches(batch_size=1, row_groups=[0], columns=[self.columns.arms]), None)
        if head is None:
            return 1.0
        rows, _ = feature_rows(head.column(0), self.columns.arms, 0)
        return max(1.0, float(sum(self.values) / max(1, rows.shape[1]) / self.metadata.num_rows))


def read(file: LogFile, **options: Any) -> BanditLog:
    """Read one row per round: `arms` a list (one entry an arm) of lists (one entry a feature), `chosen` a position.

    `round` and `arm` name the columns of ids; those called `round` and `arm_ids` are taken where there are any.
    """
    columns = NestedColumns(**options)
    log, _ = NestedFile(file, columns).read()
    return log if columns.like is None else aligned(log, columns.like)


def read_by(file: LogFile, **options: Any) -> dict[str, BanditLog]:
    """Read the logs that column `by` separates."""
    columns = NestedColumns(**options)
    log, values = NestedFile(file, columns).read()
    assert values is not None
    return (log if columns.like is None else aligned(log, columns.like)).split(values)
