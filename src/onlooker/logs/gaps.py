"""Rounds that were lost: what stands in their place, so that observers know that the learner learned there.

The pick of a lost round is unknown, but the learner learned from it. A round with a single arm represents just that:
there was no choice to learn from, and the pick moved the learner on. Its features are those of a pick nearby, so that
what the learner has seen of each direction grows as it is expected to.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.errors import InputError
from onlooker.base.types import Index
from onlooker.logs.log import BanditLog, as_log
from onlooker.logs.partial import Marks

MOST = 1_000_000
"""Lost rounds that are stood in for at most; more are surely a mistake in the numbers."""


def fill_gaps(log: BanditLog, gaps: ArrayLike | str = "ids") -> BanditLog:
    """The log with a round of one arm in the place of every round that was lost.

    `gaps` has the number of rounds that were lost before each round of the log; or it is `"ids"`, where round ids are
    whole numbers that count all rounds, or `"times"`, where times are numbers or dates and rounds came about evenly:
    a step of m times the usual one (the median) then stands for m - 1 lost rounds. For `TrackingObserver` and
    `DynamicImitation`, which take `gaps` in `fit` too; suffix imitation needs nothing of the kind.

    Examples
    --------
    >>> log = BanditLog(np.arange(6.0)[:, None], [0, 2, 4, 6], [1, 0, 1], round_ids=[7, 8, 11])
    >>> fill_gaps(log).n_arms
    array([2, 2, 1, 1, 2])
    """
    return with_stand_ins(log, lost_before(log, gaps))[0]


def lost_before(log: BanditLog, gaps: ArrayLike | str) -> Index:
    """How many rounds were lost before each round of a log, shape (N,)."""
    if isinstance(gaps, str):
        if gaps not in {"ids", "times"}:
            raise InputError(f"gaps is {gaps!r}: use 'ids', 'times' or the number of lost rounds before each round")
        return _from_ids(as_log(log)) if gaps == "ids" else _from_times(as_log(log))
    values = np.asarray(gaps)
    if values.shape != (as_log(log).n_rounds,):
        raise InputError(f"gaps has shape {values.shape}: pass one number for each of the {log.n_rounds} rounds")
    if values.dtype.kind not in "iuf" or not (np.isfinite(values) & (values >= 0) & (values == np.floor(values))).all():
        raise InputError("gaps must be whole numbers of at least 0: how many rounds were lost before each round")
    return values.astype(np.int64)


def with_stand_ins(log: BanditLog, lost: Index) -> tuple[BanditLog, Marks]:
    """The log with stand-ins for lost rounds, and which of its rounds are those of the log itself."""
    if lost.sum() > MOST:
        raise InputError(f"{int(lost.sum()):,} rounds would be lost: check `gaps`, they count rounds before each round")
    ends = np.cumsum(lost + 1)
    seen = np.zeros(int(ends[-1]) if len(ends) else 0, dtype=bool)
    seen[ends - 1] = True
    order = np.empty(len(seen), dtype=np.int64)
    order[seen] = np.arange(log.n_rounds)
    stand_ins = np.flatnonzero(~seen)
    # Half of a gap takes after the rounds before it, in reverse, and half after those that follow.
    next_seen = np.searchsorted(ends - 1, stand_ins)
    into = stand_ins - (ends - 1 - lost)[next_seen]
    back = into < lost[next_seen] // 2
    near = np.where(back, next_seen - 1 - into, next_seen + (lost[next_seen] - 1 - into))
    order[stand_ins] = np.clip(np.where(near < 0, -1 - near, near), 0, log.n_rounds - 1)
    repeated = log[order]
    keep = np.ones(len(repeated.features), dtype=bool)
    sizes = repeated.n_arms
    rows = repeated.offsets[:-1] + np.maximum(repeated.chosen_or_unknown, 0)
    keep[np.repeat(~seen, sizes)] = False
    keep[rows[~seen]] = True
    offsets = np.concatenate([[0], np.cumsum(np.where(seen, sizes, 1))]).astype(np.int64)
    possible, chances = repeated.possible, repeated.offer_probability
    marks = None if possible is None else possible[keep]
    if marks is not None:
        marks = marks.copy()
        marks[offsets[:-1][~seen]] = True
    filled = BanditLog(
        repeated.features[np.flatnonzero(keep)],
        offsets,
        np.where(seen, repeated.chosen_or_unknown, 0),
        feature_names=log.feature_names,
        times=None,
        categories=log.categories,
        possible=marks,
        offer_probability=None if chances is None else chances[keep],
    )
    return filled, seen


def _from_ids(log: BanditLog) -> Index:
    ids = log.round_ids
    if ids is None or ids.dtype.kind not in "iu":
        raise InputError("gaps='ids' needs round ids that are whole numbers: pass the number of lost rounds instead")
    steps = np.diff(ids.astype(np.int64))
    if (steps <= 0).any():
        place = int(np.flatnonzero(steps <= 0)[0]) + 1
        raise InputError(f"round ids do not rise at round {place}: gaps='ids' needs ids that count all rounds")
    return np.concatenate([[0], steps - 1])


def _from_times(log: BanditLog) -> Index:
    times = log.times
    if times is None or times.dtype.kind not in "iufM":
        raise InputError("gaps='times' needs a time of each round, numbers or dates: pass the number of lost rounds")
    values = times.astype("datetime64[us]").astype(np.int64) if times.dtype.kind == "M" else times
    steps = np.diff(values.astype(np.float64))
    usual = float(np.median(steps)) if len(steps) else 1.0
    if usual <= 0 or (steps < 0).any():
        raise InputError("times do not rise from round to round: sort the rounds, or pass the number of lost rounds")
    return np.concatenate([[0], np.maximum(np.rint(steps / usual) - 1, 0)]).astype(np.int64)
