"""Follow a log: all members of the bank side by side, each counting by how well it predicted so far.

The offers of the first rounds set the units, then every round is looked at once. Until there are enough rounds they are
kept, and followed again when more come, so that parts of a log give the same as the whole. Only offers are looked at
ahead of their picks, never picks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.base.checks import as_number, as_whole
from onlooker.base.documents import within
from onlooker.base.errors import InputError
from onlooker.base.threads import ordered_map
from onlooker.base.types import Index, Matrix, Progress, Vector
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog, as_narrow, join_rounds
from onlooker.observers.dynamic.members import (
    Block,
    Clock,
    bank,
    check_member,
    copied,
    fresh_member,
    no_record,
    rows_in_units,
    run,
    spread_units,
    step,
)

if TYPE_CHECKING:
    from onlooker.kernels.dynamic import Member

GROUPS = 2
"""Sets of members that are followed side by side; few, so that a thread's work is worth starting it."""

COUNTS = 0.05
"""Least weight of a member whose belief counts for the weights at the end; the heaviest of nine has more.

A member may begin afresh in any round, so that one that predicts nothing keeps a weight of about 1 / N. For a forecast
that is harmless, but its own weights may be anywhere: of 3,000 softmax picks, 0.8% on such members made standard errors
five times too large (tests/observers/test_dynamic_arms.py).
"""
SIZING = 100
"""Rounds whose offers set the units."""


