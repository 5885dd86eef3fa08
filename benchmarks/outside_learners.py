"""How well observers predict learners that other people wrote, one step ahead.

    python benchmarks/outside_learners.py --work FOLDER [--open-bandit FOLDER] [--only NAME ...] [--page PAGE]

Logs are made once, in environments of their own, and kept in the work folder. `--open-bandit` is a folder of the Open
Bandit Dataset with `women.csv.gz`. `--page` puts the table into a page.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from outside.logs import LEARNERS, OPEN_BANDIT, Played, played
from rivals.environments import RivalError

from onlooker import DynamicImitation, SuffixImitation, TrackingObserver
from onlooker.base.files import write_text

BLOCK = {"suffix": 500, "tracking": 20}
"""Rounds between two looks of observers that are not followed round by round."""
WIDEST = 30
"""Features beyond which tracking takes too long for this table."""
COLUMNS = (
    "learner",
    "suffix imitation",
    "tracking",
    "dynamic",
    "dynamic, with times",
    "smoothed",
    "correlation",
    "random picks at the end",
)


def suffix_ahead(one: Played) -> NDArray[np.float64]:
    """Probability of each pick under a fit to the rounds before its block; before the first, random guessing."""
    log, found = one.log, 1.0 / one.log.n_arms
    for start in range(1000, log.n_rounds, BLOCK["suffix"]):
        later = log[start : start + BLOCK["suffix"]]
        fitted = SuffixImitation(burn_in="auto").fit(log[:start])
        found[start : start + later.n_rounds] = fitted.predict_proba(later)[later.chosen_rows]
    return found


def tracking_ahead(one: Played) -> NDArray[np.float64]:
    """Probability of each pick, given the rounds before its block; before the first, random guessing."""
    log, found = one.log, 1.0 / one.log.n_arms
    observer = TrackingObserver().fit(log[:1000])
    for start in range(1000, log.n_rounds, BLOCK["tracking"]):
        later = log[start : start + BLOCK["tracking"]]
        found[start : start + later.n_rounds] = observer.predict_proba(later)[later.chosen_rows]
        observer.partial_fit(later)
    return found


def line(name: str, one: Played) -> list[str]:
    """One row of the table."""
    log, rows = one.log, one.log.chosen_rows
    observer = DynamicImitation().fit(log)
    smoothed = observer.propensities(log, ahead=False)[rows]
    if one.times is not None:
        timed = one.share(DynamicImitation().fit(log, times=one.times).propensities(log, times=one.times)[rows])
    known = [np.log(values)[one.judged :] for values in (smoothed, one.propensities)]
    spread = np.std(known[1]) > 0
    return [
        name,
        _percent(one.share(suffix_ahead(one))),
        _percent(one.share(tracking_ahead(one))) if log.n_features <= WIDEST else "",
        _percent(one.share(observer.propensities(log)[rows])),
        "" if one.times is None else _percent(timed),
        _percent(one.share(smoothed)),
        f"{np.corrcoef(*known)[0, 1]:.3f}" if spread else "",
        _percent(observer.lapse_),
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def table(lines: list[list[str]]) -> str:
    """As Markdown."""
    head = ["| " + " | ".join(COLUMNS) + " |", "|---" + "|--:" * (len(COLUMNS) - 1) + "|"]
    return "\n".join([*head, *("| " + " | ".join(one) + " |" for one in lines)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for environments and logs")
    parser.add_argument("--open-bandit", type=Path, help="folder with women.csv.gz of the Open Bandit Dataset")
    parser.add_argument("--only", nargs="+", default=None, help="names of learners")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path, help="page that takes the table, between its marks")
    given = parser.parse_args()
    names = [*LEARNERS, *([OPEN_BANDIT] if given.open_bandit else [])]
    lines = []
    for name in given.only or names:
        try:
            one = played(name, given.seed, given.work, given.open_bandit)
        except RivalError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        with warnings.catch_warnings():
            # What observers say of logs that are not theirs is what the table is about.
            warnings.simplefilter("ignore")
            lines.append(line(name, one))
        print(" | ".join(lines[-1]), flush=True)
    if given.page:
        text = given.page.read_text(encoding="utf-8")
        marks = re.compile(r"(?<=<!-- table -->\n).*?(?=<!-- end of table -->)", re.DOTALL)
        write_text(given.page, marks.sub(lambda _: table(lines) + "\n", text))


if __name__ == "__main__":
    main()
