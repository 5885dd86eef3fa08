"""A claim of the paper beside what we measured, with a verdict that is computed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from onlooker.experiments.statistics import Estimate

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
