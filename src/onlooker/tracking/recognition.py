"""Looking through a log for rounds that were followed before, and following those that were not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker.errors import InputError
from onlooker.log import BanditLog
from onlooker.parts import Parts, TakePart, parts_of
from onlooker.tracking.monitor import Monitor
from onlooker.tracking.rounds import Prints, Rounds, older
from onlooker.tracking.seen import Seen
from onlooker.types import Index, Progress

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

    places: Index
    seen: Seen

    def __call__(self, part: BanditLog, first: int) -> tuple[Rounds, int, int]:  # noqa: ARG002  the protocol's shape
        ids, times = self.seen.ids, self.seen.times
        return (
            Rounds.of(part, self.places),
            0 if ids is None else older(part.round_ids, ids),
            0 if times is None else older(part.times, times),
        )


def look(log: BanditLog | Parts, places: Index, seen: Seen) -> Looked:
    """Find the rounds that were followed before; refuse a log that is out of order.

    `places` says where each of its features has its place.

    Examples
    --------
    >>> from onlooker import Environment, LinUCB, simulate
    >>> log = simulate(Environment(5, 20), LinUCB(), n_rounds=300).log
    >>> look(log, np.arange(5), Seen().after(Rounds.of(log[:200]))).known
    200
    """
    if not seen.logs:
        return Looked()
    task = _Look(places, seen)
    found = list(log.run(task)) if isinstance(log, Parts) else [task(log, 0)]
    rounds = Rounds.joined([one for one, _, _ in found])
    below = sum(ids for _, ids, _ in found), sum(times for _, _, times in found)
    return Looked(seen.known(rounds, below), rounds.prints)


def followed_rounds(
    log: BanditLog | Parts,
    monitor: Monitor,
    places: Index | None = None,
    looked: Looked | None = None,
    feature_names: tuple[str, ...] | None = None,
    progress: Progress | None = None,
) -> Rounds:
    """Have the monitor watch the rounds that are new, and give what they are recognised by.

    `feature_names` are those in the monitor's order, where `places` says that the log has another.
    """
    known, expected = (0, None) if looked is None else (looked.known, looked.prints)
    found: list[Rounds] = []
    done = known
    if isinstance(log, Parts):
        parts, progress = (log.run(TakePart(), start=known) if known else parts_of(log)), None
    else:
        parts = parts_of(log[known:] if known else log)
    for part in parts:
        found.append(Rounds.of(part, places))
        if expected is not None and not np.array_equal(found[-1].prints, expected[done : done + part.n_rounds]):
            raise InputError(_CHANGED)
        done += part.n_rounds
        monitor.watch(_in_order(part, places, feature_names), progress)
    if expected is not None and done != len(expected):
        raise InputError(_CHANGED)
    return Rounds.joined(found)


def _in_order(part: BanditLog, places: Index | None, feature_names: tuple[str, ...] | None) -> BanditLog:
    """The same rounds with their features in the monitor's order."""
    if places is None or np.array_equal(places, np.arange(len(places))):
        return part
    features = np.ascontiguousarray(part.features[:, np.argsort(places)])
    return BanditLog(features, part.offsets, part.chosen, feature_names=feature_names)
