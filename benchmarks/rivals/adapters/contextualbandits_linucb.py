"""contextualbandits: its LinUCB, which keeps a model for every arm and gets one context a round."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from contextualbandits.online import LinUCB

from rivals.adapters import ONCE, PLAYED
from rivals.problem import Problem

SETTINGS = ONCE


def prepare(problem: Problem) -> Callable[[int], np.ndarray]:
    contexts = problem.X[:PLAYED, 0].astype(np.float64)
    # It takes rewards of 0 and 1 alone.
    rewards = (contexts @ problem.theta_star + problem.noise[:PLAYED] > 0).astype(np.float64)

    def run(_setting: int) -> np.ndarray:
        learner = LinUCB(nchoices=problem.X.shape[1], alpha=0.1, fit_intercept=False, random_state=1)
        chosen = np.empty(PLAYED, dtype=np.int64)
        for t in range(PLAYED):
            chosen[t] = int(learner.predict(contexts[t : t + 1])[0])
            learner.partial_fit(contexts[t : t + 1], chosen[t : t + 1], rewards[t : t + 1])
        return chosen

    return run
