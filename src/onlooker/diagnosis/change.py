"""Whether and when the learner changed its mind: what it had learned was given up for something else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker.base.defaults import L2
from onlooker.base.types import Matrix, Vector
from onlooker.diagnosis.movement import (
    GivenUp,
    Pull,
    Steadiness,
    find_given_up,
    find_pull,
    find_steadiness,
    part_of,
)
from onlooker.imitation.mixture import LEAST_WEIGHT
from onlooker.imitation.newton import Fit, minimise
from onlooker.imitation.softmax import SoftmaxObjective, round_losses
from onlooker.imitation.stretches import FAST
from onlooker.logs.log import BanditLog

MOST_EVIDENCE = 1.0
"""No single round counts for more than this (in nats) when the change is located.

A learner that starts again explores for some rounds, which neither policy explains: taken at face value, a few of them
gave intervals one round wide that missed the change by two to eight (seen on LinUCB restarted half-way).
"""

NEAR = 0.15
"""The change is looked for within this part of the rounds around the place where past and future differ most."""

LEAST_TESTED, LEAST_PER_DIRECTION = 200, 10
"""Rounds that movement is looked for in: at least so many, and so many for every direction of theta."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Change:
    """Whether one policy made the picks of some rounds, and where not, when the last of several took over."""

    pull: Pull
    """What one policy leaves unexplained."""

    steadiness: Steadiness
    """Whether there is anything to explain."""

    given_up: GivenUp
    """The strongest sign that something was given up."""

    found: bool
    """Whether there was a change that matters."""

    round: int = 0
    """First round after the change."""

    low: int = 0
    """Lower end of its interval."""

    high: int = 0
    """Upper end."""


def enough(n_rounds: int, rank: int) -> bool:
    """Whether so many rounds are enough to look for movement."""
    return n_rounds >= max(LEAST_TESTED, LEAST_PER_DIRECTION * rank)


def find_change(log: BanditLog, others: Matrix, level: float, near: Fit | None = None) -> Change:
    """Test for a change, and locate it where there is one."""
    pull = find_pull(log, others, near)
    steadiness, given_up = find_steadiness(pull), find_given_up(pull)
    found = max(steadiness.p_value, given_up.p_value) < 1 - level and given_up.matters
    if not found:
        return Change(pull=pull, steadiness=steadiness, given_up=given_up, found=False)
    place, low, high = _locate(log, pull, given_up.round, level)
    return Change(pull=pull, steadiness=steadiness, given_up=given_up, found=True, round=place, low=low, high=high)


def find_changes(log: BanditLog, others: Matrix, rank: int, level: float) -> tuple[Change, list[Change]]:
    """What was found on the whole log; and all changes by their rounds, from the first that stands out on.

    After each change the rounds that follow are looked at alone, so that the last one is the last.
    """
    whole = find_change(log, others, level)
    changes, start, last = [], 0, whole
    while last.found:
        changes.append(_moved(last, start))
        start = changes[-1].round
        if not enough(log.n_rounds - start, rank):
            break
        last = find_change(log[start:], part_of(others, log, start), level, last.pull.fit)
    if changes and enough(changes[0].round, rank):
        first = find_change(log[: changes[0].round], part_of(others, log, 0, changes[0].round), level, whole.pull.fit)
        changes = [*([first] if first.found else []), *changes]
    return whole, changes


def _moved(change: Change, start: int) -> Change:
    return Change(
        pull=change.pull,
        steadiness=change.steadiness,
        given_up=change.given_up,
        found=True,
        round=start + change.round,
        low=start + change.low,
        high=start + change.high,
    )


def _locate(log: BanditLog, pull: Pull, near: int, level: float) -> tuple[int, int, int]:
    """First round after the change with its interval: where the policy before it stops to explain the picks."""
    weights = np.maximum(pull.mixture.own, LEAST_WEIGHT)
    reach = max(1, round(NEAR * log.n_rounds))
    start, stop = max(1, near - reach), min(log.n_rounds, near + reach)
    before, after = max(1, near - reach // 3), min(log.n_rounds - 1, near + reach // 3)
    place = low = high = near
    # The second time, the policies are those of the rounds on either side of the place found.
    for _ in range(2):
        old, new = (
            minimise(SoftmaxObjective(log[part], l2=L2, weights=weights[part]), pull.fit, tolerance=FAST).theta
            for part in (slice(0, before), slice(after, log.n_rounds))
        )
        part = log[start:stop]
        evidence = np.clip(round_losses(part, new) - round_losses(part, old), -MOST_EVIDENCE, MOST_EVIDENCE)
        loss = -np.cumsum(evidence)
        place, low, high = (start + 1 + place for place in _posterior(loss, level))
        before, after = min(max(1, place), log.n_rounds - 1), min(place, log.n_rounds - 1)
    return place, low, high


def _posterior(loss: Vector, level: float) -> tuple[int, int, int]:
    """Most likely place of the change and its interval, all places being equally likely beforehand."""
    weights = np.exp(loss.min() - loss)
    mass = np.cumsum(weights) / weights.sum()
    tail = (1 - level) / 2
    low, high = np.searchsorted(mass, [tail, 1 - tail])
    best = int(loss.argmin())
    return best, min(best, int(low)), max(best, int(high))
