"""Open Bandit Pipeline: its LinUCB, which keeps a model for every arm and gets one context a round."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from obp.policy import LinUCB

from rivals.adapters import ONCE, PLAYED
from rivals.problem import Problem

SETTINGS = ONCE


def prepare(problem: Problem) -> Callable[[int], np.ndarray]:
    _, k, d = problem.X.shape
    contexts = problem.X[:PLAYED, 0].astype(np.float64)
    rewards = contexts @ problem.theta_star + problem.noise[:PLAYED]

    def run(_setting: int) -> np.ndarray:
        learner = LinUCB(dim=d, n_actions=k, epsilon=0.1)
        chosen = np.empty(PLAYED, dtype=np.int64)
        for t in range(PLAYED):
            context = contexts[t : t + 1]
            chosen[t] = int(learner.select_action(context)[0])
            learner.update_params(action=int(chosen[t]), reward=float(rewards[t]), context=context)
        return chosen

    return run
