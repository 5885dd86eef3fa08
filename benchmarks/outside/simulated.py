"""Learners of a few lines, with the probabilities that they picked by: ridge regression, and a small neural network."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
DRAWS = 1000
"""Of Thompson sampling's theta, to find its probabilities."""


Found = tuple[NDArray[np.int64], Array, NDArray[np.int64]]
"""Picks and propensities of a learner, and what its final greedy policy picks of fresh offers."""


def play_ridge(X: Array, worth: Array, fresh: Array, kind: str, seed: int, noise: float = 0.1) -> Found:
    """Let LinTS (`ts`), LinUCB (`ucb`) or an epsilon-greedy ridge learner (`greedy`) play."""
    n_rounds, n_arms, d = X.shape
    source = np.random.default_rng(seed)
    inverse, total = np.eye(d), np.zeros(d)
    chosen, propensities = np.empty(n_rounds, dtype=np.int64), np.zeros((n_rounds, n_arms))
    for t in range(n_rounds):
        mean = inverse @ total
        if kind == "ts":
            draws = mean + source.standard_normal((DRAWS, d)) @ np.linalg.cholesky(noise**2 * d * inverse).T
            best = np.argmax(draws @ X[t].T, axis=1)
            # A twentieth of a draw for each arm: none has a probability of 0.
            propensities[t] = (np.bincount(best, minlength=n_arms) + 0.05) / (DRAWS + 0.05 * n_arms)
            pick = best[0]
        else:
            bonus = noise * np.sqrt(np.einsum("ij,jk,ik->i", X[t], inverse, X[t])) if kind == "ucb" else 0.0
            random = 0.0 if kind == "ucb" else 0.1
            propensities[t] = random / n_arms
            propensities[t, np.argmax(X[t] @ mean + bonus)] += 1.0 - random
            pick = source.choice(n_arms, p=propensities[t])
        chosen[t], x = pick, X[t, pick]
        step = inverse @ x
        inverse -= np.outer(step, step) / (1.0 + x @ step)
        total += x * worth[t, pick]
    return chosen, propensities, np.argmax(fresh @ (inverse @ total), axis=1)


def play_network(X: Array, worth: Array, fresh: Array, seed: int, hidden: int = 16, rate: float = 0.05) -> Found:
    """Let an epsilon-greedy network of one hidden layer play, trained by a gradient step a round."""
    n_rounds, n_arms, d = X.shape
    source = np.random.default_rng(seed)
    inner, bias, outer = source.standard_normal((hidden, d)) / 2, np.zeros(hidden), source.standard_normal(hidden) / 10
    chosen, propensities = np.empty(n_rounds, dtype=np.int64), np.full((n_rounds, n_arms), 0.1 / n_arms)
    for t in range(n_rounds):
        units = np.tanh(X[t] @ inner.T + bias)
        values = units @ outer
        propensities[t, np.argmax(values)] += 0.9
        pick = chosen[t] = source.choice(n_arms, p=propensities[t])
        error = rate * (worth[t, pick] - values[pick])
        step = error * outer * (1.0 - units[pick] ** 2)
        outer += error * units[pick]
        inner += np.outer(step, X[t, pick])
        bias += step
    return chosen, propensities, np.argmax(np.tanh(fresh @ inner.T + bias) @ outer, axis=1)
