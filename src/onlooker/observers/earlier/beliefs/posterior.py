"""What the picks leave open about theta* and the learner's beliefs, by sampling both."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from onlooker.base.types import Index, Matrix, Progress, Vector
from onlooker.observers.earlier.beliefs.model import square
from onlooker.observers.earlier.beliefs.sampler import TARGET, BeliefSampler


@dataclass(frozen=True, kw_only=True, eq=False)
class Moments:
    """Means and covariances of draws, in the model's units."""

    theta: Vector
    covariance: Matrix
    path: Matrix
    """Mean belief after some rounds, shape (c, d)."""
    path_covariance: Matrix
    """Shape (c, d, d)."""


class Draws:
    """Mean and covariance of vectors that come one by one, each of shape (c, d)."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.count = 0
        self.mean = np.zeros(shape)
        self._squares = np.zeros((*shape, shape[1]))

    def add(self, draw: Matrix) -> None:
        """Take in one more (Welford)."""
        self.count += 1
        before = draw - self.mean
        self.mean += before / self.count
        self._squares += before[:, :, None] * (draw - self.mean)[:, None, :]

    @property
    def covariance(self) -> Matrix:
        """Shape (c, d, d); zero from one draw."""
        squares: Matrix = self._squares / max(1, self.count - 1)
        return squares


def posterior(
    sampler: BeliefSampler, *, curvature: Matrix, rounds: Index, sweeps: int, progress: Progress | None = None
) -> Moments:
    """Sample theta* too, from a flat prior, and with it the belief's mean after each of `rounds` rounds; n0 stays.

    `curvature` is about that of the picks' log-probability in theta*. The first third of the sweeps is for getting
    there. The covariance of theta* is that of its mean given the rewards, over the draws, and what the rewards leave
    open, `noise^2 (sum of x x')^-1`.
    """
    model = sampler.model
    values, vectors = np.linalg.eigh(curvature)
    root = vectors / np.sqrt(np.maximum(values, 1e-10 * max(float(values[-1]), 1e-300)))
    spread = sampler.noise * _square_root(model.inverse)
    beliefs = _inverses(sampler, rounds)
    thetas, path = Draws((1, model.n_features)), Draws((len(rounds), model.n_features))
    stride, burn_in = 1.0, sweeps // 3
    for sweep in range(sweeps):
        sampler.sweep()
        taken = _shift(sampler, root, stride)
        centre = model.least_squares(sampler.hidden.sums[-1])
        sampler.theta = centre + spread @ sampler.random.standard_normal(model.n_features)
        if sweep < burn_in:
            stride *= math.exp((taken - TARGET) / math.sqrt(1 + sweep / 10))
            sampler.adapt(sweep)
        else:
            thetas.add(centre[None])
            path.add(np.einsum("cij,cj->ci", beliefs, sampler.hidden.sums[rounds]))
        if progress is not None:
            progress(sweep + 1, sweeps)
    return Moments(
        theta=thetas.mean[0],
        covariance=thetas.covariance[0] + spread @ spread.T,
        path=path.mean,
        path_covariance=path.covariance,
    )


def _shift(sampler: BeliefSampler, root: Matrix, stride: float) -> float:
    """Move theta*, and with it all rewards and beliefs, their noise kept; returns the chance that it was taken.

    A Langevin step `s^2 / 2 G^-1 g + s G^-1/2 z`, g the gradient of the picks' log-probability, G about its curvature.
    """
    here, model = sampler.hidden, sampler.model
    z = sampler.random.standard_normal(len(root))
    step = stride * z + 0.5 * stride**2 * (root.T @ model.sums(here.slopes))
    shift = root @ step
    there = sampler.carried(here.rewards + model.rewards(shift))
    back = step / stride + 0.5 * stride * (root.T @ model.sums(there.slopes))
    gain = there.likelihood - here.likelihood + 0.5 * (square(z) - square(back))
    if math.log1p(-sampler.random.random()) < gain:
        sampler.hidden = there
        sampler.theta = sampler.theta + shift
    return math.exp(min(0.0, gain))


def _square_root(matrix: Matrix) -> Matrix:
    values, vectors = np.linalg.eigh(matrix)
    root: Matrix = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


def _inverses(sampler: BeliefSampler, rounds: Index) -> Matrix:
    """`N_t^-1` after so many rounds, shape (c, d, d)."""
    from onlooker.kernels.beliefs import roots_at

    roots = np.empty((len(rounds), *2 * (sampler.model.n_features,)))
    roots_at(sampler.model.picked, sampler.n0, rounds, roots)
    inverses: Matrix = roots.transpose(0, 2, 1) @ roots
    return inverses
