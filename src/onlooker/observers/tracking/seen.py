"""Which rounds were followed, in little room: so that none is counted twice, and none out of order.

What is kept does not grow with the log: fingerprints of the last rounds and of a sample of all, one number for each of
the last logs that were followed, and the last id and time. From these, rounds that come again are recognised where they
end with the last round that was followed (a file that grew, the last rounds sent once more) or are one or more whole
logs from before. Anything else that is old is refused as far as it shows: by ids or times that have risen so far, by an
id that was followed, by fingerprints of the sample.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onlooker.base.checks import as_number, as_whole, counted
from onlooker.base.documents import within
from onlooker.base.errors import InputError
from onlooker.base.text import one_line
from onlooker.observers.tracking.recognition import Prints, Rounds, Run

RECENT = 512
"""Last rounds whose fingerprints are kept, 11 kB with ids: more than are the same in the same order by chance."""
SAMPLE = 512
"""Rounds in the sample of all, 5 kB: after 100,000 rounds, one of 900 that come again is in it in 99 of 100 cases."""
LOGS = 400
"""Logs that are remembered one by one, 10 kB: a year of days. Those before are one."""
ENOUGH = 8
"""Rises without a fall after which ids or times are taken to rise: nine random ids do so once in 362,880 times."""
CHANCE = 1e-6
"""Rounds without ids that come again by chance with more than this probability say nothing."""
PRIME, BASE = 2**61 - 1, 1_580_030_168_638_377_603
"""Of the polynomial that turns fingerprints in order into one number, so that numbers of two logs make that of both."""

FOLLOW = "pass repeated='follow' to follow them as new rounds"


def _no_prints() -> Prints:
    return np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Seen:
    """The rounds that were followed so far.

    Examples
    --------
    >>> from onlooker import Environment, LinUCB, simulate
    >>> log = simulate(Environment(5, 20), LinUCB(), n_rounds=300).log
    >>> seen = Seen().after(Rounds.of(log[:100])).after(Rounds.of(log[100:200]))
    >>> seen.known(Rounds.of(log)), seen.known(Rounds.of(log[:100])), seen.known(Rounds.of(log[150:]))
    (200, 100, 50)
    """

    unknown: int = 0
    """Rounds that were followed before there was such a record."""
    logs: tuple[tuple[int, int], ...] = ()
    """Length of every log that was followed since, and its number."""
    recent: Prints = field(default_factory=_no_prints)
    """Fingerprints of the last rounds."""
    names: Prints = field(default_factory=_no_prints)
    """Fingerprints of their ids; 0 for a round without."""
    sample: Prints = field(default_factory=_no_prints)
    """The smallest fingerprints of ids, or of rounds without, among all, in order."""
    ids: Run | None = None
    times: Run | None = None

    @property
    def n_rounds(self) -> int:
        """How many there were."""
        return self.unknown + sum(length for length, _ in self.logs)

    def after(self, rounds: Rounds) -> Seen:
        """With these rounds followed as well."""
        if not len(rounds.prints):
            return self
        logs = [*self.logs, (len(rounds.prints), _number(rounds.prints))]
        if len(logs) > LOGS:
            logs[:2] = [_together(logs[:2])]
        names = np.zeros_like(rounds.prints) if rounds.names is None else rounds.names
        return Seen(
            unknown=self.unknown,
            logs=tuple(logs),
            recent=np.concatenate([self.recent, rounds.prints])[-RECENT:],
            names=np.concatenate([self.names, names])[-RECENT:],
            sample=np.union1d(self.sample, rounds.marks)[:SAMPLE],
            ids=_gone_on(self.ids, rounds.ids, first=not self.logs),
            times=_gone_on(self.times, rounds.times, first=not self.logs),
        )

    def known(self, rounds: Rounds, n_older: tuple[int, int] = (0, 0)) -> int:
        """How many of the first of these rounds were followed before; the others are new.

        `n_older` says how many have an id, and how many a time, below the last one followed. Refused are rounds that
        are neither newer nor recognised, and those of which that cannot be decided.
        """
        had = bool(self.names[-1:].any())
        if len(self.names) and len(rounds.prints) and had != (rounds.names is not None):
            what = "no ids, but those followed last have" if had else "ids, but none of those followed last has"
            raise InputError(
                f"the rounds of the log have {what}, so that it is not known which come again: give ids to all or to "
                f"none, or {FOLLOW}"
            )
        found = self._recognised(rounds.prints)
        for name, run, now, below in (
            ("time", self.times, rounds.times, n_older[1]),
            ("id", self.ids, rounds.ids, n_older[0]),
        ):
            if run is None or now is None or run.falls or run.rises < ENOUGH:
                continue
            if run.kind != now.kind:
                raise InputError(
                    f"the {name}s of the log are of another kind ({now.kind}) than those followed before ({run.kind}), "
                    f"so that it is not known which rounds come again: write them as before, or {FOLLOW}"
                )
            if below > found or (now.falls and found < len(rounds.prints)):
                raise InputError(_out_of_order(name, run, below - found))
            # Several rounds may have the same time, so that only a later one says that a round is new.
            if name == "time" and (found or run.is_before(now)):
                return found
        again = self._again(rounds, found)
        if again is not None:
            what = "the round was" if rounds.names is None else "a round of its id was"
            raise InputError(
                f"round {again} of the log: {what} followed before, but not in this place: leave out what is old, give "
                f"every round an id of its own, or {FOLLOW}"
            )
        return found

    def _again(self, rounds: Rounds, found: int) -> int | None:
        """The first round after those recognised that was followed before, as far as is known."""
        marks = rounds.marks[found:]
        kept = self.sample if rounds.names is None else np.concatenate([self.sample, self.names])
        old = np.flatnonzero(np.isin(marks, kept))
        if rounds.names is None:
            # One may be the same by chance, but not most of those that would be in the sample if they were old.
            could_be = np.count_nonzero(marks <= self.sample.max(initial=0))
            if len(old) < 3 or 2 * len(old) < could_be or len(np.unique(marks)) < len(marks):
                return None
        return found + int(old[0]) if len(old) else None

    def _recognised(self, prints: Prints) -> int:
        """How many of the first rounds are those followed last, or all if they are whole logs from before."""
        if not len(self.recent) or not len(prints):
            return 0
        whole = self._is_whole(prints)
        found = len(prints) if whole else self._overlap(prints)
        if not found or found == self.n_rounds or self._chance(prints, found) <= CHANCE:
            if found and not whole and self._is_changed(prints[:found]):
                raise InputError(
                    "the log goes on from the last round followed, but has other rounds before it than were followed: "
                    f"leave out all but the new rounds, or {FOLLOW}"
                )
            return found
        if found < len(prints):
            return 0
        raise InputError(
            f"the log is the same as {counted(found, 'round')} followed before, but rounds without ids are often the "
            f"same here, so they may be new: give every round an id, leave the log out, or {FOLLOW}"
        )

    def _overlap(self, prints: Prints) -> int:
        """Rounds at the beginning that end with the last rounds followed."""
        for found in (np.flatnonzero(prints == self.recent[-1])[::-1] + 1).tolist():
            length = min(found, len(self.recent))
            if np.array_equal(prints[found - length : found], self.recent[-length:]):
                return int(found)
        return 0

    def _is_changed(self, prints: Prints) -> bool:
        """Whether rounds that end with the last ones followed are others before, as far as is known."""
        length = 0
        for place in range(len(self.logs) - 1, -1, -1):
            length += self.logs[place][0]
            if length == len(prints):
                return _together(self.logs[place:])[1] != _number(prints)
        return not self.unknown and len(prints) > length

    def _is_whole(self, prints: Prints) -> bool:
        """Whether these are one or more logs from before, or a part of the last rounds."""
        for place in np.flatnonzero(self.recent == prints[0]).tolist():
            if np.array_equal(self.recent[place : place + len(prints)], prints):
                return True
        wanted: int | None = None
        for place in range(len(self.logs)):
            length, stop = 0, place
            while length < len(prints) and stop < len(self.logs):
                length += self.logs[stop][0]
                stop += 1
            if length == len(prints):
                wanted = _number(prints) if wanted is None else wanted
                if _together(self.logs[place:stop])[1] == wanted:
                    return True
        return False

    def _chance(self, prints: Prints, found: int) -> float:
        """At most how probable it is that these rounds are as some of the last ones by chance: 0 if none is ever twice.

        Otherwise a round comes as often as it did.
        """
        here, before = Counter(prints.tolist()), Counter(self.recent.tolist())
        if len(here) == len(prints) and len(before) == len(self.recent):
            return 0.0
        total = float(len(self.recent))
        for one in prints[:found].tolist():
            total *= max(here[one] / len(prints), before[one] / len(self.recent))
            if total <= CHANCE:
                break
        return total

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "unknown": self.unknown,
            "logs": [list(one) for one in self.logs],
            "recent": _as_text(self.recent),
            "names": _as_text(self.names) if self.names.any() else None,
            "sample": _as_text(self.sample),
            **{name: None if run is None else _plain(run) for name, run in (("ids", self.ids), ("times", self.times))},
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Seen:
        """Give back what `to_dict` was made of."""
        recent = _from_text(values["recent"])
        found = cls(
            unknown=as_whole(values["unknown"], "unknown"),
            logs=tuple((as_whole(n, "a log", least=1), as_whole(number, "a number")) for n, number in values["logs"]),
            recent=recent,
            names=np.zeros_like(recent) if values["names"] is None else _from_text(values["names"]),
            sample=_from_text(values["sample"]),
            ids=_from_plain(values["ids"], "ids"),
            times=_from_plain(values["times"], "times"),
        )
        kept = min(RECENT, sum(length for length, _ in found.logs))
        if len(found.logs) > LOGS or any(number >= PRIME for _, number in found.logs):
            raise ValueError("logs are kept that nobody followed")
        if len(found.recent) != kept or len(found.names) != kept:
            raise ValueError(f"{kept} rounds are known, but others are kept")
        if len(found.sample) > min(SAMPLE, found.n_rounds) or (found.sample[1:] <= found.sample[:-1]).any():
            raise ValueError("the sample of rounds is none")
        return found


def _gone_on(before: Run | None, now: Run | None, *, first: bool) -> Run | None:
    """How ids or times run with those of the next rounds; rounds without any leave them as they are."""
    if before is None:
        # Where earlier rounds had none, those that follow say nothing of them.
        return now if first else None
    return before if now is None else before.then(now)


def _out_of_order(name: str, run: Run, count: int) -> str:
    last = str(np.datetime64(int(run.last), "us")) if run.kind == "time" else one_line(str(run.last), 60)
    if count > 0:
        what = f"{counted(count, 'round')} of {name} below {last}, that of the last round followed"
    else:
        what = f"{name}s that fall, though they have risen up to {last} so far"
    begin = " (so too where ids begin again in every log)" if name == "id" else ""
    return f"the log has {what}: leave out what is older, or {FOLLOW}{begin}"


def _number(prints: Prints) -> int:
    """One number for fingerprints in order."""
    total = 0
    for one in prints.tolist():
        total = (total * BASE + one + 1) % PRIME
    return total


def _together(logs: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Length and number of logs that follow on each other."""
    length = total = 0
    for one, number in logs:
        length, total = length + one, (total * pow(BASE, one, PRIME) + number) % PRIME
    return length, total


def _as_text(prints: Prints) -> str:
    return base64.b64encode(prints.astype("<u8").tobytes()).decode()


def _from_text(text: str) -> Prints:
    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<u8").astype(np.uint64)


def _plain(run: Run) -> dict[str, Any]:
    return {"kind": run.kind, "last": run.last, "rises": run.rises, "falls": run.falls}


def _from_plain(values: dict[str, Any] | None, name: str) -> Run | None:
    if values is None:
        return None
    with within(name):
        kind, last = values["kind"], values["last"]
        if kind not in {"number", "time", "text"} or isinstance(last, str) != (kind == "text"):
            raise ValueError(f"the last of them is {one_line(repr(last), 40)}")
        if kind != "text":
            as_number(last, "the last of them")
        rises, falls = as_whole(values["rises"], "rises"), as_whole(values["falls"], "falls")
        return Run(kind, last, last, rises, falls)
