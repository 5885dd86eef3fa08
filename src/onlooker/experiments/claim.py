"""How each kind of claim is judged: from the values of one panel, one row per seed, to an estimate and a verdict.

Comparisons are paired over seeds and made on logarithms, so an estimate is a ratio of geometric means.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from onlooker.base.types import Matrix, Vector
from onlooker.experiments.statistics import Estimate, p_of_chosen, paired_ratio, power_slope, spread_ratio

Verdict = Literal["holds", "does not hold", "inconclusive"]

NEEDED = 5
"""Seeds below which nothing is decided."""

SIGNIFICANT = 0.05
"""One-sided."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One row of the verdict table."""

    key: str
    """Number of the claim and what it is about; a part of a claim has the whole's key, a slash, and its panel."""
    text: str
    """What is claimed, as it was tested."""
    paper: str
    """What the paper says."""
    ours: float | str | None
    """What we measured: a number, or how many panels hold."""
    low: float | None = None
    """Lower end of the 95% interval over seeds."""
    high: float | None = None
    """Upper end."""
    verdict: Verdict
    """Follows from the data alone."""
    detail: str = ""
    """How it was judged, and where ours differs."""

    @property
    def part_of(self) -> str | None:
        """Key of the claim that this is one panel of."""
        whole, slash, _ = self.key.partition("/")
        return whole if slash else None


def joint(verdicts: Iterable[Verdict]) -> Verdict:
    """What follows for "all of them".

    Examples
    --------
    >>> joint(["holds", "inconclusive"]), joint(["holds", "inconclusive", "does not hold"])
    ('inconclusive', 'does not hold')
    """
    found = set(verdicts)
    return next((verdict for verdict in ("does not hold", "inconclusive") if verdict in found), "holds")


def one_sided(estimate: Estimate, *, below: bool) -> Verdict:
    """Whether the estimate lies significantly on the claimed side of the value tested, on the other, or neither."""
    wanted, other = (estimate.p_below, estimate.p_above) if below else (estimate.p_above, estimate.p_below)
    if wanted < SIGNIFICANT:
        return "holds"
    return "does not hold" if other < SIGNIFICANT else "inconclusive"


def known(value: float) -> float | None:
    """None for NaN, which JSON does not have."""
    return None if math.isnan(value) else value


def too_few(seeds: int) -> str:
    """The reason why so few seeds decide nothing."""
    return f"{seeds} seeds: at least {NEEDED} are needed"


def whole(key: str, text: str, paper: str, parts: Sequence[Claim], *, measure: str, panels: str = "settings") -> Claim:
    """Sum up the parts of a claim: the claim holds where each panel does, in each of its metrics.

    Parameters
    ----------
    key, text, paper
        Of the whole.
    parts
        Their keys are `key/panel` or `key/panel/metric`.
    measure
        What the parts' numbers are.
    panels
        What to call the panels.
    """
    by_panel: dict[str, dict[str, Claim]] = {}
    for part in parts:
        panel, _, metric = part.key.removeprefix(f"{key}/").partition("/")
        by_panel.setdefault(panel, {})[metric] = part
    verdicts = [joint(part.verdict for part in metrics.values()) for metrics in by_panel.values()]
    reasons = sorted({f"{part.detail}." for part in parts if part.ours is None})
    return Claim(
        key=key,
        text=text,
        paper=paper,
        ours=f"{verdicts.count('holds')} of {len(by_panel)} {panels}",
        verdict=joint(verdicts),
        detail=" ".join(filter(None, (_range(measure, by_panel), *_exceptions(by_panel), *reasons))),
    )


def _range(measure: str, by_panel: dict[str, dict[str, Claim]]) -> str:
    """From the lowest to the highest value, by metric."""
    found: dict[str, list[float]] = {}
    for metrics in by_panel.values():
        for metric, part in metrics.items():
            if isinstance(part.ours, float):
                found.setdefault(metric, []).append(part.ours)
    ranges = (f"{metric} {_span(values)}".strip() for metric, values in found.items())
    return f"{measure}: {'; '.join(ranges)}." if found else ""


