"""What observers lose where a log says less than the pick among all offers, and what corrections give back.

    python benchmarks/partial.py [--seeds 30] [--followed 30] [--page PAGE] [--keep FOLDER]
    python benchmarks/partial.py --followed 0 [--first 30] [--seeds 120] [--who LinTS] [--losses "a feature missing"]
    python benchmarks/partial.py --catalogue [--seeds 100]

A softmax policy picks in 1,500 rounds of 20 arms with 4 normal features, and so do LinUCB and LinTS among arms of the
paper's kind, after 500 rounds; `Mask` then takes information away, in six ways and to several shares. Suffix imitation
is fitted to the whole log, to what is left with the correction for it, and to what is left as if nothing were missing:
a pick guessed within its set, a sample taken for all offers, lost rounds forgotten, missing features filled with 0.
Judged by the error of the direction and by how often 95% intervals hold what they should, where there are any: the
softmax policy's weights; of a learner the direction of the weights that imitation would find if the learner's state of
every round had picked in many rounds more. Learners with lost rounds are also followed, by tracking and dynamic
imitation; there the target is theta*. After a "±" stands the simulation's standard error, by logs. `--page` puts the
tables into a page, and a figure beside it. `--keep` writes what is found in each log to a folder, and takes it from
there the next time. `--first`, `--who` and `--losses` look at some rows again, on other logs.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker import (
    BanditLog,
    Boltzmann,
    DynamicImitation,
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
from onlooker.simulation.play import Simulation

N, K, D = 1500, 20, 4
THETA = np.array([1.2, -0.8, 0.5, 0.0])
FIRST = np.eye(D)[0]
"""Offers and rounds are kept by the first feature."""
SETTLING, ASKED = 500, 40
"""Rounds of a learner before its log begins; and rounds that its state of every round is asked for picks in.

