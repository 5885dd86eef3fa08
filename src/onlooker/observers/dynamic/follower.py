"""Follow a growing log: the offers of its first rounds set the units, then every round is looked at once.

Until there are enough rounds they are kept, and followed again when more come, so that parts of a log give the same as
the whole. Only offers are looked at ahead of their picks, never picks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onlooker.base.checks import as_whole
from onlooker.base.documents import within
from onlooker.base.errors import InputError
from onlooker.base.types import Progress, Vector
from onlooker.logs.log import BanditLog, as_narrow, join_rounds
from onlooker.observers.dynamic.bank import Bank
from onlooker.observers.dynamic.offers import spread_units

SIZING = 100
"""Rounds whose offers set the units."""


@dataclass(eq=False)
class Follower:
    """What is known of a log so far.

    Examples
    --------
    >>> from onlooker import Environment, EpsilonGreedy, simulate
    >>> log = simulate(Environment(5, 20), EpsilonGreedy(0.1), n_rounds=300).log
    >>> whole, parts = Follower(5), Follower(5)
    >>> whole.follow(log)
    >>> for part in (log[:70], log[70:90], log[90:]):
    ...     parts.follow(part)
    >>> whole.bank.evidence == parts.bank.evidence
    True
    """

    n_features: int
    bank: Bank = field(init=False)
    waiting: BanditLog | None = None
    """The rounds so far, while they are too few."""
    waiting_times: Vector | None = None

    def __post_init__(self) -> None:
        self.bank = Bank.start(np.full(self.n_features, np.inf))

    def copy(self) -> Follower:
        """One that can go on without this one."""
        other = Follower(self.n_features, self.waiting, self.waiting_times)
        other.bank = self.bank.copy()
        return other

    def grow(self, count: int) -> None:
        """Have so many features more, after the others: they were 0 in all rounds so far."""
        self.n_features += count
        self.bank.grow(count)
        if self.waiting is not None:
            rows = np.pad(self.waiting.dense, ((0, 0), (0, count)))
            self.waiting = BanditLog(rows, self.waiting.offsets, self.waiting.chosen)

    def follow(
        self,
        log: BanditLog,
        times: Vector | None = None,
        probabilities: Vector | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Take in the next rounds; fill how probable each arm was, given the picks before its round."""
        if log.n_features != self.n_features:
            raise InputError(f"the log has {log.n_features} features, but those before had {self.n_features}")
        if not as_narrow(log, "DynamicImitation").n_rounds:
            return
        if self.bank.n_rounds >= SIZING:
            self.bank.follow(log, times, probabilities, progress)
            return
        rounds, moments = self.restart(log, times)
        found = None if probabilities is None else np.empty(len(rounds.features))
        self.bank.follow(rounds, moments, found, progress)
        if probabilities is not None and found is not None:
            probabilities[:] = found[len(found) - len(probabilities) :]

    def restart(self, log: BanditLog, times: Vector | None) -> tuple[BanditLog, Vector | None]:
        """Begin again, in the units of all rounds so far with these; give all of them, which are to be followed."""
        rounds, moments = self.with_waiting(log, times)
        self.bank = Bank.start(spread_units(rounds[:SIZING]))
        few = rounds.n_rounds < SIZING
        self.waiting, self.waiting_times = rounds if few else None, moments if few else None
        return rounds, moments

    def with_waiting(self, log: BanditLog, times: Vector | None) -> tuple[BanditLog, Vector | None]:
        """The rounds that are followed when these come: with those that waited, if any did."""
        if self.waiting is None:
            return log, times
        before = self.waiting
        if (times is None) != (self.waiting_times is None):
            raise InputError("some rounds have times and others have none: pass times for all rounds or for none")
        joined = join_rounds(before, log)
        if times is None or self.waiting_times is None:
            return joined, None
        return joined, np.concatenate([self.waiting_times, times])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; floats keep every digit."""
        waiting = None
        if self.waiting is not None:
            rows = self.waiting.dense
            waiting = {
                "features": rows.tolist(),
                "dtype": rows.dtype.name,
                "offsets": self.waiting.offsets.tolist(),
                "chosen": self.waiting.chosen.tolist(),
                "times": None if self.waiting_times is None else self.waiting_times.tolist(),
            }
        return {"n_features": self.n_features, "bank": self.bank.to_dict(), "waiting": waiting}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Follower:
        """Give back what `to_dict` was made of."""
        found = cls(as_whole(values["n_features"], "n_features", least=1))
        with within("bank"):
            found.bank = Bank.from_dict(values["bank"])
        if len(found.bank.units) != found.n_features:
            raise ValueError(f"the units were not kept for {found.n_features} features")
        waiting = values["waiting"]
        if (waiting is None) != (found.bank.n_rounds >= SIZING):
            raise ValueError("the first rounds are missing, or kept though they are not needed")
        if waiting is not None:
            with within("waiting"):
                dtype = np.float32 if waiting["dtype"] == "float32" else np.float64
                features = np.array(waiting["features"], dtype=dtype)
                found.waiting = BanditLog(features, waiting["offsets"], waiting["chosen"])
                times = waiting["times"]
                found.waiting_times = None if times is None else np.array(times, dtype=np.float64)
        return found
