"""What is found on a log before it is judged: rounds with a choice, a preference, and everything by time.

Score tests say whether picks depend on the features at all. Under uniform picks everything about the score at theta = 0
is known, so they need no fit and hold in short bins, where a likelihood ratio would be too large.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import isnan
from typing import Any

import numpy as np

from onlooker.base.defaults import L2
from onlooker.base.numerics import UNIDENTIFIED, Curvature, chi_square_p, normal_reach
from onlooker.base.types import Index, Matrix, Vector
from onlooker.diagnosis.movement import LEAST_P as LEAST_GIVEN_UP_P
from onlooker.diagnosis.movement import (
    MATERIAL_NOW,
    Change,
    Pull,
    Steadiness,
    enough,
    find_changes,
    find_pull,
    find_steadiness,
    part_of,
)
from onlooker.diagnosis.predictability import LEAST_P, Diagnostics, Estimate, Settling, find_diagnostics, find_settling
from onlooker.diagnosis.result import Block, RoundEstimate, Test
from onlooker.imitation.newton import Fit
from onlooker.imitation.short import is_short
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.imitation.stretches import FAST, LATE, Predicted, cross_predict, edges, imitate, other_ways
from onlooker.logs import ragged
from onlooker.logs.layouts import Layout, divided
from onlooker.logs.log import BanditLog, as_narrow

ROUNDING = 4.0
"""Arms that differ by less than so many units in the last place do not differ."""

NOTHING = 1e-9
"""Nor do those that differ by less than this part of what is usual for the feature."""

USUAL = (0.1, 10.0)
"""Features whose arms usually differ by as much as this are left as they are.

The penalty of the fits is the paper's, a fixed number: it suits features of about unit size, and the features of all
simulated logs that verdicts were calibrated on lie well within. Others are brought to 1, so that units do not matter.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Choices:
    """The rounds of a log that are analysed."""

    log: BanditLog
    """Rounds that offer arms which differ."""
    rounds: Index
    """Which rounds of the whole log those are."""
    one_arm: int
    """Rounds ignored, as they offer a single arm."""
    alike: int
    """Rounds ignored, as no feature differs between their arms."""


def find_choices(log: BanditLog) -> Choices:
    """Keep the rounds that offer a choice, and measure unusually large or small features in units of their own.

    Examples
    --------
    >>> X = np.array([[[1.0], [0.0]], [[2.0], [2.0]], [[0.0], [3.0]]])
    >>> found = find_choices(BanditLog.from_dense(1e-6 * X, chosen=[0, 0, 1]))
    >>> found.rounds, found.alike, found.log.features.ravel()
    (array([0, 2]), 1, array([0.5, 0. , 0. , 1.5]))
    """
    several = as_narrow(log, "a diagnosis").n_arms > 1
    ranges = _ranges(log)
    usual = np.array([np.median(column[column > 0]) if column.any() else 1.0 for column in ranges.T])
    differs = (ranges > NOTHING * usual).any(axis=1)
    rounds = np.flatnonzero(differs)
    kept = log if len(rounds) == log.n_rounds else log[rounds]
    scale = np.where((usual < USUAL[0]) | (usual > USUAL[1]), usual, 1.0)
    if (scale != 1).any():
        features = divided(kept.features, scale)
        kept = kept.with_features(features, kept.feature_names if isinstance(features, Layout) else kept.weight_names)
    return Choices(
        log=kept,
        rounds=rounds,
        one_arm=int(np.count_nonzero(~several)),
        alike=int(np.count_nonzero(several & ~differs)),
    )


def _ranges(log: BanditLog) -> Matrix:
    """By how much every feature differs between the arms of every round, shape (N, d); rounding is no difference."""
    ranges = np.zeros((log.n_rounds, log.n_features))
    least = ROUNDING * float(np.finfo(log.features.dtype).eps)
    for start, stop in ragged.blocks(log.offsets, log.n_features):
        part = log[start:stop]
        ends = (np.maximum, np.minimum)
        rows = part.dense
        high, low = (end.reduceat(rows, part.offsets[:-1], axis=0).astype(np.float64) for end in ends)
        gap = high - low
        ranges[start:stop] = np.where(gap > least * np.maximum(np.abs(high), np.abs(low)), gap, 0.0)
    return ranges


