"""Rounds that come again: what they are recognised by, and following those of a log that were not followed before.

A round is recognised by its fingerprint or its id, and by how ids and times run through a log.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.errors import InputError
from onlooker.base.types import Features, Ids, Progress
from onlooker.logs import ragged
from onlooker.logs.categories import Encoding, level_name
from onlooker.logs.layouts import columns
from onlooker.logs.log import BanditLog, as_log
from onlooker.logs.parts import Parts, TakePart

if TYPE_CHECKING:
    from onlooker.observers.tracking.monitor import Monitor
    from onlooker.observers.tracking.seen import Seen

Prints = NDArray[np.uint64]
"""One fingerprint per round."""
Key = int | float | str
"""An id or a time, as it is compared."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""A product with it is one-to-one and spreads bits: the same features under another id get another fingerprint."""
_DIGITS = re.compile(r"([0-9]+)")
_WHOLE = re.compile(r"-?[0-9]{1,18}(\.0+)?")


@dataclass(frozen=True)
class Run:
    """How ids, or times, run through consecutive rounds.

    Examples
    --------
    >>> first, second = Run.of(np.array(["r8", "r9"])), Run.of(np.array(["r10", "r2"]))
    >>> first.then(second)
    Run(kind='text', first='r8', last='r2', rises=2, falls=1)
    """

    kind: str
    """What is compared: `number`, `time` (in microseconds) or `text` (numbers within it by their value)."""
    first: Key
    last: Key
    rises: int = 0
    """How often the later of two neighbours is larger."""
    falls: int = 0
    """How often it is smaller."""

    @classmethod
    def of(cls, values: Ids | None) -> Run | None:
        """Of some values; None where they are none, or have no order."""
        if values is None or not len(values):
            return None
        kind, keys = _keys(values)
        if kind == "none":
            return None
        if isinstance(keys, np.ndarray):
            up, down = keys[1:] > keys[:-1], keys[1:] < keys[:-1]
            return cls(kind, keys[0].item(), keys[-1].item(), int(np.count_nonzero(up)), int(np.count_nonzero(down)))
        pairs = list(pairwise(_natural(key) for key in keys))
        rises, falls = (sum(later > before for before, later in pairs), sum(later < before for before, later in pairs))
        return cls(kind, keys[0], keys[-1], rises, falls)

    def then(self, later: Run) -> Run:
        """Both, one after the other; values of different kinds have no order."""
        rises = self.rises + later.rises + self.is_before(later)
        falls = self.falls + later.falls + (self.kind != later.kind or _key(later.first) < _key(self.last))
        return Run(later.kind, self.first, later.last, rises, falls)

    def is_before(self, later: Run) -> bool:
        """Whether the other begins above the last of this one."""
        return self.kind == later.kind and bool(_key(later.first) > _key(self.last))


def as_spelt(ids: Ids | None) -> Ids | None:
    """Ids that are whole numbers as such, however a file spells them: 5, 5.0 and "005" are the same.

    Examples
    --------
    >>> as_spelt(np.array(["007", "8.0"])), as_spelt(np.array([7.0, 8.0])), as_spelt(np.array(["7", "b"]))
    (array([7, 8]), array([7, 8]), array(['7', 'b'], dtype='<U1'))
    """
    if ids is None or not len(ids):
        return ids
    if ids.dtype.kind == "f" and (np.abs(ids) < 2**53).all() and (ids == np.floor(ids)).all():
        return ids.astype(np.int64)
    if ids.dtype.kind in "OU" and all(isinstance(one, str) and _WHOLE.fullmatch(one) for one in ids.tolist()):
        return np.array([int(one.partition(".")[0]) for one in ids.tolist()])
    return ids


def older(values: Ids | None, before: Run) -> int:
    """How many values are smaller than the last one before; 0 where they do not compare.

    Examples
    --------
    >>> older(np.array([3, 4, 5]), Run.of(np.array([1, 5])))
    2
    """
    values = as_spelt(values)
    if values is None or not len(values):
        return 0
    kind, keys = _keys(values)
    if kind != before.kind:
        return 0
    if isinstance(keys, np.ndarray):
        return int(np.count_nonzero(keys < before.last))
    last = _natural(str(before.last))
    return sum(_natural(key) < last for key in keys)


def _keys(values: Ids) -> tuple[str, NDArray[Any] | list[str]]:
    if values.dtype.kind in "iu":
        return "number", values
    if values.dtype.kind == "f":
        return ("number" if np.isfinite(values).all() else "none"), values
    if values.dtype.kind == "M":
        known = not np.isnat(values).any()
        return ("time" if known else "none"), values.astype("datetime64[us]").astype(np.int64)
    texts = values.tolist()
    return ("text" if all(isinstance(text, str) for text in texts) else "none"), texts


