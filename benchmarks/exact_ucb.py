"""How near tracking comes to the exact forecast of an optimistic learner: `python benchmarks/exact_ucb.py`.

The filter replaces the belief by a Gaussian after every round. Here nothing is replaced: many particles, each a path of
the learner's estimate, of which those go on that would have picked what was picked. Both know the learner's constants
and the prior. What the particles predict is what any observer of the same picks can predict at best: the rest follows
from rewards that nobody saw. Few features only, as particles have to be many. A minute or two a log.
"""

import argparse
import os
from pathlib import Path

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np
from numpy.typing import NDArray

from onlooker import BanditLog, Environment, LinUCB, simulate
from onlooker.base.files import write_text
from onlooker.observers.tracking import UCB
from onlooker.observers.tracking.assumptions import Assumption
from onlooker.observers.tracking.follower import LEAST, Follower

Array = NDArray[np.float64]
NOISE, ARMS, ROUNDS, JUDGED = 0.1, 20, 1500, 300
FEATURES = (3, 5, 8)


def particles_ahead(log: BanditLog, precision: float, count: int, seed: int) -> Array:
    """Log-probability of each pick given those before it; features and rewards in units of the noise."""
    rng, d = np.random.default_rng(seed), log.n_features
    means, inverse, prior_inverse = np.zeros((count, d)), np.eye(d), np.eye(d) / precision
    found = np.empty(log.n_rounds)
    for t in range(log.n_rounds):
        arms, pick = log.arms(t).astype(float), int(log.chosen[t])
        shrunk = np.eye(d) - (1.0 - precision) * inverse
        scores = means @ (arms @ shrunk).T + np.sqrt(np.einsum("ki,ij,kj->k", arms, inverse, arms))
        # Before the first pick the estimate is 0, and rounding alone decides between equal scores.
        wins = scores[:, pick] >= scores.max(axis=1) - 1e-12
        found[t] = np.log((1.0 - LEAST) * wins.mean() + LEAST / len(arms))
        weights = np.cumsum(np.where(wins, 1.0 - LEAST, 0.0) + LEAST / len(arms))
        drawn = np.searchsorted(weights, (np.arange(count) + rng.random()) / count * weights[-1])
        step = prior_inverse @ arms[pick]
        moves = np.outer(rng.standard_normal(count), step / np.sqrt(1.0 + arms[pick] @ step))
        means = means[np.minimum(drawn, count - 1)] + moves
        prior_inverse -= np.outer(step, step) / (1.0 + arms[pick] @ step)
        step = inverse @ arms[pick]
        inverse -= np.outer(step, step) / (1.0 + arms[pick] @ step)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--particles", type=int, default=50_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="page to write the table to")
    given = parser.parse_args()
    lines = ["| features | seed | tracking | exact |", "| --: | --: | --: | --: |"]
    for d in FEATURES:
        for seed in range(given.seeds):
            log = simulate(Environment(d, ARMS, NOISE, seed=seed), LinUCB(alpha=NOISE), ROUNDS, seed=seed).log
            precision = d * NOISE**2
            known = Assumption(exploration=UCB(1.0), ridge=1.0, precision=precision, slip=LEAST)
            made = Follower.start(known, d, ()).follow(log), particles_ahead(log, precision, given.particles, seed)
            shares = [1.0 + one[JUDGED:].mean() / np.log(ARMS) for one in made]
            lines.append(f"| {d} | {seed} | {shares[0]:.2%} | {shares[1]:.2%} |")
            print(lines[-1], flush=True)
    if given.out:
        intro = (
            f"Information share one step ahead on LinUCB logs, K = {ARMS}, rounds {JUDGED} to {ROUNDS:,}; 100% would "
            f"be to know the rewards. Exact is a particle filter with {given.particles:,} particles. Both know the "
            "learner's constants."
        )
        text = f"# Tracking beside the exact forecast of LinUCB\n\n{intro}\n\n" + "\n".join(lines) + "\n"
        write_text(given.out, text)


if __name__ == "__main__":
    main()
