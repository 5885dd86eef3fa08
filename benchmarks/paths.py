"""How often the bands of `DynamicImitation.path_` hold the weights.

    python benchmarks/paths.py [--logs 4] [--page PAGE]

Picks are softmax in scores whose weights are known in every round: they stand still, drift, settle, or are those of a
ridge learner. A band of 95% should hold them in 95% of the rounds. `--page` puts the table into a page.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from onlooker import BanditLog, Boltzmann, DynamicImitation, Environment, simulate
from onlooker.base.files import write_text

WALKS = ("still", "drift", "settle", "ridge")
SHAPES = ((5, 10, 2000), (20, 20, 3000), (40, 20, 3000))
"""Features, arms and rounds."""
SIZES = (1.0, 4.0, 12.0)
"""Standard deviation of an arm's score in logits: with 12 the best of 20 arms is nearly always picked."""
AFTER = 300
"""Rounds that are not looked at: the filter starts from weights of 0."""


def played(walk: str, shape: tuple[int, int, int], size: float, seed: int) -> tuple[BanditLog, NDArray[np.float64]]:
    """A log, and the weights of each of its rounds in logits."""
    d, n_arms, n_rounds = shape
    if walk == "ridge":
        # Arms have length one: with weights of length one their scores have a spread of 1 / d**0.5.
        temperature = 1.0 / (size * d**0.5)
        run = simulate(Environment(d, n_arms, seed=seed), Boltzmann(temperature), n_rounds=n_rounds, seed=seed)
        return run.log, run.learner_path(np.arange(1, n_rounds + 1)) / temperature
    rng = np.random.default_rng(seed)
    features, theta = rng.standard_normal((n_rounds, n_arms, d)), rng.standard_normal(d)
    theta *= size / np.linalg.norm(theta)
    moves = {
        "still": np.zeros(n_rounds),
        "drift": np.full(n_rounds, 0.01),
        "settle": 0.3 / (1 + np.arange(n_rounds) / 20),
    }
    steps = moves[walk][:, None] * size / d**0.5 * rng.standard_normal((n_rounds, d))
    path = theta + np.cumsum(steps, axis=0)
    scores = np.einsum("tkj,tj->tk", features, path) + rng.gumbel(size=(n_rounds, n_arms))
    return BanditLog.from_dense(features, scores.argmax(axis=1)), path


def covered(walk: str, shape: tuple[int, int, int], size: float, seed: int) -> tuple[float, float]:
    """Share of checkpoints and weights that the bands hold, and how long the path is beside the true one."""
    log, truth = played(walk, shape, size, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = DynamicImitation().fit(log).path_
    late = path.rounds > AFTER
    truth = truth[path.rounds[late] - 1]
    held = np.abs(path.theta[late] - truth) <= 1.96 * path.standard_error[late]
    return float(held.mean()), float(np.linalg.norm(path.theta[late]) / np.linalg.norm(truth))


def rows(logs: int) -> Iterator[list[str]]:
    """One row a walk and shape, one cell a size."""
    for walk in WALKS:
        for shape in SHAPES:
            cells = []
            for size in SIZES:
                found = np.mean([covered(walk, shape, size, seed) for seed in range(logs)], axis=0)
                cells.append(f"{found[0]:.0%} ({found[1]:.2f})")
            yield [walk, *map(str, shape[:2]), *cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=4, help="of each kind")
    parser.add_argument("--page", type=Path, help="page that takes the table, between its marks")
    given = parser.parse_args()
    lines = ["| weights | features | arms | spread 1 | spread 4 | spread 12 |", "|---|--:|--:|--:|--:|--:|"]
    for row in rows(given.logs):
        lines.append("| " + " | ".join(row) + " |")
        print(lines[-1], flush=True)
    if given.page:
        marks = re.compile(r"(?<=<!-- paths -->\n).*?(?=<!-- end of paths -->)", re.DOTALL)
        text = given.page.read_text(encoding="utf-8")
        write_text(given.page, marks.sub(lambda _: "\n".join(lines) + "\n", text))


if __name__ == "__main__":
    main()
