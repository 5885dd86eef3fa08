"""The smallest 0-1 loss exactly, by mixed-integer programming: for logs of some dozens of rounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onlooker.base.errors import InputError
from onlooker.base.types import Index, Matrix
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.imitation.zero_one.circles import ZeroOneFit, count_misses, directions_identified

MARGIN = 1e-5
"""By how much a pick must beat each rival, of how much it could: above what the solver allows whole numbers (1e-6)."""


def exact_minimum(objective: SoftmaxObjective, *, seconds: float = np.inf) -> ZeroOneFit:
    """The theta that misses the least weight, of those that leave every pick explained a little room (`MARGIN`).

    Time grows quickly with rounds that cannot be explained; `seconds` gives up after so many.

    Examples
    --------
    >>> from onlooker.logs.log import BanditLog
    >>> X = np.random.default_rng(0).normal(size=(20, 3, 2))
    >>> log = BanditLog.from_dense(X, chosen=np.arange(20) % 3)
    >>> round(20 * exact_minimum(SoftmaxObjective(log, l2=0.0)).loss)
    11
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    columns, _ = directions_identified(objective)
    rank, n_rounds = columns.shape[1], objective.log.n_rounds
    normals, rounds, hopeless = _rivals(objective, columns)
    missed = np.zeros((len(normals), n_rounds))
    # Leads lie between -1 and 1, so a round that is missed asks nothing of them.
    missed[np.arange(len(normals)), rounds] = 1 + MARGIN
    lower, upper = np.r_[-np.ones(rank), hopeless.astype(float)], np.ones(rank + n_rounds)
    found = milp(
        np.r_[np.zeros(rank), objective.weights / objective.total],
        integrality=np.r_[np.zeros(rank), np.ones(n_rounds)],
        bounds=Bounds(lower, upper),
        constraints=LinearConstraint(np.hstack([normals, missed]), lb=MARGIN),
        options={"mip_rel_gap": 0.0, "time_limit": seconds},
    )
    if found.status != 0:
        raise InputError(f"{n_rounds} rounds are too many for an exact minimum here: take fewer, or search")
    return count_misses(objective, columns @ found.x[:rank])


def _rivals(objective: SoftmaxObjective, columns: Matrix) -> tuple[Matrix, Index, NDArray[np.bool_]]:
    """What the pick has over each rival, of length 1 (sum of absolute values), its round; rounds that cannot be won."""
    log = objective.log
    rounds = np.repeat(np.arange(log.n_rounds), log.n_arms)
    picks = (log.offsets[:-1] + log.chosen)[rounds]
    features = log.dense.astype(np.float64)
    over = (features[picks] - features) @ columns
    sizes = np.abs(over).sum(axis=1)
    alike, rows = sizes == 0, np.arange(len(features))
    hopeless = np.zeros(log.n_rounds, dtype=bool)
    # The first of equals is chosen.
    hopeless[rounds[alike & (rows < picks)]] = True
    kept = ~alike & (objective.weights[rounds] > 0)
    return over[kept] / sizes[kept, None], rounds[kept], hopeless
