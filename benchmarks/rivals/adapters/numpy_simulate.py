"""A whole simulation in plain NumPy: draw and scale the arms, then let LinUCB play."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rivals.adapters import ONCE
from rivals.adapters.numpy_linucb import play
from rivals.problem import Problem

SETTINGS = ONCE


def prepare(problem: Problem) -> Callable[[int], np.ndarray]:
    def run(_setting: int) -> np.ndarray:
        X = draw(np.random.default_rng(problem.seed), problem.X.shape)
        return play(X, problem.theta_star, problem.noise)

    return run


def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Normal arms, those beyond the unit ball put onto it, shape (N, K, d)."""
    X = rng.standard_normal(shape, dtype=np.float32)
    for t in range(len(X)):
        X[t] /= np.maximum(1, np.linalg.norm(X[t], axis=1, keepdims=True))
    return X
