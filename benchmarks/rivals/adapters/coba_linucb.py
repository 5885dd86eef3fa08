"""coba: its LinUCB learner on the arms' features."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from coba.learners import LinUCBLearner

from rivals.adapters import ONCE, PLAYED
from rivals.problem import Problem

SETTINGS = ONCE


def prepare(problem: Problem) -> Callable[[int], np.ndarray]:
    offers = [[tuple(arm) for arm in offer] for offer in problem.X[:PLAYED].tolist()]
    rewards = problem.X[:PLAYED].astype(np.float64) @ problem.theta_star + problem.noise[:PLAYED, None]

    def run(_setting: int) -> np.ndarray:
        learner = LinUCBLearner(alpha=0.1, features=["a"])
        chosen = np.empty(PLAYED, dtype=np.int64)
        for t, arms in enumerate(offers):
            action, probability = learner.predict(None, arms)[:2]
            chosen[t] = arms.index(action)
            learner.learn(None, action, rewards[t, chosen[t]], probability)
        return chosen

    return run