def _key(value: Key) -> Any:
    return _natural(value) if isinstance(value, str) else value


def _natural(text: str) -> tuple[tuple[int, str], ...]:
    """Text cut at its numbers, which compare by their value: r9 before r10."""
    cut = _DIGITS.split(text)
    return tuple(
        (len(part.lstrip("0")), part.lstrip("0")) if place % 2 else (-1, part) for place, part in enumerate(cut)
    )


@dataclass(frozen=True, eq=False)
class Rounds:
    """What consecutive rounds are recognised by.

    Examples
    --------
    >>> log = BanditLog(np.eye(4), offsets=[0, 2, 4], chosen=[0, 1], round_ids=["a", "b"])
    >>> whole, parts = Rounds.of(log), Rounds.joined([Rounds.of(log[:1]), Rounds.of(log[1:])])
    >>> bool((whole.prints == parts.prints).all()), parts.ids
    (True, Run(kind='text', first='a', last='b', rises=1, falls=0))
    """

    prints: Prints
    """Of all that is known of a round: its id, the features of its arms and the pick."""
    names: Prints | None
    """Of its id alone; None without ids."""
    ids: Run | None
    times: Run | None

    @classmethod
    def of(cls, log: BanditLog) -> Rounds:
        """Of a log. Features count as single precision, in which it is the same whichever way it was stored.

        Features that are zero do not count: a round stays the same when later ones bring new features.
        """
        ids = as_spelt(log.round_ids)
        names = None if ids is None else _of_names(ids)
        contents = _of_contents(log)
        return cls(
            prints=contents if names is None else contents * _ODD ^ names,
            names=names,
            ids=Run.of(ids),
            times=Run.of(log.times),
        )

    @property
    def marks(self) -> Prints:
        """What identifies a round: its id, or all of it."""
        return self.prints if self.names is None else self.names

    @classmethod
    def joined(cls, parts: Sequence[Rounds]) -> Rounds:
        """Parts of a log, one after the other."""
        prints = np.concatenate([np.empty(0, dtype=np.uint64), *(part.prints for part in parts)])
        names = [part.names for part in parts if part.names is not None]
        return cls(
            prints=prints,
            names=np.concatenate(names) if names and len(names) == len(parts) else None,
            ids=_through([part.ids for part in parts]),
            times=_through([part.times for part in parts]),
        )


def _through(runs: Sequence[Run | None]) -> Run | None:
    """How values run through all parts; None where some have none."""
    known = [run for run in runs if run is not None]
    return reduce(Run.then, known) if known and len(known) == len(runs) else None


def _of_contents(log: BanditLog) -> Prints:
    """Fingerprint of every round's number of arms, pick and features."""
    from onlooker.kernels.checksums import round_checksums

    found = np.empty(log.n_rounds, dtype=np.uint64)
    for start, stop in ragged.blocks(log.offsets, log.n_features):
        part = log[start:stop]
        with np.errstate(over="ignore"):
            rows = part.dense.astype(np.float32)
        # Adding zero leaves no negative one.
        rows += np.float32(0.0)
        round_checksums(rows.view(np.uint32), part.offsets, part.chosen, found[start:stop])
    return found


def _of_names(ids: Ids) -> Prints:
    """The first 64 bits of a hash of each id."""
    names = (str(name).encode("utf-8", "surrogatepass") for name in ids)
    return np.frombuffer(b"".join(hashlib.sha256(name).digest()[:8] for name in names), dtype="<u8").astype(np.uint64)


def joined(before: Encoding, log: BanditLog) -> tuple[Encoding, BanditLog]:
    """The features of both, those `before` first, and the log in these.

    A level that a log does not have is 0 there, whichever level is its reference.

    Examples
    --------
    >>> rows, names = np.array([[5.0, 1.0], [7.0, 0.0]]), ["price", "colour=red"]
    >>> log = BanditLog(rows, [0, 2], [0], feature_names=names, categories={"colour": ["green", "red"]})
    >>> found, log = joined(Encoding(("colour=red", "price"), {"colour": ("blue", "red")}), log)
    >>> found.feature_names, log.features.tolist()
    (('colour=red', 'price', 'colour=green'), [[1.0, 5.0, 0.0], [0.0, 7.0, 1.0]])
    """
    levels = log.categories or {}
    found = before.grown({column: levels[column] for column in before.categories if column in levels})
    names = log.feature_names or ()
    if found.feature_names == names and found.categories == levels:
        return found, log
    _check(found, log)
    place = {name: j for j, name in enumerate(names)}
    if all(name in place for name in found.feature_names):
        order = np.array([place[name] for name in found.feature_names], dtype=np.int64)
        return found, log.with_features(columns(log.features, order), found.feature_names)
    rows = log.dense
    features: Features = np.zeros((len(log.features), len(found.feature_names)), dtype=log.features.dtype)
    for j, (name, (column, level)) in enumerate(zip(found.feature_names, found.sources, strict=True)):
        if name in place:
            features[:, j] = rows[:, place[name]]
        elif level is not None and level == levels[column][0]:
            others = [place[level_name(column, other)] for other in levels[column][1:]]
            features[:, j] = 1.0 - rows[:, others].sum(axis=1)
    return found, log.with_features(features, found.feature_names)


