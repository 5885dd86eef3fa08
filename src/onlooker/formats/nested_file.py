"""A nested Parquet file: one row per round, recognised, its columns found and checked, read whole or in batches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from onlooker.base.checks import check_columns, check_once, is_list
from onlooker.base.documents import parsed
from onlooker.base.errors import InputError
from onlooker.base.memory_limit import check_memory
from onlooker.base.types import Ids
from onlooker.formats import nested_lists as lists
from onlooker.formats.format import arrow_errors
from onlooker.formats.nested_lists import NestedColumns, Rounds, RowGroups, assemble
from onlooker.formats.parquet_size import Footer, check_size, text_entries
from onlooker.formats.text_lines import LogFile
from onlooker.logs.categories import Encoded, Encoding
from onlooker.logs.layouts import columns as columns_of
from onlooker.logs.log import BanditLog
from onlooker.logs.timestamps import as_times

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
        self.dtype = lists.feature_type(schema.field(columns.arms).type, columns.arms)
        lists.check_whole(schema.field(columns.chosen).type, columns.chosen)
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
        with arrow_errors("Parquet"):
            groups = RowGroups(self._footer, self.columns)
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
        with arrow_errors("Parquet"), self._footer.opened() as file:
            table = file.read_row_groups(list(groups), columns=self.columns.names, use_threads=False)
        first = int(self._firsts[groups.start])
        return self._timed(Rounds.of_table(table, self.columns, first), first)

    def _timed(self, rounds: Rounds, first: int) -> Rounds:
        """The same rounds, with times that can be put in order."""
        if rounds.times is None or self.columns.order_by is None:
            return rounds
        return replace(rounds, times=as_times(rounds.times, self.columns.order_by, first, lists.round_place))

    def _arms_a_round(self, file: Any) -> float:
        """Average number of arms of a round, from the file's number of values and the width of an arm."""
        if not file.num_row_groups:
            return 1.0
        head = next(file.iter_batches(batch_size=1, row_groups=[0], columns=[self.columns.arms]), None)
        if head is None:
            return 1.0
        rows, _ = lists.feature_rows(head.column(0), self.columns.arms, 0)
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


def aligned(log: BanditLog, like: Encoded) -> BanditLog:
    """The same log with the features that `like` has, in its order; categories are those of `like`.

    Examples
    --------
    >>> import numpy as np
    >>> log = BanditLog(np.array([[1.0, 2.0]]), [0, 1], [0], feature_names=["a", "b"])
    >>> aligned(log, BanditLog(np.array([[0.0]]), [0, 1], [0], feature_names=["b"])).features
    array([[2.]])
    """
    wanted = Encoding.of(like).feature_names
    if log.feature_names is None:
        raise InputError("names no features, so they cannot be put in order: leave `like` out")
    absent = [name for name in wanted if name not in log.feature_names]
    if absent:
        raise InputError(f"has no feature {absent[0]!r}, which `like` has: encode it as that was encoded")
    where = {name: j for j, name in enumerate(log.feature_names)}
    features = log.features
    if wanted != log.feature_names:
        features = columns_of(features, np.array([where[name] for name in wanted], dtype=np.int64))
    return log.with_features(features, wanted, like.categories)
