"""What observers lose where a log says less than the pick among all offers, and what corrections give back.

    python benchmarks/partial.py [--seeds 30] [--page PAGE]

Learners play 3,000 rounds of 20 arms with 4 features; `Mask` then takes information away, in five ways and to several
shares. Suffix imitation is fitted to the whole log, to what is left with the correction for it, and to what is left as
if nothing were missing: a pick guessed within its set, a sample taken for all offers, lost rounds forgotten, missing
features filled with 0. Judged by the error of the direction and by how often its 95% intervals hold theta*'s.
`--page` puts the tables into a page, and a figure beside it.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker import BanditLog, Boltzmann, Environment, LinTS, LinUCB, Mask, SuffixImitation, fit_draws, simulate
from onlooker.base.files import write_text
from onlooker.logs.drawn import draw_picks, with_picks
from onlooker.observers.tracking.path import direction_covariance
from onlooker.simulation.mask import Masked

N, K, D = 3000, 20, 4
LEARNERS: dict[str, Any] = {"LinUCB": LinUCB(), "LinTS": LinTS(), "softmax": None}
TEMPERATURE = 0.15
FIRST = np.eye(D)[0]
"""Offers and rounds are kept by the first feature."""
MASKS = {
    "picks known to a group": {0.5: Mask(groups=10), 0.25: Mask(groups=5), 0.1: Mask(groups=2)},
    "offers sampled by a feature": {
        share: Mask(keep_offers=round(share * K), favour=1.5 * FIRST) for share in (0.5, 0.25, 0.15)
    },
    "rounds lost at random": {share: Mask(lose=1 - share) for share in (0.5, 0.25, 0.1, 0.05)},
    "rounds lost by their pick": {share: Mask(lose=1 - share, lose_by=FIRST) for share in (0.5, 0.25, 0.1)},
    "a feature missing": {share: Mask(hide={0: 1 - share}) for share in (0.75, 0.5, 0.25)},
}
WAYS = ("everything", "corrected", "ignored")


def _observer() -> SuffixImitation:
    return SuffixImitation(burn_in=0.4, l2=1e-6)


def played(learner: str, seed: int) -> tuple[BanditLog, NDArray[np.float64]]:
    """A log, and the direction of what its learner learned about."""
    environment = Environment(D, K, seed=seed)
    if LEARNERS[learner] is not None:
        simulation = simulate(environment, LEARNERS[learner], N, seed=seed)
        return simulation.log, simulation.theta_star
    log = simulate(environment, Boltzmann(1.0), N, seed=seed).log
    scores = (np.asarray(log.features) @ environment.theta_star).reshape(N, K) / TEMPERATURE
    noise = np.random.default_rng(seed + 1000).gumbel(size=(N, K))
    return BanditLog(log.features, log.offsets, (scores + noise).argmax(axis=1)), environment.theta_star


def corrected(masked: Masked, seed: int) -> SuffixImitation:
    """The fit that knows what was lost."""
    if masked.features is not None:
        return fit_draws(_observer(), masked.draws(8, seed))
    return _observer().fit(masked.log, round_probability=masked.round_probability)


def ignored(masked: Masked, seed: int) -> SuffixImitation:
    """The fit that takes what is left for everything."""
    log = masked.log
    if masked.features is not None:
        kept = masked.truth[masked.rounds]
        return _observer().fit(BanditLog(np.nan_to_num(masked.features), kept.offsets, kept.chosen))
    if log.possible is not None:
        log = with_picks(log, draw_picks(log, np.ones(len(log.features)), np.random.default_rng(seed)))
    return _observer().fit(BanditLog(log.features, log.offsets, log.chosen))


def judged(fit: SuffixImitation, theta: NDArray[np.float64]) -> tuple[float, float]:
    """Error of the direction, and the share of its intervals that hold the true one."""
    assert fit.covariance_ is not None
    unit, true = fit.theta_ / np.linalg.norm(fit.theta_), theta / np.linalg.norm(theta)
    errors = np.sqrt(np.diag(direction_covariance(fit.theta_, fit.covariance_)))
    return float(np.linalg.norm(unit - true)), float(np.mean(np.abs(unit - true) <= 1.96 * errors))


def measure(seeds: int, learners: list[str]) -> dict[tuple[str, str, float, str], NDArray[np.float64]]:
    """Errors and coverages, by learner, kind of loss, share kept and way of fitting."""
    found: dict[tuple[str, str, float, str], list[tuple[float, float]]] = defaultdict(list)
    for learner in learners:
        for seed in range(seeds):
            log, theta = played(learner, seed)
            whole = judged(_observer().fit(log), theta)
            for kind, masks in MASKS.items():
                for share, mask in masks.items():
                    masked = mask(log, seed)
                    found[learner, kind, share, WAYS[0]].append(whole)
                    found[learner, kind, share, WAYS[1]].append(judged(corrected(masked, seed), theta))
                    found[learner, kind, share, WAYS[2]].append(judged(ignored(masked, seed), theta))
            print(learner, seed, file=sys.stderr, flush=True)
    return {key: np.array(values) for key, values in found.items()}


def table(found: dict[tuple[str, str, float, str], NDArray[np.float64]]) -> str:
    """Means over learners' logs, as a table."""
    errors, coverages = (" | ".join(f"{what}: {way}" for way in WAYS) for what in ("error", "coverage"))
    lines = [f"| what is left | learner | kept | {errors} | {coverages} |"]
    lines.append("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    for learner, kind, share, way in found:
        if way == WAYS[0]:
            cells = [found[learner, kind, share, one].mean(axis=0) for one in WAYS]
            errors = " | ".join(f"{cell[0]:.3f}" for cell in cells)
            inside = " | ".join(f"{cell[1]:.0%}" for cell in cells)
            lines.append(f"| {kind} | {learner} | {share:.0%} | {errors} | {inside} |")
    return "\n".join(lines)


def draw(found: dict[tuple[str, str, float, str], NDArray[np.float64]], path: Path) -> None:
    """Errors above, coverages below, against the share kept; a line per way, the mean over learners."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 6), layout="constrained")
    axes = figure.subplots(2, len(MASKS), sharex=False)
    learners = list(dict.fromkeys(key[0] for key in found))
    for column, (kind, masks) in enumerate(MASKS.items()):
        shares = sorted(masks)
        for way, colour, mark in zip(WAYS, ("C7", "C0", "C3"), ("", "o", "x"), strict=True):
            means = [
                np.mean([found[learner, kind, share, way].mean(axis=0) for learner in learners], axis=0)
                for share in shares
            ]
            for row in (0, 1):
                values = [mean[row] for mean in means]
                axes[row][column].plot(shares, values, marker=mark, color=colour, label=way, linewidth=1.5)
        for row in (0, 1):
            axes[row][column].set_xscale("log")
            axes[row][column].set_xticks(shares, [f"{share:.0%}" for share in shares])
            axes[row][column].minorticks_off()
            axes[row][column].grid(alpha=0.3)
        axes[0][column].set_yscale("log")
        axes[0][column].set_title(kind, fontsize=10)
        axes[1][column].set_ylim(0, 1.02)
        axes[1][column].axhline(0.95, color="k", linewidth=0.8, linestyle=":")
        axes[1][column].set_xlabel("share kept")
    axes[0][0].set_ylabel("direction error")
    axes[1][0].set_ylabel("coverage of 95% intervals")
    axes[0][0].legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS))
    parser.add_argument("--page", type=Path, help="page that takes the table, between its marks")
    given = parser.parse_args()
    with warnings.catch_warnings():
        # What is said of fits that ignore what is missing is what the table is about.
        warnings.simplefilter("ignore")
        found = measure(given.seeds, given.learners)
    print(table(found))
    if given.page:
        marks = re.compile(r"(?<=<!-- table -->\n).*?(?=<!-- end of table -->)", re.DOTALL)
        text = given.page.read_text(encoding="utf-8")
        write_text(given.page, marks.sub(lambda _: table(found) + "\n", text))
        draw(found, given.page.with_suffix(".png"))


if __name__ == "__main__":
    main()
