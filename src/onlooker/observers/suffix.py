"""The rounds after the burn-in and their objective, in memory or in parts that are not."""

from __future__ import annotations

from numpy.typing import ArrayLike

from onlooker.burn_in import BurnIn, FixedStart, LengthRule
from onlooker.checks import as_whole
from onlooker.errors import InputError
from onlooker.held_out import HeldOut
from onlooker.log import BanditLog, as_log
from onlooker.objective import Objective
from onlooker.parted import PartedObjective
from onlooker.parts import Parts
from onlooker.round_weights import after, as_weights
from onlooker.softmax import SoftmaxObjective
from onlooker.survey import survey
from onlooker.types import Vector


def suffix_objective(
    log: BanditLog | Parts, burn_in: BurnIn, *, l2: float, sample_weight: ArrayLike | None = None
) -> tuple[Objective, int]:
    """Objective of the rounds after the burn-in, and how many that throws away.

    Of a log in parts, a burn-in that looks at the log itself sees an even sample of its rounds: its answer is a
    multiple of the distance between them. Where all rounds fit into the sample, it is the log. With weights, rules and
    `"auto"` count a round as often as its weight says; a number of rounds is a place in the log, whatever the weights.
    """
    if isinstance(log, Parts):
        if sample_weight is not None:
            raise InputError("sample_weight is for logs in memory: leave it out, or read the log")
        return _of_parts(log, burn_in, l2)
    n_rounds = as_log(log).n_rounds
    if sample_weight is not None:
        start, weights = _weighted_suffix(log, burn_in, as_weights(sample_weight, n_rounds, "sample_weight"))
        return SoftmaxObjective(log.suffix(start), l2=l2, weights=weights), start
    start = _checked(burn_in.start(log), n_rounds)
    return SoftmaxObjective(log.suffix(start), l2=l2), start


def _weighted_suffix(log: BanditLog, burn_in: BurnIn, weights: Vector) -> tuple[int, Vector]:
    """Rounds thrown away altogether, and the weights of the others."""
    if isinstance(burn_in, FixedStart):
        start = _checked(burn_in.rounds, log.n_rounds)
        return start, weights[start:]
    if not weights.any():
        raise InputError("every round has weight 0: there is nothing to imitate")
    n_counted = int(weights.sum())
    if isinstance(burn_in, HeldOut):
        return after(weights, burn_in.start(log, weights))
    if isinstance(burn_in, LengthRule):
        return after(weights, _checked(burn_in.start_of(n_counted), n_counted))
    raise InputError(
        f"burn_in={burn_in!r} does not see sample_weight: use 'naive', 'rule', 'auto', a number of rounds or a fraction"
    )


def _of_parts(parts: Parts, burn_in: BurnIn, l2: float) -> tuple[Objective, int]:
    found = survey(parts)
    if isinstance(burn_in, LengthRule):
        start = _checked(burn_in.start_of(found.n_rounds), found.n_rounds)
    else:
        start = _checked(found.stride * as_whole(burn_in.start(found.sample), "the burn-in"), found.n_rounds)
    if found.stride == 1:
        return SoftmaxObjective(found.sample.suffix(start), l2=l2), start
    return PartedObjective(parts, start=start, l2=l2, survey=found), start


def _checked(start: object, n_rounds: int) -> int:
    found = as_whole(start, "the burn-in")
    if found >= n_rounds:
        raise InputError(f"a burn-in of {found} rounds leaves nothing of a log with {n_rounds}: make it shorter")
    return found
