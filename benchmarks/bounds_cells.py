"""Bounds beside what they bound: one simulated learner a cell, imitated after several burn-ins at several horizons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onlooker.base.defaults import L2
from onlooker.evaluation.bounds import (
    any_learner_regret_bound,
    eta_from_gaps,
    eta_from_simulation,
    predictive_regret_bound,
    reward_gaps,
)
from onlooker.evaluation.metrics import agreement, predictive_regrets
from onlooker.experiments.grid import LEARNERS, TEST_ROUNDS
from onlooker.imitation.burn_in import fit_suffixes, power_start
from onlooker.simulation.environment import Environment
from onlooker.simulation.play import Simulation, simulate

NARROW = 0.1
"""Share of the rounds, those where the best arm leads least, whose mistakes are counted apart."""


def bound_cell(
    learner: str, d: int, K: int, seed: int, horizons: Sequence[int], alphas: Sequence[float], delta: float
) -> list[dict[str, Any]]:
    """Measure an imitating policy's regret and the bounds on it; one row per horizon and burn-in.

    Half of `delta` is for theorem 2, half for the estimate of eta that it needs; the bound for any learner knows the
    mistakes and takes all of it.

    Examples
    --------
    >>> rows = bound_cell("LinUCB", d=5, K=10, seed=0, horizons=[500, 1000], alphas=[0.5, 0.9], delta=0.05)
    >>> len(rows), all(row["any_learner"] > row["regret"] for row in rows)
    (4, True)
    """
    environment = Environment(d, K, seed=seed)
    played = simulate(environment, LEARNERS[learner], max(horizons), seed=seed)
    test = environment.test_log(TEST_ROUNDS, seed=seed)
    rows = []
    for n in horizons:
        part = Simulation(
            log=played.log[:n],
            rewards=played.rewards[:n],
            theta_star=played.theta_star,
            learner=played.learner,
            seed=seed,
        )
        wrong, eta = part.regret > 0, eta_from_simulation(part, delta / 2)
        gaps, paid = reward_gaps(part.theta_star, part.log), np.cumsum(part.regret)
        burn_ins = [power_start(n, alpha) for alpha in alphas]
        thetas, _ = fit_suffixes(part.log, burn_ins, l2=L2)
        regrets = predictive_regrets(thetas, part.theta_star, test)
        for alpha, T, theta, regret in zip(alphas, burn_ins, thetas, regrets, strict=True):
            suffix = part.log.suffix(T)
            narrow = gaps[T:] <= np.quantile(gaps[T:], NARROW)
            mistakes, disagreement, eta_upper = float(eta.share[T]), 1.0 - agreement(theta, suffix), eta(T)
            rows.append(
                {"learner": learner, "d": d, "K": K, "seed": seed, "N": n, "alpha": alpha, "T": T}
                | {"regret": float(regret), "risk": 1.0 - agreement(theta, test)}
                | {
                    "mistakes": mistakes,
                    "disagreement": disagreement,
                    "mistakes_narrow": float(wrong[T:][narrow].mean()),
                    "eta": eta_upper,
                    "eta_from_gaps": eta_from_gaps(float(paid[T - 1]), T, gaps, delta / 2),
                }
                | {
                    f"theorem_{dimension}": _finite(
                        predictive_regret_bound(n, T, d, K, delta / 2, eta_upper, dimension=dimension)
                    )
                    for dimension in ("sharp", "paper")
                }
                | {"any_learner": any_learner_regret_bound(n, T, d, K, delta, mistakes, disagreement=disagreement)}
            )
    return rows


def _finite(bound: float) -> float | None:
    """None for a bound that is infinite: JSON has no infinity."""
    return bound if np.isfinite(bound) else None
