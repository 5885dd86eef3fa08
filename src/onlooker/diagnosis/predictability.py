"""How well policies predict the picks over time, and since when the final policy has fitted.

Appendix A's two diagnostics are agreements by bin: of each bin's own policy, and of the policy of the last rounds.

Since when the final policy has fitted is judged by shares. If a policy makes the picks, it gives them on average the
probability that it expects: the sum of its squared probabilities, whatever is on offer. The share of its gain over
random guessing that it attains is 1 while the policy is at work, 0 where picks have nothing to do with it, and between
the two where they are noisier or of a similar policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from onlooker.base.numerics import normal_reach
from onlooker.base.types import Index, Matrix, Vector
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


MATERIAL = 0.1
"""A tenth of the gain is what counts as a difference: smaller ones are real in a long log, but matter to nobody.

Chosen by looking at simulated LinUCB and LinTS logs: their estimates move for ever, but ever less, and at a tenth the
round found is where the agreement of the final policy with the picks bends into its plateau.
"""

END = 0.2
"""The level to reach is that of the log's last fifth."""

MOST_BLOCKS, LEAST_ROUNDS = 50, 40
"""The log is cut into so many blocks, unless they would be shorter than this: short ones have no variance to judge."""

DRAWS = 1000
"""Simulated curves behind p-values and intervals, always the same ones."""

LEAST_P = 1 / (1 + DRAWS)
"""The p-value of a statistic that no simulated curve attains."""

LEAST_POSSIBLE = 1e-3
"""A block in which the policy expects less than this part of what it does elsewhere says nothing about it."""

LEAST_END = 0.02
"""The end of the log is made longer where it holds less than this part of what is possible, and is at least so good."""


FIRST_ROUNDS, FIRST_PART = 60, 0.02
"""The first rounds of a log: at least so many, and this part of it."""

