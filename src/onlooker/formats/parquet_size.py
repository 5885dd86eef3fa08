"""What a Parquet file unpacks to, found before it is unpacked: a few kilobytes may hold gigabytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from onlooker.base.errors import InputError
from onlooker.base.memory_limit import check_memory, limit_in_force
from onlooker.formats.format import arrow_errors
from onlooker.formats.parquet_headers import Footer, page_sizes
from onlooker.formats.text_lines import RATIO

_FLOOR = 1 << 28
"""Bytes of values that any file may hold, however small it is."""
_TEXT = "BYTE_ARRAY"
_ROWS = 1 << 14
"""Rows of texts that are looked at together."""
_ENTRY = 100
"""Bytes of memory for a text beside its letters, once Python has it."""
_SHORT = 64
"""Letters up to which a text takes no more than what is reckoned for it anyway."""


def check_size(footer: Footer, names: Sequence[str], rows: int | None = None) -> None:
    """Refuse columns that would not fit: pages, row groups that are beyond all measure, and texts in `rows` rows."""
    with arrow_errors("Parquet"):
        leaves = _leaves(footer.metadata, names)
        if limit_in_force() is not None:
            _check_pages(footer, leaves)
        packed = footer.file.size
        groups = [8 * sum(counts) for counts in _counts(footer, leaves)]
        _check_growth(sum(groups), packed)
        for unpacked in groups:
            if unpacked > RATIO * packed:
                check_memory(3 * unpacked)
        texts = [leaf.path for leaf in leaves.values() if leaf.physical_type == _TEXT]
        if texts and _may_be_long(footer.metadata, rows or footer.metadata.num_rows):
            _check_texts(footer, texts, rows)


def text_entries(footer: Footer, names: Sequence[str]) -> int:
    """Bytes that Python takes for the texts in some columns, short as they are."""
    with arrow_errors("Parquet"):
        leaves = _leaves(footer.metadata, names)
        texts = {j: leaf for j, leaf in leaves.items() if leaf.physical_type == _TEXT}
        return _ENTRY * sum(map(sum, _counts(footer, texts)))


def _leaves(metadata: Any, names: Sequence[str]) -> dict[int, Any]:
    """Leaves of the columns that are read, by their places among all."""
    # By the file's schema, which is what Arrow reads by, not by what each chunk says of itself.
    wanted, schema = set(names), metadata.schema
    leaves = {j: schema.column(j) for j in range(len(schema))}
    return {j: leaf for j, leaf in leaves.items() if not wanted.isdisjoint(_columns_of(leaf.path))}


def _columns_of(path: str) -> Iterator[str]:
    """Names that the column of a leaf may have: it may lie within one, and names may have dots in them."""
    while path:
        yield path
        path = path.rpartition(".")[0]


def _counts(footer: Footer, leaves: dict[int, Any]) -> Iterator[list[int]]:
    """Values of the leaves in every row group: one a row, but for lists, of which each has as many as its file says."""
    lists = [j for j, leaf in leaves.items() if leaf.max_repetition_level]
    flat = len(leaves) - len(lists)
    chunks = footer.chunks(lists) if lists else []
    for i in range(footer.metadata.num_row_groups):
        rows = footer.metadata.row_group(i).num_rows
        yield [flat * rows, *(chunk.num_values for chunk in (chunks[i] if lists else ()))]


def _check_growth(unpacked: int, packed: int) -> None:
    """Refuse values without end: the same one any number of times takes a few bytes, but hours to go through."""
    if unpacked > max(_FLOOR, 5 * RATIO * packed):
        raise InputError(
            f"holds {unpacked / 1e6:,.0f} MB of values in {packed / 1e6:,.1f} MB, which is beyond any ordinary log: "
            "write it as CSV if you trust it"
        )


def _check_pages(footer: Footer, leaves: Iterable[int]) -> None:
    """No page unpacks to more than there is room for, whatever the file says of itself elsewhere."""
    with footer.file.native() as file:
        for chunk in chain.from_iterable(footer.chunks(list(leaves))):
            start = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
            if start is None or start < 0 or chunk.total_compressed_size < 0:
                raise InputError("cannot be read as Parquet (a column has no proper place): write it again")
            for number, size in enumerate(page_sizes(file, start, chunk.total_compressed_size)):
                # One for the dictionary, one for a page of nothing.
                if number > chunk.num_values + 2:
                    raise InputError("cannot be read as Parquet (more pages than values): write it again")
                # Once packed and once unpacked.
                check_memory(2 * size)


def _may_be_long(metadata: Any, rows: int) -> bool:
    """Whether texts could take more than was reckoned for them: one in a dictionary may stand for any number."""
    longest = max((metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)), default=0)
    if longest <= _SHORT:
        return False
    try:
        check_memory(longest * rows)
    except InputError:
        return True
    return False


def _check_texts(footer: Footer, texts: Sequence[str], rows: int | None) -> None:
    """Texts as numbers of entries of a dictionary, their lengths summed up: `rows` rows at a time, or all of them."""
    import pyarrow.parquet as pq

    held = total = 0
    roots = list(dict.fromkeys(name.partition(".")[0] for name in texts))
    with (
        footer.file.native() as native,
        pq.ParquetFile(native, metadata=footer.metadata, read_dictionary=list(texts)) as file,
    ):
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
