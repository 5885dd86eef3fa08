"""How well observers recover learners that keep weights for each arm: logs of one row per round, made with mabwiser.

    python benchmarks/arms_apart.py --work FOLDER [--seeds 3] [--page PAGE]

A learner of mabwiser, in an environment of its own, plays 6,000 rounds of 6 arms with 5 features of the context.
Observers see contexts and picks. They are judged by how often they pick what the learner's final weights would, without
exploring, in 20,000 new contexts. scikit-learn's LogisticRegression is fitted to the same rounds as suffix imitation.
`--page` puts the table into a page.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from outside.logs import MABWISER, _offers, _play
from rivals.environments import RivalError
from sklearn.linear_model import LogisticRegression

from onlooker import BanditLog, SuffixImitation, TrackingObserver
from onlooker.base.files import write_text

LEARNERS = {"LinUCB, alpha 0.1": "ucb", "LinTS, alpha 0.1": "ts", "LinGreedy, epsilon 0.1": "greedy"}
COLUMNS = ("learner", "seed", "burn-in", "LogisticRegression", "suffix imitation", "tracking")
TESTED = 20_000

Array = NDArray[np.float64]


def agreements(contexts: Array, chosen: NDArray[np.int64], theta: Array, seed: int) -> tuple[int, list[float]]:
    """Burn-in, and agreement with the learner's final greedy policy: LogisticRegression, suffix imitation, tracking."""
    source = np.random.default_rng(seed + 5000)
    tested = np.column_stack([np.ones(TESTED), source.standard_normal((TESTED, contexts.shape[1] - 1))]) / 2
    best = (tested @ theta.T).argmax(axis=1)
    log = BanditLog.from_contexts(contexts, chosen, arms=list(range(len(theta))))
    suffix = SuffixImitation(burn_in="auto").fit(log)
    rounds = slice(suffix.burn_in_, None)
    # The context has a column of ones.
    plain = LogisticRegression(fit_intercept=False, max_iter=10_000).fit(contexts[rounds], chosen[rounds])
    tracking = TrackingObserver().fit(log)
    picked = [plain.predict(tested)]
    picked += [(tested @ one.theta_.reshape(theta.shape).T).argmax(axis=1) for one in (suffix, tracking)]
    return suffix.burn_in_, [float(np.mean(picks == best)) for picks in picked]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for environments and logs")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--page", type=Path, help="page that takes the table, between its marks")
    given = parser.parse_args()
    lines = []
    for name, options in LEARNERS.items():
        for seed in range(given.seeds):
            offers, path = _offers(given.work, seed, per_arm=True), given.work / f"apart-{options}-{seed}.npz"
            try:
                if not path.exists():
                    _play(MABWISER, "mabwiser_worker", options, seed, offers, path)
            except RivalError as error:
                print(f"{name}: {error}", file=sys.stderr)
                continue
            made = np.load(path)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                burn_in, found = agreements(np.load(offers)["contexts"], made["chosen"], made["theta"], seed)
            lines.append([name, str(seed), str(burn_in), *(f"{100 * share:.1f}%" for share in found)])
            print(" | ".join(lines[-1]), flush=True)
    if given.page:
        head = ["| " + " | ".join(COLUMNS) + " |", "|---" + "|--:" * (len(COLUMNS) - 1) + "|"]
        rows = "\n".join([*head, *("| " + " | ".join(one) + " |" for one in lines)])
        marks = re.compile(r"(?<=<!-- arms apart -->\n).*?(?=<!-- end of arms apart -->)", re.DOTALL)
        write_text(given.page, marks.sub(lambda _: f"{rows}\n", given.page.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
