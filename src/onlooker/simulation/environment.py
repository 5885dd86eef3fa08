"""Environments for simulated learners: which arms are offered, and their expected rewards.

Every random number comes from a stream of its own, named by a seed and a place in the log. Contexts are drawn in blocks
of rounds, each from its own generator: any thread can draw any block, and a short log is the beginning of a longer one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import as_number, as_whole
from onlooker.base.errors import InputError
from onlooker.base.threads import ordered_map
from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog, finite_log
from onlooker.logs.policy import LinearPolicy
from onlooker.simulation.rewards import REWARDS, named_reward

BLOCK_VALUES = 1 << 20
"""About how many feature values a block of rounds holds. Part of what a seed means: changing it changes every log."""

CHUNK_VALUES = 1 << 16
"""How many values are drawn before they are scaled: few enough to still be in cache."""


class Stream(IntEnum):
    """What a random number is for; a seed gives unrelated numbers to each."""

    THETA_STAR = 0
    CONTEXTS = 1
    TEST_CONTEXTS = 2
    SIZES = 3
    NOISE = 4
    LEARNER = 5
    SPLIT = 6
    REWARD = 7


def generator(seed: int, stream: Stream, place: int = 0) -> np.random.Generator:
    """Make the generator of a seed's stream; `place` counts the blocks of streams that are cut into blocks.

    Examples
    --------
    >>> generator(7, Stream.NOISE).standard_normal() == generator(7, Stream.NOISE).standard_normal()
    True
    """
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(stream, place))))


@dataclass(frozen=True, eq=False)
class Contexts:
    """The offers of a log in the making: room for its features, filled block by block in any order."""

    features: Features
    """One row per offered arm, of norm at most one, shape (rows, d); what is not drawn yet is arbitrary."""

    offsets: Index
    """Where each round's rows begin, shape (N + 1,)."""

    block_rounds: int
    """Rounds in every block but the last."""

    seed: int
    """Seed of the log."""

    stream: Stream
    """Stream that the features come from."""

    @property
    def n_blocks(self) -> int:
        """How many blocks the rounds are cut into."""
        return -(-(len(self.offsets) - 1) // self.block_rounds)

    def draw(self, block: int) -> tuple[int, int]:
        """Fill one block; return its first round and the one after its last."""
        from onlooker.kernels.learning import scale_rows

        start = block * self.block_rounds
        stop = min(start + self.block_rounds, len(self.offsets) - 1)
        rows = self.features[self.offsets[start] : self.offsets[stop]]
        random = generator(self.seed, self.stream, block)
        step = max(1, CHUNK_VALUES // rows.shape[1])
        for first in range(0, len(rows), step):
            chunk: Any = rows[first : first + step]
            random.standard_normal(out=chunk, dtype=chunk.dtype)
            scale_rows(chunk)
        return start, stop

    def log(self, chosen: Index) -> BanditLog:
        """Give the log of these picks, once all blocks are drawn."""
        return finite_log(self.features, self.offsets, chosen)


@dataclass(frozen=True)
class Environment:
    """A bandit whose arm `x` is worth `<x, theta_star>`, or another function of `x`, and pays that plus Gaussian noise.

    Features are standard normal, each row divided by `max(1, norm)`.

    Parameters
    ----------
    n_features
        Number of features, d.
    n_arms
        Arms on offer in every round, or a pair (low, high): then each round's number is uniform on low to high.
    noise
        Standard deviation of the rewards.
    seed
        Decides `theta_star`, uniform on the unit sphere, and nothing else.
    dtype
        Of the features: "float32" or "float64".
    reward
        `"linear"`; `"square"`, `"quadratic"` or `"cosine"`: `10 (x'a)^2`, `x'A'Ax` and `cos(3 x'a)`, where `a` is
        theta_star; or a function that gives the expected reward of every row of features.

    Examples
    --------
    >>> environment = Environment(n_features=5, n_arms=(3, 8), seed=1)
    >>> environment.test_log(100, seed=2)
    BanditLog(100 rounds, 3 to 8 arms, 5 features, float32)
    """

    n_features: int
    n_arms: int | tuple[int, int]
    noise: float = 0.1
    _: KW_ONLY
    seed: int = 0
    dtype: str = "float32"
    reward: str | Callable[[Matrix], Vector] = field(default="linear", repr=False)
    theta_star: Vector = field(init=False, repr=False, compare=False)
    """True parameter, shape (d,), norm one."""

    def __post_init__(self) -> None:
        n_features = as_whole(self.n_features, "n_features", least=1)
        seed = as_whole(self.seed, "seed")
        try:
            dtype = np.dtype(self.dtype).name
        except TypeError:
            dtype = ""
        if dtype not in {"float32", "float64"}:
            raise InputError(f"dtype is {self.dtype!r}: pass 'float32' or 'float64'")
        if not callable(self.reward) and self.reward not in ("linear", *REWARDS):
            raise InputError(f"reward is {self.reward!r}: use 'linear', {', '.join(map(repr, REWARDS))}, or a function")
        direction = generator(seed, Stream.THETA_STAR).standard_normal(n_features)
        theta_star = direction / np.linalg.norm(direction)
        theta_star.flags.writeable = False
        checked = {
            "n_features": n_features,
            "n_arms": _as_arms(self.n_arms),
            "noise": as_number(self.noise, "noise", least=0.0),
            "seed": seed,
            "dtype": dtype,
            "theta_star": theta_star,
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def is_linear(self) -> bool:
        """Whether rewards are linear in the features."""
        return self.reward == "linear"

    def expected(self, rows: ArrayLike) -> Vector:
        """Expected reward of every row of features, shape (n,).

        Examples
        --------
        >>> environment = Environment(2, 3, reward=lambda rows: rows[:, 0] ** 2)
        >>> environment.expected([[3.0, 1.0]])
        array([9.])
        """
        x = np.asarray(rows, dtype=np.float64)
        if self.is_linear:
            return np.asarray(x @ self.theta_star)
        function = self.reward
        if isinstance(function, str):
            function = named_reward(function, self.theta_star, generator(self.seed, Stream.REWARD))
        found = np.asarray(function(x), dtype=np.float64)
        if found.shape != (len(x),) or not np.isfinite(found).all():
            raise InputError(f"reward gave an array of shape {found.shape} for {len(x)} rows: one finite number a row")
        return found

    def contexts(self, n_rounds: int, seed: int, stream: Stream = Stream.CONTEXTS) -> Contexts:
        """Make room for the offers of `n_rounds` rounds; their blocks are yet to be drawn."""
        low, high = self.n_arms if isinstance(self.n_arms, tuple) else (self.n_arms, self.n_arms)
        sizes = generator(seed, Stream.SIZES, stream).integers(low, high, size=n_rounds, endpoint=True)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        features = np.empty((int(offsets[-1]), self.n_features), dtype=self.dtype)
        block_rounds = min(max(BLOCK_VALUES // (self.n_features * high), 16), 512)
        return Contexts(features, offsets, block_rounds, seed, stream)

    def reward_noise(self, n_rounds: int, seed: int) -> Vector:
        """Noise in the rewards of a log with this seed, shape (N,)."""
        return self.noise * generator(seed, Stream.NOISE).standard_normal(n_rounds)

    def test_log(self, n: int, seed: int = 0) -> BanditLog:
        """Offers that no learner of any seed has seen, with the best arm of each round as its pick.

        Examples
        --------
        >>> environment = Environment(5, 10)
        >>> test = environment.test_log(50)
        >>> bool((LinearPolicy(environment.theta_star).choose(test) == test.chosen).all())
        True
        """
        contexts = self.contexts(as_whole(n, "n", least=1), as_whole(seed, "seed"), Stream.TEST_CONTEXTS)
        for _ in ordered_map(contexts.draw, range(contexts.n_blocks)):
            pass
        offers = contexts.log(np.zeros(n, dtype=np.int64))
        if not self.is_linear:
            return contexts.log(ragged.argmax(self.expected(offers.dense), offers.offsets))
        return contexts.log(LinearPolicy(self.theta_star).choose(offers))


def _as_arms(n_arms: object) -> int | tuple[int, int]:
    if not isinstance(n_arms, Sequence):
        return as_whole(n_arms, "n_arms", least=1)
    if isinstance(n_arms, str) or len(n_arms) != 2:
        raise InputError(f"n_arms is {n_arms!r}: pass a whole number, or a pair (low, high)")
    low = as_whole(n_arms[0], "n_arms, its low end,", least=1)
    return low, as_whole(n_arms[1], "n_arms, its high end,", least=low)
