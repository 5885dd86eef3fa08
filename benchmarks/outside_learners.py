"""How well observers predict learners that other people wrote, one step ahead, and how far propensities can be used.

    python benchmarks/outside_learners.py --work FOLDER [--open-bandit FOLDER] [--only NAME ...] [--page PAGE]

Logs are made once, in environments of their own, and kept in the work folder with what was measured, so that a run can
be stopped and started again. `--open-bandit` is a folder of the Open Bandit Dataset with `women.csv.gz`. `--page` puts
the tables into a page, and the chart beside it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from outside.logs import FEATURES, LEARNERS, OPEN_BANDIT, Played, played
from rivals.environments import RivalError

from onlooker import DynamicImitation, Environment, Propensities, SuffixImitation, TrackingObserver, propensities
from onlooker.base.files import write_text
from onlooker.evaluation.propensities import predicted_ahead

OBSERVERS = {"suffix imitation": SuffixImitation, "tracking": TrackingObserver, "dynamic": DynamicImitation}
WITHIN = 0.01
"""An interval covers a probability that it misses by no more than this: no estimate reaches a probability of 1."""

Measured = dict[str, float]


def measure(one: Played, seed: int) -> Measured:
    """All figures for one log."""
    log, found = one.log, propensities(one.log)
    measured = {name: one.share(_values(found, kind)[log.chosen_rows]) for name, kind in OBSERVERS.items()}
    measured["propensities"] = one.share(found.chosen)
    dynamic = DynamicImitation().fit(log)
    smoothed = dynamic.propensities(log, ahead=False)[log.chosen_rows]
    measured["smoothed"] = one.share(smoothed)
    known = [np.log(values)[one.judged :] for values in (smoothed, one.propensities)]
    measured["correlation"] = float(np.corrcoef(*known)[0, 1]) if np.std(known[1]) > 0 else np.nan
    measured["random picks"] = dynamic.lapse_
    measured["misfit"] = found.calibration().misfit
    if one.times is not None:
        timed = DynamicImitation().fit(log, times=one.times).propensities(log, times=one.times)
        measured["dynamic, with times"] = one.share(timed[log.chosen_rows])
    if one.logged is not None:
        low, high = found.interval(0.9)
        first, rows = int(log.offsets[one.judged]), log.chosen_rows[one.judged :]
        covers = (low - WITHIN <= one.logged.ravel()) & (one.logged.ravel() <= high + WITHIN)
        measured["covered, pick"], measured["covered, all"] = float(covers[rows].mean()), float(covers[first:].mean())
    if one.fresh is not None:
        for name, kind in OBSERVERS.items():
            policy = dynamic.policy_ if kind is DynamicImitation else kind().fit(log).policy_
            measured[f"agreement, {name}"] = float(np.mean(policy.choose(one.fresh) == one.fresh.chosen))
    if log.n_features == FEATURES and one.worth is not None and one.propensities.max() < 1:
        measured["SNIPS"] = _snips(one, found, seed)
    return measured


def _values(
    found: Propensities, kind: type[SuffixImitation | TrackingObserver | DynamicImitation]
) -> NDArray[np.float64]:
    """What one observer predicted; one that `propensities` left out is asked."""
    values = found.predicted.get(kind.__name__)
    if values is None:
        values = predicted_ahead(kind(), found.log)
    assert values is not None
    return values


def _snips(one: Played, found: Propensities, seed: int) -> float:
    """By how much SNIPS of a softmax policy near the best one changes when recovered propensities replace true ones."""
    rounds, chosen = np.arange(one.log.n_rounds), one.log.chosen
    theta = Environment(FEATURES, 20, seed=seed).theta_star
    turned = theta + 0.3 * np.linalg.norm(theta) * np.random.default_rng(seed).standard_normal(FEATURES) / FEATURES**0.5
    scores = (one.log.dense @ (10.0 * turned / np.linalg.norm(turned))).reshape(one.log.n_rounds, -1)
    policy = np.exp(scores - scores.max(axis=1, keepdims=True))
    wanted = (policy / policy.sum(axis=1, keepdims=True))[rounds, chosen]
    assert one.worth is not None
    earned = one.worth[rounds, chosen]
    values = [(w * earned).sum() / w.sum() for w in (wanted / found.chosen, wanted / one.propensities)]
    return float(values[0] / values[1] - 1.0)


SHARES = (*OBSERVERS, "propensities", "dynamic, with times", "smoothed", "correlation", "random picks")
CHECKS = ("misfit", "covered, pick", "covered, all", "SNIPS", *(f"agreement, {name}" for name in OBSERVERS))


def table(found: dict[str, list[Measured]], columns: tuple[str, ...]) -> str:
    """As Markdown: means over seeds, of SNIPS the largest."""
    lines = ["| learner | " + " | ".join(columns) + " |", "|---" + "|--:" * len(columns) + "|"]
    for name, runs in found.items():
        cells = []
        for column in columns:
            values = np.array([run[column] for run in runs if column in run and np.isfinite(run[column])])
            if not len(values):
                cells.append("")
            elif column == "SNIPS":
                cells.append(", ".join(f"{100 * value:+.1f}%" for value in values))
            else:
                mean = float(values.mean())
                cells.append(f"{mean:.3f}" if column in {"correlation", "misfit"} else f"{100 * mean:.1f}%")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(found: dict[str, list[Measured]], path: Path) -> None:
    """Shares of all learners, one line each."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 0.4 * len(found) + 1.6), layout="constrained")
    axes = figure.add_subplot()
    # Okabe and Ito's colours, and a little apart, so that none covers another.
    marks = {
        "suffix imitation": ("v", "#0072B2", 0.0),
        "tracking": ("s", "#E69F00", -0.15),
        "dynamic": ("^", "#009E73", 0.15),
        "propensities": ("o", "#000000", 0.0),
    }
    for column, (mark, color, shift) in marks.items():
        means = [100 * np.mean([run[column] for run in runs]) for runs in found.values()]
        axes.plot(means, np.arange(len(found)) + shift, mark, color=color, label=column, markersize=6)
    axes.set_yticks(range(len(found)), list(found))
    axes.invert_yaxis()
    axes.grid(axis="y", alpha=0.3)
    axes.set_xlabel("information share one step ahead, %")
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    figure.savefig(path, dpi=150)