def _check(found: Encoding, log: BanditLog) -> None:
    """Refuse a log that lacks a feature, or has one that is neither known nor a level of a known category."""
    names, levels = log.feature_names or (), log.categories or {}
    sources = dict(zip(found.feature_names, found.sources, strict=True))
    absent = [name for name, (column, _) in sources.items() if name not in names and column not in levels]
    known = {*found.feature_names, *(level_name(column, all_[0]) for column, all_ in found.categories.items())}
    new = [name for name in names if name not in known]
    if absent or new:
        found_out = [f"it lacks {absent[:5]}"] * bool(absent) + [f"{new[:5]} were not there before"] * bool(new)
        raise InputError(f"the log has different features than the rounds before: {'; '.join(found_out)}")


_CHANGED = "the log was changed while it was read: read it again when nobody writes to it"


@dataclass(frozen=True, eq=False)
class Looked:
    """What was found out about the rounds of a log before any is followed."""

    known: int = 0
    """How many of the first ones were followed before."""
    prints: Prints | None = None
    """Fingerprints of all of them; None if nobody looked."""

    @property
    def is_all(self) -> bool:
        """Whether there are rounds, and no new ones among them."""
        return self.prints is not None and 0 < self.known == len(self.prints)


@dataclass(frozen=True, eq=False)
class _Look:
    """What a part's rounds are recognised by; and how many of them have an id, or a time, from before the last."""

    before: Encoding | None
    seen: Seen

    def __call__(self, part: BanditLog, first: int) -> tuple[Rounds, int, int]:  # noqa: ARG002  the protocol's shape
        ids, times = self.seen.ids, self.seen.times
        return (
            Rounds.of(_like(self.before, part)[1]),
            0 if ids is None else older(part.round_ids, ids),
            0 if times is None else older(part.times, times),
        )


def look(log: BanditLog | Parts, before: Encoding | None, seen: Seen) -> Looked:
    """Find the rounds that were followed before; refuse a log that is out of order.

    `before` says how those rounds were encoded; None without names.

    Examples
    --------
    >>> from onlooker import Environment, LinUCB, simulate
    >>> from onlooker.observers.tracking.seen import Seen
    >>> log = simulate(Environment(5, 20), LinUCB(), n_rounds=300).log
    >>> look(log, None, Seen().after(Rounds.of(log[:200]))).known
    200
    """
    if not seen.logs:
        return Looked()
    task = _Look(before, seen)
    found = list(log.run(task)) if isinstance(log, Parts) else [task(log, 0)]
    rounds = Rounds.joined([one for one, _, _ in found])
    below = sum(ids for _, ids, _ in found), sum(times for _, _, times in found)
    return Looked(seen.known(rounds, below), rounds.prints)


def followed_rounds(
    log: BanditLog | Parts,
    monitor: Monitor,
    before: Encoding | None = None,
    looked: Looked | None = None,
    progress: Progress | None = None,
) -> tuple[Rounds, Encoding | None]:
    """Have the monitor watch the rounds that are new; give what they are recognised by, and how all are encoded now.

    A level of a category that `before` does not know becomes one more feature.
    """
    known, expected = (0, None) if looked is None else (looked.known, looked.prints)
    found: list[Rounds] = []
    done, encoding = known, before
    if isinstance(log, Parts):
        parts, progress = log.run(TakePart(), start=known), None
    else:
        parts = iter([as_log(log)[known:] if known else as_log(log)])
    for part in parts:
        encoding, same = _like(encoding, part)
        found.append(Rounds.of(same))
        if expected is not None and not np.array_equal(found[-1].prints, expected[done : done + part.n_rounds]):
            raise InputError(_CHANGED)
        done += part.n_rounds
        monitor.grow(0 if encoding is None else len(encoding.feature_names) - monitor.n_features)
        monitor.watch(same, progress)
    if expected is not None and done != len(expected):
        raise InputError(_CHANGED)
    return Rounds.joined(found), encoding


def _like(before: Encoding | None, part: BanditLog) -> tuple[Encoding | None, BanditLog]:
    """Rounds in the features of those before, by name where both have names."""
    if before is None or part.feature_names is None:
        return before, part
    return joined(before, part)
