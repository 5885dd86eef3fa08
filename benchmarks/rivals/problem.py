"""What every rival is given: a folder of arrays. Needs NumPy alone, as it is read in the rivals' environments."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CHUNK = 256
"""Rounds that are held in double precision at a time."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A log that a LinUCB learner left behind, with what made it, and the two fits that rivals are to find."""

    X: NDArray[np.float32]
    """Offers, shape (N, K, d)."""

    chosen: NDArray[np.int64]
    """Picks, shape (N,)."""

    noise: Array
    """What rewards have on top of their mean, shape (N,)."""

    theta_star: Array
    """What rewards are made with, shape (d,)."""

    best: Array
    """Minimiser with the penalty, shape (d,)."""

    best_free: Array
    """Minimiser without one, shape (d,)."""

    l2: float
    """The penalty on the mean loss."""

    seed: int
    """Seed of the log."""

    def optimum(self, *, penalised: bool) -> Array:
        return self.best if penalised else self.best_free

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                np.save(folder / f"{name}.npy", value)
        (folder / "problem.json").write_text(json.dumps({"l2": self.l2, "seed": self.seed}), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Problem:
        arrays = {path.stem: np.load(path) for path in folder.glob("*.npy")}
        return cls(**arrays, **json.loads((folder / "problem.json").read_text(encoding="utf-8")))


def objective(problem: Problem, theta: Array, *, penalised: bool) -> float:
    """Mean softmax loss of the picks, with the penalty or without, in double precision whatever a rival computed in."""
    total = 0.0
    for start in range(0, len(problem.X), CHUNK):
        scores = problem.X[start : start + CHUNK].astype(np.float64) @ theta
        top = scores.max(axis=1)
        total += float(np.sum(top + np.log(np.exp(scores - top[:, None]).sum(axis=1))))
        total -= float(np.take_along_axis(scores, problem.chosen[start : start + CHUNK, None], axis=1).sum())
    return total / len(problem.X) + (problem.l2 / 2 * float(theta @ theta) if penalised else 0.0)
