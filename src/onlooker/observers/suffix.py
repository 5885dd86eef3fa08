"""The rounds after the burn-in and their objective, in memory or in parts that are not."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from onlooker.burn_in import BurnIn, LengthRule
from onlooker.checks import as_whole
from onlooker.errors import InputError
from onlooker.log import BanditLog, as_log
from onlooker.objective import Objective
from onlooker.parted import PartedObjective
from onlooker.parts import Parts
from onlooker.softmax import SoftmaxObjective
from onlooker.survey import survey


def suffix_objective(
    log: BanditLog | Parts, burn_in: BurnIn, *, l2: float, sample_weight: ArrayLike | None = None
) -> tuple[Objective, int]:
    """Objective of the rounds after the burn-in, and how many that throws away.

    Of a log in parts, a burn-in that looks at the log itself sees an even sample of its rounds: its answer is a
    multiple of the distance between them. Where all rounds fit into the sample, it is the log.
    """
    if isinstance(log, Parts):
        if sample_weight is not None:
            raise InputError("sample_weight is for logs in memory: leave it out, or read the log")
        return _of_parts(log, burn_in, l2)
    n_rounds = as_log(log).n_rounds
    start = _checked(burn_in.start(log), n_rounds)
    weights = None
    if sample_weight is not None:
        whole = np.asarray(sample_weight)
        if whole.shape != (n_rounds,):
            raise InputError(f"sample_weight has shape {whole.shape}: pass one weight for each of {n_rounds} rounds")
        weights = whole[start:]
    return SoftmaxObjective(log.suffix(start), l2=l2, weights=weights), start


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
