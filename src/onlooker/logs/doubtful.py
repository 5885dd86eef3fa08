"""Numeric columns that are not features although they look like them: ids, times, probabilities of the picks.

The name raises a suspicion and the first rows confirm it; some columns need no name. What is left out is named in a
warning, which says how to keep it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.errors import ColumnsLeftOutWarning, warn
from onlooker.base.types import Index, Vector
from onlooker.logs.columns import Columns, no_features
from onlooker.logs.encoding import is_number
from onlooker.logs.grouping import group_rounds
from onlooker.logs.timestamps import may_be_time

_HEAD_ROWS, _HEAD_VALUES = 1 << 16, 1 << 22
"""Rows and values that are examined: 32 MB of a wide table."""
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
"""Words of a name, separated by signs or by capitals."""
_IDS = frozenset(
    {"id", "ids", "uid", "uuid", "guid", "pk", "key", "hash", "token", "idx", "index", "row", "rownum", "seq"}
)
"""Last words of the names of ids."""
_PERSONS = frozenset(
    {
        *("user", "visitor", "customer", "client", "member", "account", "household", "person", "respondent", "subject"),
        *("patient", "player", "shopper", "buyer", "guest", "viewer", "reader", "driver", "rider", "device", "cookie"),
        *("session", "request", "impression", "event", "trace", "query", "order", "transaction", "ticket", "visit"),
    }
)
"""Names of what a number can only identify, not measure; ids where they do not vary within rounds."""
_CHANCES = frozenset(
    {"p", "pi", "prob", "probs", "probability", "probabilities", "propensity", "propensities", "pscore", "chance"}
)
_LOGS = frozenset({"logp", "logprob", "logprobs", "logpi", "logpropensity"})
_LEAST_ROUNDS = 10
"""Rounds with a choice below which chance alone may make numbers add up to 1, or differ in every round."""
_ROUNDED = 0.011
"""How far probabilities of a round may be from adding up to 1: some were rounded to two or three digits."""


def words_of(name: str) -> list[str]:
    """Words of a column's name, in small letters.

    Examples
    --------
    >>> words_of("userId"), words_of("p_show"), words_of("SESSION-ID2")
    (['user', 'id'], ['p', 'show'], ['session', 'id', '2'])
    """
    return [word.lower() for word in _PARTS.findall(name)]


def is_id_name(name: str) -> bool:
    """Whether a name is that of an id.

    Examples
    --------
    >>> [is_id_name(name) for name in ("user_id", "itemID", "max_bid", "paid", "valid")]
    [True, True, False, False, False]
    """
    words = words_of(name)
    return bool(words) and words[-1] in _IDS


def is_chance_name(name: str) -> bool:
    """Whether a name is that of a probability.

    Examples
    --------
    >>> [is_chance_name(name) for name in ("p_show", "displayProb", "propensity2", "price", "pages")]
    [True, True, True, False, False]
    """
    words = words_of(name)
    return not {*words}.isdisjoint(_CHANCES) or "".join(words) in _CHANCES


@dataclass(frozen=True, eq=False)
class _Rounds:
    """First rounds of a table."""

    order: Index
    offsets: Index

    @property
    def choices(self) -> NDArray[np.bool_]:
        """Which rounds offer several arms."""
        return np.asarray(np.diff(self.offsets) > 1)

    @property
    def n_choices(self) -> int:
        """How many do."""
        return int(np.count_nonzero(self.choices))

    def same(self, values: Vector) -> bool:
        """Whether no round that offers a choice has different values."""
        inner = values[self.order]
        low, high = (one.reduceat(inner, self.offsets[:-1]) for one in (np.minimum, np.maximum))
        return bool(self.n_choices) and bool((low == high)[self.choices].all())

    def apart(self, values: Vector) -> bool:
        """Whether no two rounds begin with the same value."""
        firsts = values[self.order][self.offsets[:-1]]
        return len(np.unique(firsts)) == len(firsts)

    def add_up(self, values: Vector) -> bool:
        """Whether the values of every round that offers a choice add up to 1, give or take what was rounded."""
        sums = np.add.reduceat(values[self.order], self.offsets[:-1])
        return bool((np.abs(sums[self.choices] - 1) < _ROUNDED).all())


def head_rows(n_columns: int) -> int:
    """How many rows to examine, given the number of columns.

    A scan sees no more of a file before it decides, so a table in memory is judged by them too, and both find the same
    features.
    """
    return min(_HEAD_ROWS, max(1000, _HEAD_VALUES // max(1, n_columns)))


def doubtful(head: Any, columns: Columns, names: Sequence[str]) -> dict[str, str]:
    """Columns that are not features, judged by the first rows, and what they are instead.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"round": [1, 1, 2, 2], "user_id": [7, 7, 9, 9], "p_show": [0.2, 0.8, 0.5, 0.5]})
    >>> doubtful(table.append_column("price", [[3.0, 4.0, 5.0, 4.0]]), Columns(), ["user_id", "p_show", "price"])
    {'user_id': 'an id', 'p_show': 'a probability'}
    """
    kept = {*(columns.named or ()), *(columns.categories or ())}
    free = [name for name in names if name not in kept]
    numbers = [name for name in free if is_number(head.schema.field(name).type)]
    texts = [name for name in free if name in columns.crossed and name not in numbers]
    keys = [name for name in (columns.by, columns.round) if name is not None]
    if not (numbers or texts) or not len(head) or any(head[key].null_count for key in keys):
        return {}
    rounds = _rounds(head, keys, cut=len(head) >= head_rows(len(names)))
    found = {name: _what(name, _values(head[name]), rounds, crossed=name in columns.crossed) for name in numbers}
    found |= {name: "a time" for name in numbers if not found[name] and may_be_time(name, head.schema.field(name).type)}
    found |= {name: _SHARED for name in texts if rounds.same(_codes(head[name]))}
    return {name: what for name, what in found.items() if what}


def _rounds(head: Any, keys: Sequence[str], *, cut: bool) -> _Rounds:
    import pyarrow as pa

    arrays = [head[key].combine_chunks() for key in keys]
    plain = [one.dictionary_decode() if pa.types.is_dictionary(one.type) else one for one in arrays]
    grouping = group_rounds(plain)
    order = np.arange(len(head)) if grouping.order is None else grouping.order
    offsets = grouping.offsets
    # The last round may go on beyond the head.
    offsets = offsets[:-1] if len(offsets) > 2 and cut else offsets
    return _Rounds(order[: offsets[-1]], offsets)


def _codes(column: Any) -> Vector:
    """A number for every different text."""
    import pyarrow as pa

    array = column.combine_chunks()
    coded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    return np.asarray(coded.indices.cast(pa.float64()).fill_null(-1.0))


def _values(column: Any) -> Vector:
    import pyarrow as pa

    return np.asarray(column.cast(pa.float64()).fill_null(np.nan))


def _what(name: str, values: Vector, rounds: _Rounds, *, crossed: bool) -> str:
    """What a column is instead of a feature; empty where it is one. Most columns are recognised quickly."""
    low, high = float(values.min()), float(values.max())
    if not np.isfinite([low, high]).all():
        return ""
    if crossed and rounds.same(values):
        return _SHARED
    some = values[:_LEAST_ROUNDS]
    if high - low > 1 and (some == np.floor(some)).all() and (values == np.floor(values)).all():
        return "an id" if is_id_name(name) or _is_of_rounds(name, values, rounds) else ""
    return "a probability" if _is_chance(name, values, rounds, low, high) else ""


_SHARED = "used in products only"


def _is_of_rounds(name: str, values: Vector, rounds: _Rounds) -> bool:
    """Whether whole numbers identify a round: all its arms have the same, and a name says so, or no two rounds do."""
    if rounds.n_choices < _LEAST_ROUNDS or not rounds.same(values):
        return False
    return not _PERSONS.isdisjoint(words_of(name)[-1:]) or rounds.apart(values)


def _is_chance(name: str, values: Vector, rounds: _Rounds, low: float, high: float) -> bool:
    words = words_of(name)
    if high <= 0 and not {*words, "".join(words)}.isdisjoint(_LOGS):
        return True
    if low < 0 or high > 1 or not ((values > 0) & (values < 1)).any():
        return False
    return is_chance_name(name) or (rounds.n_choices >= _LEAST_ROUNDS and rounds.add_up(values))


def without_doubtful(head: Any, columns: Columns, names: Sequence[str]) -> list[str]:
    """The other columns; those that are left out are named in a warning that says how to keep them."""
    found = doubtful(head, columns, names)
    kept = [name for name in names if name not in found]
    if not kept and not columns.cross:
        raise no_features(columns, list(found))
    named = [f"{name!r} ({what})" for name, what in found.items() if what != _SHARED]
    if named:
        shown = ", ".join(named[:12]) + (f" and {len(named) - 12} more" if len(named) > 12 else "")
        message = f"not taken for features: {shown}; to keep one, name all features with `features`"
        warn(message, ColumnsLeftOutWarning)
    return kept
