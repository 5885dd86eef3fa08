"""What a log knows only in part: picks of which a set is known, offers of which a sample was kept, rounds lost."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlooker.base.checks import counted
from onlooker.base.errors import InputError
from onlooker.base.types import Index, Vector

Marks = NDArray[np.bool_]
"""One mark per row: whether its arm may have been the pick."""

UNKNOWN = -1
"""Stands for the position of a pick of which only a set is known."""

LARGEST = 1 << 62
"""Ids beyond it have differences that 64 bits do not hold: they number nothing."""
NUMBERED = 20
"""Ids that use fewer than one of so many numbers do not number rounds: they are times, or keys of something else."""


def as_possible(possible: ArrayLike, n_rows: int) -> Marks:
    """Marks of the arms that may have been picked, one per row.

    Examples
    --------
    >>> as_possible([1, 0, 1], 3)
    array([ True, False,  True])
    """
    array = np.asarray(possible)
    if array.shape != (n_rows,):
        raise InputError(f"possible has shape {array.shape}: pass one mark for each of the {n_rows} offered arms")
    if array.dtype != bool:
        marks = array.astype(bool) if array.dtype.kind in "iuf" else np.zeros(n_rows, dtype=bool)
        if array.dtype.kind not in "iuf" or (marks != array).any():
            raise InputError("possible must hold true or false, or 1 and 0, for each offered arm")
        array = marks
    return np.array(array)


def picks_of(possible: Marks, offsets: Index, given: Index | None) -> Index:
    """Position of each round's pick where its set has one arm, `UNKNOWN` elsewhere.

    `given` are the positions that the caller says: one that is outside its set is refused.

    Examples
    --------
    >>> picks_of(np.array([True, True, False, True]), np.array([0, 2, 4]), None)
    array([-1,  1])
    """
    counts = np.add.reduceat(possible, offsets[:-1], dtype=np.int64) if len(offsets) > 1 else np.zeros(0, dtype=int)
    if not counts.all():
        raise InputError(
            f"round {int(np.flatnonzero(counts == 0)[0])} has no possible pick: mark at least one of its arms"
        )
    if given is not None:
        known = np.flatnonzero(given != UNKNOWN)
        outside = known[~possible[(offsets[:-1] + given)[known]]]
        if len(outside):
            t = int(outside[0])
            raise InputError(f"round {t} picks position {given[t]}, which `possible` says was not picked")
    rows = np.flatnonzero(possible)
    found = np.full(len(counts), UNKNOWN, dtype=np.int64)
    single = counts == 1
    first = rows[np.cumsum(counts) - counts]
    found[single] = (first - offsets[:-1])[single]
    return found


def marks_of(chosen: Index, offsets: Index) -> Marks:
    """Marks of rounds whose picks are all known.

    Examples
    --------
    >>> marks_of(np.array([1, 0]), np.array([0, 2, 4]))
    array([False,  True,  True, False])
    """
    marks = np.zeros(int(offsets[-1]), dtype=bool)
    marks[offsets[:-1] + chosen] = True
    return marks


def as_offer_probability(values: ArrayLike, offsets: Index, possible: Marks | None, chosen: Index) -> Vector:
    """Probability with which each row is kept where it is not the pick, above 0 and at most 1.

    A pick is always kept. What counts for its row is with what probability it would have been, had another arm been
    picked. Where all picks have a 1 that no other row has, and the others of a round are alike, theirs is taken.

    Examples
    --------
    >>> as_offer_probability([0.5, 1.0], np.array([0, 2]), None, np.array([1]))
    array([0.5, 0.5])
    """
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "offer_probability holds values that are not numbers: pass one probability per offered arm"
        ) from None
    if array.shape != (int(offsets[-1]),):
        raise InputError(
            f"offer_probability has shape {array.shape}: pass one for each of the {int(offsets[-1])} offered arms"
        )
    wrong = np.flatnonzero(~((array > 0) & (array <= 1)))
    if len(wrong):
        raise InputError(
            f"offer_probability of row {wrong[0]} is {array[wrong[0]]:g}: a row that is in the log was kept with a "
            "probability above 0 and at most 1"
        )
    return array if possible is not None else _of_picks(array, offsets, chosen)


def _of_picks(array: Vector, offsets: Index, chosen: Index) -> Vector:
    """Assign picks the probability of the other rows, where picks alone have probability 1."""
    rows = offsets[:-1] + chosen
    others = np.ones(len(array), dtype=bool)
    others[rows] = False
    if not others.any() or (array[rows] < 1).any() or (array[others] == 1).any():
        return array
    starts, sizes = offsets[:-1], np.diff(offsets)
    least = np.minimum.reduceat(array, starts)
    most = np.maximum.reduceat(np.where(others, array, 0.0), starts)
    uneven = np.flatnonzero((sizes > 1) & (least < most))
    if len(uneven):
        raise InputError(
            "offer_probability is 1 for every pick and for no other arm: give the row of a pick the probability with "
            "which it would have been kept had another arm been picked"
        )
    array[rows] = np.where(sizes > 1, most, 1.0)
    return array


def is_even_sample(chances: Vector, offsets: Index) -> bool:
    """Whether the offers of each round were kept with the same probability: then nothing has to be corrected for.

    Examples
    --------
    >>> is_even_sample(np.array([0.5, 0.5, 0.2]), np.array([0, 2, 3]))
    True
    """
    starts = offsets[:-1]
    return not len(starts) or bool((np.maximum.reduceat(chances, starts) == np.minimum.reduceat(chances, starts)).all())


def check_even_sample(chances: Vector, offsets: Index, needed_by: str) -> None:
    """Refuse offers that were sampled unevenly, where nothing corrects for it."""
    if not is_even_sample(chances, offsets):
        raise InputError(
            f"{needed_by} takes samples of the offers that were drawn evenly, and offer_probability differs within "
            "rounds: fit a SuffixImitation, which corrects for it, or sample evenly (sample_offers without weights)"
        )


def unseen_picks(n_sets: int, n_rounds: int) -> InputError:
    """The error for picks that are needed where only sets are known."""
    return InputError(
        f"in {n_sets:,} of {counted(n_rounds, 'round')} only a set of arms is known that holds the pick (`possible`), "
        "and picks are needed here: use SuffixImitation or diagnose, or with the log in memory DynamicImitation, "
        "TrackingObserver or propensities, which take sets"
    )


def known_in_part(*logs: Any) -> list[str]:
    """What logs know only in part, one line each; a log in parts is scanned once, but not for its ids.

    Examples
    --------
    >>> from onlooker.logs.log import BanditLog
    >>> known_in_part(BanditLog(np.eye(5), [0, 2, 5], None, possible=[0, 1, 1, 1, 0]))
    ['picks known to a set in 1 of 2 rounds, of 2 of 3 arms on average: fits allow for it']
    """
    total: dict[str, float] = dict.fromkeys(_COUNTED, 0.0)
    for log in logs:
        for part in log.run(_itself) if hasattr(log, "run") else [log]:
            for name, value in _known_in_part(part).items():
                total[name] += value
    lines = []
    if total["sets"]:
        lines.append(
            f"picks known to a set in {int(total['sets']):,} of {counted(int(total['rounds']), 'round')}, of "
            f"{total['possible'] / total['sets']:.3g} of {total['offered'] / total['sets']:.3g} arms on average: "
            "fits allow for it"
        )
    if total["sampled"]:
        lines.append(
            f"offers are a sample: {int(total['sampled']):,} rows stand for about {total['stand_for']:,.0f}, "
            "fits correct for it"
        )
    return lines + _skipped([log.round_ids for log in logs if not hasattr(log, "run")])


def _skipped(ids: list[Any]) -> list[str]:
    """What is said of round ids that number the rounds of all logs and skip some numbers.

    Examples
    --------
    >>> _skipped([np.array([10, 20, 50])])[0][:33]
    'round ids skip 2 of 5 numbers: if'
    >>> _skipped([np.array([1, 3]), np.array([2, 4])]) + _skipped([np.array([1, 90_000])])
    []
    """
    if any(one is None or one.dtype.kind not in "iu" or (one[1:] <= one[:-1]).any() for one in ids):
        return []
    known = [one.astype(np.int64) for one in ids if len(one) and one[0] > -LARGEST and one[-1] < LARGEST]
    numbers = np.unique(np.concatenate(known)) if known and len(known) == len(ids) else np.empty(0, dtype=np.int64)
    if len(numbers) < 2:
        return []
    span = int(numbers[-1] - numbers[0]) // int(np.gcd.reduce(np.diff(numbers))) + 1
    if not len(numbers) < span <= NUMBERED * len(numbers):
        return []
    lost = f"round ids skip {span - len(numbers):,} of {span:,} numbers"
    return [f"{lost}: if these rounds were lost, `track --gaps ids` follows the learner across them"]


_COUNTED = ("rounds", "sets", "possible", "offered", "sampled", "stand_for")


def _itself(part: Any, first: int) -> Any:  # noqa: ARG001  the form of a task
    return part


def _known_in_part(log: Any) -> dict[str, float]:
    """Rounds, those with sets, arms in these and on offer there, sampled rows, and rows that they stand for."""
    found = {"rounds": float(log.n_rounds)}
    if log.possible is not None and log.n_rounds:
        sets = log.chosen_or_unknown == UNKNOWN
        sizes = np.add.reduceat(log.possible, log.offsets[:-1], dtype=np.int64)[sets]
        found |= {"sets": sets.sum(), "possible": sizes.sum(), "offered": log.n_arms[sets].sum()}
    if log.offer_probability is not None:
        chances = log.offer_probability
        found |= {"sampled": len(chances), "stand_for": float(np.sum(1 / chances))}
    return found