def _span(values: Sequence[float]) -> str:
    low, high = f"{min(values):.3g}", f"{max(values):.3g}"
    return low if low == high else f"{low} to {high}"


def _exceptions(by_panel: dict[str, dict[str, Claim]]) -> Iterator[str]:
    """Name the panels that do not hold or are open; the metric only where the other is different."""
    for verdict in ("does not hold", "inconclusive"):
        named = []
        for panel, metrics in by_panel.items():
            concerned = [metric for metric, part in metrics.items() if part.verdict == verdict]
            if concerned:
                named.append(panel if len(concerned) == len(metrics) else f"{panel} ({', '.join(concerned)})")
        if named:
            yield f"{verdict.capitalize()}: {'everywhere' if named == list(by_panel) else ', '.join(named)}."


CLOSE = 0.2
"""How far from 1 a ratio may lie to be called close."""


class Judgement(NamedTuple):
    """What one panel shows."""

    estimate: Estimate
    verdict: Verdict
    detail: str


def dips_inside(values: Matrix, alphas: Vector) -> Judgement:
    """Whether the alpha with the lowest mean lies below both ends; the estimate is its ratio to the first.

    The best alpha is chosen on the same seeds: both p are corrected for all the alphas that could have been chosen.

    Examples
    --------
    >>> curves = np.array([[2.0, 1.0, 4.0], [2.1, 1.0, 4.0], [2.0, 1.1, 4.1], [2.2, 1.0, 4.0], [2.0, 1.0, 4.2]])
    >>> dips_inside(curves, np.array([0.0, 0.9, 0.99])).verdict
    'holds'
    """
    best = int(values.mean(axis=0).argmin())
    ratios = [paired_ratio(values[:, best], values[:, end]) for end in (0, -1)]
    if best in {0, len(alphas) - 1}:
        return Judgement(ratios[0], "does not hold", f"the lowest mean is at an end, alpha = {alphas[best]:g}")
    logs = np.log(values)
    corrected = [p_of_chosen(logs[:, 1:-1] - logs[:, [end]], best - 1) for end in (0, -1)]
    listed = ", ".join(
        f"{ratio.value:.3g} of alpha = {alphas[end]:g} (p = {ratio.p_below:.1g}, corrected {p:.1g})"
        for ratio, p, end in zip(ratios, corrected, (0, -1), strict=True)
    )
    verdict: Verdict = "holds" if max(corrected) < SIGNIFICANT else "does not hold"
    return Judgement(ratios[0], verdict, f"best alpha {alphas[best]:g}: {listed}")


def beats(values: Matrix) -> Judgement:
    """Whether the first column lies below the second.

    Examples
    --------
    >>> beats(np.array([[1.0, 2.0], [1.1, 2.0], [1.0, 2.1]])).verdict
    'holds'
    """
    ratio = paired_ratio(values[:, 0], values[:, 1])
    detail = f"p = {ratio.p_below:.1g} for below 1, {ratio.p_above:.1g} for above"
    return Judgement(ratio, one_sided(ratio, below=True), detail)


def is_close(values: Matrix) -> Judgement:
    """Whether the 95% interval of first / second lies within 1 ± `CLOSE`, or wholly outside.

    Examples
    --------
    >>> is_close(np.array([[2.0, 2.0], [2.01, 2.0], [2.0, 2.01]])).verdict
    'holds'
    """
    ratio = paired_ratio(values[:, 0], values[:, 1])
    low, high = 1 - CLOSE, 1 + CLOSE
    if low <= ratio.low and ratio.high <= high:
        return Judgement(ratio, "holds", f"the interval lies within {low:g} to {high:g}")
    if ratio.high < low or ratio.low > high:
        return Judgement(ratio, "does not hold", f"the interval lies outside {low:g} to {high:g}")
    return Judgement(ratio, "inconclusive", f"the interval crosses an end of {low:g} to {high:g}")


