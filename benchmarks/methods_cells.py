"""Every method on the same logs: one method on one log a cell, measured against the truth that it does not see."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any

from onlooker.base.errors import OnlookerWarning
from onlooker.evaluation.comparison import Truth, judge
from onlooker.evaluation.study import LEARNER
from onlooker.experiments.grid import LEARNERS, TEST_ROUNDS
from onlooker.logs.policy import LinearPolicy, as_linear
from onlooker.observers.methods import find_methods
from onlooker.simulation.environment import Environment
from onlooker.simulation.play import Simulation, simulate

SHORTENED: Mapping[str, Mapping[str, int]] = {
    "bayesian": {"iterations": 25, "sweeps": 3, "posterior_sweeps": 15},
    "nonparametric": {"sweeps": 300, "burn_in_sweeps": 100},
}
"""Chains shorter than the observers' own, so that 10,000 rounds take tens of seconds rather than minutes."""


def method_cell(method: str, learner: str, d: int, K: int, N: int, seed: int) -> dict[str, Any]:
    """Run one method, by its name in `METHODS`, or the learner itself, on one log.

    Examples
    --------
    >>> cell = method_cell("rule", "LinUCB", d=3, K=5, N=300, seed=0)
    >>> cell["direction_error"] < 0.2, cell["cpu_seconds"] > 0
    (True, True)
    """
    environment = Environment(d, K, seed=seed)
    simulation = simulate(environment, LEARNERS[learner], N, seed=seed)
    policy, seconds = _recovered(method, simulation)
    truth = Truth(theta_star=environment.theta_star, test_log=environment.test_log(TEST_ROUNDS, seed))
    row = judge(method, policy, simulation.log, truth=truth)
    return {
        "method": method,
        "learner": learner,
        "d": d,
        "K": K,
        "N": N,
        "seed": seed,
        # An observer that found no preference has no direction: as far off as one at random.
        "direction_error": 2**0.5 if row.direction_error is None else row.direction_error,
        "predictive_regret": row.predictive_regret,
        "agreement": row.agreement,
        "cpu_seconds": seconds,
    }


def _recovered(method: str, simulation: Simulation) -> tuple[LinearPolicy, float | None]:
    """The policy, and the processor time that it took."""
    if method == LEARNER:
        return LinearPolicy(simulation.learner_theta), None
    (found,) = find_methods([method])
    observer, first = (found.make().set_params(**SHORTENED.get(method, {})) for _ in range(2))
    with warnings.catch_warnings():
        # Judged by what they reach; a table of seeds has no room for what they say.
        warnings.simplefilter("ignore", OnlookerWarning)
        # Compiles what is not compiled yet, so that it is not timed.
        first.fit(simulation.log[:50])
        started = time.process_time()
        observer.fit(simulation.log)
        seconds = time.process_time() - started
    return as_linear(observer.policy_, "the table"), seconds
