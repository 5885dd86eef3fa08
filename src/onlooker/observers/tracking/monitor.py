"""Watch a growing log: decide on the kind of exploration from its first rounds, then follow.

The decision rests on the first rounds alone, and on the same ones whether the log comes at once or in parts. Until
there are enough of them they are kept; after that a round is used once and forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onlooker.base.checks import as_number, as_whole
from onlooker.base.documents import within
from onlooker.base.errors import InputError
from onlooker.base.numerics import absolute_largest
from onlooker.base.types import Progress, Vector
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog, as_narrow, feature_labels, join_rounds
from onlooker.observers.dynamic.members import as_times
from onlooker.observers.tracking.assumptions import FAMILIES, Assumption, Exploration, Lapse
from onlooker.observers.tracking.contest import LEAST, STEPS, Contest, Verdict
from onlooker.observers.tracking.follower import Follower, finite_like
from onlooker.observers.tracking.path import as_checkpoints
from onlooker.observers.tracking.tuning import Tuned, mean_square, tune
from onlooker.observers.tracking.variants import chosen_coding, chosen_length
from onlooker.observers.tracking.variation import (
    Identification,
    Sizes,
    as_flags,
    in_own_units,
    uniform_p_value,
    within_rounds,
)

DECIDING = 2000
"""Rounds that decide."""
FEWEST = 125
"""Rounds from which on each round is predicted; with fewer, any kind of exploration would be a guess."""
GROWTH = 2**0.5
"""While there are fewer, the decision is made again whenever their number has grown by this factor."""
LONGEST = 32_000
"""Rounds after which picks that still look uniform are taken to be so for good."""
LARGEST = 1e6
"""Lengths of features, and ratios to the ridge's square root, beyond which sums of squares lose their small digits."""
NO_PREFERENCE = 0.01
"""Picks are taken for uniform unless a test rejects that at this level."""


