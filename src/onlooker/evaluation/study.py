"""One simulated learner, studied from the outside: simulate, hide the rewards, observe, compare with the truth."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from onlooker.base.types import Progress
from onlooker.evaluation.comparison import Comparison, Curve, Truth, compare, default_observers, judge, judge_sweep
from onlooker.imitation.sweep import burn_in_sweep
from onlooker.logs.policy import LinearPolicy
from onlooker.observers import Observer, TrackingObserver
from onlooker.simulation.environment import Environment
from onlooker.simulation.play import Simulation, simulate
from onlooker.simulation.ridge import Learner, RidgeLearner

TEST_ROUNDS = 2000
"""Fresh offers that predictive regret is measured on."""

LEARNER = "learner (sees rewards)"
"""Name in tables of ridge regression on picks and rewards, to which the observers are compared."""

Watch = Callable[[str], AbstractContextManager[Progress | None]]
"""Given the name of a task, returns a context that reports its progress."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """A simulation and how close the observers came to the truth."""

    simulation: Simulation
    """The learner's log, and the truth behind it."""

    comparison: Comparison
    """The learner itself, then the observers, last the oracle."""

    curve: Curve
    """Both metrics for every burn-in."""

    observers: Mapping[str, Observer]
    """Those of the comparison, by name, fitted."""

    @property
    def tracked(self) -> tuple[TrackingObserver, ...]:
        """The tracking observers among them."""
        return tuple(one for one in self.observers.values() if isinstance(one, TrackingObserver))


def study(
    environment: Environment,
    learner: Learner | RidgeLearner,
    n_rounds: int,
    seed: int = 0,
    *,
    observers: Mapping[str, Observer] | None = None,
    memory: bool = False,
    ahead: Collection[str] = (),
    watch: Watch = lambda _: nullcontext(),
) -> Study:
    """Simulate a learner and run the observers on its log; `memory` and `ahead` as for `compare`.

    Examples
    --------
    >>> from onlooker.simulation.learners import LinUCB
    >>> found = study(Environment(5, 20), LinUCB(), n_rounds=2000)
    >>> found.comparison.rows[0].name, found.comparison.rows[-1].name
    ('learner (sees rewards)', 'suffix imitation, oracle in hindsight')
    """
    chosen = default_observers() if observers is None else observers
    with watch("simulating") as progress:
        simulation = simulate(environment, learner, n_rounds, seed, progress=progress)
    log = simulation.log
    truth = Truth(theta_star=environment.theta_star, test_log=environment.test_log(TEST_ROUNDS, seed))
    with watch("observing") as progress:
        observed = compare(log, chosen, truth=truth, memory=memory, ahead=ahead, progress=progress)
    with watch("sweeping the burn-in") as progress:
        curve = judge_sweep(burn_in_sweep(log, progress=progress), log, truth=truth)
    itself = judge(LEARNER, LinearPolicy(simulation.learner_theta), log, truth=truth)
    comparison = Comparison(rows=(itself, *observed.rows, curve.oracle))
    return Study(simulation=simulation, comparison=comparison, curve=curve, observers=chosen)
