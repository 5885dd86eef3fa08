"""Wide tables: one row per round, each arm's features in separate columns, such as `arm1_price`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.errors import InputError
from onlooker.base.text import some_of
from onlooker.logs.columns import Columns, is_outcome
from onlooker.logs.encoding import is_number, is_text, place
from onlooker.logs.row_shape import Layer, RowShape, as_ids, key_text, one_pick

_WORD = "arm|alternative|alt|option|action|item|candidate|choice|product|offer|slot"
"""What arms are called in front of or behind their numbers."""
_SEP = r"[_.\- ]"
_PREFIX = re.compile(rf"(?P<word>[A-Za-z]*){_SEP}?(?P<arm>\d+){_SEP}(?P<feature>.*\D.*)")
"""As in `arm1_price`."""
_SUFFIX = re.compile(rf"(?P<feature>\D.*?){_SEP}?(?P<word>(?:{_WORD})?){_SEP}?(?P<arm>\d+)", re.IGNORECASE)
"""As in `price_1` or `price_arm1`."""
_AVAILABLE = frozenset({"av", "avail", "available", "availability", "offered"})
"""Features of 0 and 1 that say whether an arm was offered."""

Grid = dict[str, dict[str, str]]
"""Column of every feature by arm, then by feature; arms in the order of the table."""


@dataclass(frozen=True)
class _Named:
    """Columns whose names speak of arms."""

    grid: Grid
    words: Mapping[str, str]
    """How the arm is written in the names, by label."""
    sure: bool = True
    """Whether the names say that these are arms, or whether they are just numbered alike."""


def find_wide(names: Sequence[str], columns: Columns, picks: Sequence[str] | None = None) -> Wide | None:
    """The arms that the columns' names speak of; None where they speak of none.

    `columns.wide` is the pattern of the names; without it arms are numbered, or called as the `picks` are.

    Examples
    --------
    >>> found = find_wide(["arm1_price", "arm2_price", "chosen"], Columns())
    >>> found.arms, found.features
    (['1', '2'], ['price'])
    >>> found = find_wide(["price_car", "price_bus", "chosen"], Columns(wide="{feature}_{arm}"))
    >>> found.arms
    ['car', 'bus']
    """
    keys = {columns.round, columns.order_by, columns.by, columns.chosen}
    free = [name for name in names if name not in keys]
    if columns.wide is not None:
        found = _by_pattern(free, columns.wide)
        if found is None:
            raise InputError(f"no column is called like {columns.wide!r}: the table has {some_of(names)}")
    else:
        found = numbered(free) or _called(free, picks or ())
    if found is None or (len(found.grid) < 2 and columns.wide is None):
        return None
    return Wide(names, columns, found)


def _by_pattern(names: Sequence[str], pattern: str) -> _Named | None:
    if pattern.count("{arm}") != 1 or pattern.count("{feature}") != 1:
        raise InputError(f"option 'wide' is {pattern!r}: write the columns' names with {{arm}} and {{feature}} in them")
    expression = re.escape(pattern).replace(r"\{arm\}", "(?P<arm>.+?)").replace(r"\{feature\}", "(?P<feature>.+)")
    return _gathered(names, re.compile(expression))


def _gathered(names: Sequence[str], expression: re.Pattern[str], word: str | None = None) -> _Named | None:
    """Columns that an expression parts into arm and feature; with `word` only those that call arms so."""
    grid: Grid = {}
    words: dict[str, str] = {}
    for name in names:
        found = expression.fullmatch(name)
        if found is None or (word is not None and found["word"].lower() != word):
            continue
        label = str(int(found["arm"])) if found["arm"].isdecimal() and found["arm"] == str(int(found["arm"])) else None
        arm = found["arm"] if label is None else label
        grid.setdefault(arm, {})[found["feature"]] = name
        words[arm] = (word or "") + found["arm"]
    return _Named(grid, words) if grid else None


def numbered(names: Sequence[str]) -> _Named | None:
    """Arms with numbers: after a word for arms one feature is enough, else there are two, and every arm has each."""
    known = set(_WORD.split("|"))
    for expression in (_PREFIX, _SUFFIX):
        words = dict.fromkeys(one["word"].lower() for name in names if (one := expression.fullmatch(name)))
        for word in sorted(words, key=lambda one: one not in known):
            found = _gathered(names, expression, word)
            if found is None or len(found.grid) < 2:
                continue
            sets = [set(features) for features in found.grid.values()]
            complete = all(one == sets[0] for one in sets)
            sure = word in known
            if sure or (complete and len(sets[0]) > 1):
                return replace(found, sure=sure)
    return None


def _called(names: Sequence[str], picks: Sequence[str]) -> _Named | None:
    """Arms called as in the picks: all that have the columns that every picked arm has."""
    labels = list(dict.fromkeys(picks))
    if not labels or any(label.lstrip("-").isdecimal() for label in labels):
        return None
    for sep in ("_", ".", "-", ":", " ", "__"):
        for front in (True, False):
            split = list(_splits(names, sep, front=front))
            common = set.intersection(*({f for a, f, _ in split if a == label} for label in labels))
            if not common:
                continue
            every: Grid = {}
            for arm, feature, name in split:
                if feature in common:
                    every.setdefault(arm, {})[feature] = name
            grid = {arm: cells for arm, cells in every.items() if len(cells) == len(common)}
            return _Named(grid, {})
    return None


def _splits(names: Sequence[str], sep: str, *, front: bool) -> Iterator[tuple[str, str, str]]:
    """Every way to part the names at a separator: arm, feature and the name itself."""
    for name in names:
        at = name.find(sep)
        while at > 0:
            left, right = name[:at], name[at + len(sep) :]
            if right:
                yield (left, right, name) if front else (right, left, name)
            at = name.find(sep, at + 1)


def distinct_picks(column: Any, name: str) -> list[str]:
    """Different values of a column that names arms, gaps aside."""
    import pyarrow.compute as pc

    found = column.drop_null()
    if is_text(found.type):
        found = found.filter(pc.not_equal(found, ""))
    return list(key_text(found.unique(), name, 0).to_pylist())


class Wide(RowShape):
    """A table with columns of every arm; an arm whose columns are all missing was not offered in that round."""

    name = "wide"
    has_arms = True

    def __init__(self, names: Sequence[str], columns: Columns, found: _Named) -> None:
        self.grid, self._words, self.sure = found.grid, found.words, found.sure
        self.arms = list(found.grid)
        self.most_arms = len(self.arms)
        every = list(dict.fromkeys(feature for cells in self.grid.values() for feature in cells))
        super().__init__([*names, *(one for one in every if one not in names)], columns)
        columns = self.given
        if columns.slate is not None:
            raise InputError("a wide table has one pick per row: write slates as a long table, or as candidates")
        self._flag = columns.chosen if columns.chosen not in names and columns.chosen in every else None
        self._offered = next((one for one in every if one.lower() in _AVAILABLE), None)
        special = {self._flag, self._offered}
        wanted = columns.named
        self.features = [
            one
            for one in every
            if one not in special and not is_outcome(one) and (wanted is None or one in {*wanted, *columns.crossed})
        ]
        for arm, cells in self.grid.items():
            absent = next((one for one in [*self.features, *filter(None, special)] if one not in cells), None)
            if absent is not None:
                raise InputError(f"arm {arm!r} has no column for {absent!r}: add one, or name the features")
        if self._flag is None and columns.chosen not in names:
            raise InputError(
                f"the table has no column {columns.chosen!r}: it has {some_of(names)}; name it as `chosen`"
            )
        used = [*self.features, *filter(None, special)]
        self.needed = [cells[one] for cells in self.grid.values() for one in used]
        if self._flag is None:
            self.needed.append(columns.chosen)
        self._from_zero = False
        self.settle([name for name in names if not any(name in cells.values() for cells in self.grid.values())])

    @property
    def assumed(self) -> str:
        """The assumptions, as reported to users."""
        from_zero = ", picks count from 0" if self._from_zero else ""
        offered = f", offered where {self._offered!r} is 1" if self._offered is not None else ""
        return f"wide: a row is a round, arms {some_of(self.arms)}{from_zero}{offered}"

    def knows(self, picks: Sequence[str]) -> bool:
        """Whether all picks are arms, by their names or counted from 0."""
        by_name = {*self.arms, *self._words.values()}
        return {*picks} <= by_name or {*picks} <= {str(k) for k in range(len(self.arms))}

    def see_picks(self, table: Any) -> None:
        """Decide by the first rows whether picks are numbers of arms that begin with 1, or count from 0."""
        if self._flag is not None:
            return
        picks = {*distinct_picks(table[self.given.chosen], self.given.chosen)}
        numbers = [str(one + 1) for one in range(len(self.arms))]
        self._from_zero = self.arms == numbers and "0" in picks and numbers[-1] not in picks

    def layer(self, table: Any, first_row: int) -> Layer:
        """The offered arms of some rows."""
        import pyarrow as pa

        offered = self._offers(table, first_row)
        rows, arms = np.nonzero(offered)
        order = pa.array(arms * len(table) + rows)
        features = {one: self._stacked(table, one, first_row).take(order) for one in self.features}
        if self._flag is not None:
            flags = self._flags(table, self._flag, first_row)
            self._check_offered(table, flags.argmax(axis=1), offered | ~flags.any(axis=1, keepdims=True), first_row)
            one_pick(flags[rows, arms], rows, len(table), first_row, self._flag)
        else:
            picks = self._picks(table, first_row)
            self._check_offered(table, picks, offered, first_row)
            flags = np.zeros(offered.shape, dtype=bool)
            flags[np.arange(len(table)), picks] = True
        return Layer(rows, as_ids(pa.array(self.arms)).take(pa.array(arms)), flags[rows, arms], features)

    def _offers(self, table: Any, first_row: int) -> NDArray[np.bool_]:
        """Which arm was offered in which row, shape (rows, arms)."""
        import pyarrow.compute as pc

        offered = np.ones((len(table), len(self.arms)), dtype=bool)
        if self._offered is not None:
            return self._flags(table, self._offered, first_row)
        for k, (arm, cells) in enumerate(self.grid.items()):
            names = [cells[one] for one in self.features]
            gaps = np.column_stack([np.asarray(pc.is_null(table[name], nan_is_null=True)) for name in names])
            offered[:, k] = ~gaps.all(axis=1)
            partly = np.flatnonzero(offered[:, k] & gaps.any(axis=1))
            if len(partly):
                row = int(partly[0])
                raise InputError(
                    f"column {names[int(gaps[row].argmax())]!r}, {place(first_row + row)} is missing, but other "
                    f"columns of arm {arm!r} are not: fill it in, or empty them all if it was not offered"
                )
        none = np.flatnonzero(~offered.any(axis=1))
        if len(none):
            raise InputError(f"{place(first_row + int(none[0]))} offers no arm: leave the round out")
        return offered

    def _flags(self, table: Any, feature: str, first_row: int) -> NDArray[np.bool_]:
        """Columns of 0 and 1, one per arm; a gap is a 0."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found = []
        for cells in self.grid.values():
            column = table[cells[feature]]
            if not (is_number(column.type) or pa.types.is_null(column.type)):
                raise InputError(f"column {cells[feature]!r} holds {column.type}: write 0 and 1")
            values = np.asarray(pc.fill_null(column.cast(pa.float64()), 0.0))
            odd = np.flatnonzero((values != 0) & (values != 1) & ~np.isnan(values))
            if len(odd):
                at = place(first_row + int(odd[0]))
                raise InputError(f"column {cells[feature]!r}, {at} is {values[odd[0]]:g}: write 0 and 1")
            found.append(values == 1)
        return np.column_stack(found)

    def _picks(self, table: Any, first_row: int) -> NDArray[np.int64]:
        """Position of every row's pick among the arms."""
        known = {str(k): k for k in range(len(self.arms))}
        if not self._from_zero:
            known = {self._words.get(arm, arm): k for k, arm in enumerate(self.arms)}
            known |= {arm: k for k, arm in enumerate(self.arms)}
        chosen = self.given.chosen
        coded = key_text(table[chosen], chosen, first_row).dictionary_encode()
        texts, codes = coded.dictionary.to_pylist(), np.asarray(coded.indices)
        places = np.array([known.get(text, -1) for text in texts], dtype=np.int64)[codes]
        unknown = np.flatnonzero(places < 0)
        if len(unknown):
            row = int(unknown[0])
            names = some_of([str(k) for k in range(len(self.arms))] if self._from_zero else self.arms)
            raise InputError(
                f"column {chosen!r}, {place(first_row + row)} is {texts[codes[row]][:40]!r}, which is not an arm: "
                f"the arms are {names}"
            )
        return np.asarray(places)

    def _check_offered(self, table: Any, picks: NDArray[np.int64], offered: NDArray[np.bool_], first_row: int) -> None:
        hidden = np.flatnonzero(~offered[np.arange(len(table)), picks])
        if len(hidden):
            row = int(hidden[0])
            raise InputError(
                f"{place(first_row + row)} picks arm {self.arms[picks[row]]!r}, which was not offered: its columns "
                "are missing; fill them in or leave the round out"
            )

    def _stacked(self, table: Any, feature: str, first_row: int) -> Any:
        """The feature of all arms, one arm after the other."""
        import pyarrow as pa

        columns = [table[cells[feature]].combine_chunks() for cells in self.grid.values()]
        plain = [one.dictionary_decode() if pa.types.is_dictionary(one.type) else one for one in columns]
        kinds = {one.type for one in plain if not pa.types.is_null(one.type)}
        if len(kinds) > 1 and not all(map(is_number, kinds)):
            raise self._unlike(table, feature, first_row)
        kind = kinds.pop() if len(kinds) == 1 else pa.float64()
        return pa.concat_arrays([one.cast(kind) for one in plain])

    def _unlike(self, table: Any, feature: str, first_row: int) -> InputError:
        """The error for a feature that is numbers for some arms and text for others; it names the first text."""
        for cells in self.grid.values():
            column = table[cells[feature]]
            if not is_text(column.type):
                continue
            for row, value in enumerate(column.to_pylist()):
                if value is not None and not _is_number_text(value):
                    return InputError(
                        f"column {cells[feature]!r}, {place(first_row + row)} is {value[:40]!r}, not a number as for "
                        "other arms: make the arms' columns alike"
                    )
        return InputError(f"the arms' columns for {feature!r} are of different kinds: make them alike")


def _is_number_text(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
