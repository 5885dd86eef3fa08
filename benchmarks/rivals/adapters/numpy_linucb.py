"""LinUCB in plain NumPy with rank-one updates, as one would write it, on arms that are given."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rivals.adapters import ONCE
from rivals.problem import Array, Problem

SETTINGS = ONCE


def prepare(problem: Problem) -> Callable[[int], np.ndarray]:
    return lambda _setting: play(problem.X, problem.theta_star, problem.noise)


def play(X: np.ndarray, theta_star: Array, noise: Array, *, alpha: float = 0.1) -> np.ndarray:
    """Let LinUCB pick in every round and learn from the reward; give its picks, shape (N,)."""
    n, _, d = X.shape
    chosen = np.empty(n, dtype=np.int64)
    inverse, moment = np.eye(d), np.zeros(d)
    for t in range(n):
        x = X[t].astype(np.float64)
        chosen[t] = np.argmax(x @ (inverse @ moment) + alpha * np.sqrt(np.einsum("ij,ij->i", x @ inverse, x)))
        pick = x[chosen[t]]
        turned = inverse @ pick
        inverse -= np.outer(turned, turned) / (1 + pick @ turned)
        moment += (pick @ theta_star + noise[t]) * pick
    return chosen
