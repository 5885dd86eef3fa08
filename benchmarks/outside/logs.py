"""The logs, made once and kept in a work folder: offers, picks, and the learner's own probabilities, for judging."""

from __future__ import annotations

import csv
import gzip
import subprocess
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rivals.environments import RivalError, clean_environment, python_of, reason_of
from rivals.methods import Method

from onlooker import BanditLog, Environment
from outside.simulated import play_network, play_ridge

ROUNDS, ARMS, FEATURES = 6000, 20, 20
FRESH = 1000
"""Offers on which policies are compared."""
JUDGED = 1000
"""Rounds that are not judged: whoever observes has to learn something first."""
VW = Method("Vowpal Wabbit", "", "", ("vowpalwabbit==9.11.9", "numpy==2.2.6"))
MABWISER = Method("mabwiser", "", "", ("mabwiser==2.7.4",))
LEARNERS = {
    "VW epsilon-greedy 0.1": (VW, "vw_worker", "--epsilon 0.1"),
    "VW SquareCB": (VW, "vw_worker", "--squarecb"),
    "VW softmax": (VW, "vw_worker", "--softmax --lambda 10"),
    "VW bag of 5": (VW, "vw_worker", "--bag 5"),
    "mabwiser LinGreedy 0.1": (MABWISER, "mabwiser_worker", "greedy"),
    "mabwiser LinUCB": (MABWISER, "mabwiser_worker", "ucb"),
    "neural network, epsilon 0.1": (None, "network", ""),
    "ridge, epsilon 0.1": (None, "ridge", "greedy"),
    "LinTS": (None, "ridge", "ts"),
    "LinUCB": (None, "ridge", "ucb"),
}
OPEN_BANDIT = "Open Bandit, Thompson, women"


@dataclass(frozen=True, eq=False)
class Played:
    """A log, and what to judge observers by."""

    log: BanditLog
    propensities: NDArray[np.float64]
    """Of the picks, shape (N,)."""
    judged: int = JUDGED
    """The first round that counts."""
    times: NDArray[np.float64] | None = None
    fresh: BanditLog | None = None
    """Offers that nobody has seen, with what the learner's final greedy policy picks of them."""
    logged: NDArray[np.float64] | None = None
    """The learner's own probabilities of all arms, shape (N, K)."""
    worth: NDArray[np.float64] | None = None
    """Reward of every arm, shape (N, K)."""

    def share(self, probabilities: NDArray[np.float64]) -> float:
        """How much of what there is to know of the picks is known: 0 for random guessing, 1 for the learner itself."""
        chance = -np.log(self.log.n_arms)[self.judged :]
        known = np.log(self.propensities)[self.judged :] - chance
        return float((np.log(probabilities)[self.judged :] - chance).sum() / known.sum())


def played(name: str, seed: int, work: Path, open_bandit: Path | None = None) -> Played:
    """One of the logs; the first time it is made."""
    if name == OPEN_BANDIT:
        assert open_bandit is not None
        return _open_bandit(open_bandit)
    method, worker, options = LEARNERS[name]
    per_arm = worker == "mabwiser_worker"
    offers = _offers(work, seed, per_arm=per_arm)
    path = work / f"{name.replace(' ', '_').replace(',', '')}-{seed}.npz"
    if not path.exists():
        _play(method, worker, options, seed, offers, path)
    given, made = np.load(offers), np.load(path)
    chosen, propensities = made["chosen"], made["propensities"]
    rows = _one_block_per_arm(given["contexts"]) if per_arm else given["X"]
    fresh = _one_block_per_arm(given["fresh"]) if per_arm else given["fresh"]
    return Played(
        BanditLog.from_dense(rows, chosen),
        propensities[np.arange(len(chosen)), chosen],
        fresh=BanditLog.from_dense(fresh, made["greedy"]),
        logged=propensities,
        worth=given["worth"],
    )


def _play(method: Method | None, worker: str, options: str, seed: int, offers: Path, path: Path) -> None:
    if method is None:
        given = np.load(offers)
        X, worth, fresh = given["X"].astype(np.float64), given["worth"], given["fresh"].astype(np.float64)
        network = worker == "network"
        found = play_network(X, worth, fresh, seed) if network else play_ridge(X, worth, fresh, options, seed)
        np.savez(path, chosen=found[0], propensities=found[1], greedy=found[2])
        return
    run_worker(method, worker, options, seed, offers, path)


def run_worker(method: Method, worker: str, options: str, seed: int, offers: Path, path: Path) -> None:
    """Have a learner of another library play, in an environment of its own."""
    python = python_of(method, path.parent)
    command = [str(python), "-m", f"outside.{worker}", str(offers), options, str(seed), str(path)]
    here = Path(__file__).parent.parent
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, env=clean_environment(), check=False)  # noqa: S603
    if done.returncode:
        raise RivalError(f"{method.name} failed: {reason_of(done.stdout + done.stderr)}")


def _offers(work: Path, seed: int, *, per_arm: bool) -> Path:
    path = work / f"offers{'-per-arm' if per_arm else ''}-{seed}.npz"
    if path.exists():
        return path
    work.mkdir(parents=True, exist_ok=True)
    noise = 0.1 * np.random.default_rng(seed).standard_normal(ROUNDS)[:, None]
    if per_arm:
        source = np.random.default_rng(seed + 1000)
        contexts = np.column_stack([np.ones(ROUNDS), source.standard_normal((ROUNDS, 4))]) / 2
        worth = contexts @ source.standard_normal((5, 6)) / 2 + noise
        fresh = np.column_stack([np.ones(FRESH), source.standard_normal((FRESH, 4))]) / 2
        np.savez(path, contexts=contexts, worth=worth, fresh=fresh)
        return path
    environment = Environment(FEATURES, ARMS, seed=seed)
    X = environment.test_log(ROUNDS, seed=seed + 100).dense.reshape(ROUNDS, ARMS, FEATURES)
    fresh = environment.test_log(FRESH, seed=seed + 200).dense.reshape(FRESH, ARMS, FEATURES)
    np.savez(path, X=X, worth=X @ environment.theta_star + noise, fresh=fresh)
    return path


def _one_block_per_arm(contexts: NDArray[np.float64], n_arms: int = 6) -> NDArray[np.float64]:
    blocks = np.eye(n_arms)[None, :, :, None] * contexts[:, None, None, :]
    return blocks.reshape(len(contexts), n_arms, -1)


def _open_bandit(folder: Path) -> Played:
    """Item ids alone: one weight per item."""
    with gzip.open(folder / "women.csv.gz", "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    item = np.array([int(row["item_id"]) for row in rows])
    times = np.array([datetime.fromisoformat(row["timestamp"]).timestamp() for row in rows])
    log = BanditLog.from_dense(
        np.broadcast_to(np.eye(item.max() + 1), (len(item), item.max() + 1, item.max() + 1)), item
    )
    return Played(log, np.array([float(row["propensity_score"]) for row in rows]), 0, times)
