"""Candidates: one row per round, with a list of the arms that were offered, each an object with its features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.checks import is_list, parsed
from onlooker.base.errors import InputError
from onlooker.base.text import one_line, some_of
from onlooker.base.types import Index
from onlooker.logs.columns import Columns, is_outcome
from onlooker.logs.encoding import is_number, is_text, place
from onlooker.logs.row_shape import Layer, RowShape, as_ids, key_text, one_pick

LIKELY = frozenset(
    {"candidates", "arms", "actions", "action_set", "items", "options", "offers", "choices", "alternatives", "products"}
)
"""What a column of candidates is called, in small letters."""
_IDS = ("arm", "id", "arm_id", "item_id", "action_id", "product_id", "item", "action")
"""What the id of a candidate is called, where the caller does not say."""
POSITION = "position"
"""What the long table calls the position of a pick, where a list says in which order arms were picked."""


def find_candidates(head: Any, columns: Columns) -> Candidates | None:
    """The column with lists of candidates, by its name or by what the first rows hold; None where there is none.

    Examples
    --------
    >>> import pyarrow as pa
    >>> offers = [[{"id": "a", "price": 3.0}, {"id": "b", "price": 2.0}]]
    >>> found = find_candidates(pa.table({"candidates": offers, "chosen": ["b"]}), Columns())
    >>> found.column, found.features
    ('candidates', ['price'])
    """
    names = head.column_names
    if columns.candidates is not None:
        if columns.candidates not in names:
            raise InputError(
                f"the table has no column {columns.candidates!r}: it has {some_of(names)}; name it as `candidates`"
            )
        return Candidates(head, columns, columns.candidates)
    found = [name for name in names if _holds_candidates(head[name])]
    if len(found) > 1:
        raise InputError(f"{some_of(found)} may be the candidates: name one of them as `candidates`")
    return Candidates(head, columns, found[0]) if found else None


def _holds_candidates(column: Any) -> bool:
    """Whether the first value is a list of objects, as such or as JSON text."""
    if _is_objects(column.type):
        return True
    first = next((one for one in column.slice(0, 20).to_pylist() if one), None) if is_text(column.type) else None
    return first is not None and first.lstrip()[:1] == "[" and first.lstrip()[1:].lstrip()[:1] == "{"


def _is_objects(kind: Any) -> bool:
    import pyarrow as pa

    return is_list(kind) and bool(pa.types.is_struct(kind.value_type))


class Candidates(RowShape):
    """A table with a list of candidates in every row.

    The pick is a position (from 0), an id, or a flag in the candidates; a list of positions or ids is a slate.
    """

    name = "candidates"

    def __init__(self, head: Any, columns: Columns, column: str) -> None:
        names = head.column_names
        self.column = column
        self._ids = frozenset({*_IDS, columns.arm or ""})
        lengths, entries = _exploded(head[column], column, 0, self._ids)
        self.most_arms, fields = int(lengths.max(initial=1)), _fields(entries)
        super().__init__([*names, *(one for one in fields if one not in names)], columns)
        columns = self.given
        if columns.slate is not None and columns.slate not in fields:
            raise InputError(f"the candidates have no {columns.slate!r}: they have {some_of(list(fields))}")
        id_ = columns.arm if columns.arm is not None else next((one for one in _IDS if one in fields), None)
        if id_ is not None and id_ not in fields:
            raise InputError(f"the candidates have no {id_!r}: they have {some_of(list(fields))}; name it as `arm`")
        self._id, self.has_arms = id_, id_ is not None
        self._flag = columns.chosen if columns.chosen in fields else None
        if self._flag is not None and columns.chosen in names:
            raise InputError(f"both a round and its candidates have {columns.chosen!r}: rename one of them")
        if self._flag is None and columns.chosen not in names:
            raise InputError(
                f"neither a round nor its candidates have {columns.chosen!r}: a round has {some_of(names)}, a "
                f"candidate {some_of(list(fields))}; name the pick as `chosen`"
            )
        wanted = columns.named
        self.features = [
            one
            for one in fields
            if one not in {self._id, self._flag, columns.slate}
            and not is_outcome(one)
            and (wanted is None or one in {*wanted, *columns.crossed})
        ]
        self.needed = [column] if self._flag is not None else [column, columns.chosen]
        self._by_id = False
        self.settle(names)

    @property
    def assumed(self) -> str:
        """The assumptions, as reported to users."""
        how = "flags" if self._flag is not None else "ids" if self._by_id else "positions, from 0"
        return f"candidates: a row is a round, arms from {self.column!r}, picks by {how}"

    def see_picks(self, head: Any) -> None:
        """Decide by the first rows whether picks are positions or ids."""
        if self._flag is not None:
            return
        lengths, entries = _exploded(head[self.column], self.column, 0, self._ids)
        picks = key_text(head[self.given.chosen], self.given.chosen, 0).to_pylist()
        positions = all(text.isdecimal() and int(text) < n for text, n in zip(picks, lengths.tolist(), strict=True))
        if self._id is None:
            if not all(text.lstrip("-").isdecimal() for text in picks):
                raise InputError(
                    f"column {self.given.chosen!r} holds {picks[0][:40]!r}, but the candidates have no id: name it as "
                    "`arm`"
                )
            return
        self._check_fields(entries, np.repeat(np.arange(len(head)), lengths), 0, [self._id])
        ids = key_text(entries[self._id], self._id, 0).to_pylist()
        starts = np.concatenate([[0], np.cumsum(lengths)]).tolist()
        by_id = all(pick in ids[starts[t] : starts[t + 1]] for t, pick in enumerate(picks))
        if positions and by_id and self.given.arm is None:
            same = all(ids[starts[t] + int(pick)] == pick for t, pick in enumerate(picks))
            if not same:
                raise InputError(
                    f"column {self.given.chosen!r} may hold positions or the ids in {self._id!r}: name the ids as "
                    "`arm` if picks are ids, else leave them out of the candidates"
                )
        self._by_id = by_id or not positions

    def layer(self, table: Any, first_row: int) -> Layer:
        """The offered arms of some rows."""
        lengths, entries = _exploded(table[self.column], self.column, first_row, self._ids)
        rows = np.repeat(np.arange(len(table)), lengths)
        flag = None if self._flag == self.given.slate else self._flag
        self._check_fields(entries, rows, first_row, [*self.features, *filter(None, [self._id, flag])])
        arms = None if self._id is None else key_text(entries[self._id], self._id, first_row)
        if self._flag is not None:
            picked = self._flagged(entries[self._flag], rows, len(table), first_row)
        else:
            texts = key_text(table[self.given.chosen], self.given.chosen, first_row)
            picked = _by_id(texts, arms, rows) if self._by_id else _by_place(texts, lengths)
            self._check_picks(picked, texts, rows, lengths, arms, first_row)
        features = {one: _plain(entries[one], one) for one in self.features}
        if self.given.slate is not None:
            features[self.given.slate] = entries[self.given.slate]
        return Layer(rows, None if arms is None else as_ids(arms), picked, features)

    def _check_picks(
        self, picked: NDArray[np.bool_], texts: Any, rows: Index, lengths: Index, arms: Any, first_row: int
    ) -> None:
        """Every row picks one of its candidates."""
        counts = np.bincount(rows[picked], minlength=len(lengths))
        wrong = np.flatnonzero(counts != 1)
        if not len(wrong):
            return
        row = int(wrong[0])
        said = f"column {self.given.chosen!r}, {place(first_row + row)} is {texts[row].as_py()[:40]!r}"
        if not self._by_id:
            raise InputError(f"{said}, but the row has {lengths[row]} candidates: positions count from 0")
        here = arms.slice(int(lengths[:row].sum()), int(lengths[row])).to_pylist()
        raise InputError(f"{said}, the id of {counts[row] or 'none'} of the row's candidates: {some_of(here)}")

    def _check_fields(self, entries: Any, rows: Index, first_row: int, used: Sequence[str]) -> None:
        """Every candidate has every field that is used."""
        import pyarrow.compute as pc

        for one in used:
            if one not in entries:
                raise InputError(f"the candidates from {place(first_row)} on have no {one!r}: write it in all of them")
            at = pc.index(pc.is_null(entries[one], nan_is_null=True), value=True).as_py()
            if at >= 0:
                row = int(rows[at])
                number = at - int(np.searchsorted(rows, row)) + 1
                raise InputError(
                    f"{one!r} of candidate {number} in {place(first_row + row)} is missing: fill it in or leave the "
                    "round out"
                )

    def _flagged(self, values: Any, rows: Index, n_rows: int, first_row: int) -> NDArray[np.bool_]:
        """Which candidates are picked, by a field of theirs: one, or those of a slate."""
        import pyarrow as pa

        if self._flag == self.given.slate:
            return np.zeros(len(rows), dtype=bool)
        if not is_number(values.type):
            raise InputError(f"{self._flag!r} of the candidates holds {values.type}: write 0 and 1, or true and false")
        found = np.asarray(values.cast(pa.float64()))
        odd = np.flatnonzero((found != 0) & (found != 1))
        if len(odd):
            at = place(first_row + int(rows[odd[0]]))
            raise InputError(f"{self._flag!r} of a candidate in {at} is {found[odd[0]]:g}: write 0 and 1")
        picked = np.asarray(found == 1)
        if self.given.slate is None:
            one_pick(picked, rows, n_rows, first_row, str(self._flag))
        return picked


def _by_id(texts: Any, arms: Any, rows: Index) -> NDArray[np.bool_]:
    """Which candidates have the id that their row picks."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return np.asarray(pc.equal(arms, texts.take(pa.array(rows))))


