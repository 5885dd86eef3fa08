"""Watch a growing log: decide on the way to explore from its first rounds, then follow.

The decision rests on the first rounds alone, and on the same ones whether the log comes at once or in parts. Until
there are enough of them they are kept; after that a round is looked at once and forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onlooker.checks import as_number, as_whole
from onlooker.errors import InputError
from onlooker.log import BanditLog
from onlooker.tracking.exploration import FAMILIES, Exploration, Lapse
from onlooker.tracking.follower import Assumption, Follower, as_checkpoints, finite_like
from onlooker.tracking.tuning import Tuned, mean_square, tune
from onlooker.tracking.variation import uniform_p_value, within_rounds
from onlooker.types import Matrix, Progress

DECIDING = 2000
"""Rounds that decide."""
GROWTH = 2**0.5
"""While there are fewer, the decision is made anew whenever their number has grown by this factor."""
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
    information: Matrix = field(default_factory=lambda: np.zeros((0, 0)))
    """How much each feature, and each pair of them, varies within those rounds."""
    uniform: float = 1.0
    """P-value of their picks being uniform."""
    tuned: list[Tuned] = field(default_factory=list)
    """What each family makes of them."""
    _follower: Follower | None = None

    @property
    def best(self) -> Tuned:
        """The family with the most evidence."""
        return max(self.tuned, key=lambda one: one.evidence)

    @property
    def follower(self) -> Follower:
        """The belief after all rounds so far."""
        assert self._follower is not None, "nothing was watched yet"
        return self._follower

    def watch(self, log: BanditLog, progress: Progress | None = None) -> None:
        """Take in the next rounds."""
        if log.n_features != self.n_features:
            raise InputError(f"the log has {log.n_features} features, but those before had {self.n_features}")
        if self._follower is not None and self.waiting is None:
            self._follower.follow(log, progress)
            return
        rounds = log if self.waiting is None else _joined(self.waiting, log)
        size = _deciding(rounds.n_rounds)
        if size != self.decided_on:
            self._decide(rounds[:size])
            log = rounds
        self.follower.follow(log, progress)
        self.waiting = rounds if rounds.n_rounds < DECIDING else None

    def _decide(self, log: BanditLog) -> None:
        self.decided_on = log.n_rounds
        score, self.information = within_rounds(log)
        self.uniform = uniform_p_value(score, self.information)
        if len(self.families) > 1 and self.uniform > NO_PREFERENCE:
            nothing = Assumption(exploration=Lapse(1.0), ridge=self.ridge, precision=mean_square(log), slip=1.0)
            chance = -float(np.log(log.n_arms).sum())
            self.tuned = [Tuned(assumption=nothing, evidence=chance, range=(1.0, 1.0))]
        else:
            self.tuned = tune(log, self.families, ridge=self.ridge)
        self._follower = Follower.start(self.best.assumption, self.n_features, self.checkpoints)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; floats keep every digit."""
        return {
            "families": [one if isinstance(one, str) else [one.name, one.strength] for one in self.families],
            "ridge": self.ridge,
            "n_features": self.n_features,
            "checkpoints": None if self.checkpoints is None else list(self.checkpoints),
            "waiting": None if self.waiting is None else _plain(self.waiting),
            "decided_on": self.decided_on,
            "information": self.information.tolist(),
            "uniform": self.uniform,
            "tuned": [one.to_dict() for one in self.tuned],
            "follower": self.follower.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Monitor:
        """Give back what `to_dict` was made of."""
        waiting, n_features = values["waiting"], as_whole(values["n_features"], "n_features", least=1)
        families = [_family(one) for one in values["families"]]
        tuned = [Tuned.from_dict(one) for one in values["tuned"]]
        if not (families and tuned and np.isfinite([one.evidence for one in tuned]).all()):
            raise ValueError("no family was kept, or no evidence for it")
        return cls(
            families=families,
            ridge=as_number(values["ridge"], "ridge", above=0.0),
            n_features=n_features,
            checkpoints=as_checkpoints(values["checkpoints"]),
            waiting=None if waiting is None else _from_plain(waiting),
            decided_on=as_whole(values["decided_on"], "decided_on", least=1),
            information=finite_like(np.empty((n_features, n_features)), values["information"]),
            uniform=as_number(values["uniform"], "uniform", least=0.0, most=1.0),
            tuned=tuned,
            _follower=Follower.from_dict(values["follower"], n_features),
        )


def _family(kept: Any) -> str | Exploration:
    """By its name, or with its constant."""
    if isinstance(kept, str):
        return FAMILIES[kept].name
    name, constant = kept
    return FAMILIES[name](constant)


def _deciding(n_rounds: int) -> int:
    """How many of so many rounds decide: all that are needed, or the last step of the ladder that leads there."""
    size = DECIDING
    while size > max(n_rounds, 1):
        size = int(size / GROWTH)
    return max(size, 1)


def _joined(first: BanditLog, second: BanditLog) -> BanditLog:
    return BanditLog(
        np.concatenate([first.features, second.features]),
        np.concatenate([first.offsets, first.offsets[-1] + second.offsets[1:]]),
        np.concatenate([first.chosen, second.chosen]),
    )


def _plain(log: BanditLog) -> dict[str, Any]:
    return {
        "features": log.features.tolist(),
        "dtype": log.features.dtype.name,
        "offsets": log.offsets.tolist(),
        "chosen": log.chosen.tolist(),
    }


def _from_plain(values: dict[str, Any]) -> BanditLog:
    dtype = np.float32 if values["dtype"] == "float32" else np.float64
    return BanditLog(np.array(values["features"], dtype=dtype), values["offsets"], values["chosen"])