def is_always_worse(values: Matrix, horizons: Sequence[int]) -> Judgement:
    """Whether one method lies above another at every horizon; the estimate is the lowest of their ratios.

    Parameters
    ----------
    values
        Two columns per horizon: the one, the other.
    horizons
        Numbers of rounds.

    Examples
    --------
    >>> is_always_worse(np.array([[2.0, 1.0, 2.0, 2.0], [2.1, 1.0, 1.9, 2.0], [2.0, 1.1, 2.1, 2.0]]), [500, 1000])[1:]
    ('inconclusive', '1.97 (N = 500), 0.999 (N = 1,000); shown is N = 1,000, p = 0.5')
    """
    ratios = [paired_ratio(values[:, 2 * i], values[:, 2 * i + 1]) for i in range(len(horizons))]
    lowest = min(range(len(horizons)), key=lambda i: ratios[i].value)
    listed = ", ".join(f"{ratio.value:.3g} (N = {N:,})" for N, ratio in zip(horizons, ratios, strict=True))
    detail = f"{listed}; shown is N = {horizons[lowest]:,}, p = {ratios[lowest].p_above:.1g}"
    return Judgement(ratios[lowest], joint(one_sided(ratio, below=False) for ratio in ratios), detail)


def spreads_more(values: Matrix, sizes: Sequence[int]) -> Judgement:
    """Whether the first column's relative spread over seeds is larger than the second's, pooled over groups of rows.

    Examples
    --------
    >>> one = np.exp([[-1.0, 0.1], [0.0, -0.1], [1.0, 0.0]])
    >>> spreads_more(np.concatenate([one, 5 * one]), [3, 3]).verdict
    'holds'
    """
    groups = np.split(np.log(values), np.cumsum(sizes)[:-1])
    away = np.concatenate([group - group.mean(axis=0) for group in groups])
    ratio = spread_ratio(away[:, 0], away[:, 1], means=len(groups))
    larger = sum(bool(group[:, 0].std() > group[:, 1].std()) for group in groups)
    detail = (
        f"spread of the logarithm over seeds, pooled over {len(groups)} settings and larger in {larger} of them; "
        f"p = {ratio.p_above:.1g}"
    )
    return Judgement(ratio, one_sided(ratio, below=False), detail)


def comes_closer(values: Matrix, horizons: tuple[int, int]) -> Judgement:
    """Whether a ratio falls between two horizons; the estimate is the later over the earlier.

    Parameters
    ----------
    values
        Numerator and denominator at the first horizon, then both at the second.
    horizons
        Numbers of rounds.

    Examples
    --------
    >>> comes_closer(np.array([[4.0, 2.0, 1.0, 1.0], [4.2, 2.0, 1.0, 1.0], [3.9, 2.0, 1.0, 1.0]]), (500, 10_000)).detail
    'ratio 2.02 at N = 500, 1 at N = 10,000; p = 0.0005'
    """
    at = [paired_ratio(values[:, i], values[:, i + 1]).value for i in (0, 2)]
    change = paired_ratio(values[:, 2] / values[:, 3], values[:, 0] / values[:, 1])
    listed = ", ".join(f"{ratio:.3g} at N = {N:,}" for N, ratio in zip(horizons, at, strict=True))
    return Judgement(change, one_sided(change, below=True), f"ratio {listed}; p = {change.p_below:.1g}")


def falls_fast(values: Matrix, horizons: Sequence[int]) -> Judgement:
    """Whether the values fall like N^-1/2 or faster; the estimate is the mean of the seeds' log-log slopes.

    Examples
    --------
    >>> falls_fast(np.array([[1.0, 0.3], [1.1, 0.3], [1.0, 0.3]]), [100, 400]).verdict
    'holds'
    """
    slope = power_slope(horizons, values, against=-0.5)
    detail = f"mean of the seeds' slopes over {len(horizons)} horizons; p = {slope.p_below:.1g}"
    return Judgement(slope, one_sided(slope, below=True), detail)