@dataclass(eq=False)
class Bank:
    """What is believed of the weights after some rounds.

    Examples
    --------
    >>> from onlooker import Environment, EpsilonGreedy, simulate
    >>> from onlooker.observers.dynamic.members import spread_units
    >>> log = simulate(Environment(5, 20), EpsilonGreedy(0.1), n_rounds=1000).log
    >>> bank = Bank.start(spread_units(log))
    >>> bank.follow(log)
    >>> bank.n_rounds, bank.evidence > bank.chance, round(bank.lapse, 1)
    (1000, True, 0.1)
    """

    units: Vector
    """What the features are counted in; infinity for those that never differed so far."""
    members: list[Member]
    weights: Vector
    """How much each member counts for the next round, shape (M,)."""
    totals: Vector
    """Log-probability of all picks under each member, shape (M,)."""
    clock: Clock = field(default_factory=Clock)
    n_choices: int = 0
    """Rounds that offered more than one arm."""
    evidence: float = 0.0
    """Log-probability of all picks, each given those before it."""
    chance: float = 0.0
    """The same, if every pick were random."""

    @classmethod
    def start(cls, units: Vector) -> Bank:
        """Know nothing yet."""
        laws = bank(len(units))
        members = [fresh_member(len(units), law) for law in laws]
        return cls(units, members, np.full(len(laws), 1 / len(laws)), np.zeros(len(laws)))

    @property
    def n_rounds(self) -> int:
        """Rounds followed."""
        return self.clock.n_rounds

    def copy(self) -> Bank:
        """One that can be moved on without moving this one."""
        members = [copied(one) for one in self.members]
        return Bank(
            self.units, members, self.weights.copy(), self.totals.copy(), self.clock,
            self.n_choices, self.evidence, self.chance,
        )  # fmt: skip

    def grow(self, count: int) -> None:
        """Have so many features more, after the others, which never differed so far: nothing is known of them."""
        d = len(self.units)
        self.units = np.append(self.units, np.full(count, np.inf))
        grown = []
        for law, one in zip(bank(d + count), self.members, strict=True):
            new = fresh_member(d + count, law)
            # The share of random picks comes last.
            old, kept = np.append(np.arange(d), d), np.append(np.arange(d), d + count)
            for name in ("mean", "last"):
                getattr(new, name)[kept] = getattr(one, name)[old]
            _place(new.spread, one.spread, kept)
            if len(one.inverse):
                _place(new.inverse, one.inverse, kept[:-1])
            grown.append(new)
        self.members = grown

    def follow(
        self,
        log: BanditLog,
        times: Vector | None = None,
        probabilities: Vector | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Take in the next rounds, and fill how probable each of their arms was, given the picks before its round."""
        gaps, clock = self.clock.gaps(log.n_rounds, times)
        first = self.n_rounds
        for start, stop in ragged.blocks(log.offsets, log.n_features):
            part = log[start:stop]
            rows, picks, self.units = rows_in_units(part, self.units)
            block = Block(rows, picks, part.offsets, part.chosen, gaps[start:stop], first + start)
            mixed = self._take(block)
            if probabilities is not None:
                probabilities[log.offsets[start] : log.offsets[stop]] = mixed
            if progress is not None:
                progress(stop, log.n_rounds)
        sizes = log.n_arms
        self.clock = clock
        self.n_choices += int(np.count_nonzero(sizes > 1))
        self.chance = added(self.chance, -np.log(sizes))

    def _take(self, block: Block) -> Vector:
        """Move every member on; return the probabilities of all arms, averaged over the members."""
        from onlooker.kernels.dynamic import mix

        laws, n = bank(len(self.units)), len(block.chosen)
        logs, arms = np.empty((len(laws), n)), np.empty((len(laws), len(block.rows)))
        anchors = np.empty((n, len(self.units) + 1))
        none = no_record(len(self.units))
        run(laws[0], self.members[0], block, none.means, none._replace(means=anchors), arms[0], logs[0])

        def group(which: range) -> None:
            for m in which:
                run(laws[m], self.members[m], block, anchors, none, arms[m], logs[m])

        for _ in ordered_map(group, [range(1 + start, len(laws), GROUPS) for start in range(GROUPS)]):
            pass
        mixed, total = np.empty(len(block.rows)), np.empty(n)
        mix(logs, arms, block.offsets, block.first, self.weights, mixed, total)
        self.totals = np.add.accumulate(np.column_stack([self.totals, logs]), axis=1)[:, -1].copy()
        self.evidence = added(self.evidence, total)
        return mixed

    def predict(self, log: BanditLog, places: Index) -> Vector:
        """Probability of every arm of these rounds as the learner's next pick; `places` has the log's features."""
        from onlooker.kernels.dynamic import fill_probabilities

        rows, _, _ = rows_in_units(log, self.units[places])
        total, found = np.zeros(len(rows)), np.empty(len(rows))
        anchor, order = self.members[0].mean, np.append(places, len(places))
        laws = bank(len(self.units))
        for law, member, weight in zip(laws, self.members, self.weights.tolist(), strict=True):
            ahead = copied(member)
            step(law, ahead, self.n_rounds, anchor)
            spread = ahead.spread[order] if ahead.spread.ndim == 1 else ahead.spread[np.ix_(order, order)]
            fill_probabilities(rows, log.offsets, ahead.mean[order][None], np.ascontiguousarray(spread)[None], found)
            total += weight * found
        return total

    @property
    def theta(self) -> Vector:
        """Mean of the weights, of the features as they are."""
        found: Vector = self._mean(self._weighted()) / self.units
        return found

    @property
    def covariance(self) -> Matrix:
        """Of the weights around their mean, within and between members; NaN for what never differed."""
        weighted, known = self._weighted(), np.isfinite(self.units)
        middle = np.where(known, self._mean(weighted), 0.0)
        total = np.zeros((len(middle), len(middle)))
        for weight, one in weighted:
            spread = np.diag(one.spread[:-1]) if one.spread.ndim == 1 else one.spread[:-1, :-1]
            shift = one.mean[:-1] - middle
            total += weight * (spread + shift[:, None] * shift)
        units = np.where(known, self.units, np.nan)
        found: Matrix = total / (units[:, None] * units)
        return found

    def _mean(self, weighted: list[tuple[float, Member]]) -> Vector:
        """Of the members that count, in units."""
        found: Vector = np.sum([weight * one.mean[:-1] for weight, one in weighted], axis=0)
        return found

    @property
    def lapse(self) -> float:
        """Share of random picks at the end."""
        from onlooker.kernels.logit_round import random_share

        return sum(weight * random_share(one.mean) for weight, one in self._weighted())

    def _weighted(self) -> list[tuple[float, Member]]:
        """The members that count, and how much each does."""
        counts = np.where(self.weights >= COUNTS, self.weights, 0.0)
        shares = counts / counts.sum()
        return [(share, one) for share, one in zip(shares.tolist(), self.members, strict=True) if share]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; floats keep every digit."""
        units = [None if math.isinf(unit) else unit for unit in self.units.tolist()]
        return {
            "units": units,
            "members": [{name: value.tolist() for name, value in one._asdict().items()} for one in self.members],
            "weights": self.weights.tolist(),
            "totals": self.totals.tolist(),
            "clock": {"last": self.clock.last, "elapsed": self.clock.elapsed, "n_rounds": self.clock.n_rounds},
            "n_choices": self.n_choices,
            "evidence": self.evidence,
            "chance": self.chance,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Bank:
        """Give back what `to_dict` was made of."""
        units = np.array([math.inf if one is None else as_number(one, "a unit", above=0.0) for one in values["units"]])
        fresh = cls.start(units)
        kept = values["members"]
        if len(kept) != len(fresh.members):
            raise ValueError(f"{len(kept)} members were kept, there are {len(fresh.members)}: fit again")
        members = []
        for place, (one, like) in enumerate(zip(kept, fresh.members, strict=True)):
            with within(f"members[{place}]"):
                members.append(type(like)(*(finite_like(getattr(like, name), one[name]) for name in like._fields)))
                check_member(members[-1])
        weights = finite_like(fresh.weights, values["weights"])
        if (weights <= 0).any() or abs(weights.sum() - 1) > 1e-6:
            raise ValueError("the weights of the members are not shares")
        clock, last = values["clock"], values["clock"]["last"]
        n_rounds = as_whole(clock["n_rounds"], "n_rounds")
        return cls(
            units=units,
            members=members,
            weights=weights,
            totals=finite_like(fresh.totals, values["totals"]),
            clock=Clock(
                None if last is None else as_number(last, "last"),
                as_number(clock["elapsed"], "elapsed", least=0.0),
                n_rounds,
            ),
            n_choices=as_whole(values["n_choices"], "n_choices"),
            evidence=as_number(values["evidence"], "evidence", most=0.0),
            chance=as_number(values["chance"], "chance", most=0.0),
        )


def _place(new: Vector | Matrix, old: Vector | Matrix, kept: Index) -> None:
    """Put variances into a larger matrix, or into a diagonal where covariances are no longer followed."""
    if old.ndim == new.ndim:
        new[kept if new.ndim == 1 else np.ix_(kept, kept)] = old
    else:
        new[kept] = np.diag(old)


def added(total: float, values: Vector) -> float:
    """Sum, one value after the other, so that parts add up to exactly what the whole does."""
    return float(np.add.accumulate(np.concatenate([[total], values]))[-1])


def finite_like(array: Vector | Matrix, values: Any) -> Matrix:
    """Numbers in the same shape, none so large that its square is not finite."""
    found = np.array(values, dtype=np.float64)
    if not array.size and not found.size:
        return array
    if found.shape != array.shape or not (np.abs(found) < 1e150).all():
        raise ValueError(f"an array of shape {array.shape} was kept as {found.shape}")
    return found


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
