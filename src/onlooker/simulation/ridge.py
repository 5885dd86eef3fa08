"""Learners that keep a ridge estimate: their parameters, fixed, and their state in play, apart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import as_number, as_whole
from onlooker.base.errors import InputError
from onlooker.base.numerics import largest_eigenvalue
from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.simulation.environment import Contexts

if TYPE_CHECKING:
    from onlooker.kernels.learning import State


@runtime_checkable
class Learner(Protocol):
    """Any object with these two methods can play; write your own.

    A learner that draws random numbers should also have a method `reset(rng)`: it is called once before the first
    round, with a generator that follows the seed of the simulation.

    Examples
    --------
    >>> class First:
    ...     def choose(self, features):
    ...         return 0
    ...     def update(self, features_of_pick, reward):
    ...         pass
    >>> isinstance(First(), Learner)
    True
    """

    def choose(self, features: Features) -> int:
        """Position of the pick; `features` has one row per arm on offer, read-only."""
        ...

    def update(self, features_of_pick: Any, reward: float) -> None:
        """Take in the reward of the arm that was picked; `features_of_pick` is its row."""
        ...


NEVER = np.iinfo(np.int64).max
"""A round that no log reaches."""


class Rule(NamedTuple):
    """How the arms of a round are decided between, in the terms of `onlooker.kernels.learning.choose`."""

    code: int
    """Which rule."""

    parameters: Vector
    """Its numbers."""

    last_update: int = NEVER
    """Rewards of this round and later are not learned from."""


@dataclass(frozen=True, repr=False)
class RidgeLearner(ABC):
    """Parameters that all ridge learners share. `start` puts the learner into play.

    Examples
    --------
    >>> import numpy as np
    >>> from onlooker.simulation.learners import LinUCB
    >>> player = LinUCB(alpha=0.1).start(np.random.default_rng(0), n_features=2, noise=0.1)
    >>> player.choose(np.array([[0.6, 0.0], [0.0, 0.8]]))
    1
    >>> player.update(np.array([0.0, 0.8]), reward=-1.0)
    >>> player.choose(np.array([[0.6, 0.0], [0.0, 0.8]]))
    0
    """

    ridge: float = field(default=1.0, kw_only=True)
    """Weight of the identity in `V = ridge * I + sum of x x'`."""

    batch: int = field(default=1, kw_only=True)
    """Rounds between updates."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ridge", as_number(self.ridge, "ridge", above=0.0))
        object.__setattr__(self, "batch", as_whole(self.batch, "batch", least=1))

    def __repr__(self) -> str:
        names = [part.name for part in fields(self)]
        own_first = [name for name in names if name not in {"ridge", "batch"}] + ["ridge", "batch"]
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in own_first)})"

    @abstractmethod
    def rule(self, n_features: int, noise: float) -> Rule:
        """How this learner decides, in an environment with so many features and so much noise."""

    def start(self, rng: np.random.Generator, *, n_features: int, noise: float) -> Player:
        """Give a player that knows nothing yet, to `choose` and `update` round by round."""
        return Player(self.rule(n_features, noise), self.ridge, self.batch, n_features, rng)


class Player:
    """A ridge learner in play. It is a `Learner`, and can also play a whole block of rounds at once."""

    def __init__(self, rule: Rule, ridge: float, batch: int, n_features: int, rng: np.random.Generator) -> None:
        self._rule = rule
        self._batch = batch
        self._rng = rng
        self._state = _fresh_state(rule, ridge, n_features)
        self._round = 0
        self._pending: list[tuple[Features, float]] = []

    @property
    def theta(self) -> Vector:
        """The estimate that the next pick is based on, shape (d,)."""
        return self._state.theta.copy()

    @property
    def inverse(self) -> Matrix:
        """Inverse of V, as kept by rank-one updates."""
        return self._state.inverse.copy()

    def choose(self, features: ArrayLike) -> int:
        """Position of the pick among the rows of `features`."""
        from onlooker.kernels import learning

        rows = self._rows(features, ndim=2)
        draws = self._draw(1)[0]
        self._state.reach[0] = np.inf
        return int(
            learning.choose(rows, 0, len(rows), self._round, self._rule.code, self._rule.parameters, draws, self._state)
        )

    def update(self, features_of_pick: ArrayLike, reward: float) -> None:
        """Take in one reward; what is known changes when a batch is full."""
        from onlooker.kernels import learning

        self._pending.append((self._rows(features_of_pick, ndim=1)[None], float(reward)))
        self._round += 1
        if self._round % self._batch == 0:
            if self._round <= self._rule.last_update:
                for row, earned in self._pending:
                    learning.learn(row, 0, earned, self._state)
            self._pending.clear()

    def play(
        self,
        contexts: Contexts,
        rounds: tuple[int, int],
        theta_star: Vector,
        noise: Vector,
        chosen: Index,
        rewards: Vector,
    ) -> None:
        """Play a block of rounds, filling `chosen` and `rewards`: the same as `choose` and `update` in turn."""
        from onlooker.kernels import learning

        start, stop = rounds
        # Of rows that are no longer than one, but for rounding.
        self._state.reach[0] = (1 + 1e-6) * np.sqrt(largest_eigenvalue(self._state.inverse))
        learning.play(
            contexts.features,
            contexts.offsets,
            start,
            stop,
            theta_star,
            noise,
            self._rule.code,
            self._rule.parameters,
            self._draw(stop - start),
            self._batch,
            self._rule.last_update,
            self._state,
            chosen,
            rewards,
        )
        self._round = stop

    def _draw(self, n_rounds: int) -> Matrix:
        """Random numbers for the next rounds, a row each; one block of them equals as many single draws."""
        from onlooker.kernels import learning

        if self._rule.code == learning.OPTIMISTIC:
            return np.empty((n_rounds, 0))
        if self._rule.code == learning.SAMPLING:
            return self._rng.standard_normal((n_rounds, len(self._state.theta)))
        return self._rng.random((n_rounds, 1))

    def _rows(self, features: ArrayLike, ndim: int) -> Features:
        # Compiled code is typed by layout and by whether an array may be written: one kind, one compilation.
        array = np.asarray(features)
        dtype = np.float32 if array.dtype == np.float32 else np.float64
        rows: Features = np.require(array, dtype=dtype, requirements=["C", "W"])
        d = len(self._state.theta)
        if rows.ndim != ndim or rows.shape[-1] != d or not len(rows):
            raise InputError(f"features has shape {rows.shape}: pass {d} numbers{' an arm' if ndim == 2 else ''}")
        return rows


def _fresh_state(rule: Rule, ridge: float, n_features: int) -> State:
    from onlooker.kernels import learning

    return learning.State(
        theta=np.zeros(n_features),
        inverse=np.eye(n_features) / ridge,
        factor=np.eye(n_features if rule.code == learning.SAMPLING else 0) * np.sqrt(ridge),
        growth=np.zeros(1),
        reach=np.array([np.inf]),
    )
