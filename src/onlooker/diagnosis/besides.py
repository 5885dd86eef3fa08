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


def find_rules(log: BanditLog, theta: Vector, share: float, now: Index) -> Iterator[str]:
    """Sentences about rules on top of a policy with weights `theta`, whose picks are random in a `share` of rounds.

    `now` gives the rounds of the log as it was given.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5, 2))
    >>> picks = (X @ [2.0, 1.0] + rng.gumbel(size=(2000, 5))).argmax(axis=1)
    >>> log = BanditLog.from_dense(X, picks)
    >>> list(find_rules(log, np.array([2.0, 1.0]), 0.0, np.arange(2000)))
    []
    >>> pinned = BanditLog.from_dense(X, np.where(rng.random(2000) < 0.2, 3, picks))
    >>> [one[:53] for one in find_rules(pinned, np.array([2.0, 1.0]), 0.0, np.arange(2000))]
    ['about 22% of the picks are at position 3 whatever its']
    """
    n_positions = int(log.n_arms.max())
    if n_positions > MOST_POSITIONS:
        return
    sizes = log.n_arms
    place = np.arange(len(log.features)) - np.repeat(log.offsets[:-1], sizes)
    expected = (1 - share) * ragged.softmax(log.features @ theta, log.offsets) + share / np.repeat(sizes, sizes)
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
    yield from _withdrawn(log, expected, place, now)


def _withdrawn(log: BanditLog, expected: Vector, place: Index, now: Index) -> Iterator[str]:
    """Positions that were picked, and from some round on never again, though the policy expected more picks."""
    n_positions = int(place.max()) + 1
    rounds = np.repeat(np.arange(log.n_rounds), log.n_arms)
    last = np.full(n_positions, -1)
    last[log.chosen] = np.arange(log.n_rounds)  # of several rounds the last one stays
    missing = np.bincount(place, expected * (rounds > last[place]), n_positions)
    gone = np.flatnonzero((last >= 0) & (missing >= LEAST_MISSING))
    if len(gone):
        top = int(gone[missing[gone].argmax()])
        yield sentences.withdrawn(top, len(gone), int(now[last[top]]), float(missing[top]))


def _sums(block: Index, place: Index, values: Vector, n_positions: int) -> Matrix:
    """Sums by block and position."""
    found = np.bincount(block * n_positions + place, values, BLOCKS * n_positions)
    return np.asarray(found.reshape(BLOCKS, n_positions))
