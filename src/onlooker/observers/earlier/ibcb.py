"""An IBCB-style observer: one convex problem for the rewards that explain a batched learner's picks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np

from onlooker.base.checks import as_number, as_whole
from onlooker.base.errors import ConvergenceWarning, InputError, NoPreferenceWarning, OnlookerWarning
from onlooker.base.types import Vector
from onlooker.logs.layouts import dense_rows
from onlooker.logs.log import BanditLog, as_narrow
from onlooker.logs.policy import LinearPolicy
from onlooker.observers.base import Observer
from onlooker.observers.earlier.block_imitation import bare_path
from onlooker.observers.earlier.inverse_batched import BatchedObjective, Solution, minimise_hinge, minimise_logit
from onlooker.observers.tracking.monitor import check_scale
from onlooker.observers.tracking.path import Path, next_checkpoint

NO_GAIN = 1e-3
"""A theta that lowers the loss by less than this part of it explains nothing."""


class IBCB(Observer):
    """An estimator in the style of IBCB, the inverse batched contextual bandit (Xu, Shen, Xu, Zhang, Wen).

    Written from the published idea, as the original code was not to be found: a learner that updates in batches,
    hidden rewards, one convex programme. Taking rewards to be `x' theta`, without noise, leaves d variables and makes
    the learner's estimate after batch n `theta_n = (I - ridge * Phi_n^-1) theta`, with `Phi_n` known from its picks.
    Every pick should beat its rivals by `margin` under `theta_n` and the exploration bonus; what it lacks is paid for.

    Parameters
    ----------
    loss
        `"hinge"`: the quadratic programme's, `mu/2 |theta|^2 + C sum_t max(0, largest violation)`, for learners whose
        picks follow from what they know. `"logit"`: softmax of `x' theta_n` plus bonus, without a margin, for learners
        that draw their picks; give `alpha=0` with it.
    batch
        Rounds between the learner's updates.
    ridge
        Weight of the identity in `Phi = ridge * I + sum of x x'`.
    alpha
        Strength of the learner's bonus `alpha * sqrt(x' Phi_n^-1 x)`; 0 for a learner without one.
    margin
        By how much a pick should beat its rivals: above 0, as theta would be 0 otherwise. It sets the unit of theta.
    C, mu
        Weight of what picks lack, and of the penalty; only `mu / C` matters.

    Attributes
    ----------
    policy_, theta_
        What was recovered.
    path_
        The learner's estimate `theta_n` at checkpoints, eight per decade; this method has no standard errors (NaN).
    loss_
        Mean of what a pick lacks (of the negative log-probability, for the logit).
    gap_
        How far the hinge's value is above the minimum at most, as a part of it; NaN for the logit.
    n_iter_
        Newton steps.
    warnings_
        What to know before using the answer, as given by `warnings` too.

    Notes
    -----
    The defaults are those of this library's LinUCB. On its logs (d = 20, K = 50, seeds 0 to 5) margins between 0.01
    and 0.1 and `mu` between 0.001 and 1 gave the same direction error to 1% from 2,000 rounds on.

    Examples
    --------
    >>> from onlooker import Environment, LinUCB, direction_error, simulate
    >>> simulation = simulate(Environment(5, 20), LinUCB(batch=10), n_rounds=2000)
    >>> observer = IBCB(batch=10).fit(simulation.log)
    >>> direction_error(observer.theta_, simulation.theta_star) < 0.05
    True
    >>> observer.path_.rounds[-1], observer.path_.theta.shape[1]
    (np.int64(2000), 5)
    """

    path_: Path
    loss_: float
    gap_: float
    n_iter_: int
    warnings_: tuple[str, ...]

    def __init__(
        self,
        *,
        loss: str = "hinge",
        batch: int = 1,
        ridge: float = 1.0,
        alpha: float = 0.1,
        margin: float = 0.1,
        C: float = 1.0,
        mu: float = 1.0,
    ) -> None:
        self.loss = loss
        self.batch = batch
        self.ridge = ridge
        self.alpha = alpha
        self.margin = margin
        self.C = C
        self.mu = mu

    def fit(self, log: BanditLog) -> Self:
        """Recover the policy."""
        batch, ridge, alpha, margin, weight = self._checked()
        if as_narrow(log, type(self).__name__).n_rounds:
            check_scale(log, ridge)
        choices = max(1, int(np.count_nonzero(log.n_arms > 1)))
        objective = BatchedObjective(log, batch=batch, ridge=ridge, alpha=alpha, margin=margin, l2=weight / choices)
        hinge = self.loss == "hinge"
        found = minimise_hinge(objective) if hinge else minimise_logit(objective)
        at = found.at
        penalty = 0.5 * objective.l2 * float(at.theta @ at.theta)
        self.policy_ = LinearPolicy.of(at.theta, log)
        self.path_ = _path(log, at.theta, batch=batch, ridge=ridge)
        self.loss_ = (at.hinge if hinge else at.value) - penalty
        self.gap_ = at.gap / at.hinge if hinge else float("nan")
        self.n_iter_ = found.n_iter
        self._remember(log)
        self._warn(list(_findings(objective, found, hinge=hinge)), stacklevel=2)
        return self

    def _checked(self) -> tuple[int, float, float, float, float]:
        if self.loss not in {"hinge", "logit"}:
            raise InputError(f"loss is {self.loss!r}: use 'hinge' or 'logit'")
        margin = as_number(self.margin, "margin", above=0.0)
        return (
            as_whole(self.batch, "batch", least=1),
            as_number(self.ridge, "ridge", least=1e-9, most=1e9),
            as_number(self.alpha, "alpha", least=0.0),
            margin if self.loss == "hinge" else 0.0,
            as_number(self.mu, "mu", above=0.0) / as_number(self.C, "C", above=0.0),
        )


def _findings(objective: BatchedObjective, found: Solution, *, hinge: bool) -> Iterator[OnlookerWarning]:
    width = objective.margin if hinge else 1.0
    nothing = objective.evaluate(np.zeros(len(found.at.theta)), width=width)
    value, start = (found.at.hinge, nothing.hinge) if hinge else (found.at.value, nothing.value)
    if value >= (1 - NO_GAIN) * start:
        other = "; the picks may be drawn by chance, for which loss='logit' is made" if hinge else ""
        yield NoPreferenceWarning(
            f"no theta explains the picks better than theta = 0 does ({value:.4g} against {start:.4g}). Do not "
            f"interpret the weights as preferences{other}"
        )
    if not found.converged:
        yield ConvergenceWarning(
            f"the solver did not converge: it stopped after {found.n_iter} steps. Bring the features to similar "
            "scales, or try a larger margin or mu"
        )


def _path(log: BanditLog, theta: Vector, *, batch: int, ridge: float) -> Path:
    """What the learner believed at checkpoints, if its rewards were `x' theta`."""
    picks = dense_rows(log.features[log.chosen_rows]).astype(np.float64)
    gram, learned, n = ridge * np.eye(len(theta)), 0, 0
    rounds, thetas = [], []
    while n < log.n_rounds:
        n = min(next_checkpoint(n, None), log.n_rounds)
        known = n // batch * batch
        gram += picks[learned:known].T @ picks[learned:known]
        learned = known
        rounds.append(n)
        thetas.append(theta - ridge * np.linalg.solve(gram, theta))
    return bare_path(rounds, thetas)
