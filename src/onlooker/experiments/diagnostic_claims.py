"""Claim 6: picks become predictable over time, and a late observer agrees with late picks more than with early ones."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from onlooker.base.types import Matrix, Vector
from onlooker.experiments.claim import NEEDED, SIGNIFICANT, Claim, Verdict, known, too_few
from onlooker.experiments.measurements import Row, Setting
from onlooker.experiments.statistics import Estimate, mean, spearman

PAPER = (Setting("LinUCB", 50, 200), 10_000)
"""Setting and number of rounds behind the paper's figures."""

WINDOWS = (
    ("6-late-windows", "window", "ten side by side"),
    ("6-late-windows-overlapping", "overlapping", "overlapping by half"),
)
"""Key of the claim, kind of the rows, and words, for either reading of the paper's rolling windows."""


@dataclass(frozen=True, eq=False)
class Trend:
    """Accuracy along the log, seed by seed."""

    setting: Setting
    """Who learned, and on what."""
    N: int
    """Number of rounds."""
    starts: Vector
    """First round of each stretch, increasing, shape (m,)."""
    stops: Vector
    """Round after the last of each stretch, shape (m,)."""
    accuracies: Matrix
    """Shape (seeds, m)."""

    def gaps(self) -> Vector:
        """Mean over the stretches in the last 30% of the rounds, less that over the first 30%; one per seed."""
        # A stretch starts at a whole round, which may lie just before the 70%.
        early, late = 10 * self.stops <= 3 * self.N, 10 * (self.starts + 1) > 7 * self.N
        if not early.any() or not late.any():
            return np.empty(0)
        return np.asarray(self.accuracies[:, late].mean(axis=1) - self.accuracies[:, early].mean(axis=1))


def trends(diagnostics: Iterable[Row], kind: str) -> tuple[Trend, ...]:
    """Arrange the rows of one kind ("bin", "window" or "overlapping"), over the seeds that have every stretch."""
    found: dict[tuple[Setting, int], dict[int, dict[tuple[float, float], float]]] = {}
    for row in diagnostics:
        if row["kind"] == kind and math.isfinite(float(row["accuracy"])):
            seeds = found.setdefault((Setting.of(row), int(row["N"])), {})
            stretch = float(row["start"]), float(row["stop"])
            seeds.setdefault(int(row["seed"]), {})[stretch] = float(row["accuracy"])
    made = []
    for (setting, N), seeds in sorted(found.items()):
        stretches = sorted({stretch for seed in seeds.values() for stretch in seed})
        whole = [seeds[seed] for seed in sorted(seeds) if len(seeds[seed]) == len(stretches)]
        if whole:
            starts, stops = np.array(stretches).T
            accuracies = np.array([[seed[stretch] for stretch in stretches] for seed in whole])
            made.append(Trend(setting, N, starts, stops, accuracies))
    return tuple(made)


def diagnostic_claims(diagnostics: Iterable[Row]) -> tuple[Claim, ...]:
    """Judge appendix A's three figures, for every setting that was measured."""
    rows = list(diagnostics)
    bins = trends(rows, "bin")
    return (
        *(_ranks(trend) for trend in bins),
        *(
            _gap(
                trend,
                "6-late-bins",
                "picks are easier to predict in the last 30% of the bins than in the first 30%; difference in accuracy",
                Estimate(0.1041, 0.0939, 0.1142, math.nan, math.nan),
            )
            for trend in bins
        ),
        *(
            _gap(
                trend,
                key,
                "an observer trained on the last 30% agrees more with late windows than with early ones, "
                f"{how}; difference",
                Estimate(0.2119, 0.2055, 0.2182, math.nan, math.nan),
                "; the paper does not define its windows: side by side was taken for the figure after a look at four "
                "seeds, where it came nearer to the paper's",
            )
            for key, kind, how in WINDOWS
            for trend in trends(rows, kind)
        ),
    )


def _ranks(trend: Trend) -> Claim:
    averages = trend.accuracies.mean(axis=0)
    r, p = spearman(np.arange(len(averages)), averages)
    verdict: Verdict = "inconclusive"
    if p < SIGNIFICANT:
        verdict = "holds" if r > 0 else "does not hold"
    late = averages[len(averages) // 2 :]
    reach = max(mean(column).high - mean(column).value for column in trend.accuracies.T)
    detail = (
        f"p = {p:.2g} over {len(averages)} bins, {len(trend.accuracies)} seeds; paper 0.9273. The means of the later "
        f"half of the bins span {np.ptp(late):.4f}, each known to ± {reach:.4f} at worst"
    )
    if np.ptp(late) < 2 * reach:
        detail += ": their order is partly noise, and r hangs on it"
    return _claim(
        trend,
        "6-spearman",
        "accuracy rises with time: Spearman's r between bin and mean accuracy is positive, p < 0.05",
        "0.9273 (p = 1.12e-4)",
        Estimate(r, math.nan, math.nan, math.nan, math.nan),
        verdict,
        detail,
    )


def _gap(trend: Trend, key: str, text: str, paper: Estimate, remark: str = "") -> Claim:
    gaps = trend.gaps()
    written = f"{paper.value:.4f} [{paper.low:.4f}, {paper.high:.4f}]"
    if not len(gaps):
        nothing = Estimate(math.nan, math.nan, math.nan, math.nan, math.nan)
        return _claim(
            trend, key, text, written, nothing, "inconclusive", "no stretch lies within the first or last 30%"
        )
    ours = mean(gaps)
    overlap = ours.low <= paper.high and paper.low <= ours.high
    away = ours.value - paper.value
    where = "inside" if paper.low <= ours.value <= paper.high else "outside"
    detail = (
        f"{len(gaps)} seeds; ours is {abs(away):.4f} {'above' if away > 0 else 'below'} the paper's and {where} its "
        f"interval; the intervals {'overlap' if overlap else 'do not overlap'}{remark}"
    )
    return _claim(trend, key, text, written, ours, "holds" if overlap else "does not hold", detail)


def _claim(trend: Trend, key: str, text: str, paper: str, ours: Estimate, verdict: Verdict, detail: str) -> Claim:
    """Put it in a row; too few seeds decide nothing, nor do other settings than the paper's."""
    here = (trend.setting, trend.N) == PAPER
    if not here:
        verdict = "inconclusive"
        detail = f"the paper's figure is for {PAPER[0]}, N = {PAPER[1]:,}, and not for this setting; {detail}"
    if len(trend.accuracies) < NEEDED:
        verdict, detail = "inconclusive", too_few(len(trend.accuracies))
    return Claim(
        key=key if here else f"{key}-{trend.setting.key}-N{trend.N}",
        text=f"{trend.setting}: {text}",
        paper=paper,
        ours=known(ours.value),
        low=known(ours.low),
        high=known(ours.high),
        verdict=verdict,
        detail=detail,
    )