The target's own error is then a sixth of that of the fit to everything, and costs half a point of coverage.
"""
NARROW = 300
"""Rounds of the logs in which a feature is missing: draws take their time."""
LEARNERS: dict[str, Any] = {"LinUCB": LinUCB(), "LinTS": LinTS()}
KINDS = ("softmax", *LEARNERS)
FOLLOWED = LEARNERS | {"softmax": Boltzmann()}
"""Learners that are followed; softmax is one that learns."""
MASKS = {
    "picks known to a group": {0.5: Mask(groups=10), 0.25: Mask(groups=5), 0.1: Mask(groups=2)},
    "offers sampled by a feature": {
        share: Mask(keep_offers=round(share * K), favour=1.5 * FIRST) for share in (0.5, 0.25, 0.1)
    },
    "rounds lost at random": {share: Mask(lose=1 - share) for share in (0.5, 0.25, 0.1, 0.05)},
    "stretches of 25 rounds lost": {share: Mask(lose=1 - share, stretches=25) for share in (0.5, 0.25, 0.1)},
    "rounds lost by their pick": {share: Mask(lose=1 - share, lose_by=FIRST) for share in (0.5, 0.25, 0.1)},
    "a feature missing": {share: Mask(hide={0: 1 - share}) for share in (0.75, 0.5, 0.25, 0.1)},
}
Key = tuple[str, str, float, str]
"""Who picked, what is left, how much of it, and who fits."""
Found = dict[Key, NDArray[np.float64]]
WAYS = ("everything", "corrected", "ignored")


LOST = (0.0, 0.1, 0.5, 0.9)
"""Shares of the rounds that are lost of learners that are followed: 3,000 rounds of 20 arms with 10 features."""
FOLLOWERS: dict[str, Callable[[Masked], Any]] = {
    "tracking": lambda left: TrackingObserver().fit(left.log, gaps=left.gaps),
    "tracking, gaps ignored": lambda left: TrackingObserver().fit(left.log),
    "dynamic": lambda left: DynamicImitation().fit(left.log, gaps=left.gaps),
    "suffix": lambda left: SuffixImitation().fit(left.log),
}


@dataclass(frozen=True)
class Target:
    """What intervals should hold."""

    theta: NDArray[np.float64]
    is_direction: bool
    """Whether weights are compared after both have been brought to length 1."""

    def judged(self, fit: Any) -> list[float]:
        """Error of the direction, how many intervals hold what they should, and how many there are."""
        assert fit.covariance_ is not None
        found, true, spread = fit.theta_, self.theta, fit.covariance_
        if self.is_direction:
            spread = direction_covariance(found, spread)
            found, true = found / np.linalg.norm(found), true / np.linalg.norm(true)
        inside = np.abs(found - true) <= 1.96 * np.sqrt(np.diag(spread))
        return [direction_error(fit.theta_, self.theta), int(inside.sum()), int(np.isfinite(np.diag(spread)).sum())]


def _observer() -> SuffixImitation:
    return SuffixImitation(burn_in="naive", l2=1e-6)


def played(kind: str, seed: int) -> tuple[BanditLog, dict[int, Target]]:
    """Picks of a softmax policy of arms with normal features, or of a learner; what its first rounds are to recover."""
    if kind in LEARNERS:
        simulation = simulate(Environment(D, K, seed=seed), LEARNERS[kind], SETTLING + N, seed=seed)
        found = asked(kind, simulation, seed)
        return simulation.log.suffix(SETTLING), {n: Target(found[n], is_direction=True) for n in found}
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, K, D))
    log = BanditLog.from_dense(X, (X @ THETA + rng.gumbel(size=(N, K))).argmax(axis=1))
    return log, dict.fromkeys((N, NARROW), Target(THETA, is_direction=False))


def asked(kind: str, simulation: Simulation, seed: int) -> dict[int, NDArray[np.float64]]:
    """Weights of imitation where the learner's state of every round picks in many other rounds.

    They are what imitation of its log would find with any number of rounds: the log is one draw from that.
    """
    log, learner = simulation.log, simulation.learner
    rng, d = np.random.default_rng([seed, 1]), log.n_features
    picked = np.asarray(log.features[log.chosen_rows], dtype=np.float64)
    inverse, moment = np.eye(d) / learner.ridge, np.zeros(d)
    offers = Environment(d, K, seed=seed).test_log(N * ASKED, seed=seed).dense.reshape(N, ASKED, K, d).astype(float)
    chosen = np.empty((N, ASKED), dtype=np.int64)
    for t in range(log.n_rounds):
        if t >= SETTLING:
            rows, estimate = offers[t - SETTLING], inverse @ moment
            if kind == "LinUCB":
                bonus = np.sqrt(np.einsum("...i,ij,...j->...", rows, inverse, rows))
                scores = rows @ estimate + learner.alpha * bonus
            else:
                root = np.linalg.cholesky(inverse) * 0.1 * np.sqrt(d)
                drawn = estimate + rng.normal(size=(ASKED, d)) @ root.T
                scores = np.einsum("nkd,nd->nk", rows, drawn)
            chosen[t - SETTLING] = scores.argmax(axis=1)
        x = picked[t]
        turned = inverse @ x
        inverse -= np.outer(turned, turned) / (1 + x @ turned)
        moment += simulation.rewards[t] * x
    logs = {n: BanditLog.from_dense(offers[:n].reshape(-1, K, d), chosen[:n].ravel()) for n in (N, NARROW)}
    return {n: _observer().fit(log).theta_ for n, log in logs.items()}


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


def measured(kind: str, seed: int, losses: Collection[str] = tuple(MASKS)) -> list[list[Any]]:
    """What was taken from a log, how much was left, and what each way of fitting finds."""
    whole, targets = played(kind, seed)
    rows = []
    for what in losses:
        masks = MASKS[what]
        log = whole[:NARROW] if what == "a feature missing" else whole
        target = targets[log.n_rounds]
        everything = target.judged(_observer().fit(log))
        for share, mask in masks.items():
            masked = mask(log, seed)
            found = everything, target.judged(corrected(masked, seed)), target.judged(ignored(masked, seed))
            rows.append([what, share, *found])
    return rows


def followed(learner: str, seed: int) -> list[list[Any]]:
    """Shares of rounds lost; errors of the direction of theta* and coverages of it by each of the followers."""
    simulation = simulate(Environment(10, 20, seed=seed), FOLLOWED[learner], 3000, seed=seed)
    target = Target(simulation.theta_star, is_direction=True)
    lost = [Mask(lose=share)(simulation.log, seed) for share in LOST]
    return [
        [share, *(target.judged(fit(left)) for fit in FOLLOWERS.values())]
        for share, left in zip(LOST, lost, strict=True)
    ]


def kept(folder: Path | None, make: Callable[[str, int], list[list[Any]]], kind: str, seed: int) -> list[list[Any]]:
    """What `make` finds, or found before."""
    path = None if folder is None else folder / f"{make.__name__}-{kind}-{seed}.json"
    if path is not None and path.exists():
        found: list[list[Any]] = json.loads(path.read_text(encoding="utf-8"))
        return found
    found = make(kind, seed)
    print(make.__name__, kind, seed, file=sys.stderr, flush=True)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(found))
    return found


def measure(seeds: range, folder: Path | None, who: Collection[str], losses: Collection[str]) -> Found:
    """Errors and coverages, by who picked, kind of loss, share kept and way of fitting."""
    found: dict[Key, list[list[float]]] = defaultdict(list)
    for kind, seed in product(who, seeds):
        logs = kept(folder, measured, kind, seed) if len(losses) == len(MASKS) else measured(kind, seed, losses)
        for what, share, *values in logs:
            for way, value in zip(WAYS, values, strict=True):
                found[kind, what, share, way].append(value)
    return {key: np.array(values) for key, values in found.items()}


def error(values: NDArray[np.float64]) -> float:
    """Mean error of the direction."""
    return float(values[:, 0].mean())


def coverage(values: NDArray[np.float64]) -> float:
    """Share of the intervals that hold what they should; NaN where there are none."""
    inside, of = values[:, 1:].sum(axis=0)
    return float(inside / of) if of else np.nan


def deviation(part: NDArray[np.float64], whole: NDArray[np.float64]) -> float:
    """Standard error of the sum of one over that of the other, of as many logs; NaN without any."""
    total, n = whole.sum(), len(whole)
    if not total or n < 2:
        return np.nan
    apart = part - part.sum() / total * whole
    return float(np.sqrt((apart**2).sum() * n / (n - 1)) / total)


def table(found: Found) -> str:
    """Means over logs, as a table."""
    errors, coverages = (" | ".join(f"{what}: {way}" for way in WAYS) for what in ("error", "coverage"))
    lines = [
        f"| who picked | what is left | kept | {errors} | {coverages} | intervals: corrected |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for kind, what, share, way in found:
        if way == WAYS[0]:
            cells = [found[kind, what, share, one] for one in WAYS]
            shown = [*(f"{error(cell):.3f}" for cell in cells), *(_covered(cell) for cell in cells)]
            shown.append(f"{cells[1][:, 2].sum():.0f} of {D * len(cells[1])}")
            lines.append(f"| {kind} | {what} | {share:.0%} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _covered(values: NDArray[np.float64]) -> str:
    """Coverage, and the standard error of the simulation."""
    share = coverage(values)
    return "none" if np.isnan(share) else f"{share:.0%} ± {100 * deviation(values[:, 1], values[:, 2]):.0f}"


def summary(found: Found) -> str:
    """Corrected coverage over all kinds of loss, by who picked and how much is left."""
    lines = ["corrected coverage over all kinds of loss:"]
    for kind in KINDS:
        for least, most in ((0.25, 1.0), (0.0, 0.1)):
            rows = [found[key] for key in found if key[0] == kind and key[3] == WAYS[1] and least <= key[2] <= most]
            if not rows:
                continue
            # The same logs are in all rows.
            inside, of = np.sum(rows, axis=0)[:, 1:].T
            lines.append(
                f"  {kind}, {least:.0%} to {most:.0%} kept: {inside.sum():.0f} of {of.sum():.0f}, "
                f"{inside.sum() / max(of.sum(), 1):.1%} ± {100 * deviation(inside, of):.1f}"
            )
    return "\n".join(lines)


def followed_table(seeds: int, folder: Path | None) -> str:
    """Means over logs of learners that are followed."""
    cells: dict[tuple[str, float], list[Any]] = defaultdict(list)
    for learner, seed in product(FOLLOWED, range(seeds)):
        for share, *values in kept(folder, followed, learner, seed):
            cells[learner, share].append(values)
    ways = [f"{what}: {way}" for what in ("error", "coverage") for way in FOLLOWERS]
    lines = [f"| learner | lost | {' | '.join(ways)} | dynamic / suffix |", "|---|--:" + "|--:" * len(ways) + "|--:|"]
    for (learner, share), values in cells.items():
        by_way = np.array(values).swapaxes(0, 1)
        shown = [*(f"{error(one):.4f}" for one in by_way), *(_covered(one) for one in by_way)]
        ours, suffix = (by_way[list(FOLLOWERS).index(name)][:, 0] for name in ("dynamic", "suffix"))
        shown.append(f"{ours.sum() / suffix.sum():.2f} ± {deviation(ours, suffix):.2f}")
        lines.append(f"| {learner} | {share:.0%} | {' | '.join(shown)} |")
    return "\n".join(lines)


def draw(found: Found, path: Path) -> None:
    """Errors above, coverages below, against the share kept; a line for every way and policy."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 9), layout="constrained")
    axes = figure.subplots(4, 3)
    styles = dict(zip(KINDS, ("-", "--", ":"), strict=True))
    for place, (what, masks) in enumerate(MASKS.items()):
        pair = axes[2 * (place // 3)][place % 3], axes[2 * (place // 3) + 1][place % 3]
        shares = sorted(masks)
        for way, colour, mark in zip(WAYS, ("C7", "C0", "C3"), ("", "o", "x"), strict=True):
            for kind, style in styles.items():
                for axis, of in zip(pair, (error, coverage), strict=True):
                    values = [of(found[kind, what, share, way]) for share in shares]
                    label = f"{way}, {kind}"
                    axis.plot(
                        shares, values, style, marker=mark, color=colour, label=label, linewidth=1.3, markersize=4
                    )
        for axis in pair:
            axis.set_xscale("log")
            axis.set_xticks(shares, [f"{share:.0%}" for share in shares])
            axis.minorticks_off()
            axis.grid(alpha=0.3)
        pair[0].set_yscale("log")
        pair[0].set_title(what, fontsize=11)
        pair[1].set_ylim(0, 1.02)
        pair[1].axhline(0.95, color="k", linewidth=0.8, linestyle=":")
        pair[1].set_xlabel("share kept")
        if place % 3 == 0:
            pair[0].set_ylabel("direction error")
            pair[1].set_ylabel("coverage")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=110)


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
    parser.add_argument("--seeds", type=int, default=30, help="logs of every kind; 0 for none")
    parser.add_argument("--followed", type=int, default=30, help="logs of each learner that is followed; 0 for none")
    parser.add_argument("--first", type=int, default=0, help="seed of the first log")
    parser.add_argument("--who", nargs="+", choices=KINDS, default=KINDS, help="who picks")
    parser.add_argument("--losses", nargs="+", choices=list(MASKS), default=list(MASKS), help="what is lost")
    parser.add_argument("--page", type=Path, help="page that takes the table, between its marks")
    parser.add_argument("--keep", type=Path, help="folder with what was found in each log, to go on from")
    parser.add_argument("--catalogue", action="store_true", help="a large catalogue and groups of three only")
    given = parser.parse_args()
    if given.page and (len(given.who) < len(KINDS) or len(given.losses) < len(MASKS)):
        parser.error("--page takes all rows: leave --who and --losses out")
    if given.catalogue:
        three = np.mean([groups_of_three(seed) for seed in range(given.seeds)], axis=0)
        print(
            f"picks seen: error {three[0]:.4f}, coverage {three[1]:.1%}; known to one of three groups of three arms: "
        )
        print(f"  error {three[2]:.4f} ({three[2] / three[0]:.2f} times), coverage {three[3]:.1%}, {given.seeds} logs")
        whole = np.mean([catalogue(seed) for seed in range(2)], axis=0)
        print(f"catalogue of 100,000 arms: error {whole[0]:.4f} in {whole[1]:.2f} s; sampled to 50: {whole[2]:.4f} ")
        print(f"  ({whole[2] / whole[0]:.2f} times) in {whole[3]:.3f} s, {whole[1] / whole[3]:.0f} times faster")
        return
    with warnings.catch_warnings():
        # What is said of fits that ignore what is missing is what the table is about.
        warnings.simplefilter("ignore")
        seeds = range(given.first, given.first + given.seeds)
        found = measure(seeds, given.keep, given.who, given.losses) if seeds else {}
        tables = {"table": table(found)} if found else {}
        if given.followed:
            tables["followed"] = followed_table(given.followed, given.keep)
    print(*tables.values(), *([summary(found)] if found else []), sep="\n\n")
    if given.page:
        text = given.page.read_text(encoding="utf-8")
        for mark, lines in tables.items():
            marks = re.compile(rf"(?<=<!-- {mark} -->\n).*?(?=<!-- end of {mark} -->)", re.DOTALL)
            text = marks.sub(lambda _, lines=lines: lines + "\n", text)
        write_text(given.page, text)
        if found:
            draw(found, given.page.with_suffix(".png"))


if __name__ == "__main__":
    main()
