"""The Bayesian inverse contextual bandit: sample the belief behind every pick, and the rewards behind the beliefs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from onlooker.base.checks import as_number, as_whole
from onlooker.base.types import Progress
from onlooker.logs.log import BanditLog
from onlooker.observers.earlier.belief_observer import BeliefObserver, Imitation
from onlooker.observers.earlier.beliefs import Schedule, maximise, posterior
from onlooker.observers.earlier.beliefs.sampler import BeliefSampler


class BayesianICB(BeliefObserver):
    """Bayesian inverse contextual bandit (Hüyük, Jarrett and van der Schaar, ICML 2022), in time linear in T.

    The learner is thought to hold a Gaussian belief, to sample from it and to pick by softmax:

        N_t = n0 I + sum of x_s x_s' over s < t,   y_t = sum of r_s x_s over s < t
        rho_t ~ N(N_t^-1 y_t, noise^2 N_t^-1),   pick_t ~ softmax(alpha * x rho_t),   r_t ~ N(x_t' theta*, noise^2)

    Beliefs and rewards are sampled (expectation), then theta* and n0 are fitted to them (maximisation), in turn. In the
    end theta* is sampled too, from a flat prior, for intervals and for the path of the belief.

    As published, a sweep costs O(T^3), an expectation takes 2,000 sweeps of which 1,000 are dropped, and there are 100:
    `BayesianICB(iterations=100, sweeps=2000, burn_in_sweeps=1000)`. Here the rewards are drawn as the linear Gaussian
    chain that they are: the same joint draw in O(T d). Three things differ. Each sweep also moves rewards and beliefs
    together, and each maximisation takes a second step (`beliefs/`): they leave the answer where it is and
    reach it in far fewer sweeps. An expectation goes on with the chain of the one before, and the second half of the
    iterations is averaged, so a few sweeps each are enough. The chain starts from the imitation of all picks.

    Parameters
    ----------
    alpha
        Of the softmax; with `noise` it sets the length of `theta_`, not its direction.
    noise
        Standard deviation of the rewards.
    iterations
        Of expectation and maximisation.
    sweeps
        Over everything hidden, in each expectation.
    burn_in_sweeps
        Dropped at the beginning of each expectation.
    posterior_sweeps
        For intervals and path, after the iterations; their first third is dropped.
    checkpoints
        Rounds after which to keep the belief in `path_`; None takes eight per decade.
    seed
        Of the chain: the same seed gives the same answer, whatever the number of threads.

    Attributes
    ----------
    policy_, theta_
        What was recovered: theta*, in units of rewards.
    covariance_
        Of theta*, given the picks, from a flat prior and with n0 as found; shape (d, d). NaN for features that never
        vary within a round or are collinear with others there.
    n0_
        Weight of the learner's prior, in rounds of squared length one; only the first rounds identify it, and roughly.
    path_
        Mean of the learner's belief at checkpoints with standard errors, in units of rewards.
    acceptance_
        Share of beliefs that moved in a sweep, and of the joint moves that were taken.
    n_rounds_
        Rounds in the log.
    warnings_
        What to know before using the answer, as given by `warnings` too.

    Examples
    --------
    >>> from onlooker import Environment, LinTS, direction_error, simulate
    >>> simulation = simulate(Environment(3, 8), LinTS(), n_rounds=400)
    >>> observer = BayesianICB(iterations=10, posterior_sweeps=60).fit(simulation.log)
    >>> direction_error(observer.theta_, simulation.theta_star) < 0.1
    True
    >>> observer.path_.rounds[-1], observer.path_.theta.shape[1]
    (np.int64(400), 3)
    """

    n0_: float
    acceptance_: tuple[float, float]

    def __init__(
        self,
        *,
        alpha: float = 20.0,
        noise: float = 0.1,
        iterations: int = 100,
        sweeps: int = 5,
        burn_in_sweeps: int = 1,
        posterior_sweeps: int = 600,
        checkpoints: Sequence[int] | None = None,
        seed: int = 0,
    ) -> None:
        self.alpha = alpha
        self.noise = noise
        self.iterations = iterations
        self.sweeps = sweeps
        self.burn_in_sweeps = burn_in_sweeps
        self.posterior_sweeps = posterior_sweeps
        self.checkpoints = checkpoints
        self.seed = seed

    def fit(self, log: BanditLog, *, progress: Progress | None = None) -> Self:
        """Recover theta* from all rounds; `progress` is called after sweeps."""
        schedule = self._schedule()
        noise = as_number(self.noise, "noise", least=1e-9, most=1e9)
        model = self._model(log)
        start = Imitation(model)
        fitting = schedule.iterations * schedule.sweeps
        total = fitting + self.posterior_sweeps

        def tell(done: int, _: int) -> None:
            if progress is not None:
                progress(done, total)

        sampler = BeliefSampler(model, noise=noise, theta=start.theta, seed=self.seed)
        found = maximise(
            sampler, schedule, curvature=start.curvature, progress=lambda done, _: tell(done * schedule.sweeps, total)
        )
        sampler.theta = found.theta
        sampler.set_n0(found.n0)
        moments = posterior(
            sampler,
            curvature=start.curvature(found.theta),
            rounds=self._rounds(log),
            sweeps=self.posterior_sweeps,
            progress=lambda done, _: tell(fitting + done, total),
        )
        self.n0_ = found.n0 * model.scale**2
        self.acceptance_ = found.acceptance
        self._learn(log, model, found.theta, moments)
        return self

    def _schedule(self) -> Schedule:
        as_whole(self.posterior_sweeps, "posterior_sweeps", least=3)
        iterations = as_whole(self.iterations, "iterations", least=1)
        sweeps, dropped = self._checked_sweeps()
        return Schedule(iterations=iterations, sweeps=sweeps, burn_in_sweeps=dropped)