BIN_ROUNDS_PER_DIRECTION, LEAST_BIN = 5, 20
"""A bin has at least so many rounds, for every direction and at all: shorter ones have no policy to speak of."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Findings:
    """What was found on the rounds of a log that offer a choice."""

    rounds: Index
    """Which rounds of the whole log those are."""
    edges: list[int]
    """Bounds of the bins."""
    preference: Preference
    """Whether the picks depend on the features at all."""
    final: Predicted
    """How well the policy of the last 30% predicts every round."""
    diagnostics: Diagnostics
    """The paper's."""
    settling: Settling | None
    """Since when the final policy has fitted; None where it predicts late picks no better than random guessing."""
    whole: Change
    """Whether one policy made all picks."""
    changes: tuple[Change, ...]
    """Changes from one policy to another, oldest first."""
    late: Steadiness | None
    """Whether one policy made the picks of the last half since the last change; None where those are too few."""
    start: int
    """The first of those rounds."""
    recent: Pull
    """What one policy leaves unexplained of them."""
    repeats: float
    """Share of picks that repeat the last position, beyond what a policy explains; 0 unless that is clear."""
    others: Matrix
    """How probable each row is if its pick is not made by a policy."""

    parts: tuple[tuple[int, int, Steadiness], ...]
    """Between changes: the last three quarters of each part that is long enough, and whether one policy made them."""

    def adrift(self, level: float) -> tuple[int, int, Steadiness] | None:
        """The last part between changes that no policy explains beyond chance, if that matters; None without one.

        One of as many parts as there are is rarely called so by chance.
        """
        least = (1 - level) / max(1, len(self.parts))
        found = [one for one in self.parts if one[2].p_value < least and one[2].share >= MATERIAL_BETWEEN]
        return found[-1] if found else None

    def moving(self, level: float) -> bool:
        """Whether the weights move at the end, and that matters."""
        return self.late is not None and self.late.p_value < 1 - level and self.late.share >= MATERIAL_NOW

    def steady(self, level: float) -> bool:
        """Whether one policy may have made all picks."""
        return not self.changes and self.whole.steadiness.p_value >= 1 - level


SETTLED = 0.25
"""Learners begin again after a change: so much of each part between changes is not asked to be that of one policy."""

MATERIAL_BETWEEN = 0.01
"""Movement between changes counts if following it would predict picks better by this part.

Ridge learners that still gather data between changes stay below it, weights that walk are mostly above.
"""


def _parts(
    log: BanditLog, others: Matrix, whole: Change, changes: list[Change], rank: int
) -> Iterator[tuple[int, int, Steadiness]]:
    """Look at each part between the intervals of changes alone."""
    ends = [*(one.low for one in changes), log.n_rounds]
    for first, stop in zip([0, *(one.high for one in changes)], ends, strict=True):
        start = first + int(SETTLED * (stop - first))
        if changes and enough(stop - start, rank):
            pull = find_pull(log[start:stop], part_of(others, log, start, stop), whole.pull.fit)
            yield start, stop, find_steadiness(pull)


