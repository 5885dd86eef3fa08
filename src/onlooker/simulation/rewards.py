"""Rewards that are not linear in the features."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onlooker.base.errors import InputError
from onlooker.base.types import Matrix, Vector

Reward = Callable[[Matrix], Vector]
"""Expected reward of every row of features."""

REWARDS = ("square", "quadratic", "cosine")
"""Rewards by name, those of Zhou, Li and Gu (NeuralUCB, 2020): `10 (x'a)^2`, `x'A'Ax` and `cos(3 x'a)`."""


def named_reward(name: str, theta_star: Vector, rng: np.random.Generator) -> Reward:
    """One of `REWARDS`; `a` is theta_star, and the entries of `A` are normal with variance 1/d.

    Examples
    --------
    >>> square = named_reward("square", np.array([1.0, 0.0]), np.random.default_rng(0))
    >>> square(np.array([[0.5, 3.0]]))
    array([2.5])
    """
    d = len(theta_star)
    matrix = rng.standard_normal((d, d)) / np.sqrt(d)
    known: dict[str, Reward] = {
        "square": lambda rows: np.asarray(10 * (rows @ theta_star) ** 2),
        "quadratic": lambda rows: np.asarray(((rows @ matrix.T) ** 2).sum(axis=1)),
        "cosine": lambda rows: np.cos(3 * (rows @ theta_star)),
    }
    if name not in known:
        raise InputError(f"reward is {name!r}: use 'linear', {', '.join(map(repr, REWARDS))}, or a function of rows")
    return known[name]
