"""Sweeps over burn-ins: what imitation finds after each of them, whatever the score.

With a score that is not linear, a sweep is one in its basis, or has a fit of its own after every burn-in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.defaults import L2
from onlooker.base.errors import InputError
from onlooker.base.memory_limit import FITTING
from onlooker.base.threads import n_threads
from onlooker.base.types import Index, Matrix, Progress, Vector
from onlooker.imitation.bounded import minimise_bounded
from onlooker.imitation.burn_in import SWEEP_TOLERANCE, fit_suffixes, power_start
from onlooker.imitation.choice_model import LINEAR, AnyScore, Basis, FreeScore, Linear, as_score, pick_likelihood
from onlooker.imitation.out_of_core import refine_suffixes
from onlooker.imitation.scores.choice import basis_of, choose_score
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.logs.categories import Categories
from onlooker.logs.crossing import Crossing
from onlooker.logs.log import BanditLog, as_log, check_room
from onlooker.logs.parts import Parts
from onlooker.logs.parts_summary import PartsSummary, summarise_parts
from onlooker.logs.policy import LinearPolicy, Policy
from onlooker.logs.ragged import whole_slates

DEFAULT_ALPHAS = (
    *(0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.84),
    *(0.87, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99),
)
"""Dense near 1, where `N ** alpha` runs from a quarter of the log to nearly all of it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BurnInSweep:
    """What imitation finds after each burn-in."""

    alphas: Vector
    """Exponents: `N ** alpha` rounds are discarded, shape (m,)."""

    burn_ins: Index
    """Rounds discarded, shape (m,)."""

    thetas: Matrix
    """One row per alpha, shape (m, d); NaN where no round with a choice is left. Trees and networks have none."""

    losses: Vector
    """Mean softmax loss on each suffix, shape (m,)."""

    feature_names: tuple[str, ...] | None
    """Of the log."""

    categories: Categories | None = None
    """Of the log."""

    crossing: Crossing | None = None
    """Of the log."""

    basis: Basis | None = None
    """What thetas are weights of, where the score is not linear."""

    policies: tuple[Policy | None, ...] | None = None
    """One per alpha, where the score is not linear in any basis; None where no round with a choice is left."""

    def policy(self, index: int) -> Policy:
        """Policy found at the `index`-th alpha."""
        theta, found = self.thetas[index], None if self.policies is None else self.policies[index]
        if found is not None:
            return found
        if np.isnan(self.losses[index]):
            raise InputError(f"a burn-in of {self.burn_ins[index]} rounds leaves no round with a choice")
        return LinearPolicy.of(theta, self) if self.basis is None else self.basis.policy(theta, self)