SURELY = 1.645
"""Standard errors by which the first rounds have to be good enough."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Settling:
    """The curve over blocks of rounds, and what follows from it."""

    bounds: Index
    """First round of each block, and the number of rounds, shape (m + 1,)."""

    share: Vector
    """Gain attained in each block, relative to the end of the log, shape (m,); NaN where none is possible."""

    error: Vector
    """Standard error of each."""

    fitted: Vector
    """The closest curve that never falls."""

    rise: float
    """Largest z of a later part of the log against what comes before it."""

    rise_p: float
    """Chance of such a rise if the share were constant."""

    fall: float
    """The same for a fall."""

    fall_p: float
    """Its p-value."""

    block: int
    """First block from which on the fitted curve is level."""

    low: int
    """Lower end of the interval of that block."""

    high: int
    """Upper end."""

    @property
    def abrupt(self) -> bool:
        """Whether the final policy took over at once: two blocks before it was level it attained less than half.

        Two, as a learner that commits does so within a block. Learners that settle by and by are far above half there.
        """
        return bool(self.fitted[max(0, self.block - 2)] < 0.5)

    @property
    def first(self) -> int:
        """Where the first rounds of the log end: after so many of them, or so large a part of it."""
        bounds = self.bounds[1:]
        return int(bounds[bounds >= max(FIRST_ROUNDS, FIRST_PART * bounds[-1])][0])

    @property
    def under_way(self) -> bool:
        """Whether the final policy surely fits the first rounds nearly as well as the last ones."""
        part = self.bounds[1:] <= self.first
        share, error = self.share[part], self.error[part]
        if np.isnan(share).any() or self.block:
            return False
        surely = float(share.mean()) - SURELY * float(np.sqrt((error**2).sum())) / len(share)
        return surely >= 1 - 2 * MATERIAL


def find_settling(final: Predicted, chance: Vector, level: float) -> Settling:
    """Find the round since which the final policy has fitted as well as at the end, to within `MATERIAL`.

    Examples
    --------
    Nothing but guesses for 300 rounds, then the policy at work:

    >>> given = np.where(np.arange(1000) < 300, 0.25, np.where(np.arange(1000) % 2, 0.4, 0.6))
    >>> final = Predicted(hits=given > 0.3, given=given, expected=np.full(1000, 0.5))
    >>> found = find_settling(final, np.full(1000, 0.25), level=0.95)
    >>> int(found.bounds[found.block]), found.rise_p < 0.01
    (320, True)
    """
    n_rounds = len(chance)
    m = max(5, min(MOST_BLOCKS, n_rounds // LEAST_ROUNDS))
    bounds = np.linspace(0, n_rounds, m + 1).astype(np.int64)
    gained = np.add.reduceat(final.given - chance, bounds[:-1])
    expected = np.add.reduceat(final.expected - chance, bounds[:-1])
    possible = np.maximum(expected, LEAST_POSSIBLE * expected.mean())
    # The floor is far above rounding, for logs in which every round is alike.
    variance = np.maximum(_variance(final, chance, bounds, gained / possible), (1e-6 * possible) ** 2)
    fitted = _closest_rising(gained[None, :], possible)[0]
    end = max(LEAST_END, float(_end(gained, possible)))
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((DRAWS, m)) * np.sqrt(variance)
    rise, fall = (float(_steepest(sign * gained, possible, variance)) for sign in (1, -1))
    null = _steepest(noise, possible, variance)
    blocks = _first_level(fitted * possible + noise, possible)
    tail = (1 - level) / 2
    low, high = np.quantile(blocks, [tail, 1 - tail], method="nearest")
    block = int(_first_level(gained[None], possible)[0])
    return Settling(
        bounds=bounds,
        share=np.where(expected < possible, np.nan, gained / possible / end),
        error=np.sqrt(variance) / possible / end,
        fitted=fitted / end,
        rise=rise,
        rise_p=_p(rise, null),
        fall=fall,
        fall_p=_p(fall, null),
        block=block,
        low=min(block, int(low)),
        high=max(block, int(high)),
    )


def _variance(final: Predicted, chance: Vector, bounds: Index, share: Vector) -> Vector:
    """Variance of what each block gains; half of it borrowed from the whole log, as a short block may look too calm."""
    sizes = np.diff(bounds)
    away = (final.given - chance) - np.repeat(share, sizes) * (final.expected - chance)
    own = np.add.reduceat(away**2, bounds[:-1])
    return np.asarray((own + (away**2).mean() * sizes) / 2)


def _steepest(gained: Vector, possible: Vector, variance: Vector) -> Vector:
    """Largest z, over all ways to cut the blocks in two, of the later share against the earlier one."""
    total, all_possible, all_variance = gained.sum(axis=-1, keepdims=True), possible.sum(), variance.sum()
    before, weight, doubt = np.cumsum(gained, axis=-1)[..., :-1], np.cumsum(possible)[:-1], np.cumsum(variance)[:-1]
    gap = (total - before) / (all_possible - weight) - before / weight
    error = np.sqrt((all_variance - doubt) / (all_possible - weight) ** 2 + doubt / weight**2)
    return np.asarray((gap / error).max(axis=-1))


def _p(statistic: float, null: Vector) -> float:
    return float((1 + np.count_nonzero(null >= statistic)) / (1 + len(null)))


def _end(gained: Vector, possible: Vector) -> Vector:
    """The level at the end of a curve, or of each of several."""
    reached = np.cumsum(possible[::-1])
    enough = int(np.searchsorted(reached, LEAST_END * reached[-1])) + 1
    last = max(1, round(END * len(possible)), enough)
    return np.asarray(gained[..., -last:].sum(axis=-1) / possible[-last:].sum())


def _first_level(gained: Matrix, possible: Vector) -> Index:
    """First block from which on the closest curve that never falls is level with the end, for each curve of a row."""
    least = (1 - MATERIAL) * _end(gained, possible)
    enough = _closest_rising(gained, possible) >= least[:, None]
    return np.asarray(np.where(enough.any(axis=1), enough.argmax(axis=1), len(possible) - 1), dtype=np.int64)


def _closest_rising(gained: Matrix, possible: Vector) -> Matrix:
    """The curve of means that never falls and is closest to that of each row, by least squares weighted by `possible`.

    That curve is at block i the largest, over all first blocks up to i, of the least mean from there to i or beyond.
    """
    sums, weights = np.cumsum(gained, axis=1), np.cumsum(possible)
    curve = np.full(gained.shape, -np.inf)
    for first in range(gained.shape[1]):
        before = sums[:, first - 1 : first] if first else 0.0
        means = (sums[:, first:] - before) / (weights[first:] - (weights[first - 1] if first else 0.0))
        onwards = np.minimum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
        np.maximum(curve[:, first:], onwards, out=curve[:, first:])
    return curve
