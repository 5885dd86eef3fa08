"""A grid of simulations: every learner in every environment, observed at several horizons, over many seeds."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onlooker.base.defaults import L2
from onlooker.base.errors import OnlookerWarning
from onlooker.base.types import Matrix
from onlooker.evaluation.metrics import direction_error, predictive_regrets
from onlooker.experiments.runner import Task, TaskProgress, run_tasks
from onlooker.imitation.burn_in import HeldOut, fit_suffixes, power_start
from onlooker.imitation.sweep import DEFAULT_ALPHAS
from onlooker.logs.log import BanditLog
from onlooker.observers import Observer
from onlooker.simulation.environment import Environment
from onlooker.simulation.learners import LinTS, LinUCB
from onlooker.simulation.play import Simulation, simulate
from onlooker.simulation.ridge import Learner, RidgeLearner

LEARNERS: Mapping[str, RidgeLearner] = {"LinUCB": LinUCB(), "LinTS": LinTS()}
"""The paper's, by the name that tables give them."""

TEST_ROUNDS = 2000
"""Fresh offers that predictive regret and risk are measured on."""


COLUMNS = (
    "learner",
    "d",
    "K",
    "N",
    "seed",
    "method",
    "alpha",
    "burn_in",
    "direction_error",
    "predictive_regret",
)
"""Of a grid's table."""

Found = tuple[str, float | None, int | None]
"""Method, alpha and burn-in of a theta."""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What to simulate and who observes it.

    Suffix imitation is always there: `naive`, `rule`, `auto`, and a sweep over `alphas`; so is the `learner` itself.

    Examples
    --------
    >>> from onlooker.simulation.learners import LinUCB
    >>> grid = Grid(environments=[(5, 10)], learners={"LinUCB": LinUCB()}, horizons=[300], seeds=range(2))
    >>> rows = grid("LinUCB", d=5, K=10, seed=0)
    >>> [row["method"] for row in rows[:4]]
    ['learner', 'naive', 'rule', 'auto']
    """

    environments: Sequence[tuple[int, int]]
    """Pairs (d, K) of features and arms."""

    learners: Mapping[str, Learner | RidgeLearner]
    """By the name that the table gives them."""

    horizons: Sequence[int]
    """Numbers of rounds, N; a shorter log is the beginning of the longest."""

    seeds: Sequence[int]
    """Each decides an environment's parameter and a learner's log."""

    observers: Mapping[str, Observer] = field(default_factory=dict)
    """More observers, by the name that the table gives them."""

    alphas: Sequence[float] = DEFAULT_ALPHAS
    """Burn-in exponents of the sweep."""

    def tasks(self) -> list[Task]:
        """One per environment, learner and seed."""
        return [
            Task(
                f"{re.sub(r'[^A-Za-z0-9.]+', '_', name)}-d{d}-K{K}-seed{seed:02d}",
                {"learner": name, "d": d, "K": K, "seed": seed},
                cost=float(max(self.horizons) * K * d),
            )
            for d, K in self.environments
            for name in self.learners
            for seed in self.seeds
        ]

    def settings(self) -> dict[str, Any]:
        """What must be the same for results to be in one table; seeds and environments may be added later."""
        return {
            "schema": 2,
            "learners": {name: repr(learner) for name, learner in self.learners.items()},
            "observers": {name: repr(observer) for name, observer in self.observers.items()},
            "horizons": list(self.horizons),
            "alphas": list(self.alphas),
            "l2": L2,
            "test_rounds": TEST_ROUNDS,
        }

    def __call__(self, learner: str, d: int, K: int, seed: int) -> list[dict[str, Any]]:
        """Rows of one task."""
        environment = Environment(d, K, seed=seed)
        played = simulate(environment, self.learners[learner], max(self.horizons), seed=seed)
        test = environment.test_log(TEST_ROUNDS, seed=seed)
        rows, watching = [], {name: deepcopy(observer) for name, observer in self.observers.items()}
        for N in self.horizons:
            found, thetas = self._observe(played, N, watching)
            regrets = predictive_regrets(thetas, environment.theta_star, test)
            for (method, alpha, burn_in), theta, regret in zip(found, thetas, regrets.tolist(), strict=True):
                error = direction_error(theta, environment.theta_star)
                values = (learner, d, K, N, seed, method, alpha, burn_in, error, regret)
                rows.append(dict(zip(COLUMNS, values, strict=True)))
        return rows

    def _observe(self, played: Simulation, N: int, watching: Mapping[str, Observer]) -> tuple[list[Found], Matrix]:
        log = played.log[:N]
        found: list[Found] = [("learner", None, None)]
        thetas = [played.learner_path([N])[0]]
        burn_ins = {"naive": 0, "rule": power_start(N, 0.9), "auto": HeldOut(l2=L2).start(log)}
        found += [(method, None, burn_in) for method, burn_in in burn_ins.items()]
        found += [("sweep", float(alpha), power_start(N, float(alpha))) for alpha in self.alphas]
        fitted, _ = fit_suffixes(log, [burn_in or 0 for _, _, burn_in in found[1:]], l2=L2)
        thetas += list(fitted)
        for name, observer in watching.items():
            _go_on(observer, log)
            found.append((name, None, getattr(observer, "burn_in_", None)))
            thetas.append(observer.theta_)
        return found, np.array(thetas)


def _go_on(observer: Observer, log: BanditLog) -> None:
    """Fit the observer to the log; one that can resume from the rounds it has followed does so."""
    known = getattr(observer, "n_rounds_", 0) if hasattr(observer, "partial_fit") else 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnlookerWarning)
        if 0 < known < log.n_rounds:
            observer.partial_fit(log[known:])  # type: ignore[attr-defined]
        else:
            observer.fit(log)


def run_grid(
    grid: Grid, folder: str | os.PathLike[str], *, workers: int | None = None, progress: TaskProgress | None = None
) -> list[dict[str, Any]]:
    """Run what is missing of the grid in parallel processes; return its table, one row per method, horizon and cell."""
    done = run_tasks(grid, grid.tasks(), folder, settings=grid.settings(), workers=workers, progress=progress)
    return [row for rows in done.values() for row in rows]
