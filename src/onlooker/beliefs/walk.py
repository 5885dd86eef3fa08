"""The nonparametric variant: what the learner prefers is a random walk, whatever moves it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker.beliefs.model import BeliefModel
from onlooker.beliefs.posterior import Draws, Moments
from onlooker.beliefs.sampler import STEPS
from onlooker.threads import ordered_map
from onlooker.types import Index, Matrix, Progress, Vector


@dataclass(frozen=True, kw_only=True)
class Walk:
    """`beta_0 ~ N(0, first I)`, `beta_t ~ N(beta_{t-1}, step I)`, `rho_t ~ N(beta_t, spread I)`: three variances."""

    first: float
    step: float
    spread: float


class WalkSampler:
    """Markov chain over the belief behind every pick and the walk behind the beliefs.

    The walk given the beliefs is drawn at once, forward filter and backward sampler, with scalar gains: O(T d).
    """

    def __init__(self, model: BeliefModel, walk: Walk, *, theta: Vector, seed: int) -> None:
        self.model = model
        self.walk = walk
        self.betas = np.tile(theta, (model.n_rounds, 1))
        """Shape (T, d), in the model's units."""
        seeds = np.random.SeedSequence(seed).spawn(len(model.starts) + 1)
        self._random, *self._blocks = [np.random.Generator(np.random.SFC64(one)) for one in seeds]
        self._beliefs = self.betas.copy()
        # Whatever the first proposal is, it is taken.
        self._likelihoods = np.full(model.n_rounds, -np.inf)

    def sweep(self) -> float:
        """Draw every belief by a Metropolis step, then the walk; returns the share of beliefs that moved."""
        from onlooker.kernels.beliefs import draw_walk, redraw_around

        model, log, walk = self.model, self.model.log, self.walk
        unit = model.scale**2

        def redraw(block: tuple[int, int, int]) -> int:
            number, start, stop = block
            random, n = self._blocks[number], stop - start
            steps = np.where(random.random(n) < 0.5, *STEPS)
            moved: int = redraw_around(
                *(log.features, log.offsets, log.chosen, start, stop, model.alpha, (walk.spread * unit) ** 0.5),
                *(self.betas, steps, random.standard_normal((n, model.n_features)), random.random(n)),
                *(self._beliefs, self._likelihoods),
            )
            return moved

        moved = sum(ordered_map(redraw, model.blocks))
        normals = self._random.standard_normal(self.betas.shape)
        draw_walk(self._beliefs, walk.first * unit, walk.step * unit, walk.spread * unit, normals, self.betas)
        return moved / model.n_rounds


def walk_moments(
    sampler: WalkSampler, *, rounds: Index, sweeps: int, burn_in_sweeps: int, progress: Progress | None = None
) -> tuple[Moments, float]:
    """Mean and covariance of the walk in the last of so many `rounds`, in the model's units; theta is the last's.

    Besides, the share of beliefs that moved in a sweep.
    """
    path = Draws((len(rounds), sampler.model.n_features))
    moved = 0.0
    for sweep in range(sweeps):
        share = sampler.sweep()
        if sweep >= burn_in_sweeps:
            moved += share / (sweeps - burn_in_sweeps)
            path.add(sampler.betas[rounds - 1])
        if progress is not None:
            progress(sweep + 1, sweeps)
    covariance: Matrix = path.covariance
    moments = Moments(theta=path.mean[-1], covariance=covariance[-1], path=path.mean, path_covariance=covariance)
    return moments, moved
