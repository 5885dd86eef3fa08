"""Times and numbers of rounds: parsed, and checked for their order."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.errors import InputError, RoundsOutOfOrderWarning, TimesOutOfOrderWarning, warn
from onlooker.logs.encoding import is_text, place

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAMES = frozenset({"ts", "timestamp", "datetime", "epoch", "unixtime", "unix_time", "event_time", "created_at"})
"""What columns of times are called, in small letters; a `time` of numbers may as well be how long a trip takes."""
_POINTS = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?:[ T,]+(\d{1,2})(:\d\d.*))?", re.ASCII)
"""A date as it is written from Lisbon to Moscow, and a time of day."""
_MANY = 10
"""Rounds from which on consecutive numbers are not a coincidence."""
_WHOLE = "^([0-9]{1,18}|-[0-9]{1,17})$"
"""Whole numbers that fit into 64 bits."""
_YEAR_ONE = -62_135_596_800_000_000
"""Microseconds at the first moment that Python has: Arrow also reads a year 0, which is what blanks are filled with."""


def moment(text: str) -> datetime:
    """Parse a time of ISO 8601, or one with points, which begins with the day; one without a zone is UTC.

    Examples
    --------
    >>> moment("2024-01-14T08:17+01:00") < moment("2024-01-14 08:17")
    True
    >>> moment("1.2.2024 8:17") == moment("2024-02-01T08:17")
    True
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        found = _POINTS.fullmatch(text.strip())
        if found is None:
            raise
        day, month, year, hour, rest = found.groups()
        time = datetime.fromisoformat(f"{year}-{month:0>2}-{day:0>2}" + (f"T{hour:0>2}{rest}" if hour else ""))
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


def as_times(values: NDArray[Any], name: str, first_row: int = 0, where: Callable[[int], str] = place) -> NDArray[Any]:
    """Times that can be put in order: text becomes whole numbers where all of it is, else moments in UTC.

    Examples
    --------
    >>> as_times(np.array(["9", "10"], dtype=object), "time")
    array([ 9, 10])
    >>> as_times(np.array(["2024-01-14", "2024-01-13T23:00-02:00"], dtype=object), "time").argsort()
    array([0, 1])
    """
    if values.dtype.kind not in "OU" or not len(values) or not isinstance(values[0], str):
        return values
    import pyarrow as pa

    texts = pa.array(values, pa.large_string())
    if _whole(texts):
        return values.astype(np.int64)
    times = microseconds(texts)
    if times.null_count:
        row = times.is_null().index(True).as_py()
        raise InputError(
            f"column {name!r}, {where(first_row + row)} is {values[row][:40]!r}, which says no order: "
            "write times as ISO 8601, such as 2024-05-01T10:00:00Z, or as numbers"
        )
    return np.asarray(times).astype("datetime64[us]")