def _by_place(texts: Any, lengths: Index) -> NDArray[np.bool_]:
    """Which candidates are at the position that their row picks; none if the position is out of range."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = np.asarray(pc.match_substring_regex(texts, "^[0-9]{1,9}$"))
    places = np.asarray(pc.if_else(pa.array(whole), texts, "0").cast(pa.int64()))
    fits = whole & (places < lengths)
    picked = np.zeros(int(lengths.sum()), dtype=bool)
    starts = np.cumsum(lengths) - lengths
    picked[(starts + places)[fits]] = True
    return picked


def _exploded(column: Any, name: str, first_row: int, ids: frozenset[str]) -> tuple[Index, dict[str, Any]]:
    """How many candidates every row has, and their fields, all rows one after the other."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if is_text(values.type):
        values = _from_json(values, name, first_row, ids)
    if not _is_objects(values.type):
        raise InputError(
            f"column {name!r} holds {str(values.type)[:60]}: candidates are lists of objects, as such or as JSON"
        )
    lengths = np.asarray(pc.fill_null(pc.list_value_length(values), 0)).astype(np.int64)
    empty = np.flatnonzero(lengths == 0)
    if len(empty):
        raise InputError(f"column {name!r}, {place(first_row + int(empty[0]))} has no candidate: leave the round out")
    entries = values.flatten()
    gap = pc.index(entries.is_null(), value=True).as_py()
    if gap >= 0:
        row = int(np.searchsorted(np.cumsum(lengths), gap, side="right"))
        raise InputError(f"column {name!r}, {place(first_row + row)} has a candidate that is null: leave it out")
    return lengths, _flat(entries, "")


