"""How often `diagnose` is right: verdicts on simulated logs whose learner is known.

`python benchmarks/calibration.py` prints the table; some minutes on two cores. Constants were chosen on the logs of
`--first-seed 0 --share 0.2`; the default seeds are others.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from onlooker.diagnosis import Diagnosis, diagnose
from onlooker.logs.log import BanditLog
from onlooker.simulation.environment import Environment
from onlooker.simulation.learners import EpsilonGreedy, ExploreThenCommit, LinTS, LinUCB, UniformRandom
from onlooker.simulation.play import simulate
from onlooker.simulation.ridge import RidgeLearner

UNIFORM = ((2, 5, 500), (5, 10, 1000), (10, 100, 2000), (20, 50, 2000), (20, (2, 20), 1000))
"""Features, arms and rounds of the uniform logs, in turn."""


@dataclass(frozen=True)
class Case:
    """A kind of log, and what should be said of it."""

    name: str
    make: Callable[[int], BanditLog]
    logs: int
    expected: str
    goal: float
    changed: int | None = None


def played(learner: RidgeLearner, d: int, K: int | tuple[int, int], N: int) -> Callable[[int], BanditLog]:
    return lambda seed: simulate(Environment(d, K, seed=seed), learner, N, seed=seed).log


def uniform(seed: int) -> BanditLog:
    return played(UniformRandom(), *UNIFORM[seed % len(UNIFORM)])(seed)


def expert(decisiveness: float, N: int, *, turn: float = 0.0) -> Callable[[int], BanditLog]:
    """A softmax policy of fixed theta, which turns by so many degrees half-way."""

    def make(seed: int) -> BanditLog:
        offers = Environment(20, 50, seed=seed).test_log(N, seed=seed)
        rng = np.random.default_rng(seed)
        first, other = np.linalg.qr(rng.standard_normal((20, 2)))[0].T
        second = np.cos(np.radians(turn)) * first + np.sin(np.radians(turn)) * other
        rows = offers.features.reshape(N, 50, 20)
        scores = np.where(np.arange(N)[:, None] < N // 2, rows @ first, rows @ second)
        picks = (decisiveness * scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
        return BanditLog(offers.features, offers.offsets, picks)

    return make


def restarted(seed: int) -> BanditLog:
    """LinUCB twice, the second time with another theta* and nothing remembered."""
    parts = [simulate(Environment(20, 50, seed=s), LinUCB(), 2500, seed=s).log for s in (seed, seed + 1_000_000)]
    offsets = np.concatenate([parts[0].offsets, parts[0].offsets[-1] + parts[1].offsets[1:]])
    return BanditLog(
        np.vstack([part.features for part in parts]), offsets, np.concatenate([part.chosen for part in parts])
    )


CASES = (
    Case("uniform, five settings", uniform, 200, "no preference", 0.92),
    Case("softmax expert, weak", expert(5.0, 2000), 50, "stable from the start", 0.9),
    Case("softmax expert, strong", expert(20.0, 2000), 50, "stable from the start", 0.9),
    Case("nearly greedy expert", expert(300.0, 2000), 50, "stable from the start", 0.9),
    Case("expert, turns by 90 degrees", expert(10.0, 4000, turn=90.0), 50, "changed", 0.9, 2000),
    Case("expert, turns by 45 degrees", expert(10.0, 4000, turn=45.0), 50, "changed", 0.9, 2000),
    Case("LinUCB, restarted half-way", restarted, 50, "changed", 0.9, 2500),
    Case("LinUCB", played(LinUCB(), 20, 50, 5000), 50, "stable", 0.9),
    Case("LinTS", played(LinTS(), 20, 50, 5000), 50, "stable", 0.9),
    Case("epsilon-greedy, 10%", played(EpsilonGreedy(0.1), 20, 50, 5000), 50, "stable", 0.9),
    Case("explore 1,000, then commit", played(ExploreThenCommit(1000), 20, 50, 5000), 50, "stable", 0.9),
    Case("LinTS, cut short", played(LinTS(), 50, 200, 1500), 50, "moving", 0.8),
    Case("LinUCB, 300 rounds", played(LinUCB(), 20, 50, 300), 50, "not enough evidence", 0.9),
)


def said(diagnosis: Diagnosis) -> str:
    return "stable from the start" if diagnosis.from_start else diagnosis.verdict


def rows(first_seed: int, share: float) -> Iterator[str]:
    yield f"{'log':<28} {'logs':>4}  {'expected':<22} {'right':>6} {'goal':>5}  {'round':<22} verdicts"
    for case in CASES:
        n = max(1, round(share * case.logs))
        found = []
        for seed in range(first_seed, first_seed + n):
            found.append(diagnose(case.make(seed)))
            print(f"\r{case.name}: {len(found)} of {n}   ", end="", file=sys.stderr)
        print(file=sys.stderr)
        counts = Counter(map(said, found))
        right = sum(count for words, count in counts.items() if words.startswith(case.expected)) / n
        others = ", ".join(f"{words} {count}" for words, count in counts.most_common())
        yield (
            f"{case.name:<28} {n:>4}  {case.expected:<22} {right:>6.1%} {case.goal:>5.0%}  "
            f"{places(case, found):<22} {others}"
        )


def places(case: Case, found: list[Diagnosis]) -> str:
    """Where the change or the settling was found: the median; for a known change also how many intervals hold it."""
    estimates = [place for place in (d.changed or d.settled for d in found) if place is not None]
    if not estimates:
        return ""
    median = int(np.median([place.round for place in estimates]))
    if case.changed is None:
        return f"{median:,}"
    covered = np.mean([place.low <= case.changed <= place.high for place in estimates])
    return f"{median:,}, held by {covered:.0%}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first-seed", type=int, default=10_000)
    parser.add_argument("--share", type=float, default=1.0, help="part of the logs to make")
    options = parser.parse_args()
    for row in rows(options.first_seed, options.share):
        print(row, flush=True)