@dataclass(eq=False)
class Monitor:
    """All that tracking knows of a log.

    Examples
    --------
    >>> from onlooker import Environment, EpsilonGreedy, simulate
    >>> log = simulate(Environment(5, 20), EpsilonGreedy(0.05), n_rounds=3000).log
    >>> monitor = Monitor(families=["UCB", "Lapse"], ridge=1.0, n_features=5)
    >>> for part in (log[:500], log[500:2100], log[2100:]):
    ...     monitor.watch(part)
    >>> monitor.follower.n_rounds, monitor.waiting, monitor.best.assumption.exploration.name
    (3000, None, 'Lapse')
    """

    families: Sequence[str | Exploration]
    """Those to choose from, by name or with a constant."""
    ridge: float
    n_features: int
    checkpoints: tuple[int, ...] | None = None
    waiting: BanditLog | None = None
    """The rounds so far, while they are too few to decide for good."""
    decided_on: int = 0
    """How many rounds the decision rests on."""
    uniform: float = 1.0
    """P-value of their picks being uniform."""
    identification: Identification = field(init=False)
    """Which weights all rounds so far identify."""
    contest: Contest | None = None
    """What the picks prove of the families; None if one was given, or a state of 0.1 has decided."""
    _tuned: list[Tuned] = field(default_factory=list)
    _follower: Follower | None = None

    def __post_init__(self) -> None:
        self.identification = Identification.start(self.n_features)
        if self.contest is None and len(self.families) > 1:
            self.contest = Contest(self.ridge, self.n_features, self.checkpoints)

    @property
    def n_rounds(self) -> int:
        """Rounds so far."""
        return self.identification.n_rounds

    @property
    def n_choices(self) -> int:
        """How many of them offered more than one arm."""
        if self._follower is None and self.waiting is not None:
            return int(np.count_nonzero(self.waiting.n_arms > 1))
        return self.follower.n_choices

    @property
    def compares(self) -> bool:
        """Whether there are enough rounds to prove a family; with fewer, they are compared only when asked for."""
        return self.contest is None or self.n_rounds >= LEAST

    @property
    def tuned(self) -> list[Tuned]:
        """What each family makes of the rounds that decide."""
        self._compare()
        return self._tuned

    @property
    def best(self) -> Tuned:
        """The nearest family: that which predicted best where all were compared, else that with the most evidence."""
        self._compare()
        return self._best()

    def _best(self) -> Tuned:
        # What is followed is what can be proved: evidence is of constants that the same rounds tuned.
        leader = self.contest.leader if self.contest is not None and self.decided_on == STEPS[-1] else None
        return max(self._tuned, key=lambda one: (one.assumption.exploration.name == leader, one.evidence))

    @property
    def follower(self) -> Follower:
        """The belief after all rounds so far."""
        self._compare()
        assert self._follower is not None, "nothing was watched yet"
        return self._follower

    @property
    def foreseen(self) -> float:
        """Share of picks that were the likeliest arm for the model-free observer, while all rounds wait."""
        assert self.contest is not None
        assert self.waiting is not None
        chosen, choices = ragged.argmax(self.contest.early, self.waiting.offsets), self.waiting.n_arms > 1
        return float(np.mean((chosen == self.waiting.chosen)[choices])) if choices.any() else 0.0

    @property
    def preferring(self) -> bool:
        """Whether the picks show a preference at all."""
        return len(self.families) == 1 or self.uniform <= NO_PREFERENCE

    @property
    def is_proved(self) -> bool:
        """Whether the nearest family is proved; one that was given or decided by 0.1 is taken to be."""
        if self.contest is None:
            return True
        verdict = self.verdict
        if not self.preferring or verdict is None or verdict.name is None:
            return False
        return verdict.name == self.best.assumption.exploration.name

    @property
    def verdict(self) -> Verdict | None:
        """What the picks prove; None if nothing is to be proved, or too few were seen."""
        return None if self.contest is None else self.contest.verdict()

    def copy(self) -> Monitor:
        """Another one that knows the same: what it watches does not change this one."""
        # The log that waits never changes.
        return deepcopy(self, {id(self.waiting): self.waiting})

    def watch(self, log: BanditLog, progress: Progress | None = None) -> None:
        """Take in the next rounds; after an error, work on with a copy from before."""
        if log.n_features != self.n_features:
            raise InputError(f"the log has {log.n_features} features, but those before had {self.n_features}")
        check_largest(as_narrow(log, "tracking"), self.ridge)
        if self.contest is not None:
            # Before anything is decided: the decision on enough rounds is found on the way.
            self.contest.watch(log, as_times(None, log), self._all(log))
        if self._follower is not None and self.waiting is None:
            self._follower.follow(log, progress)
        else:
            self._decide_and_follow(log, progress)
        self.identification.take_in(log)

    def _all(self, log: BanditLog) -> BanditLog | None:
        """All rounds so far with these; None once none are kept."""
        if self.waiting is not None:
            return join_rounds(self.waiting, log)
        return log if self._follower is None else None

    def fresh_follower(self) -> Follower:
        """Before the first round, with what was decided since."""
        known = self.follower
        return Follower.start(self.best.assumption, self.n_features, (), known.units, coding=known.coding)

    def watch_ahead(self, log: BanditLog) -> Vector:
        """Take in the next rounds; give how probable each of their arms was, given the picks before its round.

        By the nearest family, proved or not. While it is not settled, it is decided again whenever the rounds have
        doubled.
        """
        self._compare()
        self.contest = None
        found, done = np.empty(int(log.offsets[-1])), 0
        while done < log.n_rounds:
            before = 0 if self._follower is None else self.follower.n_rounds
            undecided = self._follower is None or self.waiting is not None
            stop = min(log.n_rounds, done + max(FEWEST, before) if undecided else log.n_rounds)
            part, rows = log[done:stop], slice(int(log.offsets[done]), int(log.offsets[stop]))
            if self._follower is None:
                found[rows] = np.repeat(1.0 / part.n_arms, part.n_arms)
            elif undecided:
                deepcopy(self.follower).follow(part, arms=found[rows])
            if undecided:
                self.watch(part)
            else:
                check_largest(part, self.ridge)
                self.follower.follow(part, arms=found[rows])
            done = stop
        return found

    def grow(self, count: int) -> None:
        """Have so many features more, after the others: they were 0 in all rounds so far."""
        if not count:
            return
        if self.contest is not None:
            self.contest.grow(count)
        self.n_features += count
        self.identification.grow(count)
        if self._follower is not None:
            self._follower.grow(count)
        if self.waiting is not None:
            more = np.pad(self.waiting.dense, ((0, 0), (0, count)))
            self.waiting = BanditLog(more, self.waiting.offsets, self.waiting.chosen)

    def _decide_and_follow(self, log: BanditLog, progress: Progress | None) -> None:
        rounds = self._all(log)
        assert rounds is not None
        fresh = [size for size in _deciding(rounds.n_rounds) if size > self.decided_on]
        if self.contest is not None and rounds.n_rounds < LEAST:
            self.waiting, self._follower = rounds, None
            if fresh:
                check_scale(rounds, self.ridge)
                self._look(rounds[: fresh[-1]])
            return
        if not self._is_settled() and fresh:
            check_scale(rounds, self.ridge)
            for size in fresh:
                self._decide(rounds[:size])
                if self._is_settled():
                    break
            log = rounds
        self.follower.follow(log, progress)
        self.waiting = None if self._is_settled() or rounds.n_rounds >= LONGEST else rounds

    def _is_settled(self) -> bool:
        """Whether more rounds would not change the decision: enough of them, and a preference in them."""
        return self.decided_on >= DECIDING and self.preferring

    def _compare(self) -> None:
        """Decide on rounds that wait, if they were too few to do so before anybody asked."""
        if self._follower is None and self.waiting is not None:
            self._decide(self.waiting[: self.decided_on])
            self.follower.follow(self.waiting)

    def _look(self, log: BanditLog) -> None:
        """Whether the rounds that decide show a preference."""
        self.decided_on = log.n_rounds
        self.uniform = uniform_p_value(*within_rounds(log))

    def _decide(self, log: BanditLog) -> None:
        self._look(log)
        contest = self.contest if self.contest is not None and self.contest.n_rounds else None
        coding = chosen_coding(log, self.ridge) if contest is None else contest.coding
        log = log if coding is None else coding.log(log)
        log, units, sizes = in_own_units(log, chosen_length(log, self.ridge) if contest is None else contest.length)
        if len(self.families) > 1 and self.uniform > NO_PREFERENCE:
            nothing = Assumption(exploration=Lapse(1.0), ridge=self.ridge, precision=mean_square(log), slip=1.0)
            chance = -float(np.log(log.n_arms).sum())
            self._tuned = [Tuned(assumption=nothing, evidence=chance, range=(1.0, 1.0))]
        elif self.contest is not None and self.decided_on == STEPS[-1]:
            self._tuned = self.contest.tuned
        else:
            self._tuned = tune(log, self.families, ridge=self.ridge)
        self._follower = Follower.start(
            self._best().assumption, self.n_features, self.checkpoints, units, sizes, coding
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; floats keep every digit."""
        return {
            "families": [one if isinstance(one, str) else [one.name, one.strength] for one in self.families],
            "ridge": self.ridge,
            "n_features": self.n_features,
            "checkpoints": None if self.checkpoints is None else list(self.checkpoints),
            "waiting": None if self.waiting is None else _plain(self.waiting),
            "decided_on": self.decided_on,
            "information": self.identification.information.tolist(),
            "open": self.identification.open.tolist(),
            "uniform": self.uniform,
            "tuned": [one.to_dict() for one in self.tuned],
            "follower": self.follower.to_dict(),
            "contest": None if self.contest is None else self.contest.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Monitor:
        """Give back what `to_dict` was made of."""
        waiting, n_features = values["waiting"], as_whole(values["n_features"], "n_features", least=1)
        with within("follower"):
            follower = Follower.from_dict(values["follower"], n_features)
        with within("families"):
            families = [_family(one) for one in values["families"]]
        with within("tuned"):
            tuned = [Tuned.from_dict(one) for one in values["tuned"]]
        if not (families and tuned and np.isfinite([one.evidence for one in tuned]).all()):
            raise ValueError("no family was kept, or no evidence for it")
        found = cls(
            families=families,
            ridge=as_number(values["ridge"], "ridge", above=0.0),
            n_features=n_features,
            checkpoints=as_checkpoints(values["checkpoints"]),
            waiting=None if waiting is None else _from_plain(waiting),
            decided_on=as_whole(values["decided_on"], "decided_on", least=1),
            uniform=as_number(values["uniform"], "uniform", least=0.0, most=1.0),
            _tuned=tuned,
            _follower=follower,
        )
        if "contest" not in values:
            # A state of 0.1: what it decided stands.
            follower.assumption = follower.assumption.as_of_0_1()
            found._tuned = [replace(one, assumption=one.assumption.as_of_0_1()) for one in tuned]
        kept = values.get("contest")
        with within("contest"):
            found.contest = (
                None if kept is None else Contest.from_dict(kept, found.ridge, n_features, found.checkpoints)
            )
        with within("information"):
            found.identification = _identification(values, follower)
        found.check()
        return found

    def check(self) -> None:
        """Refuse what contradicts itself: values that no log has made."""
        follower, n_rounds = self.follower, self.follower.n_rounds
        follower.check()
        if self.decided_on > n_rounds:
            raise ValueError(f"{self.decided_on} rounds have decided, but {n_rounds} were followed")
        if self.waiting is not None and (self.waiting.n_rounds, self.waiting.n_features) != (n_rounds, self.n_features):
            raise ValueError("other rounds are waiting than were followed")
        if (self.waiting is None) != (self._is_settled() or n_rounds >= LONGEST):
            raise ValueError("rounds are waiting for a decision that was made, or are missing for one that was not")
        if any(one.assumption.ridge != self.ridge for one in self.tuned) or follower.checkpoints != self.checkpoints:
            raise ValueError("ridge or checkpoints were not the same throughout")
        if follower.assumption != self.best.assumption:
            raise ValueError("what was followed is not what was decided")
        if self.contest is not None and self.contest.model_free.bank.n_rounds != n_rounds:
            raise ValueError("other rounds were predicted than were followed")
        if (
            self.contest is not None
            and not self.contest.n_rounds
            and (self.waiting is None or len(self.contest.early) != self.waiting.offsets[-1])
        ):
            raise ValueError("other arms were predicted than were offered")


def _identification(values: dict[str, Any], follower: Follower) -> Identification:
    information = finite_like(np.empty((values["n_features"],) * 2), values["information"])
    if "open" in values:
        return Identification(information, as_flags(values["open"], len(information)), follower.n_rounds)
    # States of 0.1 have the variation of all features within the rounds that decided, and no sizes.
    follower.sizes = Sizes.of_variation(information, values["decided_on"], follower.units)
    return Identification.resume(information, follower.n_rounds)


def _family(kept: Any) -> str | Exploration:
    """By its name, or with its constant."""
    if isinstance(kept, str):
        return FAMILIES[kept].name
    name, constant = kept
    return FAMILIES[name](constant)


def _deciding(n_rounds: int) -> list[int]:
    """Sizes at which to decide with so many rounds: the last step before there are enough, or all steps from then on.

    Examples
    --------
    >>> _deciding(1500), _deciding(4500)
    ([1414], [2000, 2828, 4000])
    """
    step = 0
    while _size(step) > max(n_rounds, 1):
        step -= 1
    if step < 0:
        return [_size(step)]
    while _size(step + 1) <= min(n_rounds, LONGEST):
        step += 1
    return [_size(one) for one in range(step + 1)]


def _size(step: int) -> int:
    """Rounds of a step of the ladder; step 0 is where there are enough."""
    return max(1, round(DECIDING * GROWTH**step))


def check_largest(log: BanditLog, ridge: float) -> None:
    """Refuse features whose squares leave no digits for the ridge."""
    if not log.n_rounds:
        return
    spread = np.zeros(log.n_features)
    for start, stop in ragged.blocks(log.offsets, log.n_features):
        spread = np.maximum(spread, absolute_largest(log[start:stop].dense))
    names = feature_labels(log.weight_names, log.n_features)
    limit = LARGEST * max(1.0, ridge) ** 0.5
    if float(spread.max()) > limit:
        worst = int(spread.argmax())
        raise InputError(f"feature {names[worst]!r} reaches {spread[worst]:.3g}, more than {limit:.3g}: rescale it")


def check_scale(log: BanditLog, ridge: float) -> None:
    """Refuse features whose squares leave no digits for the ridge, or are lost beside it."""
    check_largest(log, ridge)
    if not (mean_square(log[:DECIDING]) / ridge) ** 0.5 >= 1 / LARGEST:
        raise InputError(
            f"the features are tiny beside a ridge of {ridge:g}: rescale them, or pass the learner's ridge"
        )


def _plain(log: BanditLog) -> dict[str, Any]:
    return {
        "features": log.dense.tolist(),
        "dtype": log.features.dtype.name,
        "offsets": log.offsets.tolist(),
        "chosen": log.chosen.tolist(),
    }


def _from_plain(values: dict[str, Any]) -> BanditLog:
    with within("waiting"):
        dtype = np.float32 if values["dtype"] == "float32" else np.float64
        return BanditLog(np.array(values["features"], dtype=dtype), values["offsets"], values["chosen"])
