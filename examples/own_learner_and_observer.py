"""Add a learner and an observer of your own to the comparison: a grid of simulations, resumable, in parallel.

Run it with `python examples/own_learner_and_observer.py`; stop it and start it again as you like.
"""

from pathlib import Path
from tempfile import gettempdir
from typing import Self

import numpy as np

from onlooker import BanditLog, LinearPolicy
from onlooker.experiments.grid import COLUMNS, Grid, run_grid
from onlooker.experiments.tables import write_csv
from onlooker.observers import Observer


class DecayingGreedy:
    """A learner: greedy on a ridge estimate, with uniform picks that become rarer."""

    def reset(self, rng: np.random.Generator) -> None:
        """Start anew; all chance comes from here, so the caller's seed decides it."""
        self.rng, self.t = rng, 0
        self.gram: np.ndarray | None = None

    def choose(self, features: np.ndarray) -> int:
        """Pick an arm: one row of `features` each."""
        self.t += 1
        if self.gram is None:
            self.gram, self.moment = np.eye(features.shape[1]), np.zeros(features.shape[1])
        if self.rng.random() < 20 / (20 + self.t):
            return int(self.rng.integers(len(features)))
        return int(np.argmax(features @ np.linalg.solve(self.gram, self.moment)))

    def update(self, features_of_pick: np.ndarray, reward: float) -> None:
        """Learn from what the pick paid."""
        self.gram += np.outer(features_of_pick, features_of_pick)
        self.moment += reward * features_of_pick


class LastPicks(Observer):
    """An observer: the mean of the last picks, less that of what was on offer beside them."""

    def __init__(self, *, part: float = 0.3) -> None:
        self.part = part

    def fit(self, log: BanditLog) -> Self:
        """Set `policy_`."""
        recent = log.suffix(int((1 - self.part) * log.n_rounds))
        picked = recent.features[recent.chosen_rows].mean(axis=0, dtype=np.float64)
        self.policy_ = LinearPolicy(picked - recent.features.mean(axis=0, dtype=np.float64), log.feature_names)
        return self


def main() -> None:
    """Run the grid and print the mean direction error of every method."""
    grid = Grid(
        environments=[(5, 20)],
        learners={"decaying greedy": DecayingGreedy()},
        observers={"last picks": LastPicks()},
        horizons=[500, 1000],
        seeds=range(4),
    )
    folder = Path(gettempdir()) / "onlooker-example"
    rows = run_grid(grid, folder)
    write_csv(folder / "results.csv", rows, COLUMNS)
    for N in grid.horizons:
        for method in ("learner", "naive", "rule", "auto", "last picks"):
            errors = [row["direction_error"] for row in rows if (row["N"], row["method"]) == (N, method)]
            print(f"N = {N:>4}  {method:<10}  {np.mean(errors):.4f}")


if __name__ == "__main__":
    main()
