"""Looking through a log for rounds that were followed before, and following those that were not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker.base.errors import InputError
from onlooker.base.types import Features, Progress
from onlooker.logs.categories import Encoding, level_name
from onlooker.logs.layouts import columns
from onlooker.logs.log import BanditLog
from onlooker.logs.parts import Parts, TakePart, parts_of
from onlooker.observers.tracking.monitor import Monitor
from onlooker.observers.tracking.rounds import Prints, Rounds, older
from onlooker.observers.tracking.seen import Seen


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
        parts, progress = (log.run(TakePart(), start=known) if known else parts_of(log)), None
    else:
        parts = parts_of(log[known:] if known else log)
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
