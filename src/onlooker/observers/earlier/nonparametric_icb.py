"""The nonparametric inverse contextual bandit: the learner's preference drifts, and nothing is said of why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from onlooker.base.checks import as_number
from onlooker.base.types import Progress
from onlooker.logs.log import BanditLog
from onlooker.observers.earlier.belief_observer import BeliefObserver, Imitation
from onlooker.observers.earlier.beliefs import walk_moments
from onlooker.observers.earlier.beliefs.walk import Walk, WalkSampler

FIRST_VARIANCE = 1.0
"""Of every coordinate of the first preference, around zero."""


class NonparametricICB(BeliefObserver):
    """Nonparametric variant of the Bayesian inverse contextual bandit (N-ICB; Hüyük and others, ICML 2022).

    What the learner prefers is a random walk. Its variances are in the units of theta, so features should be about
    as long as one:

        beta_0 ~ N(0, I),   beta_t ~ N(beta_{t-1}, step_variance I)
        rho_t ~ N(beta_t, spread_variance I),   pick_t ~ softmax(alpha * x rho_t)

    Every sweep draws all `rho_t` by a Metropolis step, then the whole walk at once, in O(T d). These are the published
    draws; one move of walk and beliefs together is added, without which 2,000 sweeps do not forget where they started.

    Parameters
    ----------
    alpha
        Of the softmax.
    step_variance, spread_variance
        Of every coordinate: by how much the preference moves in a round, and how far from it a pick is made.
    sweeps, burn_in_sweeps
        How many are made, and how many of the first ones dropped.
    checkpoints
        Rounds at which to keep the preference in `path_`; None takes eight per decade.
    seed
        Of the chain: the same seed gives the same answer, whatever the number of threads.

    Attributes
    ----------
    policy_, theta_
        The last preference, `beta_T`: its mean over the draws.
    covariance_
        Of `beta_T`, given the picks, shape (d, d); NaN for features that never vary within a round or are collinear
        with others there.
    path_
        The preference at checkpoints with standard errors, in the units of `theta_`.
    acceptance_
        Share of the `rho_t` that moved in a sweep, and of the joint moves that were taken.
    n_rounds_
        Rounds in the log.
    warnings_
        What to know before using the answer, as given by `warnings` too.

    Examples
    --------
    >>> from onlooker import Environment, LinUCB, direction_error, simulate
    >>> simulation = simulate(Environment(3, 8), LinUCB(), n_rounds=400)
    >>> observer = NonparametricICB(sweeps=200, burn_in_sweeps=100).fit(simulation.log)
    >>> direction_error(observer.theta_, simulation.theta_star) < 0.2
    True
    """

    acceptance_: tuple[float, float]

    def __init__(
        self,
        *,
        alpha: float = 20.0,
        step_variance: float = 5e-5,
        spread_variance: float = 5e-4,
        sweeps: int = 1000,
        burn_in_sweeps: int = 500,
        checkpoints: Sequence[int] | None = None,
        seed: int = 0,
    ) -> None:
        self.alpha = alpha
        self.step_variance = step_variance
        self.spread_variance = spread_variance
        self.sweeps = sweeps
        self.burn_in_sweeps = burn_in_sweeps
        self.checkpoints = checkpoints
        self.seed = seed

    def fit(self, log: BanditLog, *, progress: Progress | None = None) -> Self:
        """Recover the path of the preference; `progress` is called after sweeps."""
        walk = Walk(
            first=FIRST_VARIANCE,
            step=as_number(self.step_variance, "step_variance", least=1e-30, most=1e30),
            spread=as_number(self.spread_variance, "spread_variance", least=1e-30, most=1e30),
        )
        sweeps, dropped = self._checked_sweeps()
        model = self._model(log)
        start = Imitation(model)
        curvature = start.curvature(start.theta) / log.n_rounds
        sampler = WalkSampler(model, walk, theta=start.theta, curvature=curvature, seed=self.seed)
        moments, self.acceptance_ = walk_moments(
            sampler,
            rounds=self._rounds(log),
            sweeps=sweeps,
            burn_in_sweeps=dropped,
            progress=progress,
        )
        self._learn(log, model, moments.theta, moments)
        return self
