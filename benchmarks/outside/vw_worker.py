"""Vowpal Wabbit at work in an environment of its own: `python -m outside.vw_worker OFFERS OPTIONS SEED OUT`."""

from __future__ import annotations

import sys

import numpy as np
import vowpalwabbit


def _lines(rows: np.ndarray) -> list[str]:
    return ["| " + " ".join(f"x{j}:{value:.6g}" for j, value in enumerate(row)) for row in rows]


def main(offers: str, options: str, seed: str, out: str) -> None:
    given = np.load(offers)
    X, worth = given["X"], given["worth"]
    n_rounds, n_arms, _ = X.shape
    learner = vowpalwabbit.Workspace(f"--cb_explore_adf {options} --quiet --random_seed {seed}")
    source = np.random.default_rng(int(seed))
    chosen, propensities = np.empty(n_rounds, dtype=np.int64), np.empty((n_rounds, n_arms))
    for t in range(n_rounds):
        arms = _lines(X[t])
        probabilities = np.array(learner.predict(arms))
        propensities[t] = probabilities / probabilities.sum()
        pick = chosen[t] = source.choice(n_arms, p=propensities[t])
        arms[pick] = f"0:{-worth[t, pick]:.6g}:{propensities[t, pick]:.6g} {arms[pick]}"
        learner.learn(arms)
    greedy = [int(np.argmax(learner.predict(_lines(rows)))) for rows in given["fresh"]]
    np.savez(out, chosen=chosen, propensities=propensities, greedy=greedy)


if __name__ == "__main__":
    main(*sys.argv[1:])
