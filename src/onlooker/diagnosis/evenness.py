"""Whether picks are uniformly random but for the features, or follow their position in the round.

Under uniformly random picks the counts of all positions, and of all steps from one pick's position to the next one's,
have known expectations. Chernoff's bound says how improbable the counts are at most; no approximation is made.

Score tests of a preference suppose that picks without one are uniform. Where positions are picked unevenly, as arms are
that a learner without a context prefers, chance makes larger scores than that. There the features are tested beside a
constant for each position.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from onlooker.base.numerics import UNIDENTIFIED, Curvature, chi_square_p
from onlooker.base.types import Index, Matrix, Vector
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog

UNEVEN = 1e-4
"""Counts that are less probable than this, whichever of them is looked at, are not those of random picks."""


def find_uneven(log: BanditLog) -> str:
    """Say in words what shows that picks are not uniformly random; empty where nothing does.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 4, 2))
    >>> find_uneven(BanditLog.from_dense(X, np.zeros(500, dtype=int)))
    '100.0% of them are at position 0, and chance would make it 25.0%'
    >>> find_uneven(BanditLog.from_dense(X, np.arange(500) % 4))
    '100.0% of them are 1 position after the pick before, counted in a circle, and chance would make it 25.0%'
    >>> find_uneven(BanditLog.from_dense(X, np.random.default_rng(1).integers(4, size=500)))
    ''
    """
    sizes, chosen = log.n_arms, log.chosen
    place = _oddest(chosen, sizes)
    if place is not None:
        position, share, chance = place
        return f"{share:.1%} of them are at position {position}, and chance would make it {chance:.1%}"
    alike = np.flatnonzero(np.diff(sizes) == 0) + 1
    if not len(alike):
        return ""
    steps = (chosen[alike] - chosen[alike - 1]) % sizes[alike]
    place = _oddest(steps, sizes[alike])
    if place is None:
        return ""
    step, share, chance = place
    if step == 0:
        return f"{share:.1%} of them repeat the position of the pick before, and chance would make it {chance:.1%}"
    moved = "1 position" if step == 1 else f"{step} positions"
    return (
        f"{share:.1%} of them are {moved} after the pick before, counted in a circle, and chance would make it "
        f"{chance:.1%}"
    )


def _oddest(seen: Index, sizes: Index) -> tuple[int, float, float] | None:
    """Of places that chance does not explain the one furthest off, with its share and that expected; None without.

    Of a round, each of the places below its size is as probable as the others.
    """
    ends: Vector = np.bincount(sizes, 1 / sizes).astype(np.float64)
    expected = np.cumsum(ends[::-1])[::-1][1:]
    counts = np.bincount(seen, minlength=len(expected)).astype(np.float64)
    logs = np.log(np.maximum(counts, 1e-300) / expected)
    clear = counts * logs - counts + expected > np.log(2 * len(counts) / UNEVEN)
    if not clear.any():
        return None
    odd = int(np.where(clear, np.abs(counts - expected), -1.0).argmax())
    total = float(counts.sum())
    return odd, float(counts[odd]) / total, float(expected[odd]) / total


MOST_WEIGHTS = 500
"""With more features and positions together they are not tested beside each other."""
MOST_STEPS = 100
"""Steps in which the weights of positions are found."""
ENOUGH = 1e-9
"""Change of a position's weight below which they are found."""
UNSEEN = 0.5
"""Picks that every position has beside its own, so that none is impossible."""


def find_beyond(log: BanditLog, bounds: list[int]) -> float | None:
    """P-value of the picks if positions alone decide, for the whole log and the bins between `bounds`.

    None where features and positions cannot be told apart, as where every position has always the same features.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 4, 2))
    >>> uneven = rng.choice(4, p=[0.7, 0.1, 0.1, 0.1], size=600)
    >>> find_beyond(BanditLog.from_dense(X, uneven), [0, 300, 600]) > 0.05
    True
    >>> find_beyond(BanditLog.from_dense(X, X[:, :, 0].argmax(axis=1)), [0, 300, 600]) < 1e-9
    True
    >>> find_beyond(BanditLog.from_dense(np.tile(X[:1], (600, 1, 1)), uneven), [0, 300, 600]) is None
    True
    """
    n_positions = int(log.n_arms.max())
    if log.n_features + n_positions > MOST_WEIGHTS:
        return None
    whole = _beside_positions(log, n_positions)
    if whole is None:
        return None
    statistic, freedom = 0.0, 0
    for start, stop in pairwise(bounds):
        found = _beside_positions(log[start:stop], n_positions)
        if found is not None:
            statistic, freedom = statistic + found[0], freedom + found[1]
    return min(1.0, 2 * min(chi_square_p(*whole), chi_square_p(statistic, freedom)))


