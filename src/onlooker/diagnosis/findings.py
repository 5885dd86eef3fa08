"""Findings as the values that a diagnosis holds: rounds of the log as it was given, blocks and tests."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from onlooker.base.numerics import normal_reach
from onlooker.base.types import Index
from onlooker.diagnosis.bins import Diagnostics, Estimate, find_diagnostics
from onlooker.diagnosis.change import Change, find_change
from onlooker.diagnosis.policies import FAST, LATE, Predicted, cross_predict, edges, imitate
from onlooker.diagnosis.preference import Preference, find_preference
from onlooker.diagnosis.result import Block, RoundEstimate, Test
from onlooker.diagnosis.settling import LEAST_P, MATERIAL, Settling, find_settling
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
    change: Change
    """Whether there was another policy before it."""
    before: Change | None
    """The change before that one; None where there was none."""


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
    final = cross_predict(log, late, fit)
    chance = 1 / log.n_arms
    gain = (final.given - chance)[late:]
    error = float(gain.std()) / len(gain) ** 0.5
    # Without a policy that predicts anything the share of its gain over random guessing is noise divided by noise.
    predicts = preference.p_value < 1 - level and float(gain.mean()) > float(ndtri(level)) * error
    starts = [0, *(int(rounds[bound]) for bound in bounds[1:-1]), int(rounds[-1]) + 1]
    change = find_change(log, bounds, fit, preference.spread, level)
    return Findings(
        rounds=rounds,
        preference=preference,
        final=final,
        diagnostics=find_diagnostics(log, bounds, starts, final, level),
        settling=find_settling(final, np.asarray(chance), level) if predicts else None,
        change=change,
        before=_earlier(log[: change.round], preference, len(bounds) - 1, level) if change.found else None,
    )


def _earlier(log: BanditLog, preference: Preference, bins: int, level: float) -> Change | None:
    """Look for a change in the rounds before the last one."""
    used = min(bins, log.n_rounds // max(LEAST_BIN, BIN_ROUNDS_PER_DIRECTION * preference.rank))
    if used < 3:
        return None
    fit = imitate(log.suffix(int(LATE * log.n_rounds)), tolerance=FAST)
    change = find_change(log, edges(log.n_rounds, used), fit, preference.spread, level)
    return change if change.found else None


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
    preference, settling, change = found.preference, found.settling, found.change
    bins = len(found.diagnostics.bins)
    rise = () if settling is None else (_rise(settling),)
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
        Test(
            hypothesis=f"no bin is predicted better by its past than by its future, by more than {MATERIAL:.0%}",
            statistic=change.z,
            distribution="largest z",
            p_value=change.p_value,
        ),
    )


def _rise(settling: Settling) -> Test:
    return Test(
        hypothesis="the final policy fits early rounds as well as late ones",
        statistic=settling.rise,
        distribution="largest z",
        p_value=settling.rise_p,
        least_p=LEAST_P,
    )
