"""What observers lose where a log says less than the pick among all offers, and what corrections give back.

    python benchmarks/partial.py [--seeds 30] [--page PAGE]
    python benchmarks/partial.py --catalogue [--seeds 30]

A softmax policy picks in 1,500 rounds of 20 arms with 4 normal features; `Mask` then takes information away, in five
ways and to several shares. Suffix imitation is fitted to the whole log, to what is left with the correction for it, and
to what is left as if nothing were missing: a pick guessed within its set, a sample taken for all offers, lost rounds
forgotten, missing features filled with 0. Judged by the error of the direction and by how often 95% intervals hold the
true weights. LinUCB and LinTS learners (3,000 rounds of 9 arms) are followed by tracking; their target is theta*.
`--page` puts the tables into a page, and a figure beside it.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker import (
    BanditLog,
    Environment,
    LinTS,
    LinUCB,
    Mask,
    SuffixImitation,
    TrackingObserver,
    assume_offers,
    direction_error,
    fit_draws,
    sample_offers,
    simulate,
)
from onlooker.base.files import write_text
from onlooker.logs.drawn import draw_picks, with_picks
from onlooker.observers.tracking.path import direction_covariance
from onlooker.simulation.mask import Masked

N, K, D = 1500, 20, 4
THETA = np.array([1.2, -0.8, 0.5, 0.0])
FIRST = np.eye(D)[0]
"""Offers and rounds are kept by the first feature."""
LEARNERS: dict[str, Any] = {"LinUCB": LinUCB(), "LinTS": LinTS()}
MASKS = {
    "picks known to a group": {0.5: Mask(groups=10), 0.25: Mask(groups=5), 0.1: Mask(groups=2)},
    "offers sampled by a feature": {
        share: Mask(keep_offers=round(share * K), favour=1.5 * FIRST) for share in (0.5, 0.25, 0.15)
    },
    "rounds lost at random": {share: Mask(lose=1 - share) for share in (0.5, 0.25, 0.1, 0.05)},
    "rounds lost by their pick": {share: Mask(lose=1 - share, lose_by=FIRST) for share in (0.5, 0.25, 0.1)},
    "a feature missing": {share: Mask(hide={0: 1 - share}) for share in (0.75, 0.5, 0.25)},
}
Found = dict[tuple[str, float, str], NDArray[np.float64]]
WAYS = ("everything", "corrected", "ignored")


FOLLOWED = {
    "picks known to a group": {1 / 3: Mask(groups=3)},
    "rounds lost at random": {share: Mask(lose=1 - share) for share in (0.9, 0.5, 0.1)},
}
"""What is taken from logs of learners that are followed, of nine arms."""


def _observer() -> SuffixImitation:
    return SuffixImitation(burn_in="naive", l2=0.0)


def played(seed: int) -> BanditLog:
    """Picks of a softmax policy, of arms with normal features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, K, D))
    return BanditLog.from_dense(X, (X @ THETA + rng.gumbel(size=(N, K))).argmax(axis=1))


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


def judged(fit: SuffixImitation) -> tuple[float, float]:
    """Error of the direction, and the share of the weights' intervals that hold the true ones."""
    assert fit.covariance_ is not None
    inside = np.abs(fit.theta_ - THETA) <= 1.96 * np.sqrt(np.diag(fit.covariance_))
    return direction_error(fit.theta_, THETA), float(inside.mean())


def measure(seeds: int) -> Found:
    """Errors and coverages, by kind of loss, share kept and way of fitting."""
    found: dict[tuple[str, float, str], list[tuple[float, float]]] = defaultdict(list)
    for seed in range(seeds):
        log = played(seed)
        whole = judged(_observer().fit(log))
        for kind, masks in MASKS.items():
            for share, mask in masks.items():
                masked = mask(log, seed)
                found[kind, share, WAYS[0]].append(whole)
                found[kind, share, WAYS[1]].append(judged(corrected(masked, seed)))
                found[kind, share, WAYS[2]].append(judged(ignored(masked, seed)))
        print(seed, file=sys.stderr, flush=True)
    return {key: np.array(values) for key, values in found.items()}


def followed(learner: str, seed: int) -> Iterator[tuple[str, list[float]]]:
    """Errors of the direction by tracking: everything, corrected, ignored, and suffix imitation; and coverages."""
    simulation = simulate(Environment(D, 9, seed=seed), LEARNERS[learner], 3000, seed=seed)
    theta = simulation.theta_star

    def of(fit: Any) -> tuple[float, float]:
        unit, true = fit.theta_ / np.linalg.norm(fit.theta_), theta / np.linalg.norm(theta)
        errors = np.sqrt(np.diag(direction_covariance(fit.theta_, fit.covariance_)))
        return direction_error(unit, true), float(np.mean(np.abs(unit - true) <= 1.96 * errors))

    whole = of(TrackingObserver().fit(simulation.log))
    for kind, masks in FOLLOWED.items():
        for share, mask in masks.items():
            masked = mask(simulation.log, seed)
            log = masked.log
            knowing = of(TrackingObserver().fit(log, gaps=masked.gaps))
            if log.possible is not None:
                log = with_picks(log, draw_picks(log, np.ones(len(log.features)), np.random.default_rng(seed)))
            ignoring, suffix = of(TrackingObserver().fit(log)), of(SuffixImitation().fit(masked.log))
            yield f"{kind} | {share:.0%}", [*zip(*(whole, knowing, ignoring, suffix), strict=True)][0:2]


