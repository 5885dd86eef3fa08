"""How well tracking does: one simulated log a cell, measured against the truth that the observer does not see."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from onlooker.base.errors import OnlookerWarning
from onlooker.base.numerics import normal_reach
from onlooker.evaluation.metrics import direction_error
from onlooker.experiments import grid as setting
from onlooker.logs.log import BanditLog
from onlooker.observers import SuffixImitation, TrackingObserver
from onlooker.observers.tracking import TS, UCB, Exploration, Lapse
from onlooker.observers.tracking.path import direction_covariance
from onlooker.simulation.environment import Environment
from onlooker.simulation.learners import EpsilonGreedy, LinUCB
from onlooker.simulation.play import Simulation, simulate
from onlooker.simulation.ridge import RidgeLearner

LEARNERS: Mapping[str, RidgeLearner] = {**setting.LEARNERS, "epsilon-greedy 0.05": EpsilonGreedy(0.05)}
"""By the name that tables give them."""

CASES = (
    "plain",
    "alpha four times too small",
    "alpha four times too large",
    "ridge ten times too small",
    "ridge ten times too large",
    "batches of 50",
    "5% of picks at random",
    "every other round one arm",
    "2 to 50 arms",
    "two arms",
)
"""What may differ from what the observer assumes."""


def true_exploration(learner: str, d: int) -> Exploration:
    """How a learner really explores, in units of the reward noise.

    Examples
    --------
    >>> true_exploration("LinTS", d=20)
    TS(nu=20.0)
    """
    ways: dict[str, Exploration] = {"LinUCB": UCB(1.0), "LinTS": TS(float(d)), "epsilon-greedy 0.05": Lapse(0.05)}
    return ways[learner]


def log_cell(learner: str, d: int, K: int, N: int, seed: int) -> dict[str, Any]:
    """Track one log, once without knowing how its learner explores and once knowing it.

    Examples
    --------
    >>> cell = log_cell("LinTS", d=5, K=10, N=2000, seed=0)
    >>> cell["right"], 0.0 <= cell["covered"] <= 1.0
    (True, True)
    """
    environment = Environment(d, K, seed=seed)
    simulation = simulate(environment, LEARNERS[learner], N, seed=seed)
    started = time.perf_counter()
    observer = _tracked(simulation.log)
    seconds = time.perf_counter() - started
    knowing = _tracked(simulation.log, exploration=true_exploration(learner, d))
    summary = observer.summary()
    return {
        "learner": learner,
        "d": d,
        "K": K,
        "N": N,
        "seed": seed,
        "found": observer.exploration_.name,
        "strength": observer.exploration_.strength,
        "right": observer.exploration_.name == true_exploration(learner, d).name,
        "margin": summary.margin if math.isfinite(summary.margin) else None,
        "learner_error": direction_error(simulation.learner_theta, environment.theta_star),
        "error": direction_error(observer.theta_, environment.theta_star),
        "error_told": direction_error(knowing.theta_, environment.theta_star),
        "covered": _covered(observer, environment),
        "path_covered": _path_covered(observer, simulation),
        "length": float(np.linalg.norm(observer.theta_)) * environment.noise,
        "misfit": observer.misfit_,
        "settled_round": observer.settled_round_,
        "seconds": seconds,
    }


def robust_cell(case: str, seed: int, d: int = 20, K: int = 50, N: int = 5000) -> dict[str, Any]:
    """Track a LinUCB log that differs from what is assumed; `d`, `K` and `N` are those of the plain case.

    Examples
    --------
    >>> robust_cell("two arms", seed=0, d=5, N=500)["finite"]
    True
    """
    arms: dict[str, int | tuple[int, int]] = {"two arms": 2, "2 to 50 arms": (2, 50)}
    batch = 50 if case == "batches of 50" else 1
    environment = Environment(d, arms.get(case, K), seed=seed)
    simulation = simulate(environment, LinUCB(batch=batch), N, seed=seed)
    log = simulation.log
    if case == "5% of picks at random":
        log = _corrupted(log, seed)
    if case == "every other round one arm":
        log = _lonely(log)
    assumptions: dict[str, dict[str, Any]] = {
        "alpha four times too small": {"exploration": UCB(0.25)},
        "alpha four times too large": {"exploration": UCB(4.0)},
        "ridge ten times too small": {"exploration": UCB(1.0), "ridge": 0.1},
        "ridge ten times too large": {"exploration": UCB(1.0), "ridge": 10.0},
    }
    observer = _tracked(log, **assumptions.get(case, {"exploration": UCB(1.0)}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnlookerWarning)
        suffix = SuffixImitation(burn_in="rule").fit(log)
    return {
        "case": case,
        "seed": seed,
        "learner_error": direction_error(simulation.learner_theta, environment.theta_star),
        "error": direction_error(observer.theta_, environment.theta_star),
        "suffix_error": direction_error(suffix.theta_, environment.theta_star),
        "covered": _covered(observer, environment),
        "finite": bool(np.isfinite(observer.theta_).all() and np.isfinite(observer.covariance_).all()),
        "misfit": observer.misfit_,
    }


def _tracked(log: BanditLog, **parameters: Any) -> TrackingObserver:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnlookerWarning)
        return TrackingObserver(**parameters).fit(log)


def _covered(observer: TrackingObserver, environment: Environment) -> float:
    """Share of the true direction's coordinates that lie in their 95% intervals."""
    direction = observer.theta_ / np.linalg.norm(observer.theta_)
    errors = np.sqrt(np.diag(direction_covariance(observer.theta_, observer.covariance_)))
    return float(np.mean(np.abs(direction - environment.theta_star) < normal_reach(0.95) * errors))


def _path_covered(observer: TrackingObserver, simulation: Simulation) -> float:
    """The same for the learner's own direction along the path."""
    truth = simulation.learner_path(observer.path_.rounds)
    truth /= np.linalg.norm(truth, axis=1, keepdims=True)
    return float(np.mean(np.abs(observer.path_.direction - truth) < normal_reach(0.95) * observer.path_.standard_error))


def _corrupted(log: BanditLog, seed: int) -> BanditLog:
    """One pick in twenty is random."""
    random = np.random.default_rng(seed)
    chosen = log.chosen.copy()
    hit = random.random(log.n_rounds) < 0.05
    chosen[hit] = (random.random(int(hit.sum())) * log.n_arms[hit]).astype(np.int64)
    return BanditLog(log.features, log.offsets, chosen)


def _lonely(log: BanditLog) -> BanditLog:
    """Every other round keeps only the arm that was picked."""
    keep = np.ones(len(log.features), dtype=bool)
    for t in range(0, log.n_rounds, 2):
        keep[log.offsets[t] : log.offsets[t + 1]] = False
        keep[log.chosen_rows[t]] = True
    sizes = np.add.reduceat(keep.astype(np.int64), log.offsets[:-1])
    chosen = np.where(np.arange(log.n_rounds) % 2 == 0, 0, log.chosen)
    return BanditLog(log.features[keep], np.concatenate([[0], np.cumsum(sizes)]), chosen)
