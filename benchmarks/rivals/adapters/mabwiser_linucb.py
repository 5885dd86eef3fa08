"""mabwiser: its LinUCB, which keeps a model for every arm and gets one context a round."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mabwiser.mab import MAB, LearningPolicy

from rivals.adapters import ONCE, PLAYED
from rivals.problem import Problem

SETTINGS = ONCE


def prepare(problem: Problem) -> Callable[[int], np.ndarray]:
    contexts = problem.X[:PLAYED, 0].astype(np.float64)
    rewards = contexts @ problem.theta_star + problem.noise[:PLAYED]

    def run(_setting: int) -> np.ndarray:
        learner = MAB(list(range(problem.X.shape[1])), LearningPolicy.LinUCB(alpha=0.1))
        learner.fit([0], rewards[:1], contexts[:1])
        chosen = np.empty(PLAYED, dtype=np.int64)
        for t in range(PLAYED):
            chosen[t] = learner.predict(contexts[t : t + 1])
            learner.partial_fit(chosen[t : t + 1], rewards[t : t + 1], contexts[t : t + 1])
        return chosen

    return run
