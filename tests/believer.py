"""The learner that the Bayesian inverse contextual bandit supposes, written down as plainly as can be."""

import numpy as np

from onlooker import Environment, simulate

ALPHA, NOISE = 20.0, 0.1


class Believer:
    """Samples from its belief, picks by softmax, and inverts N in every round."""

    def __init__(self, n_features, n0=1.0):
        self.n0, self.d = n0, n_features

    def reset(self, rng):
        self.rng = rng
        self.N, self.y = self.n0 * np.eye(self.d), np.zeros(self.d)

    def choose(self, features):
        inverse = np.linalg.inv(self.N)
        rho = self.rng.multivariate_normal(inverse @ self.y, NOISE**2 * inverse)
        scores = ALPHA * features @ rho
        weights = np.exp(scores - scores.max())
        return int(self.rng.choice(len(weights), p=weights / weights.sum()))

    def update(self, features_of_pick, reward):
        x = np.asarray(features_of_pick, dtype=np.float64)
        self.N += np.outer(x, x)
        self.y += reward * x


def play(n_features, n_arms, n_rounds, seed):
    """The model's own data."""
    environment = Environment(n_features, n_arms, noise=NOISE, seed=seed)
    return simulate(environment, Believer(n_features), n_rounds, seed=seed)
