"""Logs whose weights are known in every round."""

import numpy as np

from onlooker.logs.log import BanditLog


def walking_log(seed, *, n_rounds=2000, n_arms=8, d=4, step=0.0, random=0.05, jump=None, grows=0.0, size=1.0):
    """A log of softmax picks by weights that walk, or grow by a power of time; and those weights, shape (N, d)."""
    source = np.random.default_rng(seed)
    X = source.standard_normal((n_rounds, n_arms, d))
    theta, path, chosen = size * source.standard_normal(d), np.empty((n_rounds, d)), np.empty(n_rounds, dtype=int)
    for t in range(n_rounds):
        theta = -theta if t == jump else theta
        path[t] = theta * ((t + 10) / 100) ** grows
        weights = np.exp(X[t] @ path[t])
        probabilities = (1 - random) * weights / weights.sum() + random / n_arms
        chosen[t] = source.choice(n_arms, p=probabilities)
        theta = theta + np.sqrt(step) * source.standard_normal(d)
    return BanditLog.from_dense(X, chosen), path
