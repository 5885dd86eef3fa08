"""onlooker's learner on arms that are given: what the libraries do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onlooker import LinUCB
from onlooker.simulation.environment import Contexts, Stream
from rivals.adapters import ONCE
from rivals.problem import Problem

SETTINGS = ONCE

ROUNDS = 104
"""Rounds that are played at a time, as `simulate` does."""


def prepare(problem: Problem) -> Callable[[int], np.ndarray]:
    n, k, d = problem.X.shape
    given = Contexts(problem.X.reshape(n * k, d), np.arange(n + 1) * k, ROUNDS, problem.seed, Stream.CONTEXTS)

    def run(_setting: int) -> np.ndarray:
        player = LinUCB().start(np.random.default_rng(problem.seed), n_features=d, noise=0.1)
        chosen, rewards = np.empty(n, dtype=np.int64), np.empty(n)
        for start in range(0, n, ROUNDS):
            player.play(given, (start, min(start + ROUNDS, n)), problem.theta_star, problem.noise, chosen, rewards)
        return chosen

    return run
