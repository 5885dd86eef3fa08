"""How often tracking names a learner rightly, wrongly, or not at all.

    python benchmarks/naming.py [--seeds 5] [--first-seed 8000] [--shapes 0 1 2 3 4 5] [--work FOLDER] [--page PAGE]

Learners that are among the families, also as one model per arm, with batches and in the middle of their lives, and
learners that are not: networks, fixed policies, features that are not in the log, rules on top, two policies at once.
With `--work`, Vowpal Wabbit plays too, in an environment of its own. `--page` puts the tables into a page.
"""

from __future__ import annotations

import argparse
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np
from outside.logs import VW, run_worker
from outside.naming_logs import KNOWN, SHAPES, TWISTED, UNKNOWN, Shape, known_log, offers, twisted_log, unknown_log

from onlooker import BanditLog, TrackingObserver
from onlooker.base.files import write_text

WORKED = ("--epsilon 0.1", "--squarecb", "--softmax --lambda 10", "--bag 5", "--regcbopt", "--cover 3", "--first 200")
"""Options of Vowpal Wabbit, none of whose learners is among the families."""


def named(log: BanditLog) -> str | None:
    """Name of the family, or None."""
    with warnings.catch_warnings():
        # That nothing is proved is what is counted here.
        warnings.simplefilter("ignore")
        found = TrackingObserver().fit(log).exploration_
    return None if found is None else found.name


def known_rows(seeds: range, shapes: Sequence[Shape]) -> Iterator[list[str]]:
    """For every family and shape how often it was named, another was, or none."""
    for family in KNOWN:
        for shape in shapes:
            found = [named(known_log(family, shape, seed)) for seed in seeds]
            right, none = found.count(family), found.count(None)
            yield [family, _words(shape), str(right), str(len(found) - right - none), str(none)]


def twisted_rows(seeds: range, shapes: Sequence[Shape]) -> Iterator[list[str]]:
    """The same for families with batches, or in the middle of their lives, over all shapes."""
    for kind in TWISTED:
        found = [named(twisted_log(kind, shape, seed)) for shape in shapes for seed in seeds]
        right, none = found.count(kind.partition(" ")[0]), found.count(None)
        yield [kind, str(len(found)), str(right), str(len(found) - right - none), str(none)]


def unknown_rows(seeds: range, shapes: Sequence[Shape], work: Path | None) -> Iterator[list[str]]:
    """For every kind of learner without a name how often it was given one, and which."""
    for kind in UNKNOWN:
        # A column of one arm alone hardly matters: such a log is that of a family, nearly.
        sound = [one for one in shapes if not (kind.endswith("unlogged") and one.kind == "disjoint")]
        yield _counted(kind, [named(unknown_log(kind, shape, seed)) for shape in sound for seed in seeds])
    for options in WORKED if work is not None else ():
        assert work is not None
        yield _counted(
            f"VW {options}", [named(_worked(options, shape, seed, work)) for shape in shapes for seed in seeds]
        )


def _worked(options: str, shape: Shape, seed: int, work: Path) -> BanditLog:
    name = re.sub(r"\W+", "_", f"{options} {shape} {seed}")
    given, made = work / f"{name}-offers.npz", work / f"{name}.npz"
    X, theta = offers(shape, seed)
    if not made.exists():
        work.mkdir(parents=True, exist_ok=True)
        noise = 0.1 * np.random.default_rng(seed).standard_normal((len(X), 1))
        np.savez(given, X=X, worth=X @ theta + noise, fresh=X[:1])
        run_worker(VW, "vw_worker", options, seed, given, made)
        given.unlink()
    return BanditLog.from_dense(X, np.load(made)["chosen"])


def _counted(kind: str, found: list[str | None]) -> list[str]:
    names = sorted({one for one in found if one is not None})
    told = ", ".join(f"{name} {found.count(name)}" for name in names)
    return [kind, str(len(found)), str(len(found) - found.count(None)), told]


def _words(shape: Shape) -> str:
    return f"{shape.kind}, K = {shape.arms}, d = {shape.features}, N = {shape.rounds:,}"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _printed(rows: Iterator[list[str]]) -> list[list[str]]:
    found = []
    for row in rows:
        print(" | ".join(row), flush=True)
        found.append(row)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="logs of each kind and shape")
    parser.add_argument("--first-seed", type=int, default=8000, help="of the first log")
    parser.add_argument("--shapes", type=int, nargs="+", default=range(len(SHAPES)), help="which of them, by number")
    parser.add_argument("--work", type=Path, help="folder for the environment and the logs of Vowpal Wabbit")
    parser.add_argument("--page", type=Path, help="page that takes the tables, between its marks")
    given = parser.parse_args()
    shapes, seeds = [SHAPES[place] for place in given.shapes], range(given.first_seed, given.first_seed + given.seeds)
    known = _printed(known_rows(seeds, shapes))
    twisted = _printed(twisted_rows(seeds, shapes))
    unknown = _printed(unknown_rows(seeds, shapes, given.work))
    total = sum(int(row[2]) + int(row[3]) + int(row[4]) for row in known)
    right, wrong = (sum(int(row[place]) for row in known) for place in (2, 3))
    others, misnamed = (sum(int(row[place]) for row in unknown) for place in (1, 2))
    batches, well, badly = (sum(int(row[place]) for row in twisted) for place in (1, 2, 3))
    summary = (
        f"Logs of each kind and shape: {given.seeds}. Of {total} logs of learners among the families, {right} were "
        f"named rightly ({right / total:.0%}), {wrong} wrongly, the others not at all. Of {batches} with batches or "
        f"in mid-life, {well} were named rightly and {badly} wrongly. Of {others} logs of other learners, {misnamed} "
        f"were given a name ({misnamed / others:.1%})."
    )
    print(summary)
    if given.page:
        tables = [
            summary,
            _table(["learner", "log", "right", "wrong", "none"], known),
            _table(["learner", "logs", "right", "wrong", "none"], twisted),
            _table(["learner", "logs", "named", "as"], unknown),
        ]
        marks = re.compile(r"(?<=<!-- naming -->\n).*?(?=<!-- end of naming -->)", re.DOTALL)
        text = given.page.read_text(encoding="utf-8")
        write_text(given.page, marks.sub(lambda _: "\n\n".join(tables) + "\n", text))


if __name__ == "__main__":
    main()