def microseconds(texts: Any) -> Any:
    """Microseconds since 1970 for each entry of an Arrow array of text, null where an entry is not a time.

    Arrow reads nearly all times, if every one of them has a zone or none does; `moment` reads the others.

    Examples
    --------
    >>> import pyarrow as pa
    >>> microseconds(pa.array(["1970-01-01T00:00:01Z", "2.1.1970", "soon"])).to_pylist()
    [1000000, 86400000000, None]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for unit, zone in itertools.product(("us", "ns"), ("UTC", None)):
        kind = pa.timestamp(unit, zone)
        # The first one decides: Arrow takes twenty times as long over texts that it cannot read.
        try:
            texts[:1].cast(kind)
        except pa.ArrowInvalid:
            continue
        try:
            times = texts.cast(kind).cast(pa.int64())
        except pa.ArrowInvalid:
            break
        least, scale = (_YEAR_ONE, 1) if unit == "us" else (0, 1000)
        if len(times) == times.null_count or pc.min(times).as_py() >= least:
            return pc.divide(times, scale)
    different = texts.dictionary_encode()
    known = [None if text is None else _microseconds(text) for text in different.dictionary.to_pylist()]
    return pa.array(known, pa.int64()).take(different.indices)


def check_one_kind(times: NDArray[Any], before: NDArray[Any], name: str) -> None:
    """Refuse numbers after moments, and moments after numbers: parts of a column are judged one by one."""
    if (times.dtype.kind == "M") != (before.dtype.kind == "M"):
        raise InputError(f"column {name!r} mixes numbers and times ({before[-1]}, {times[0]}): write all of one kind")


class Falls:
    """Whether a column of times decreases, examined part by part; one that holds no times never does.

    Examples
    --------
    >>> import pyarrow as pa
    >>> falls = Falls()
    >>> falls.see(pa.array(["2024-01-14", "2024-01-13"]))
    >>> falls.found
    True
    """

    def __init__(self) -> None:
        self.found = False
        self._last: Any = None
        self._watching = True

    def see(self, column: Any) -> None:
        """Update with the next times, an Arrow array."""
        times = _times(column) if self._watching and not self.found else np.zeros(0, dtype=np.int64)
        if times is None:
            self._watching = self.found = False
        elif len(times):
            self.found = bool((times[1:] < times[:-1]).any()) or (self._last is not None and times[0] < self._last)
            self._last = times[-1]


def counts(width: int, rounds: int) -> bool:
    """Whether ids are consecutive numbers of the rounds, by the range of the ids and the number of rounds."""
    return rounds >= _MANY and width < 2 * rounds


class Counts:
    """Whether rounds are numbered one after the other and yet out of order, examined part by part.

    Ids that are scattered widely, or are not whole numbers, are ignored. With `text` they are written as text.

    Examples
    --------
    >>> import pyarrow as pa
    >>> found = []
    >>> for ids in (range(20), range(20, 0, -1), map(str, range(20, 0, -1)), range(2000, 0, -100)):
    ...     seen = Counts(text=True)
    ...     seen.see(pa.array(ids))
    ...     found.append(seen.found)
    >>> found
    [False, True, True, False]
    """

    def __init__(self, *, text: bool = False) -> None:
        self._fell, self._watching, self._text = False, True, text
        self._ends: tuple[int, int] | None = None
        self._last: int | None = None
        self._rounds = 0

    @property
    def found(self) -> bool:
        """Whether they are."""
        if not (self._fell and self._watching) or self._ends is None:
            return False
        return counts(self._ends[1] - self._ends[0], self._rounds)

    def see(self, column: Any) -> None:
        """Update with the ids of the next rows, an Arrow array; the rows of a round are next to each other."""
        import pyarrow as pa

        known = column.drop_null()
        if self._text and is_text(known.type) and self._watching:
            try:
                known = known.cast(pa.int64())
            except pa.ArrowInvalid:
                self._watching = False
        self._watching = self._watching and pa.types.is_integer(known.type)
        if not (self._watching and len(known)):
            return
        ids = np.asarray(known)
        # Not by differences, which can be too large for their kind.
        after, before = ids[1:], ids[:-1]
        self._fell = self._fell or bool((after < before).any()) or (self._last is not None and int(ids[0]) < self._last)
        self._rounds += int(np.count_nonzero(after != before)) + (int(ids[0]) != self._last)
        least, most = self._ends or (int(ids[0]), int(ids[0]))
        self._ends = min(least, int(ids.min())), max(most, int(ids.max()))
        self._last = int(ids[-1])


def warn_rounds(name: str) -> None:
    """Warn of rounds whose numbers are out of order."""
    message = (
        f"{name!r} numbers the rounds and is not in order: rounds are taken as they stand unless named as `order_by`"
    )
    warn(message, RoundsOutOfOrderWarning)


def may_be_time(name: str, type: Any) -> bool:
    """Whether a column of an Arrow type may hold times: as such, as text, or as numbers under a name that says so."""
    import pyarrow as pa

    if pa.types.is_integer(type) or pa.types.is_floating(type):
        return name.strip().lower() in _NAMES
    return bool(pa.types.is_timestamp(type) or pa.types.is_date(type) or is_text(type))


def time_beside(schema: Any, taken: Collection[str]) -> str | None:
    """The first column of an Arrow schema, besides those that are taken, whose type or name says that it is a time.

    Examples
    --------
    >>> import pyarrow as pa
    >>> schema = pa.schema({"age": pa.int64(), "note": pa.string(), "when": pa.timestamp("s"), "ts": pa.int64()})
    >>> time_beside(schema, []), time_beside(schema, ["when"]), time_beside(schema, ["when", "ts"])
    ('when', 'ts', None)
    """
    found = (
        one.name
        for one in schema
        if one.name not in taken
        and may_be_time(one.name, one.type)
        and (not is_text(one.type) or one.name.strip().lower() in _NAMES | {"time", "date"})
    )
    return next(found, None)


def falls_in(column: Any, by: Any = None) -> bool:
    """Whether a column of times decreases, for some learner where `by` has that of every row.

    Examples
    --------
    >>> import pyarrow as pa
    >>> times = pa.chunked_array([["2024-01-01", "2024-01-02", "2024-01-01"]])
    >>> falls_in(times), falls_in(times, pa.chunked_array([["a", "a", "b"]]))
    (True, False)
    """
    parts = [column]
    if by is not None:
        codes = np.asarray(by.combine_chunks().dictionary_encode().indices.fill_null(-1))
        order = np.argsort(codes, kind="stable")
        starts = [0, *(np.flatnonzero(np.diff(codes[order])) + 1).tolist(), len(order)]
        parts = [column.take(order[first:last]) for first, last in itertools.pairwise(starts)]
    for part in parts:
        seen = Falls()
        seen.see(part.combine_chunks())
        if seen.found:
            return True
    return False


def warn_falls(names: Sequence[str]) -> None:
    """Warn of times that are out of order and were not given as `order_by`."""
    for name in names:
        message = f"{name!r} looks like a time and is not in order: name it as `order_by`"
        warn(message, TimesOutOfOrderWarning)


def _times(column: Any) -> NDArray[Any] | None:
    """Microseconds since 1970, or the numbers that there are, without the gaps; None where a text is not a time."""
    import pyarrow as pa

    known = column.drop_null()
    if pa.types.is_integer(known.type) or pa.types.is_floating(known.type):
        return np.asarray(known)
    if not is_text(known.type):
        moments = known.cast(pa.timestamp("us", getattr(known.type, "tz", None)), safe=False)
        return np.asarray(moments.cast(pa.int64()))
    texts = known.cast(pa.large_string())
    # Most text is not times: the first value is enough to see that.
    if len(texts) and (_whole(texts[:1]) or microseconds(texts[:1]).null_count):
        return None
    times = microseconds(texts)
    return None if times.null_count else np.asarray(times)


def _whole(texts: Any) -> bool:
    """Whether all texts are whole numbers."""
    import pyarrow.compute as pc

    return bool(pc.all(pc.match_substring_regex(texts, _WHOLE)).as_py())


def _microseconds(text: str) -> int | None:
    try:
        return (moment(text) - _EPOCH) // timedelta(microseconds=1)
    except ValueError:
        return None