def burn_in_sweep(
    log: BanditLog | Parts,
    alphas: ArrayLike | None = None,
    *,
    l2: float = L2,
    progress: Progress | None = None,
    score: Any = LINEAR,
) -> BurnInSweep:
    """Fit the suffix after `N ** alpha` rounds for every alpha (`DEFAULT_ALPHAS` unless given).

    An alpha of 0 discards one round, an alpha of 1 all of them: there thetas are NaN. A log that is not in memory,
    as `scan_log` gives it, is scanned a few times, for all alphas at once.

    With a `score` that is linear in a basis, as `Additive()`, thetas are the weights of the basis, which is chosen on
    the second half of the log. Trees and networks are fitted again after every burn-in; `policy(index)` gives them.

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
    model = as_score(score)
    if not isinstance(model, Linear):
        log = as_log(log, f"a sweep with score={score!r}")
    # Of a log in parts, every pass finds the curvature of every suffix.
    check_room(log, FITTING + (len(grid) * (2 + 2 * n_threads()) if isinstance(log, Parts) else 0))
    seen = summarise_parts(log) if isinstance(log, Parts) else None
    if seen is not None and seen.sample.partial:
        raise InputError(
            "picks or offers are known only in part, and a sweep over burn-ins then needs the log in memory: read it "
            "with read_log(path) instead of scan_log"
        )
    n_rounds = as_log(log).n_rounds if seen is None else seen.n_rounds
    burn_ins = np.array([power_start(n_rounds, float(alpha)) for alpha in grid], dtype=np.int64)
    if isinstance(log, BanditLog):
        burn_ins = whole_slates(log.round_ids, log.n_arms, burn_ins)
    if not isinstance(model, Linear):
        return _score_sweep(as_log(log), grid, burn_ins, model, l2=l2, progress=progress)
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
        crossing=getattr(log, "crossing", None),
    )


def _score_sweep(
    log: BanditLog, grid: Vector, burn_ins: Index, model: AnyScore | str, *, l2: float, progress: Progress | None
) -> BurnInSweep:
    """A sweep with a score that is not linear; `"auto"` takes one for all burn-ins."""
    if log.partial:
        raise InputError(f"score={model!r} needs all rounds, picks and offers: use score=Linear() here")
    taken = choose_score(log, l2=l2).model if isinstance(model, str) else model
    written = log.written_out()
    found = swept(written, burn_ins, taken, l2=l2, progress=progress)
    return BurnInSweep(
        alphas=grid,
        burn_ins=burn_ins,
        feature_names=written.feature_names,
        categories=written.categories,
        **{name: getattr(found, name) for name in ("thetas", "losses", "basis", "policies")},
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


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreSweep:
    """What a score model finds after each burn-in."""

    thetas: Matrix
    """Weights of the basis, one row per burn-in; none where there is no basis."""
    losses: Vector
    """Mean loss on each suffix; NaN where no round with a choice is left."""
    basis: Basis | None = None
    """Of a score that is linear in one: chosen on the second half of the log, for all burn-ins."""
    policies: tuple[Policy | None, ...] | None = None
    """Of any other score; None where no round with a choice is left."""


def swept(
    log: BanditLog, burn_ins: Index, model: AnyScore, *, l2: float, progress: Progress | None = None
) -> ScoreSweep:
    """Fit the suffix after each burn-in.

    Examples
    --------
    >>> from onlooker import Neural
    >>> X = np.random.default_rng(0).normal(size=(200, 3, 2))
    >>> log = BanditLog.from_dense(X, chosen=(X[..., 0] * X[..., 1]).argmax(axis=1))
    >>> swept(log, np.array([0, 100, 200]), Neural(4, decay=0.01), l2=1e-4).policies
    (NeuralPolicy(2 features, 4 units), NeuralPolicy(2 features, 4 units), None)
    """
    if isinstance(model, FreeScore):
        return _fitted_again(log, burn_ins, model, progress)
    basis = basis_of(log, model, l2=l2)
    columns = basis.basis(log)
    if basis.positive is None or not basis.positive.any():
        thetas, losses = fit_suffixes(columns, burn_ins, l2=basis.l2, progress=progress)
        return ScoreSweep(thetas=thetas, losses=losses, basis=basis)
    thetas = np.full((len(burn_ins), columns.n_features), np.nan)
    losses = np.full(len(burn_ins), np.nan)
    for k, burn_in in enumerate(burn_ins.tolist()):
        if (log.n_arms[burn_in:] > 1).any():
            fit, _ = minimise_bounded(SoftmaxObjective(columns.suffix(burn_in), l2=basis.l2), basis.positive)
            thetas[k], losses[k] = fit.theta, fit.loss
        _say(progress, k, burn_ins)
    return ScoreSweep(thetas=thetas, losses=losses, basis=basis)


def _fitted_again(log: BanditLog, burn_ins: Index, model: FreeScore, progress: Progress | None) -> ScoreSweep:
    """A fit of its own after every burn-in."""
    policies: list[Policy | None] = []
    losses = np.full(len(burn_ins), np.nan)
    for k, burn_in in enumerate(burn_ins.tolist()):
        rounds = log[burn_in:]
        rounds = rounds[np.flatnonzero(rounds.n_arms > 1)]
        policy = model.fitted(rounds) if rounds.n_rounds else None
        if policy is not None:
            losses[k] = pick_likelihood(policy.scores(rounds), rounds).losses.mean()
        policies.append(policy)
        _say(progress, k, burn_ins)
    return ScoreSweep(thetas=np.empty((len(burn_ins), 0)), losses=losses, policies=tuple(policies))


def _say(progress: Progress | None, done: int, burn_ins: Index) -> None:
    if progress is not None:
        progress(done + 1, len(burn_ins))
