"""Weights of rounds: a weight of two counts as two rounds next to each other, a weight of zero as none."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.errors import InputError
from onlooker.base.types import Index, Vector
from onlooker.logs.log import BanditLog

MOST = 2.0**53
"""Weights may sum to no more: beyond, not every whole number is a float."""


LEAST = 1e-30
"""Weights that are not 0 are at least this: sums of their squares times those of features are proper numbers."""


def as_weights(weights: ArrayLike, n_rounds: int, name: str = "weights") -> Vector:
    """Give one finite weight of at least 0 for each round.

    Examples
    --------
    >>> as_weights([2, 0, 1], 3)
    array([2., 0., 1.])
    """
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} are not numbers: pass one number a round") from None
    if array.shape != (n_rounds,):
        raise InputError(f"{name} has shape {array.shape}, but the log has {n_rounds} rounds: pass one a round")
    wrong = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if len(wrong):
        raise InputError(f"the weight of round {wrong[0]} is {array[wrong[0]]}: weights are finite and not negative")
    tiny = np.flatnonzero((array > 0) & (array < LEAST))
    if len(tiny):
        raise InputError(f"the weight of round {tiny[0]} is {array[tiny[0]]:g}: that is too small, scale weights up")
    # Not summed, which may overflow.
    if len(array) and array.max() > MOST / len(array):
        raise InputError(
            f"the weight of round {array.argmax()} is {array.max():g}: that is too large, scale weights down"
        )
    return array


def not_whole(weights: Vector) -> int | None:
    """First round whose weight is no whole number; None where there is none.

    Examples
    --------
    >>> not_whole(np.array([1.0, 2.5])), not_whole(np.array([1.0, 2.0]))
    (1, None)
    """
    found = np.flatnonzero(weights != np.floor(weights))
    return int(found[0]) if len(found) else None


def after(weights: Vector, burn_in: int) -> tuple[int, Vector]:
    """Rounds that a burn-in of so many counted rounds discards altogether, and the weights of the others.

    Of a round that the burn-in ends in, what is left counts.

    Examples
    --------
    >>> after(np.array([2.0, 0.0, 3.0, 1.0]), 3)
    (2, array([2., 1.]))
    """
    ends = np.cumsum(weights)
    start = int(np.searchsorted(ends, burn_in, side="right"))
    left = weights[start:].copy()
    left[:1] = np.minimum(left[:1], ends[start : start + 1] - burn_in)
    return start, left


def split(log: BanditLog, weights: Vector, places: Index) -> tuple[BanditLog, Vector, Index]:
    """The same counted rounds with no round across any of the places, and where in the log those then are.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.zeros((2, 2, 1)), chosen=[0, 1])
    >>> pieces, weights, places = split(log, np.array([5.0, 1.0]), np.array([0, 2, 5]))
    >>> pieces.chosen, weights, places
    (array([0, 0, 1]), array([2., 3., 1.]), array([0, 1, 2]))
    """
    ends = np.cumsum(weights)
    inside = np.setdiff1d(places[(places > 0) & (places < ends[-1])], ends)
    of = np.searchsorted(ends, inside, side="right")
    rounds = np.insert(np.arange(log.n_rounds), of, of)
    borders = np.insert(ends, of, inside)
    pieces = np.diff(borders, prepend=0.0)
    return log[rounds] if len(inside) else log, pieces, np.searchsorted(np.append(0.0, borders), places)
