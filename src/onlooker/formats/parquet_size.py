"""What a Parquet file unpacks to, found before it is unpacked: a few kilobytes may hold gigabytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from onlooker.errors import InputError
from onlooker.formats.compressed import RATIO
from onlooker.formats.format import arrow_errors
from onlooker.formats.parquet_headers import page_sizes
from onlooker.memory_limit import check_memory, limit_in_force

_FLOOR = 1 << 28
"""Bytes of values that any file may hold, however small it is."""
_TEXT = "BYTE_ARRAY"
_ROWS = 1 << 14
"""Rows of texts that are looked at together."""
_ENTRY = 100
"""Bytes of memory for a text beside its letters, once Python has it."""
_SHORT = 64
"""Letters up to which a text takes no more than what is reckoned for it anyway."""


def check_size(path: Path, metadata: Any, names: Sequence[str], rows: int | None = None) -> None:
    """Refuse columns that would not fit: pages, row groups that are beyond all measure, and texts in `rows` rows."""
    with arrow_errors("Parquet"):
        leaves = _leaves(metadata, names)
        groups = [
            [metadata.row_group(i).column(j) for j in (*leaves.texts, *leaves.others)]
            for i in range(metadata.num_row_groups)
        ]
        chunks = [chunk for group in groups for chunk in group]
        if limit_in_force() is not None:
            _check_pages(path, chunks)
        _check_growth(chunks)
        for group in groups:
            unpacked = 8 * sum(chunk.num_values for chunk in group)
            if unpacked > RATIO * sum(chunk.total_compressed_size for chunk in group):
                check_memory(3 * unpacked)
        texts = [group[k] for group in groups for k in range(len(leaves.texts))]
        if _may_be_long(texts, rows or metadata.num_rows):
            _check_texts(path, metadata, list(leaves.texts.values()), rows)


def text_entries(metadata: Any, names: Sequence[str]) -> int:
    """Bytes that Python takes for the texts in some columns, short as they are."""
    with arrow_errors("Parquet"):
        leaves = _leaves(metadata, names).texts
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        return _ENTRY * int(sum(group.column(j).num_values for group in groups for j in leaves))


class _Leaves(NamedTuple):
    """Leaves of the columns that are read: their places among all, and the names of those that hold texts."""

    texts: dict[int, str]
    others: list[int]


def _leaves(metadata: Any, names: Sequence[str]) -> _Leaves:
    # By the file's schema, which is what Arrow reads by, not by what each chunk says of itself.
    wanted = {}
    for j in range(len(metadata.schema)):
        leaf = metadata.schema.column(j)
        if any(leaf.path == name or leaf.path.startswith(f"{name}.") for name in names):
            wanted[j] = leaf
    texts = {j: leaf.path for j, leaf in wanted.items() if leaf.physical_type == _TEXT}
    return _Leaves(texts, [j for j in wanted if j not in texts])


def _check_growth(chunks: Sequence[Any]) -> None:
    """Refuse values without end: the same one any number of times takes a few bytes, but hours to go through."""
    unpacked, packed = 8 * sum(one.num_values for one in chunks), sum(one.total_compressed_size for one in chunks)
    if unpacked > max(_FLOOR, 5 * RATIO * packed):
        raise InputError(
            f"holds {unpacked / 1e6:,.0f} MB of values in {packed / 1e6:,.1f} MB, which is beyond any ordinary log: "
            "write it as CSV if you trust it"
        )


def _check_pages(path: Path, chunks: Sequence[Any]) -> None:
    """No page unpacks to more than there is room for, whatever the file says of itself elsewhere."""
    with open(path, "rb") as file:
        for chunk in chunks:
            start = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
            if start is None or start < 0 or chunk.total_compressed_size < 0:
                raise InputError("cannot be read as Parquet (a column has no proper place): write it again")
            for number, size in enumerate(page_sizes(file, start, chunk.total_compressed_size)):
                # One for the dictionary, one for a page of nothing.
                if number > chunk.num_values + 2:
                    raise InputError("cannot be read as Parquet (more pages than values): write it again")
                # Once packed and once unpacked.
                check_memory(2 * size)


def _may_be_long(chunks: Sequence[Any], rows: int) -> bool:
    """Whether texts could take more than was reckoned for them: one in a dictionary may stand for any number."""
    longest = max((one.total_uncompressed_size for one in chunks), default=0)
    if longest <= _SHORT:
        return False
    try:
        check_memory(longest * rows)
    except InputError:
        return True
    return False


def _check_texts(path: Path, metadata: Any, texts: Sequence[str], rows: int | None) -> None:
    """Texts as numbers of entries of a dictionary, their lengths summed up: `rows` rows at a time, or all of them."""
    import pyarrow.parquet as pq

    held = total = 0
    roots = list(dict.fromkeys(name.partition(".")[0] for name in texts))
    with pq.ParquetFile(path, metadata=metadata, read_dictionary=list(texts)) as file:
        known = set(file.schema_arrow.names)
        columns = [name for name in {*texts, *roots} if name in known]
        for batch in file.iter_batches(batch_size=min(_ROWS, rows or _ROWS), columns=columns):
            held += len(batch)
            total += sum(_letters(column) for column in batch.columns)
            check_memory(3 * total)
            if rows is not None and held >= rows:
                held = total = 0


def _letters(column: Any) -> int:
    """Bytes of all texts in a column of them, or of lists of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    while pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        column = column.flatten()
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = pc.binary_length(column.dictionary).cast(pa.int64())
    return int(pc.sum(lengths.take(column.indices)).as_py() or 0)
