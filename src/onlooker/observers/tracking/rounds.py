"""What rounds are recognised by when they come again: fingerprints, ids, and how ids and times run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.base.types import Ids
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog

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
