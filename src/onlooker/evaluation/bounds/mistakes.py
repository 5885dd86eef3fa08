"""eta: how often a learner's pick is not the best arm, from a bound on its regret or from a simulation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import as_number, as_whole
from onlooker.base.errors import InputError
from onlooker.base.types import Vector
from onlooker.evaluation.bounds.lemmas import as_count, as_delta
from onlooker.logs.log import BanditLog
from onlooker.logs.policy import LinearPolicy
from onlooker.simulation.play import Simulation


def eta_from_regret(regret: float, burn_in: int, gap: float, *, small_gap: float = 0.0) -> float:
    """Bound the probability of a mistake after the burn-in by the learner's regret during it.

    A mistake costs at least `gap`, unless the best arm leads by less, so the mean over the first T rounds of the
    probability of a mistake is at most `regret / (T gap) + small_gap`. Where mistakes get no more frequent, it is no
    higher in later rounds. This is the mean over contexts, not the probability in each.

    Parameters
    ----------
    regret
        Bound on the expected sum of the regrets of the first T rounds.
    burn_in
        T; for 0 the bound is 1.
    gap
        Lead of the best arm over the second best, above 0.
    small_gap
        Probability of a context whose lead is smaller than `gap`.

    Examples
    --------
    >>> eta_from_regret(50.0, burn_in=4000, gap=0.1)
    0.125
    >>> eta_from_regret(50.0, burn_in=4000, gap=0.1, small_gap=0.25)
    0.375
    """
    total, lead = as_number(regret, "regret", least=0.0), as_number(gap, "gap", above=0.0)
    rounds, rest = as_count(burn_in, "burn_in", least=0), as_number(small_gap, "small_gap", least=0.0, most=1.0)
    return min(1.0, total / rounds / lead + rest) if rounds else 1.0


def reward_gaps(theta_star: ArrayLike, log: BanditLog) -> Vector:
    """Lead of the best arm over the second best in every round, shape (N,); infinite where one arm is on offer.

    Examples
    --------
    >>> offers = BanditLog.from_dense(np.array([[[1.0], [0.25], [0.5]]]), chosen=[0])
    >>> reward_gaps([1.0], offers)
    array([0.5])
    """
    scores = LinearPolicy(theta_star).scores(log)
    starts = log.offsets[:-1]
    best = np.maximum.reduceat(scores, starts)
    rest = scores.copy()
    rest[starts + LinearPolicy(theta_star).choose(log)] = -np.inf
    return np.asarray(best - np.maximum.reduceat(rest, starts), dtype=np.float64)


def eta_from_gaps(regret: float, burn_in: int, gaps: ArrayLike, delta: float = 0.05) -> float:
    """`eta_from_regret` where leads can be as small as you like: the best trade between `gap` and `small_gap`.

    With probability `1 - delta` the leads' distribution lies within `sqrt(log(2 / delta) / (2 n))` of the sample's
    (Dvoretzky, Kiefer, Wolfowitz, Massart), for all leads at once.

    Parameters
    ----------
    regret, burn_in
        As in `eta_from_regret`.
    gaps
        Leads in contexts that were drawn independently, shape (n,), from `reward_gaps`.
    delta
        Probability with which the bound may fail, above 0 and at most 1.

    Examples
    --------
    >>> from onlooker.simulation.environment import Environment
    >>> environment = Environment(20, 50)
    >>> gaps = reward_gaps(environment.theta_star, environment.test_log(5000))
    >>> round(eta_from_gaps(20.0, burn_in=8000, gaps=gaps), 2)
    0.34
    """
    sample = np.sort(np.asarray(gaps, dtype=np.float64))
    if sample.ndim != 1 or not len(sample) or np.isnan(sample).any() or sample[0] < 0:
        raise InputError("gaps must be a list of numbers from 0 on: pass what reward_gaps gives")
    total, rounds = as_number(regret, "regret", least=0.0), as_count(burn_in, "burn_in", least=0)
    slack = math.sqrt((math.log(2) - math.log(as_delta(delta))) / (2 * len(sample)))
    leads = sample[sample > 0]
    if not rounds or not len(leads):
        return 1.0
    below = np.searchsorted(sample, leads, side="left") / len(sample)
    return float(min(1.0, slack + (below + total / rounds / leads).min()))


# eq=False: `==` on arrays is elementwise, so a generated __eq__ would raise.
@dataclass(frozen=True, kw_only=True, eq=False)
class EtaCurve:
    """Mistakes of one simulated learner after every burn-in; called with a burn-in it gives the upper limit there.

    Examples
    --------
    >>> from onlooker import Environment, LinUCB, simulate
    >>> eta = eta_from_simulation(simulate(Environment(5, 20), LinUCB(), 2000))
    >>> bool(eta(1000) > eta.share[1000])
    True
    """

    share: Vector
    """Share of the rounds after the first T whose pick was not the best arm, T = 0 to N - 1, shape (N,)."""

    upper: Vector
    """Limit to the mean of these rounds' probabilities of a mistake, each given the rounds before, shape (N,)."""

    def __call__(self, burn_in: int) -> float:
        """Upper limit after `burn_in` rounds."""
        rounds = as_whole(burn_in, "burn_in")
        if rounds >= len(self.upper):
            raise InputError(f"burn_in is {rounds} of {len(self.upper)} rounds: leave at least one round")
        return float(self.upper[rounds])


def eta_from_simulation(simulation: Simulation, delta: float = 0.05) -> EtaCurve:
    """Count a simulated learner's mistakes by the true parameter, after every burn-in.

    A pick as good as the best arm is none. With probability at least `1 - delta` the upper limits hold for all burn-ins
    at once, whatever the rounds have to do with one another: `share + sqrt(log(N / delta) / (2 (N - T)))` (Azuma and
    Hoeffding), at most 1. They limit the mean over contexts and over the rounds of this log.

    Examples
    --------
    >>> from onlooker import Environment, LinUCB, simulate
    >>> eta = eta_from_simulation(simulate(Environment(5, 20), LinUCB(), 2000))
    >>> bool(eta.share[1000] < eta.share[0])
    True
    """
    failure = math.log(as_delta(delta))
    wrong = (_as_simulation(simulation).regret > 0).astype(np.float64)
    left = np.arange(len(wrong), 0, -1, dtype=np.float64)
    share = np.cumsum(wrong[::-1])[::-1] / left
    slack = np.sqrt((math.log(len(wrong)) - failure) / (2 * left))
    return EtaCurve(share=share, upper=np.minimum(1.0, share + slack))


def _as_simulation(simulation: object) -> Simulation:
    if not isinstance(simulation, Simulation):
        kind = type(simulation).__name__
        raise InputError(f"a {kind} does not know the best arms: pass a Simulation, as simulate(...) gives it")
    return simulation
