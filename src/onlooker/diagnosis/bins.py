"""Appendix A's two diagnostics on one log: predictability over time, and whether the late policy fits late rounds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from onlooker.base.numerics import normal_reach
from onlooker.base.types import Matrix
from onlooker.imitation.stretches import Flags, Predicted, cross_predict_bins
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog

EARLY_PART = 0.3
"""The first and the last so much of the bins are compared, as in the paper."""


@dataclass(frozen=True)
class Estimate:
    """A number with its interval."""

    value: float
    """Estimate."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end."""


@dataclass(frozen=True, kw_only=True)
class Bin:
    """A stretch of time; agreement is the share of picks that a policy predicts."""

    start: int
    """First round."""
    stop: int
    """Round after the last."""
    choices: int
    """Rounds that offer arms which differ: only those are used."""
    chance: float
    """Agreement of random guessing."""
    own: Estimate
    """Predictability: agreement of a policy fitted to four fifths of the bin, on the rest, for each fifth in turn."""
    late: Estimate
    """Agreement of the policy of the log's last 30%, fitted without the rounds that it predicts."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnostics:
    """What the paper's diagnostics give."""

    bins: tuple[Bin, ...]
    """Earliest first."""
    matrix: Matrix
    """Agreement of the policy fitted to bin i with the picks of bin j, shape (bins, bins); own rounds are held out."""
    predictability_rise: Estimate
    """Predictability of the last 30% of the bins less that of the first 30%."""
    late_gap: Estimate
    """The late policy's agreement with the last 30% of the bins less that with the first 30%."""


def find_diagnostics(
    log: BanditLog, bounds: list[int], rounds: list[int], final: Predicted, level: float
) -> Diagnostics:
    """Measure every bin between `bounds`; `rounds` are the same bounds in rounds of the log as it was given."""
    thetas, own = cross_predict_bins(log, bounds)
    matrix = _agreements(log, thetas, bounds)
    np.fill_diagonal(matrix, [own[a:b].mean() for a, b in pairwise(bounds)])
    chance = 1 / log.n_arms
    bins = tuple(
        Bin(
            start=first,
            stop=last,
            choices=b - a,
            chance=float(chance[a:b].mean()),
            own=proportion(own[a:b], level),
            late=proportion(final.hits[a:b], level),
        )
        for (a, b), (first, last) in zip(pairwise(bounds), pairwise(rounds), strict=True)
    )
    part = max(1, round(EARLY_PART * len(bins)))
    early, late = slice(0, bounds[part]), slice(bounds[-1 - part], None)
    return Diagnostics(
        bins=bins,
        matrix=matrix,
        predictability_rise=difference(own[late], own[early], level),
        late_gap=difference(final.hits[late], final.hits[early], level),
    )


def proportion(hits: Flags, level: float) -> Estimate:
    """Part of the rounds that are hits, with Wilson's interval.

    Examples
    --------
    >>> found = proportion(np.array([True, True, True, False]), level=0.95)
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.75, 0.301, 0.954)
    """
    return proportion_of(float(hits.mean()), len(hits), level)


def proportion_of(p: float, n: int, level: float) -> Estimate:
    """A part `p` of `n` rounds, with Wilson's interval."""
    z = normal_reach(level)
    centre, reach = p + z**2 / (2 * n), z * (p * (1 - p) / n + z**2 / (4 * n**2)) ** 0.5
    return Estimate(p, (centre - reach) / (1 + z**2 / n), (centre + reach) / (1 + z**2 / n))


def difference(late: Flags, early: Flags, level: float) -> Estimate:
    """Difference of two proportions with Newcombe's interval, which combines two of Wilson's.

    Examples
    --------
    Newcombe's own example, 56 of 70 against 48 of 80:

    >>> found = difference(np.arange(70) < 56, np.arange(80) < 48, level=0.95)
    >>> round(found.value, 4), round(found.low, 4), round(found.high, 4)
    (0.2, 0.0524, 0.3339)
    """
    one, other = proportion(late, level), proportion(early, level)
    gap = one.value - other.value
    down = ((one.value - one.low) ** 2 + (other.high - other.value) ** 2) ** 0.5
    up = ((one.high - one.value) ** 2 + (other.value - other.low) ** 2) ** 0.5
    return Estimate(gap, gap - down, gap + up)


def _agreements(log: BanditLog, thetas: Matrix, bounds: list[int]) -> Matrix:
    """Agreement of every policy with every bin, reading the features once."""
    hits = np.zeros((len(thetas), log.n_rounds), dtype=bool)
    for start, stop in ragged.blocks(log.offsets, log.n_features):
        part = log[start:stop]
        scores = thetas @ part.dense.astype(np.float64, copy=False).T
        best = np.repeat(np.maximum.reduceat(scores, part.offsets[:-1], axis=1), part.n_arms, axis=1)
        # The first of equals is what a policy picks.
        places = np.where(scores == best, np.arange(scores.shape[1]), scores.shape[1])
        hits[:, start:stop] = np.minimum.reduceat(places, part.offsets[:-1], axis=1) == part.chosen_rows
    return np.asarray(np.add.reduceat(hits.astype(np.float64), bounds[:-1], axis=1) / np.diff(bounds))
