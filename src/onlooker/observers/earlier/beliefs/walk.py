"""The nonparametric variant: what the learner prefers is a random walk, whatever moves it.

As in `sampler.py`, a sweep is the published one, beliefs by Metropolis and then the whole walk, followed
by a move of walk and beliefs together. Without it, after 2,000 sweeps, chains from two starts are still more than ten
standard deviations apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from onlooker.base.threads import ordered_map
from onlooker.base.types import Index, Matrix, Progress, Vector
from onlooker.observers.earlier.beliefs.model import BeliefModel, square
from onlooker.observers.earlier.beliefs.posterior import Draws, Moments
from onlooker.observers.earlier.beliefs.sampler import LONGEST, STEPS, TARGET


@dataclass(frozen=True, kw_only=True)
class Walk:
    """`beta_0 ~ N(0, first I)`, `beta_t ~ N(beta_{t-1}, step I)`, `rho_t ~ N(beta_t, spread I)`: three variances."""

    first: float
    step: float
    spread: float

    def scaled(self, unit: float) -> Walk:
        """In other units."""
        return Walk(first=unit**2 * self.first, step=unit**2 * self.step, spread=unit**2 * self.spread)

    def square(self, path: Matrix) -> float:
        """Twice the negative log-density of a path, but for its constant."""
        return square(path[0]) / self.first + square(np.diff(path, axis=0)) / self.step


@dataclass(frozen=True, kw_only=True, eq=False)
class Hidden:
    """A walk and the beliefs around it, with what the picks say of them."""

    walk: Matrix
    """`beta_t`, shape (T, d)."""
    beliefs: Matrix
    """`rho_t`."""
    likelihoods: Vector
    """Log-probability of every pick."""
    pulls: Matrix
    """Its gradient in `beta_t`, the belief kept at its distance."""


class WalkSampler:
    """Markov chain over the belief behind every pick and the walk behind the beliefs, in the model's units.

    `curvature` is about that of the log-probability of one pick.
    """

    def __init__(self, model: BeliefModel, walk: Walk, *, theta: Vector, curvature: Matrix, seed: int) -> None:
        self.model = model
        self.stride = 0.5
        """Of the joint move; see `_move_walk`."""
        self.moved = (0.0, 0.0)
        """Of the last sweep: share of beliefs that moved, and chance that the joint move was taken."""
        self._prior = walk.scaled(model.scale)
        values, self._axes = np.linalg.eigh(curvature)
        self._curvature = np.maximum(values, 1e-9 * max(float(values[-1]), 1e-300))
        seeds = np.random.SeedSequence(seed).spawn(len(model.starts) + 1)
        self._random, *self._blocks = [np.random.Generator(np.random.SFC64(one)) for one in seeds]
        path = np.tile(theta, (model.n_rounds, 1))
        self.hidden = Hidden(walk=path, beliefs=path, likelihoods=np.empty(len(path)), pulls=np.empty_like(path))
        self.hidden = self.carried(path)

    def sweep(self) -> Hidden:
        """Draw everything hidden once more."""
        moved = self._redraw_beliefs()
        self._redraw_walk()
        self.moved = (moved, self._move_walk())
        return self.hidden

    def adapt(self, sweep: int) -> None:
        """Bring the acceptance of the joint move closer to its target, by less and less."""
        self.stride = min(LONGEST, self.stride * math.exp((self.moved[1] - TARGET) / math.sqrt(1 + sweep / 10)))

    def carried(self, path: Matrix) -> Hidden:
        """Another walk, with every belief at its old distance from it."""
        from onlooker.kernels.belief_walk import carry_around

        model, log, old = self.model, self.model.log, self.hidden
        shifts, beliefs, pulls = path - old.walk, np.empty_like(path), np.empty_like(path)
        likelihoods = np.empty(len(path))

        def carry(block: tuple[int, int, int]) -> None:
            carry_around(
                *(log.dense, log.offsets, log.chosen, *block[1:], model.alpha),
                *(shifts, old.beliefs, beliefs, likelihoods, pulls),
            )

        for _ in ordered_map(carry, model.blocks):
            pass
        return Hidden(walk=path, beliefs=beliefs, likelihoods=likelihoods, pulls=pulls)

    def _redraw_beliefs(self) -> float:
        from onlooker.kernels.belief_walk import redraw_around

        model, log, hidden = self.model, self.model.log, self.hidden

        def redraw(block: tuple[int, int, int]) -> int:
            number, start, stop = block
            random, n = self._blocks[number], stop - start
            steps = np.where(random.random(n) < 0.5, *STEPS)
            moved: int = redraw_around(
                *(log.dense, log.offsets, log.chosen, start, stop, model.alpha, math.sqrt(self._prior.spread)),
                *(hidden.walk, steps, random.standard_normal((n, model.n_features)), random.random(n)),
                *(hidden.beliefs, hidden.likelihoods),
            )
            return moved

        return sum(ordered_map(redraw, model.blocks)) / model.n_rounds

    def _redraw_walk(self) -> None:
        variances = np.full(self.model.n_features, self._prior.spread)
        normals = self._random.standard_normal(self.hidden.walk.shape)
        self.hidden.walk[:] = self._drawn(self.hidden.beliefs, variances, normals)

    def _drawn(self, sights: Matrix, variances: Vector, normals: Matrix) -> Matrix:
        from onlooker.kernels.belief_walk import draw_walk

        walk = np.empty_like(sights)
        draw_walk(sights, self._prior.first, self._prior.step, variances, normals, walk)
        return walk

    def _move_walk(self) -> float:
        """Move the walk along the gradient of the picks' probabilities; returns the chance that it was taken.

        Were the picks' log-probability a paraboloid of the given curvature c, the walk would be Gaussian. With S its
        covariance, w drawn with it and g the gradient, the proposal is

            v' = ((2 - s) v + 2 s S (g + c v) + sqrt(8 s) w) / (2 + s)

        Coordinates are along the axes of the curvature: there S is as easily applied and drawn from as the walk's own.
        """
        s, here = self.stride, self.carried(self.hidden.walk)
        z = self._random.standard_normal(here.walk.shape)
        v, noise = _turned(here.walk, self._axes), self._drawn(np.zeros_like(z), 1 / self._curvature, z)
        other = ((2 - s) * v + 2 * s * self._pulled(here, v) + math.sqrt(8 * s) * noise) / (2 + s)
        there = self.carried(_turned(other, self._axes.T))
        back = ((2 + s) * v - (2 - s) * other - 2 * s * self._pulled(there, other)) / math.sqrt(8 * s)
        gain = float(there.likelihoods.sum() - here.likelihoods.sum())
        gain += 0.5 * (self._prior.square(v) - self._prior.square(other) + square(z))
        gain -= 0.5 * (self._prior.square(back) + square(back * np.sqrt(self._curvature)))
        self.hidden = there if math.log1p(-self._random.random()) < gain else here
        return math.exp(min(0.0, gain))

    def _pulled(self, at: Hidden, v: Matrix) -> Matrix:
        """`S (g + c v)`: the mean of a walk whose sight is `v + g / c`, with variance `1 / c`."""
        sights = v + _turned(at.pulls, self._axes) / self._curvature
        return self._drawn(sights, 1 / self._curvature, np.zeros_like(v))


def _turned(path: Matrix, axes: Matrix) -> Matrix:
    # Not by BLAS: its threads would change the last digits, and with them the chain.
    return np.asarray(np.einsum("ti,ij->tj", path, axes))


def walk_moments(
    sampler: WalkSampler, *, rounds: Index, sweeps: int, burn_in_sweeps: int, progress: Progress | None = None
) -> tuple[Moments, tuple[float, float]]:
    """Mean and covariance of the walk in the last of so many `rounds`, in the model's units; theta is the last's.

    Besides, the share of beliefs that moved in a sweep and of the joint moves that were taken.
    """
    path, moved = Draws((len(rounds), sampler.model.n_features)), np.zeros(2)
    for sweep in range(sweeps):
        hidden = sampler.sweep()
        if sweep < burn_in_sweeps:
            sampler.adapt(sweep)
        else:
            moved += np.array(sampler.moved) / (sweeps - burn_in_sweeps)
            path.add(hidden.walk[rounds - 1])
        if progress is not None:
            progress(sweep + 1, sweeps)
    covariance: Matrix = path.covariance
    moments = Moments(theta=path.mean[-1], covariance=covariance[-1], path=path.mean, path_covariance=covariance)
    return moments, (float(moved[0]), float(moved[1]))
