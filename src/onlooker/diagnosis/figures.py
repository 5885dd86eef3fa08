"""Findings as the values that a diagnosis holds: rounds of the log as it was given, blocks and tests."""

from __future__ import annotations

from math import isnan
from typing import Any

import numpy as np

from onlooker.diagnosis.bins import Estimate
from onlooker.diagnosis.findings import Findings
from onlooker.diagnosis.result import Block, RoundEstimate, Test
from onlooker.diagnosis.settling import LEAST_P, MATERIAL, Settling
from onlooker.log import BanditLog
from onlooker.p_values import normal_reach
from onlooker.types import Index


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
    """How well the final policy fits, block by block, but for blocks that it cannot say anything about."""
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
            hypothesis=f"no bin is foretold better by its past than by its future, by more than {MATERIAL:.0%}",
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
