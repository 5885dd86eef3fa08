"""CPU seconds of fits, pooling, diagnoses and tracking for many learners with short logs, one process and one thread.

    python benchmarks/many_learners.py --groups 200

prints what each takes for a group, and for 2,000 of them. `onlooker ... --by` uses a process a core.
"""

import argparse
import os
import time
import warnings
from functools import partial

os.environ |= {"ONLOOKER_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import numpy as np

from onlooker import BanditLog, SuffixImitation, TrackingObserver, diagnose
from onlooker.observers.groups import each_group, fit_group
from onlooker.observers.pooling import pool

ROUNDS, ARMS, FEATURES, MANY = 300, 4, 4, 2000


def made(n_groups: int) -> dict[str, BanditLog]:
    """Logs of softmax policies that vary about a common one."""
    rng = np.random.default_rng(0)
    thetas = np.array([-1.0, 0.5, 0.3, 0.0]) + 0.4 * rng.normal(size=(n_groups, FEATURES))
    logs = {}
    for group, theta in enumerate(thetas):
        rows = rng.normal(size=(ROUNDS, ARMS, FEATURES))
        picks = (rows @ theta + rng.gumbel(size=(ROUNDS, ARMS))).argmax(axis=1)
        logs[f"shop {group}"] = BanditLog.from_dense(rows, picks)
    return logs


def tracked(log: BanditLog) -> object:
    """What `onlooker track --by` finds."""
    return TrackingObserver().fit(log).summary(families=False)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=200)
    logs = made(parser.parse_args().groups)
    warm = dict(list(logs.items())[:2])
    works = {"fit": partial(fit_group, SuffixImitation(), 0.95), "diagnose": diagnose, "track": tracked}
    print(f"{len(logs)} groups of {ROUNDS} rounds, {ARMS} arms, {FEATURES} features: CPU time")
    for name, work in works.items():
        each_group(work, warm)
        start = time.process_time()
        each_group(work, logs)
        _say(name, (time.process_time() - start) / len(logs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pool(warm)
        start = time.process_time()
        pool(logs)
        _say("pool", (time.process_time() - start) / len(logs))


def _say(name: str, seconds: float) -> None:
    print(f"{name:10} {1000 * seconds:6.1f} ms a group, {MANY * seconds:6.0f} s for {MANY:,}")


if __name__ == "__main__":
    main()
