"""The logs that rivals get: seeded, made by onlooker's own simulation."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from onlooker import Environment, LinUCB, simulate
from onlooker.base.defaults import L2
from onlooker.imitation.newton import minimise
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.logs.log import BanditLog
from rivals.problem import Array, Problem

TIGHT = 1e-11
"""Gradient and Newton decrement of the minima that rivals are measured against."""


@dataclass(frozen=True)
class Workload:
    """A log by its size and seed."""

    n: int
    k: int
    d: int
    seed: int = 0

    def __str__(self) -> str:
        return f"N = {self.n:,}, K = {self.k}, d = {self.d}"

    def problem(self) -> Problem:
        """Let LinUCB play, and find both minima to far more digits than rivals must reach."""
        environment = Environment(self.d, self.k, seed=self.seed)
        simulation = simulate(environment, LinUCB(), self.n, self.seed)
        log = simulation.log
        return Problem(
            X=log.features.reshape(self.n, self.k, self.d),
            chosen=log.chosen,
            noise=environment.reward_noise(self.n, self.seed),
            theta_star=environment.theta_star,
            best=_minimum(log, L2),
            best_free=_minimum(log, 0.0),
            l2=L2,
            seed=self.seed,
        )

    def folder(self, cache: Path) -> Path:
        """Where the problem is kept; it is made on first use."""
        folder = cache / "workloads" / f"N{self.n}-K{self.k}-d{self.d}-seed{self.seed}"
        made = folder / "workload.json"
        if not made.exists():
            print(f"making the log with {self}", file=sys.stderr)
            self.problem().write(folder)
            made.write_text(json.dumps(asdict(self)), encoding="utf-8")
        return folder


LARGE = Workload(10_000, 200, 50)
SMALL = Workload(10_000, 50, 20)


def _minimum(log: BanditLog, l2: float) -> Array:
    return minimise(SoftmaxObjective(log, l2=l2), tolerance=TIGHT).theta