def _flat(entries: Any, prefix: str) -> dict[str, Any]:
    """Fields of objects; those of objects within them as `outer.inner`."""
    import pyarrow as pa

    found: dict[str, Any] = {}
    for field, values in zip(entries.type, entries.flatten(), strict=True):
        name = prefix + field.name
        if pa.types.is_struct(field.type):
            found |= _flat(values, f"{name}.")
        else:
            # Little can be done with views of text and with dictionaries.
            found[name] = values.cast(pa.string()) if is_text(field.type) else values
    return found


def _fields(entries: dict[str, Any]) -> dict[str, Any]:
    """Types of the fields that can be used; lists within candidates cannot."""
    return {name: values.type for name, values in entries.items() if not is_list(values.type)}


def _plain(values: Any, name: str) -> Any:
    """Numbers as fractions, so that later ones fit; text as it is."""
    import pyarrow as pa

    if is_number(values.type) and not pa.types.is_boolean(values.type):
        return values.cast(pa.float64()) if not pa.types.is_float32(values.type) else values
    if is_text(values.type) or pa.types.is_boolean(values.type):
        return values
    raise InputError(f"{name!r} of the candidates holds {str(values.type)[:60]}: write numbers or text")


def _from_json(values: Any, name: str, first_row: int, ids: frozenset[str]) -> Any:
    """Lists that are written as JSON text."""
    import pyarrow as pa

    found: list[Any] = []
    for row, text in enumerate(values.to_pylist()):
        at = place(first_row + row)
        if text is None:
            raise InputError(f"column {name!r}, {at} is missing: fill it in or leave the round out")
        try:
            entry = parsed(text.encode(), object_pairs_hook=_once)
        except InputError as error:
            raise InputError(f"column {name!r}, {at} {error}") from error
        except ValueError as error:
            raise InputError(f"column {name!r}, {at} is not JSON ({one_line(error)}): correct it") from error
        if not (isinstance(entry, list) and all(isinstance(one, dict) for one in entry)):
            raise InputError(f"column {name!r}, {at} is not a list of objects: write [{{...}}, ...]")
        found.append(entry)
    try:
        return pa.array([[_floats(one, ids) for one in entry] for entry in found])
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise _mixed(found, name, first_row, error) from error


def _mixed(found: list[list[dict[str, Any]]], name: str, first_row: int, error: Exception) -> InputError:
    """The error where Arrow finds no common type: it names the first row whose type differs from those before."""
    kinds: dict[str, type] = {}
    for row, entry in enumerate(found):
        for key, value in (pair for one in entry for pair in one.items()):
            kind = float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)
            if value is not None and kinds.setdefault(key, kind) is not kind:
                return InputError(
                    f"column {name!r}, {place(first_row + row)} has {str(value)[:40]!r} as {key[:40]!r}, which is of "
                    "another kind before: make them one kind"
                )
    return InputError(f"column {name!r} cannot be read as candidates ({one_line(error)}): make fields one kind")


def _floats(one: dict[str, Any], ids: frozenset[str]) -> dict[str, Any]:
    """Numbers as fractions where they may be features: a list must not mix whole numbers and others."""
    return {
        key: float(value) if isinstance(value, int) and not isinstance(value, bool) and key not in ids else value
        for key, value in one.items()
    }


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InputError("has a key twice in one object: write it once")
    return found
