"""How a learner picked in every round, from observers that fit one policy to many rounds.

The observer is fitted again to a growing part of the log, and each fit predicts the rounds that follow it. Such a
prediction may be too sure of itself or too careful, and knows nothing of random picks. So it is raised to several
powers and mixed with several shares of random picks, side by side, and each of these counts by how well it predicted
the picks so far.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from onlooker.base.errors import InputError
from onlooker.base.types import Index, Vector
from onlooker.imitation.choice_model import LINEAR
from onlooker.imitation.scores.choice import basis_of
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog

FIRST = 50
"""Rounds before the first fit; until then all arms are taken to be alike."""
GROWTH = 1.5
"""Rounds of a fit against those of the fit before: all fits together cost about three times the last one."""
POWERS = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0)
RANDOM = (5e-4, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.8)
"""Shares of random picks; the least is never 0, so that no arm has a probability of 0."""
SMALLEST = 1e-30
"""Probabilities below this count as this."""

RATIO, BINS = 1.5, 40
"""Bins of a probability against a uniform pick's, from one to the next; the middle one begins at as much as that."""
PSEUDO_PICKS = 10.0
"""Picks, as many as predicted, that a bin starts with: a few odd ones do not decide."""
BLOCK = 64
"""Rounds between two looks at the bins."""

Predict = Callable[[BanditLog], Vector]


def growing_fits(log: BanditLog, fit: Callable[[BanditLog], Predict], base: Vector, *, ahead: bool = True) -> None:
    """Fill `base` with what fits to a growing part of the log say of the rounds after it.

    With `ahead=False` a fit has seen the rounds that it predicts, and those up to the next fit. A part that an observer
    refuses, as too short, leaves the prediction before it in place.
    """
    predict: Predict = all_alike
    for start, stop in stages(log.n_rounds):
        seen = start if ahead else stop
        if seen:
            try:
                with warnings.catch_warnings():
                    # What there is to say of the whole log was said when it was fitted.
                    warnings.simplefilter("ignore")
                    predict = fit(log[:seen])
            except InputError:
                pass
        base[log.offsets[start] : log.offsets[stop]] = predict(log[start:stop])


def stages(n_rounds: int) -> Iterator[tuple[int, int]]:
    """Where fits predict: from a number of rounds to the next.

    Examples
    --------
    >>> list(stages(180))
    [(0, 50), (50, 75), (75, 112), (112, 168), (168, 180)]
    """
    start = 0
    while start < n_rounds:
        stop = min(max(FIRST, int(GROWTH * start)), n_rounds)
        yield start, stop
        start = stop


def all_alike(log: BanditLog) -> Vector:
    """Probabilities of picks at random."""
    return np.repeat(1.0 / log.n_arms, log.n_arms)


def calibrated(log: BanditLog, base: Vector, *, ahead: bool = True) -> Vector:
    """Probabilities of all arms, as sharp and as random as the picks before each round say, or with all picks.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.zeros((1000, 2, 1)), chosen=np.arange(1000) % 10 // 9)
    >>> calibrated(log, np.tile([0.999, 0.001], 1000))[-2:].round(1)
    array([0.9, 0.1])
    """
    weights, found = None, np.empty(len(base))
    for part, rows in _parts(log):
        members = _members(part, base[rows])
        found[rows], weights = mixed(part, members, weights)
    if not ahead and weights is not None:
        for part, rows in _parts(log):
            found[rows] = weights[0] @ _members(part, base[rows])
    return found


def mixed(
    log: BanditLog, members: Sequence[Vector] | Vector, before: tuple[Vector, int] | None = None
) -> tuple[Vector, tuple[Vector, int]]:
    """Average predictions of all arms, one per member, by how well each predicted the picks before a round.

    Gives the weights after the last round too, and how many rounds led to them, for the rounds that come next.
    """
    from onlooker.kernels.dynamic import mix

    arms = np.ascontiguousarray(members)
    weights, first = (np.full(len(arms), 1.0 / len(arms)), 0) if before is None else (before[0].copy(), before[1])
    found, total = np.empty(arms.shape[1]), np.empty(log.n_rounds)
    mix(np.ascontiguousarray(np.log(log.of_picks(arms))), arms, log.offsets, first, weights, found, total)
    return found, (weights, first + log.n_rounds)


def recalibrated(log: BanditLog, values: Vector) -> Vector:
    """Scale small and large probabilities by how often arms with such ones were picked before, against as predicted.

    Off-policy estimates divide by the probabilities of improbable picks, which weigh little in how well picks are
    predicted: predictions that are as good may be off by a third there.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.zeros((2000, 4, 1)), chosen=np.arange(2000) % 10 // 9)
    >>> recalibrated(log, np.tile([0.88, 0.04, 0.04, 0.04], 2000))[-4:].round(2)
    array([0.9 , 0.03, 0.03, 0.03])
    """
    sizes = np.repeat(log.n_arms, log.n_arms)
    bins = np.clip(np.floor(np.log(values * sizes) / np.log(RATIO)).astype(np.int64) + BINS // 2, 0, BINS - 1)
    predicted, picked, found = np.full(BINS, PSEUDO_PICKS), np.full(BINS, PSEUDO_PICKS), np.empty(len(values))
    for start in range(0, log.n_rounds, BLOCK):
        part = log[start : start + BLOCK]
        rows = slice(int(log.offsets[start]), int(log.offsets[start + part.n_rounds]))
        scaled = values[rows] * (picked / predicted)[bins[rows]]
        found[rows] = scaled / np.repeat(np.add.reduceat(scaled, part.offsets[:-1]), part.n_arms)
        predicted += np.bincount(bins[rows], values[rows], minlength=BINS)
        picked += _picked(part, values[rows], bins[rows])
    return found


def _picked(log: BanditLog, values: Vector, bins: Index) -> Vector:
    """How many picks fall into each bin; of those known to a set, in expectation."""
    if log.possible is None:
        return np.asarray(np.bincount(bins[log.chosen_rows], minlength=BINS), dtype=np.float64)
    return np.asarray(np.bincount(bins, log.expected_picks(values), minlength=BINS), dtype=np.float64)


def _parts(log: BanditLog) -> Iterator[tuple[BanditLog, slice]]:
    for start, stop in ragged.blocks(log.offsets, len(POWERS) * len(RANDOM)):
        yield log[start:stop], slice(int(log.offsets[start]), int(log.offsets[stop]))


def _members(log: BanditLog, base: Vector) -> Vector:
    """The prediction, sharper or flatter, with a share of random picks: one row for each, shape (members, rows)."""
    logs = np.log(np.maximum(base, SMALLEST))
    alike = all_alike(log)
    found = [
        (1.0 - random) * flat + random * alike
        for flat in (ragged.softmax(power * logs, log.offsets) for power in POWERS)
        for random in RANDOM
    ]
    return np.array(found)


def ahead_in_basis(observer: Any, log: BanditLog, times: Any = None) -> Vector:
    """Each round predicted from those before, by which the basis is chosen too: again as the log grows by half."""
    parameters, log = observer.get_params(deep=False), log.written_out()
    linear, basis = type(observer)(**{**parameters, "score": LINEAR}), None
    found = np.empty(int(log.offsets[-1]))
    for start, stop in stages(log.n_rounds):
        if start:
            basis = basis_of(log[:start], parameters["score"])
        part = log[:stop] if basis is None else basis.basis(log[:stop])
        options = {} if times is None else {"times": np.asarray(times)[:stop]}
        rows = slice(int(log.offsets[start]), int(log.offsets[stop]))
        found[rows] = linear.predicted_ahead(part, **options)[rows]
    return found
