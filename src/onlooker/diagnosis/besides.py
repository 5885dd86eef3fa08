"""What a system does beside its learner: rules that pick regardless of the scores, arms that are withdrawn.

The picks at each position are compared with what the policy expects there. Positions that stand for arms, as in a
log of contexts, show arms that are forced or capped; else they show slots that are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from onlooker.base.types import Index, Matrix, Vector
from onlooker.diagnosis import sentences
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog

BLOCKS = 30
"""Parts of the log by whose scatter an excess is judged: picks close in time may be alike."""
CLEAR = 5.0
"""Standard errors from which on an excess is clear, at any of up to a hundred positions."""
LEAST_FORCED = 0.05
"""A rule that picks less often is not mentioned."""
LEAST_LOW = 100
"""Rounds in which a position has to be less than even, so that picks of it say something."""
LEAST_MISSING = 20.0
"""Picks that the policy expected of a position which was never picked again. By chance there are none in e^-20."""
MOST_POSITIONS = 1000
"""With more positions none of them is looked at."""


def find_forced(log: BanditLog, theta: Vector, share: float) -> Iterator[str]:
    """A sentence about picks at one position whatever is there, beside a policy with weights `theta`.

    The policy's picks are random in a `share` of rounds.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5, 2))
    >>> picks = (X @ [2.0, 1.0] + rng.gumbel(size=(2000, 5))).argmax(axis=1)
    >>> log = BanditLog.from_dense(X, picks)
    >>> list(find_forced(log, np.array([2.0, 1.0]), 0.0))
    []
    >>> pinned = BanditLog.from_dense(X, np.where(rng.random(2000) < 0.2, 3, picks))
    >>> [one[:53] for one in find_forced(pinned, np.array([2.0, 1.0]), 0.0)]
    ['about 22% of the picks are at position 3 whatever its']
    """
    n_positions, sizes = int(log.n_arms.max()), log.n_arms
    if n_positions > MOST_POSITIONS:
        return
    place, expected = _positions(log), _expected(log, theta, share)
    # Where the policy prefers the position, a rule would hardly show.
    low = expected < 1 / np.repeat(sizes, sizes)
    picked = np.zeros(len(expected))
    picked[log.chosen_rows] = 1.0
    block = np.repeat(np.arange(log.n_rounds) * BLOCKS // log.n_rounds, sizes)
    excess = _sums(block, place, (picked - expected) * low, n_positions)
    open_to_it = np.bincount(place, (1 - expected) * low, n_positions)
    total, spread = excess.sum(axis=0), excess.std(axis=0, ddof=1) * BLOCKS**0.5
    forced = total / np.maximum(open_to_it, 1.0)
    enough = np.bincount(place, low, n_positions) >= LEAST_LOW
    clear = np.flatnonzero(enough & (forced >= LEAST_FORCED) & (total > CLEAR * np.maximum(spread, 1.0)))
    if len(clear):
        top = int(clear[forced[clear].argmax()])
        yield sentences.forced(top, float(forced[top]))


def find_withdrawn(log: BanditLog, theta: Vector, share: float, rounds: Index) -> Iterator[str]:
    """A sentence about positions that were picked, and from some round on never again, against what a policy expects.

    `rounds` gives the rounds of the log as it was given.
    """
    n_positions = int(log.n_arms.max())
    if n_positions > MOST_POSITIONS:
        return
    place, expected = _positions(log), _expected(log, theta, share)
    last = np.full(n_positions, -1)
    last[log.chosen] = np.arange(log.n_rounds)  # of several rounds the last one stays
    later = np.repeat(np.arange(log.n_rounds), log.n_arms) > last[place]
    missing = np.bincount(place, expected * later, n_positions)
    gone = np.flatnonzero((last >= 0) & (missing >= LEAST_MISSING))
    if len(gone):
        top = int(gone[missing[gone].argmax()])
        yield sentences.withdrawn(top, len(gone), int(rounds[last[top]]), float(missing[top]))


def _positions(log: BanditLog) -> Index:
    """Of every row in its round."""
    return np.asarray(np.arange(log.offsets[-1]) - np.repeat(log.offsets[:-1], log.n_arms))


def _expected(log: BanditLog, theta: Vector, share: float) -> Vector:
    """Probability of every row."""
    policy = ragged.softmax(log.features @ theta, log.offsets)
    return np.asarray((1 - share) * policy + share / np.repeat(log.n_arms, log.n_arms))


def _sums(block: Index, place: Index, values: Vector, n_positions: int) -> Matrix:
    """Sums by block and position."""
    found = np.bincount(block * n_positions + place, values, BLOCKS * n_positions)
    return np.asarray(found.reshape(BLOCKS, n_positions))
