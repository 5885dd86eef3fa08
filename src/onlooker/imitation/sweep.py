"""The burn-in curve: one fit per burn-in, each started from its neighbour's answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.defaults import L2
from onlooker.base.errors import InputError
from onlooker.base.memory_limit import FITTING
from onlooker.base.threads import n_threads
from onlooker.base.types import Index, Matrix, Progress, Vector
from onlooker.imitation.burn_in import power_start
from onlooker.imitation.newton import Fit, minimise
from onlooker.imitation.out_of_core import refine_suffixes
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.logs.categories import Categories
from onlooker.logs.log import BanditLog, as_log
from onlooker.logs.parts import Parts
from onlooker.logs.parts_summary import PartsSummary, check_room, summarise_parts
from onlooker.logs.policy import LinearPolicy

DEFAULT_ALPHAS = (
    *(0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.84),
    *(0.87, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99),
)
"""Dense near 1, where `N ** alpha` runs from a quarter of the log to nearly all of it."""

SWEEP_TOLERANCE = 3e-5
"""Newton decrement at which a fit of a sweep is done: far below what tells two burn-ins apart."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BurnInSweep:
    """What imitation finds after each burn-in."""

    alphas: Vector
    """Exponents: `N ** alpha` rounds are discarded, shape (m,)."""

    burn_ins: Index
    """Rounds discarded, shape (m,)."""

    thetas: Matrix
    """One row per alpha, shape (m, d); NaN where no round with a choice is left."""

    losses: Vector
    """Mean softmax loss on each suffix, shape (m,)."""

    feature_names: tuple[str, ...] | None
    """Of the log."""

    categories: Categories | None = None
    """Of the log."""

    def policy(self, index: int) -> LinearPolicy:
        """Policy found at the `index`-th alpha."""
        return LinearPolicy(self.thetas[index], self.feature_names, self.categories)


def burn_in_sweep(
    log: BanditLog | Parts, alphas: ArrayLike | None = None, *, l2: float = L2, progress: Progress | None = None
) -> BurnInSweep:
    """Fit the suffix after `N ** alpha` rounds for every alpha (`DEFAULT_ALPHAS` unless given).

    An alpha of 0 discards one round, an alpha of 1 all of them: there thetas are NaN. A log that is not in memory,
    as `scan_log` gives it, is scanned a few times, for all alphas at once.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(300, 4, 2))
    >>> log = BanditLog.from_dense(X, chosen=(X @ [1.0, 2.0]).argmax(axis=1))
    >>> sweep = burn_in_sweep(log, [0.0, 0.5, 0.9])
    >>> sweep.burn_ins
    array([  1,  17, 169])
    >>> sweep.thetas.shape
    (3, 2)
    """
    try:
        grid = np.array(DEFAULT_ALPHAS if alphas is None else alphas, dtype=np.float64)
    except (TypeError, ValueError):
        grid = np.full(1, np.nan)
    if grid.ndim != 1 or not len(grid) or not ((grid >= 0) & (grid <= 1)).all():
        raise InputError("alphas must be a list of numbers between 0 and 1")
    # Of a log in parts, every pass finds the curvature of every suffix.
    check_room(log, FITTING + (len(grid) * (2 + 2 * n_threads()) if isinstance(log, Parts) else 0))
    seen = summarise_parts(log) if isinstance(log, Parts) else None
    n_rounds = as_log(log).n_rounds if seen is None else seen.n_rounds
    burn_ins = np.array([power_start(n_rounds, float(alpha)) for alpha in grid], dtype=np.int64)
    if isinstance(log, Parts) and seen is not None:
        thetas, losses = _fit_parts(log, seen, burn_ins, l2=l2, progress=progress)
    else:
        thetas, losses = fit_suffixes(as_log(log), burn_ins, l2=l2, progress=progress)
    return BurnInSweep(
        alphas=grid,
        burn_ins=burn_ins,
        thetas=thetas,
        losses=losses,
        feature_names=log.feature_names,
        categories=log.categories,
    )


def _fit_parts(
    parts: Parts, seen: PartsSummary, burn_ins: Index, *, l2: float, progress: Progress | None
) -> tuple[Matrix, Vector]:
    """Theta and mean loss for each suffix: those of a sample first, then of all rounds from there."""
    near, losses = fit_suffixes(seen.sample, -(-burn_ins // seen.stride), l2=l2)
    if seen.stride == 1:
        return near, losses
    return refine_suffixes(
        parts, burn_ins, near, n_rounds=seen.n_rounds, l2=l2, tolerance=SWEEP_TOLERANCE, progress=progress
    )


def fit_suffixes(
    log: BanditLog,
    burn_ins: Sequence[int] | Index,
    *,
    l2: float,
    weights: Vector | None = None,
    progress: Progress | None = None,
) -> tuple[Matrix, Vector]:
    """Theta and mean loss for the suffix after each burn-in; NaN where it has no choice.

    `weights`, one per round of the log, are 1 by default; a round without weight counts as none.
    """
    check_room(log, FITTING)
    counts = (log.n_arms > 1).astype(np.float64) if weights is None else np.where(log.n_arms > 1, weights, 0.0)
    thetas = np.full((len(burn_ins), log.n_features), np.nan)
    losses = np.full(len(burn_ins), np.nan)
    last_choice = int(np.flatnonzero(counts).max(initial=-1))
    distinct = np.unique(burn_ins)
    last: tuple[int, SoftmaxObjective, Fit] | None = None
    for done, burn_in in enumerate(distinct.tolist(), 1):
        if burn_in <= last_choice:
            last = _next_fit(log, burn_in, l2, counts, last)
            same = np.asarray(burn_ins) == burn_in
            thetas[same], losses[same] = last[2].theta, last[2].loss
        if progress is not None:
            progress(done, len(distinct))
    return thetas, losses


def _next_fit(
    log: BanditLog, burn_in: int, l2: float, weights: Vector, last: tuple[int, SoftmaxObjective, Fit] | None
) -> tuple[int, SoftmaxObjective, Fit]:
    """Fit of one suffix, started from the last, longer one."""
    objective = SoftmaxObjective(log.suffix(burn_in), l2=l2, weights=weights[burn_in:])
    # Without regularisation a feature that stops varying would keep its old coefficient, so no fit is warm-started.
    if last is None or l2 == 0:
        return burn_in, objective, minimise(objective, tolerance=SWEEP_TOLERANCE)
    before, longer, near = last
    dropped, weight = log[before:burn_in], weights[before:burn_in]
    here = longer.without(near.at, SoftmaxObjective(dropped, l2=0.0, weights=weight)) if weight.any() else None
    return burn_in, objective, minimise(objective, near, here=here, tolerance=SWEEP_TOLERANCE)
