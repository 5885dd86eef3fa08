"""Ids of arms in tables of one row per round: which arms there are, and which of them every round offers and picks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.errors import InputError
from onlooker.base.numerics import arrow_values
from onlooker.base.types import Ids, Index
from onlooker.logs.encoding import check_complete, is_number, is_text, place

SEPARATORS = ("|", ";", ",", " ")
"""What may stand between ids in text: the first that occurs anywhere in a column."""
_BLOCK_ROWS = 1 << 20
"""Offered arms that are put in order at a time."""

Codes = NDArray[np.int32]
"""Positions among all arms."""


@dataclass(frozen=True, eq=False)
class Offers:
    """The ids that every round offers, as they stand in a table."""

    ids: Any
    """Of all rounds, one after the other, as an Arrow array."""
    offsets: Index
    """Where each round's begin."""


def plain_ids(column: Any, name: str, first_row: int = 0) -> Any:
    """A column of ids as one Arrow array of whole numbers or text; what is neither is refused.

    Examples
    --------
    >>> import pyarrow as pa
    >>> plain_ids(pa.chunked_array([["a"], ["b"]]).dictionary_encode(), "arm").to_pylist()
    ['a', 'b']
    """
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    check_complete(column, name, first_row)
    if is_text(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_boolean(column.type):
        return column.cast(pa.large_string())
    if is_number(column.type):
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid as error:
            if pa.types.is_integer(column.type):
                return column.cast(pa.large_string())
            raise InputError(
                f"column {name!r} holds numbers that are not whole: ids are whole numbers or text"
            ) from error
    raise InputError(f"column {name!r} holds {str(column.type)[:60]}: ids are whole numbers or text")


def offers_of(column: Any, name: str, first_row: int = 0, mark: str | None = None) -> Offers:
    """The ids in a column of lists, or of text in which a separator stands between them.

    Text may be written as `a|b`, `a;b`, `a,b`, `a b`, or as a list of JSON or Python; `mark` is what `separator` found
    in all of the column, where this is a part of it.

    Examples
    --------
    >>> import pyarrow as pa
    >>> offers_of(pa.chunked_array([["a|b", "c"]]), "offered").ids.to_pylist()
    ['a', 'b', 'c']
    >>> offers_of(pa.chunked_array([["[3, 1]", "[2]"]]), "offered").ids.to_pylist()
    [3, 1, 2]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    check_complete(column, name, first_row)
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    written = not pa.types.is_nested(column.type)
    if written:
        texts = column.cast(pa.large_string())
        column = _split(texts, mark or separator(texts))
    elif not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        try:
            column = column.cast(pa.large_list(column.type.value_type))
        except (AttributeError, pa.ArrowException) as error:
            raise InputError(f"column {name!r} holds {str(column.type)[:60]}: pass lists of ids, or text") from error
    sizes = arrow_values(pc.list_value_length(column)).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    found = column.flatten()
    if found.null_count:
        row = _round_of(offsets, pc.index(found.is_null(), value=True).as_py())
        raise InputError(
            f"column {name!r}, {place(first_row + row)} has a missing id: fill it in or leave the round out"
        )
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        at = place(first_row + int(empty[0]))
        raise InputError(f"column {name!r}, {at} offers no arm: name what was on offer, or leave the round out")
    return Offers(whole_ids(found) if written else plain_ids(found, name), offsets)


def separator(texts: Any) -> str:
    """What stands between the ids in text: a bar, a semicolon, a comma, or else a blank.

    Examples
    --------
    >>> import pyarrow as pa
    >>> separator(pa.array(["red shoe", "red shoe;blue shoe"])), separator(pa.array(["3 4"]))
    (';', ' ')
    """
    import pyarrow.compute as pc

    return next((one for one in SEPARATORS[:-1] if pc.any(pc.match_substring(texts, one)).as_py()), " ")


def _split(texts: Any, mark: str) -> Any:
    """Text as lists of the ids in it, without brackets, quotes and blanks around them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(texts) and texts[0].as_py().strip()[:1] in {"[", "(", "{"}:
        texts = pc.replace_substring_regex(texts, r"""[\[\](){}"']""", "")
    texts = pc.utf8_trim_whitespace(texts)
    split = pc.utf8_split_whitespace(texts) if mark == " " else pc.split_pattern(texts, mark)
    ids = pc.utf8_trim_whitespace(split.flatten())
    filled = arrow_values(pc.not_equal(ids, ""))
    sizes = arrow_values(pc.list_value_length(split))
    ends = np.concatenate([[0], np.cumsum(filled)])[np.concatenate([[0], np.cumsum(sizes)])]
    return pa.LargeListArray.from_arrays(
        pa.array(ends, pa.int64()), ids.filter(pa.array(filled)).cast(pa.large_string())
    )


def whole_ids(texts: Any) -> Any:
    """Whole numbers where that loses nothing, else the text itself.

    Examples
    --------
    >>> import pyarrow as pa
    >>> whole_ids(pa.array(["7", "10"])).to_pylist(), whole_ids(pa.array(["07", "10"])).to_pylist()
    ([7, 10], ['07', '10'])
    """
    import pyarrow as pa

    try:
        numbers = texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return texts
    return numbers if numbers.cast(texts.type).equals(texts) else texts


def distinct(columns: Sequence[Any]) -> Any:
    """All ids of some columns, each once and in order: as numbers where all are, else as text.

    Examples
    --------
    >>> import pyarrow as pa
    >>> distinct([pa.array([10, 9]), pa.array([9, 1])]).to_pylist()
    [1, 9, 10]
    >>> distinct([pa.array([10, 9]), pa.array(["a"])]).to_pylist()
    ['10', '9', 'a']
    """
    import pyarrow as pa

    known = [column.unique() for column in columns]
    if any(is_text(one.type) for one in known):
        known = [one.cast(pa.large_string()) for one in known]
    every = pa.concat_arrays(known).unique()
    return every.take(pa.array(np.argsort(_as_numpy(every), kind="stable")))


class Arms:
    """Arms by id, in order; ids are the same if they are written the same."""

    def __init__(self, ids: Any, remedy: str = "add it to the items") -> None:
        import pyarrow as pa

        self.remedy = remedy
        """What to do about an id that is not known."""
        self._texts = ids.cast(pa.large_string())
        self.ids: Ids = _as_numpy(ids)
        """One per arm."""

    def __len__(self) -> int:
        return len(self.ids)

    def codes(self, ids: Any) -> Codes:
        """Position of every id among the arms, -1 where there is no such arm."""
        import pyarrow as pa
        import pyarrow.compute as pc

        coded = ids.dictionary_encode()
        found = pc.index_in(coded.dictionary.cast(pa.large_string()), value_set=self._texts).fill_null(-1)
        where = np.asarray(arrow_values(found), dtype=np.int32)
        return np.asarray(where[arrow_values(coded.indices)])


@dataclass(frozen=True, kw_only=True, eq=False)
class Places:
    """What every round offers and picks, as positions among the arms."""

    rows: Codes | None
    """Arm of every row, in the order of the arms within a round; None where every round offers all."""
    offsets: Index | None
    """Where each round's rows begin, or None."""
    chosen: Index
    """Position of the pick among what its round offers."""


def places_of(arms: Arms, picks: Any, offers: Offers | None, names: tuple[str, str | None], first_row: int) -> Places:
    """Look up what rounds pick and offer; `names` are those of the two columns."""
    picked = arms.codes(picks)
    pick_name, offer_name = names
    _check_known(arms, picked, picks, np.arange(len(picked) + 1), f"column {pick_name!r}", "picks", first_row)
    if offers is None:
        return Places(rows=None, offsets=None, chosen=picked.astype(np.int64))
    assert offer_name is not None
    rows, offsets = arms.codes(offers.ids), offers.offsets
    _check_known(arms, rows, offers.ids, offsets, f"column {offer_name!r}", "has", first_row)
    chosen = np.empty(len(picked), dtype=np.int64)
    start = 0
    while start < len(picked):
        stop = max(start + 1, int(np.searchsorted(offsets, offsets[start] + _BLOCK_ROWS, side="right")) - 1)
        here = slice(offsets[start], offsets[stop])
        rounds = np.repeat(np.arange(stop - start), np.diff(offsets[start : stop + 1]))
        keys = rounds * len(arms) + rows[here]
        if (keys[1:] <= keys[:-1]).any():
            keys.sort()
            rows[here] = keys % len(arms)
        twice = np.flatnonzero(keys[1:] == keys[:-1])
        if len(twice):
            id_, at = arms.ids[keys[twice[0]] % len(arms)], place(first_row + start + int(rounds[twice[0]]))
            raise InputError(f"column {offer_name!r}, {at} has the arm {_shown(id_)} twice: name each arm once")
        wanted = np.arange(stop - start) * len(arms) + picked[start:stop]
        found = np.searchsorted(keys, wanted)
        absent = np.flatnonzero(keys[np.minimum(found, len(keys) - 1)] != wanted)
        if len(absent):
            row = start + int(absent[0])
            id_, at = arms.ids[picked[row]], place(first_row + row)
            raise InputError(
                f"column {pick_name!r}, {at} picks {_shown(id_)}, which is not among the arms in column "
                f"{offer_name!r}: add it there, or leave the round out"
            )
        chosen[start:stop] = found - (offsets[start:stop] - offsets[start])
        start = stop
    return Places(rows=rows, offsets=offsets, chosen=chosen)


def _check_known(arms: Arms, codes: Codes, ids: Any, offsets: Index, column: str, does: str, first_row: int) -> None:
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        at = int(unknown[0])
        row, id_ = place(first_row + _round_of(offsets, at)), _shown(ids[at].as_py())
        raise InputError(f"{column}, {row} {does} the arm {id_}, which is not known: {arms.remedy}")


def _round_of(offsets: Index, row: int) -> int:
    return int(np.searchsorted(offsets, row, side="right")) - 1


def _shown(id_: object) -> str:
    return repr(id_.item() if isinstance(id_, np.generic) else id_)[:60]


def _as_numpy(ids: Any) -> Ids:
    return np.asarray(arrow_values(ids))


def check_unique(ids: Any, name: str, what: str = "item") -> None:
    """Refuse a table that has an id twice; `what` its rows are."""
    coded = ids.dictionary_encode()
    codes = arrow_values(coded.indices)
    if len(coded.dictionary) < len(ids):
        order = np.argsort(codes, kind="stable")
        again = int(order[1:][codes[order[1:]] == codes[order[:-1]]].min())
        first = int(np.flatnonzero(codes == codes[again])[0])
        raise InputError(
            f"column {name!r} has the id {ids[again].as_py()!r} twice, in rows {first + 1} and {again + 1} (counting "
            f"from 1, without the header): give every {what} one row"
        )