def find_decided(log: BanditLog, bounds: list[int], gain: float) -> float | None:
    """The p-value of `find_beyond`, if positions explain more than twice what a policy does; else None.

    `gain` is what the policy adds to the probability of a pick at random. Where offers are sorted by what the learner
    values, positions and features explain the picks alike, and nothing is said.
    """
    at = by_position(log)[log.chosen_rows] - 1 / log.n_arms
    return find_beyond(log, bounds) if 2 * gain < float(at.mean()) else None


def _beside_positions(log: BanditLog, n_positions: int) -> tuple[float, int] | None:
    """Score statistic of the features beside a constant for each position, and its degrees of freedom."""
    place, probabilities = ragged.positions(log.offsets), by_position(log)
    d = log.n_features
    gradient, information = np.zeros(d + n_positions), np.zeros((d + n_positions, d + n_positions))
    alone = np.zeros((d, d))
    for start, stop in ragged.blocks(log.offsets, d + n_positions):
        part = log[start:stop]
        rows = slice(log.offsets[start], log.offsets[stop])
        gradient_part, information_part, alone_part = _scores(part, place[rows], probabilities[rows], n_positions)
        gradient, information, alone = gradient + gradient_part, information + information_part, alone + alone_part
    constants = Curvature.of(information[d:, d:], flat=UNIDENTIFIED).root
    shared = information[:d, d:] @ constants
    left = information[:d, :d] - shared @ shared.T
    score = gradient[:d] - shared @ (constants.T @ gradient[d:])
    own = Curvature.of(alone, flat=UNIDENTIFIED)
    # Features that constants explain would be rounding divided by rounding.
    found = Curvature.of(left, flat=UNIDENTIFIED, noise=TOGETHER * np.diag(information)[:d])
    return None if found.rank < own.rank else (found.square(score), found.rank)


TOGETHER = 1e-6
"""Part of a feature's information that has to be its own, not that of positions."""


def _scores(log: BanditLog, place: Index, chances: Vector, n_positions: int) -> tuple[Vector, Matrix, Matrix]:
    """Gradient and information of features and positions; and that of features alone, for arms that are alike."""
    sizes, starts = log.n_arms, log.offsets[:-1] - log.offsets[0]
    rows = np.zeros((len(place), log.n_features + n_positions))
    rows[:, : log.n_features] = log.dense
    rows[np.arange(len(place)), log.n_features + place] = 1.0
    features = rows[:, : log.n_features]
    spread = features - np.repeat(np.add.reduceat(features, starts) / sizes[:, None], sizes, axis=0)
    rows -= np.repeat(np.add.reduceat(chances[:, None] * rows, starts), sizes, axis=0)
    return rows[starts + log.chosen].sum(axis=0), (chances[:, None] * rows).T @ rows, spread.T @ spread


def by_position(log: BanditLog) -> Vector:
    """Probability of every row if each position has a weight of its own: those that make the picks most probable."""
    place, sizes, starts = ragged.positions(log.offsets), log.n_arms, log.offsets[:-1]
    n_positions = int(sizes.max())
    counts = np.bincount(log.chosen, minlength=n_positions) + UNSEEN
    weights = counts / counts.sum()
    for _ in range(MOST_STEPS):
        total = np.add.reduceat(weights[place], starts)
        offered = np.bincount(place, np.repeat(1 / total, sizes), n_positions)
        better = counts / offered
        better /= better.sum()
        done = np.abs(better - weights).max() < ENOUGH
        weights = better
        if done:
            break
    chances: Vector = weights[place] / np.repeat(np.add.reduceat(weights[place], starts), sizes)
    return chances