def usable_bins(log: BanditLog, bins: int) -> tuple[Preference, list[int]]:
    """Test for a preference on as many of the `bins` as are long enough to look at; give their bounds too."""
    used = max(2, min(bins, log.n_rounds // LEAST_BIN))
    preference = find_preference(log, edges(log.n_rounds, used))
    fewer = max(2, min(used, log.n_rounds // (BIN_ROUNDS_PER_DIRECTION * max(1, preference.rank))))
    bounds = edges(log.n_rounds, fewer)
    return (preference if fewer == used else find_preference(log, bounds)), bounds


def find_all(log: BanditLog, rounds: Index, preference: Preference, bounds: list[int], level: float) -> Findings:
    """Look at a log in which every round offers a choice; `rounds` says where they stand in the log as it was given."""
    from scipy.special import ndtri

    late = int(LATE * log.n_rounds)
    fit = imitate(log.suffix(late), tolerance=FAST)
    final = cross_predict(log, late, fit.theta)
    chance = 1 / log.n_arms
    gain = (final.given - chance)[late:]
    error = float(gain.std()) / len(gain) ** 0.5
    # Without a policy that predicts anything the share of its gain over random guessing is noise divided by noise.
    predicts = preference.p_value < 1 - level and float(gain.mean()) > float(ndtri(level)) * error
    starts = [0, *(int(rounds[bound]) for bound in bounds[1:-1]), int(rounds[-1]) + 1]
    others = other_ways(log)
    whole, changes = find_changes(log, others, preference.rank, level)
    last = changes[-1].round if changes else 0
    start = last + (log.n_rounds - last) // 2
    recent = find_pull(log[start:], part_of(others, log, start), whole.pull.fit)
    movement = find_steadiness(recent) if enough(log.n_rounds - start, preference.rank) else None
    return Findings(
        rounds=rounds,
        edges=bounds,
        preference=preference,
        final=final,
        diagnostics=find_diagnostics(log, bounds, starts, final, level),
        settling=find_settling(final, np.asarray(chance), level) if predicts else None,
        whole=whole,
        changes=tuple(changes),
        start=start,
        recent=recent,
        late=movement,
        repeats=_repeats(log, fit, others[1]),
        others=others,
        parts=tuple(_parts(log, others, whole, changes, preference.rank)),
    )


def _repeats(log: BanditLog, fit: Fit, last: Vector) -> float:
    """Compare how often the last position is picked again with how often the final policy would pick it."""
    known = np.flatnonzero(last == 1.0)
    expected = ragged.softmax(log.features @ fit.theta, log.offsets)[known]
    picked = np.zeros(len(last), dtype=np.bool_)
    picked[log.chosen_rows] = True
    excess = float(picked[known].sum() - expected.sum())
    error = float((expected * (1 - expected)).sum()) ** 0.5
    return excess / float((1 - expected).sum()) if excess > REPEATS_CLEAR * error else 0.0


REPEATS_CLEAR = 4.0
"""Standard errors from which on repeated positions are clear."""


def round_of(log: BanditLog, found: Findings, place: int, low: int, high: int) -> RoundEstimate:
    """In rounds of the log as it was given, from positions among those that offer a choice."""
    last = len(found.rounds) - 1
    places = [int(found.rounds[min(last, at)]) if at else 0 for at in (place, low, high)]
    ids = [None if log.round_ids is None else _plain(log.round_ids[at]) for at in places]
    return RoundEstimate(round=places[0], low=places[1], high=places[2], round_id=ids[0], low_id=ids[1], high_id=ids[2])


def _plain(name: Any) -> str | int:
    """An id as JSON can hold it: a whole number, or text."""
    return int(name) if isinstance(name, (int, np.integer)) else str(name)


def blocks_of(settling: Settling, rounds: Index, level: float) -> tuple[Block, ...]:
    """How well the final policy fits, block by block, but for blocks in which nothing can be predicted."""
    reach = normal_reach(level) * settling.error
    return tuple(
        Block(
            start=int(rounds[a]),
            stop=int(rounds[b - 1]) + 1,
            share=Estimate(share, share - half, share + half),
            fitted=fitted,
        )
        for a, b, share, half, fitted in zip(
            settling.bounds[:-1].tolist(),
            settling.bounds[1:].tolist(),
            settling.share.tolist(),
            reach.tolist(),
            settling.fitted.tolist(),
            strict=True,
        )
        if not isnan(share)
    )


def tests_of(found: Findings) -> tuple[Test, ...]:
    """The hypotheses behind a verdict."""
    preference, settling, whole = found.preference, found.settling, found.whole
    bins = len(found.diagnostics.bins)
    rise = () if settling is None else (_rise(settling),)
    late = () if found.late is None else (_steady("one policy made the picks of the last part", found.late),)
    return (
        Test(
            hypothesis="picks are uniform throughout",
            statistic=preference.whole,
            distribution=f"chi-square({preference.rank})",
            p_value=preference.whole_p,
        ),
        Test(
            hypothesis=f"picks are uniform in each of {bins} bins",
            statistic=preference.binned,
            distribution=f"chi-square({preference.freedom})",
            p_value=preference.binned_p,
        ),
        *rise,
        _steady("one policy made all picks, some of them random", whole.steadiness),
        *late,
        Test(
            hypothesis="nowhere is the past less like the future than it is like its own past",
            statistic=whole.given_up.z,
            distribution="largest z",
            p_value=whole.given_up.p_value,
            least_p=LEAST_GIVEN_UP_P,
        ),
    )


def _steady(hypothesis: str, found: Steadiness) -> Test:
    return Test(hypothesis=hypothesis, statistic=found.z, distribution="largest z", p_value=found.p_value)


def _rise(settling: Settling) -> Test:
    return Test(
        hypothesis="the final policy fits early rounds as well as late ones",
        statistic=settling.rise,
        distribution="largest z",
        p_value=settling.rise_p,
        least_p=LEAST_P,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Preference:
    """What the score tests found."""

    rank: int
    """Directions of theta that the rounds identify."""

    spread: Matrix
    """Covariance of the features within the rounds, averaged over the rounds, shape (d, d)."""

    whole: float
    """Statistic for one preference throughout, chi-square with `rank` degrees of freedom."""

    whole_p: float
    """Its p-value."""

    binned: float
    """Statistic for any preference in any bin; `rank` degrees of freedom a bin."""

    freedom: int
    """Their number."""

    binned_p: float
    """Its p-value."""

    @property
    def p_value(self) -> float:
        """Of both together, corrected for there being two."""
        return min(1.0, 2 * min(self.whole_p, self.binned_p))


def find_preference(log: BanditLog, bounds: list[int]) -> Preference:
    """Test the whole log, and the bins between `bounds` together.

    Examples
    --------
    >>> X = np.random.default_rng(1).normal(size=(400, 3, 2))
    >>> find_preference(BanditLog.from_dense(X, chosen=np.zeros(400, dtype=int)), [0, 200, 400]).p_value > 0.05
    True
    >>> find_preference(BanditLog.from_dense(X, chosen=X[:, :, 0].argmax(axis=1)), [0, 200, 400]).p_value < 1e-9
    True
    """
    score, information = np.zeros(log.n_features), np.zeros((log.n_features, log.n_features))
    binned, freedom = 0.0, 0
    for gradient, hessian in _at_zero(log, bounds):
        score += gradient
        information += hessian
        found = Curvature.of(hessian, flat=UNIDENTIFIED)
        binned += found.square(gradient)
        freedom += found.rank
    found = Curvature.of(information, flat=UNIDENTIFIED)
    whole, rank = found.square(score), found.rank
    return Preference(
        rank=rank,
        spread=information / log.n_rounds,
        whole=whole,
        whole_p=chi_square_p(whole, rank),
        binned=binned,
        freedom=freedom,
        binned_p=chi_square_p(binned, freedom),
    )


def _at_zero(log: BanditLog, bounds: list[int]) -> Iterator[tuple[Vector, Matrix]]:
    """Gradient and Hessian of the loss where all arms score the same, summed over the rounds of each bin."""
    if not is_short(log, L2):
        for start, stop in pairwise(bounds):
            at = SoftmaxObjective(log[start:stop], l2=0.0).evaluate(np.zeros(log.n_features))
            yield (stop - start) * at.gradient, (stop - start) * at.hessian
        return
    sizes, rows = log.n_arms, log.dense.astype(np.float64)
    # From the first arm, then from the mean: what all arms share leaves exactly nothing.
    rows -= np.repeat(rows[log.offsets[:-1]], sizes, axis=0)
    rows -= np.repeat(np.add.reduceat(rows, log.offsets[:-1]) / sizes[:, None], sizes, axis=0)
    picked, shares = rows[log.chosen_rows], rows / np.repeat(sizes, sizes)[:, None]
    for start, stop in pairwise(bounds):
        part = slice(log.offsets[start], log.offsets[stop])
        yield -picked[start:stop].sum(axis=0), shares[part].T @ rows[part]