def table(found: Found) -> str:
    """Means over logs, as a table."""
    errors, coverages = (" | ".join(f"{what}: {way}" for way in WAYS) for what in ("error", "coverage"))
    lines = [f"| what is left | kept | {errors} | {coverages} |", "|---|--:|--:|--:|--:|--:|--:|--:|"]
    for kind, share, way in found:
        if way == WAYS[0]:
            cells = [found[kind, share, one].mean(axis=0) for one in WAYS]
            shown = [*(f"{cell[0]:.3f}" for cell in cells), *(f"{cell[1]:.0%}" for cell in cells)]
            lines.append(f"| {kind} | {share:.0%} | {' | '.join(shown)} |")
    return "\n".join(lines)


def followed_table(seeds: int) -> str:
    """The same of learners that are followed."""
    cells: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for learner in LEARNERS:
        for seed in range(seeds):
            for row, values in followed(learner, seed):
                cells[learner, row].append(values)
            print(learner, seed, file=sys.stderr, flush=True)
    ways = " | ".join((*WAYS, "suffix imitation, corrected"))
    lines = [f"| learner | what is left | kept | error: {ways} | coverage: {ways} |", "|---|---|--:" + "|--:" * 8 + "|"]
    for (learner, row), values in cells.items():
        errors, inside = np.mean(values, axis=0)
        shown = [*(f"{one:.3f}" for one in errors), *(f"{one:.0%}" for one in inside)]
        lines.append(f"| {learner} | {row} | {' | '.join(shown)} |")
    return "\n".join(lines)


def draw(found: Found, path: Path) -> None:
    """Errors above, coverages below, against the share kept; a line per way."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 6), layout="constrained")
    axes = figure.subplots(2, len(MASKS), sharex=False)
    for column, (kind, masks) in enumerate(MASKS.items()):
        shares = sorted(masks)
        for way, colour, mark in zip(WAYS, ("C7", "C0", "C3"), ("", "o", "x"), strict=True):
            means = [found[kind, share, way].mean(axis=0) for share in shares]
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


def catalogue(seed: int, n: int = 300, k: int = 100_000, size: int = 50) -> list[float]:
    """Errors of a fit to all arms of a catalogue and to a sample of each round, and processor seconds of both."""
    rng = np.random.default_rng(seed)
    items, theta = rng.normal(size=(k, 5)), np.array([1.0, -0.8, 0.6, -0.4, 0.2])
    shares = np.exp(items @ theta)
    chosen = rng.choice(k, size=n, p=shares / shares.sum())
    log = assume_offers(chosen, items, catalogue=True)
    found = []
    for make in (lambda: log, lambda: sample_offers(log, size, seed=seed, weights=shares**0.5)):
        start = time.process_time()
        fit = SuffixImitation(burn_in="naive").fit(make())
        found += [direction_error(fit.theta_, theta), time.process_time() - start]
    return found


def groups_of_three(seed: int) -> list[float]:
    """Error and coverage with picks seen, and with picks known to one of three groups of three arms."""
    rng = np.random.default_rng(seed)
    X, theta = rng.normal(size=(3000, 9, D)), np.array([1.0, -0.7, 0.4, 0.0])
    log = BanditLog.from_dense(X, (X @ theta + rng.gumbel(size=(3000, 9))).argmax(axis=1))
    known = Mask(groups=[0, 0, 0, 1, 1, 1, 2, 2, 2])(log, seed).log
    found = []
    for each in (log, known):
        fit = SuffixImitation(burn_in="naive").fit(each)
        assert fit.covariance_ is not None
        inside = np.abs(fit.theta_ - theta) <= 1.96 * np.sqrt(np.diag(fit.covariance_))
        found += [direction_error(fit.theta_, theta), float(inside.mean())]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--followed", type=int, default=5, help="logs of each learner that is followed; 0 for none")
    parser.add_argument("--page", type=Path, help="page that takes the table, between its marks")
    parser.add_argument("--catalogue", action="store_true", help="a large catalogue and groups of three only")
    given = parser.parse_args()
    if given.catalogue:
        three = np.mean([groups_of_three(seed) for seed in range(given.seeds)], axis=0)
        print(
            f"picks seen: error {three[0]:.4f}, coverage {three[1]:.1%}; known to one of three groups of three arms: "
        )
        print(f"  error {three[2]:.4f} ({three[2] / three[0]:.2f} times), coverage {three[3]:.1%}, {given.seeds} logs")
        whole = np.mean([catalogue(seed) for seed in range(max(2, given.seeds // 10))], axis=0)
        print(f"catalogue of 100,000 arms: error {whole[0]:.4f} in {whole[1]:.2f} s; sampled to 50: {whole[2]:.4f} ")
        print(f"  ({whole[2] / whole[0]:.2f} times) in {whole[3]:.3f} s, {whole[1] / whole[3]:.0f} times faster")
        return
    with warnings.catch_warnings():
        # What is said of fits that ignore what is missing is what the table is about.
        warnings.simplefilter("ignore")
        found = measure(given.seeds)
        tables = {"table": table(found)}
        if given.followed:
            tables["followed"] = followed_table(given.followed)
    print(*tables.values(), sep="\n\n")
    if given.page:
        text = given.page.read_text(encoding="utf-8")
        for mark, lines in tables.items():
            marks = re.compile(rf"(?<=<!-- {mark} -->\n).*?(?=<!-- end of {mark} -->)", re.DOTALL)
            text = marks.sub(lambda _, lines=lines: lines + "\n", text)
        write_text(given.page, text)
        draw(found, given.page.with_suffix(".png"))


if __name__ == "__main__":
    main()
