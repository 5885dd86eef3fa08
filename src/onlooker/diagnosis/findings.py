"""Findings as the values that a diagnosis holds: rounds of the log as it was given, blocks and tests."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from onlooker.base.numerics import normal_reach
from onlooker.base.types import Index, Matrix, Vector
from onlooker.diagnosis.bins import Diagnostics, Estimate, find_diagnostics
from onlooker.diagnosis.change import Change, enough, find_changes
from onlooker.diagnosis.movement import LEAST_P as LEAST_GIVEN_UP_P
from onlooker.diagnosis.movement import MATERIAL_NOW, Pull, Steadiness, find_pull, find_steadiness, part_of
from onlooker.diagnosis.preference import Preference, find_preference
from onlooker.diagnosis.result import Block, RoundEstimate, Test
from onlooker.diagnosis.settling import LEAST_P, Settling, find_settling
from onlooker.imitation.mixture import other_ways
from onlooker.imitation.newton import Fit
from onlooker.imitation.stretches import FAST, LATE, Predicted, cross_predict, edges, imitate
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog

BIN_ROUNDS_PER_DIRECTION, LEAST_BIN = 5, 20
"""A bin has at least so many rounds, for every direction and at all: shorter ones have no policy to speak of."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Findings:
    """What was found on the rounds of a log that offer a choice."""

    rounds: Index
    """Which rounds of the whole log those are."""
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

    def moving(self, level: float) -> bool:
        """Whether the weights move at the end, and that matters."""
        return self.late is not None and self.late.p_value < 1 - level and self.late.share >= MATERIAL_NOW

    def steady(self, level: float) -> bool:
        """Whether one policy may have made all picks."""
        return not self.changes and self.whole.steadiness.p_value >= 1 - level


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
