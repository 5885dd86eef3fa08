"""A sweep over burn-ins with a score that is not linear: in its basis, or a fit of its own after every burn-in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker.base.types import Index, Matrix, Progress, Vector
from onlooker.imitation.bounded import minimise_bounded
from onlooker.imitation.burn_in import fit_suffixes
from onlooker.imitation.choice_model import AnyScore, Basis, FreeScore, pick_likelihood
from onlooker.imitation.scores.choice import basis_of
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.logs.log import BanditLog
from onlooker.logs.policy import Policy


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