def _kept(name: str, seed: int, work: Path, open_bandit: Path | None) -> Measured:
    path = work / f"measured-{re.sub(r'[^a-zA-Z0-9.]+', '_', name)}-{seed}.json"
    if not path.exists():
        one = played(name, seed, work, open_bandit)
        with warnings.catch_warnings():
            # What observers say of logs that are not theirs is what the table is about.
            warnings.simplefilter("ignore")
            write_text(path, json.dumps(measure(one, seed)))
    found: Measured = json.loads(path.read_text(encoding="utf-8"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for environments, logs and what was measured")
    parser.add_argument("--open-bandit", type=Path, help="folder with women.csv.gz of the Open Bandit Dataset")
    parser.add_argument("--only", nargs="+", default=None, help="names of learners")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--page", type=Path, help="page that takes the tables, between its marks")
    given = parser.parse_args()
    names = given.only or [*LEARNERS, *([OPEN_BANDIT] if given.open_bandit else [])]
    found: dict[str, list[Measured]] = {}
    for seed in range(given.seeds):
        for name in names:
            if name == OPEN_BANDIT and seed:
                continue
            try:
                found.setdefault(name, []).append(_kept(name, seed, given.work, given.open_bandit))
            except RivalError as error:
                print(f"{name}: {error}", file=sys.stderr)
                continue
            print(name, seed, {key: round(value, 4) for key, value in found[name][-1].items()}, flush=True)
    if given.page:
        text = given.page.read_text(encoding="utf-8")
        for mark, columns in (("table", SHARES), ("checks", CHECKS)):
            marks = re.compile(rf"(?<=<!-- {mark} -->\n).*?(?=<!-- end of {mark} -->)", re.DOTALL)
            text = marks.sub(lambda _, columns=columns: table(found, columns) + "\n", text)
        write_text(given.page, text)
        draw(found, given.page.with_suffix(".png"))


if __name__ == "__main__":
    main()
