"""Picks that are known only to a set, drawn within it."""

from __future__ import annotations

import numpy as np

from onlooker.base.types import Index, Vector
from onlooker.logs.layouts import Layout
from onlooker.logs.log import BanditLog
from onlooker.logs.partial import Marks


def draw_picks(log: BanditLog, probabilities: Vector, rng: np.random.Generator) -> Index:
    """A pick for every round, within its set, by the probabilities of all arms.

    Examples
    --------
    >>> log = BanditLog(np.eye(4), [0, 2, 4], None, possible=[True, True, False, True])
    >>> draw_picks(log, np.array([0.0, 1.0, 1.0, 0.0]), np.random.default_rng(0))
    array([1, 1])
    """
    shares = log.expected_picks(probabilities)
    ends = np.cumsum(shares)
    starts = log.offsets[:-1]
    before = ends[starts] - shares[starts]
    within = before + rng.random(log.n_rounds) * (ends[log.offsets[1:] - 1] - before)
    rows = np.minimum(np.searchsorted(ends, within, side="right"), log.offsets[1:] - 1)
    # Rounding may lead just outside of a set.
    known = log.chosen_or_unknown
    inside = np.ones(len(shares), dtype=bool) if log.possible is None else log.possible
    last = np.flatnonzero(inside)
    rows = np.where(inside[rows], rows, last[np.searchsorted(last, rows, side="right") - 1])
    return np.asarray(np.where(known >= 0, known, rows - starts), dtype=np.int64)


def with_picks(log: BanditLog, chosen: Index) -> BanditLog:
    """The log with all its picks known to be these."""
    return BanditLog(
        log.features,
        log.offsets,
        chosen,
        feature_names=log.feature_names,
        round_ids=log.round_ids,
        arm_ids=None if log.crossing is not None else log.arm_ids,
        times=log.times,
        categories=log.categories,
        offer_probability=log.offer_probability,
    )


def picks_alone(log: BanditLog, rounds: Marks) -> BanditLog:
    """The log with nothing but the pick on offer in some of its rounds, which then say nothing about preferences.

    Examples
    --------
    >>> log = BanditLog(np.eye(4), [0, 2, 4], [1, 0])
    >>> picks_alone(log, np.array([True, False])).n_arms
    array([1, 2])
    """
    kept = ~np.repeat(rounds, log.n_arms)
    kept[log.chosen_rows] = True
    rows = np.flatnonzero(kept)
    chances = log.offer_probability
    return BanditLog(
        log.features[rows],
        np.concatenate([[0], np.cumsum(np.where(rounds, 1, log.n_arms))]),
        np.where(rounds, 0, log.chosen),
        feature_names=log.feature_names,
        round_ids=log.round_ids,
        arm_ids=None if isinstance(log.features, Layout) or log.arm_ids is None else log.arm_ids[rows],
        times=log.times,
        categories=log.categories,
        offer_probability=None if chances is None else chances[rows],
    )
