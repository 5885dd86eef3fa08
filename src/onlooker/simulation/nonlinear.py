"""Learners that can learn rewards that are not linear in the features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import as_number, as_whole
from onlooker.base.types import Matrix, Vector
from onlooker.simulation.ridge import Player, RidgeLearner


def with_products(rows: ArrayLike) -> Matrix:
    """Features, their squares and the products of all pairs.

    Examples
    --------
    >>> with_products(np.array([[2.0, 3.0]]))
    array([[2., 3., 4., 6., 9.]])
    """
    x = np.asarray(rows, dtype=np.float64)
    first, second = np.triu_indices(x.shape[1])
    return np.hstack([x, x[:, first] * x[:, second]])


@dataclass
class Mapped:
    """A ridge learner on a map of the features, such as all their products.

    Parameters
    ----------
    learner
        Any of the ridge learners: `LinUCB()`, `LinTS()` and so on.
    features
        From rows of features to rows that the learner sees.
    noise
        Of the rewards, which some learners need to know.

    Examples
    --------
    >>> from onlooker import Environment, LinUCB, simulate
    >>> played = simulate(Environment(3, 4, reward="square"), Mapped(LinUCB(0.1)), n_rounds=1000)
    >>> bool(played.regret[-200:].mean() < 0.2 * played.regret[:50].mean())
    True
    """

    learner: RidgeLearner
    features: Callable[[Matrix], Matrix] = with_products
    _: KW_ONLY
    noise: float = 0.1
    _rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0), repr=False)
    _player: Player | None = field(default=None, repr=False)

    def reset(self, rng: np.random.Generator) -> None:
        """Forget everything, and draw from this generator from now on."""
        self._rng, self._player = rng, None

    def choose(self, features: Any) -> int:
        """Position of the pick among the rows of `features`."""
        rows = self.features(np.asarray(features, dtype=np.float64))
        if self._player is None:
            self._player = self.learner.start(self._rng, n_features=rows.shape[1], noise=self.noise)
        return self._player.choose(rows)

    def update(self, features_of_pick: Any, reward: float) -> None:
        """Take in the reward of the arm that was picked."""
        assert self._player is not None
        row = np.asarray(features_of_pick, dtype=np.float64)[None]
        self._player.update(self.features(row)[0], reward)


@dataclass
class NetworkGreedy:
    """A small network that learns by gradient steps on recent rewards, and picks at random with probability epsilon.

    Parameters
    ----------
    epsilon
        Share of random picks.
    hidden
        Units of its one hidden layer (ReLU).
    rate
        Size of a gradient step.
    batch
        Earlier rounds that are learned from again in every round.

    Examples
    --------
    >>> from onlooker import Environment, simulate
    >>> played = simulate(Environment(3, 4, reward="square"), NetworkGreedy(), n_rounds=1500)
    >>> bool(played.regret[-300:].mean() < played.regret[:300].mean())
    True
    """

    epsilon: float = 0.1
    _: KW_ONLY
    hidden: int = 32
    rate: float = 0.05
    batch: int = 16
    _rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0), repr=False)
    _layers: list[Any] | None = field(default=None, repr=False)
    _rows: list[Vector] = field(default_factory=list, repr=False)
    _rewards: list[float] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        as_number(self.epsilon, "epsilon", least=0.0, most=1.0)
        as_whole(self.hidden, "hidden", least=1)
        as_whole(self.batch, "batch", least=1)
        as_number(self.rate, "rate", above=0.0)

    def reset(self, rng: np.random.Generator) -> None:
        """Forget everything, and draw from this generator from now on."""
        self._rng, self._layers, self._rows, self._rewards = rng, None, [], []

    def choose(self, features: Any) -> int:
        """Position of the pick among the rows of `features`."""
        rows = np.asarray(features, dtype=np.float64)
        if self._layers is None:
            d, h = rows.shape[1], self.hidden
            inner = self._rng.standard_normal((d, h)) * np.sqrt(2 / d)
            self._layers = [inner, np.zeros(h), self._rng.standard_normal(h) / np.sqrt(h), 0.0]
        if self._rng.random() < self.epsilon:
            return int(self._rng.integers(len(rows)))
        inner, shifts, outer, level = self._layers
        return int(np.argmax(np.maximum(rows @ inner + shifts, 0.0) @ outer + level))

    def update(self, features_of_pick: Any, reward: float) -> None:
        """Take in the reward of the arm that was picked, and learn from some earlier ones again."""
        self._rows.append(np.asarray(features_of_pick, dtype=np.float64))
        self._rewards.append(float(reward))
        assert self._layers is not None
        inner, shifts, outer, level = self._layers
        places = [*self._rng.integers(len(self._rows), size=self.batch - 1), len(self._rows) - 1]
        x, y = np.array([self._rows[i] for i in places]), np.array([self._rewards[i] for i in places])
        units = np.maximum(x @ inner + shifts, 0.0)
        # Errors far out are cut: one reward may not throw the network off.
        pull = np.clip(units @ outer + level - y, -1.0, 1.0) / len(y)
        back = np.outer(pull, outer) * (units > 0)
        self._layers = [
            inner - self.rate * x.T @ back,
            shifts - self.rate * back.sum(axis=0),
            outer - self.rate * units.T @ pull,
            level - self.rate * pull.sum(),
        ]
