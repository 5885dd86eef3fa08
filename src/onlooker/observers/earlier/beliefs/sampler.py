"""The chain that goes over everything hidden: the belief behind each pick, and each reward.

One sweep draws every belief by a Metropolis step, all rewards jointly given the beliefs, and then rewards and beliefs
once more together. The first two are the published Gibbs sampler. It is slow: T beliefs hold the rewards in place, and
the rewards the beliefs. The third moves the rewards while every belief keeps its distance from its own mean, so that
only the picks hold them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from onlooker.base.threads import ordered_map
from onlooker.base.types import Matrix, Vector
from onlooker.observers.earlier.beliefs.model import BeliefModel, square

STEPS = (1.0, 0.3)
"""Shares of a belief that a Metropolis step draws again: all of it, for late rounds, or little, for the first ones."""

TARGET = 0.57
"""Acceptance that moves along a gradient aim for."""

LONGEST = 2.0
"""Step of the rewards from which nothing of their old noise is kept."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Hidden:
    """Rewards, and the beliefs that they lead to, with what the picks say of them."""

    rewards: Vector
    sums: Matrix
    """`y_t`, shape (T + 1, d)."""
    beliefs: Matrix
    """`rho_t`, shape (T, d)."""
    likelihoods: Vector
    """Log-probability of every pick."""
    slopes: Vector
    """Gradient of their sum in the rewards, each belief kept at its distance from its mean."""

    @property
    def likelihood(self) -> float:
        """Log-probability of all picks."""
        return float(self.likelihoods.sum())


class BeliefSampler:
    """Markov chain over beliefs and rewards, given theta* and n0.

    Examples
    --------
    >>> from onlooker.simulation.environment import Environment
    >>> from onlooker.simulation.learners import LinTS
    >>> from onlooker.simulation.play import simulate
    >>> simulation = simulate(Environment(3, 5), LinTS(), n_rounds=300)
    >>> model = BeliefModel.of(simulation.log, alpha=20.0)
    >>> sampler = BeliefSampler(model, noise=0.1, theta=simulation.theta_star * model.scale, seed=0)
    >>> rewards = np.mean([sampler.sweep().rewards for _ in range(100)], axis=0)
    >>> bool(np.abs(rewards - simulation.rewards).std() < 0.15)
    True
    """

    def __init__(self, model: BeliefModel, *, noise: float, theta: Vector, seed: int) -> None:
        self.model = model
        self.noise = noise
        self.theta = theta
        """Theta*, in the model's units."""
        seeds = np.random.SeedSequence(seed).spawn(len(model.starts) + 1)
        self.random, *self._blocks = [np.random.Generator(np.random.SFC64(one)) for one in seeds]
        self.stride = 0.5
        """Of the rewards' own moves; see `_move_rewards`."""
        self.slopes = np.zeros(2)
        """Of the last sweep: as `onlooker.kernels.beliefs.redraw_beliefs` adds them up."""
        self.moved = (0.0, 0.0)
        """Of the last sweep: share of beliefs that moved, and chance that the rewards' own move was taken."""
        self.set_n0(1.0)
        self.hidden = self._first()

    def set_n0(self, n0: float) -> None:
        """Let n0 be another; in the model's units."""
        from onlooker.kernels.beliefs import reward_gains, roots_at

        model, d = self.model, self.model.n_features
        self.n0 = n0
        self._roots = np.empty((len(model.starts), d, d))
        self._gains, self._sizes = np.empty((model.n_rounds, d)), np.empty(model.n_rounds)
        roots_at(model.picked, n0, model.starts, self._roots)
        self.squares = reward_gains(model.picked, model.starts, self._roots, self._gains, self._sizes)

    def sweep(self) -> Hidden:
        """Draw everything hidden once more."""
        moved = self._redraw_beliefs()
        self._redraw_rewards()
        self.moved = (moved, self._move_rewards())
        return self.hidden

    def adapt(self, sweep: int) -> None:
        """Bring the acceptance of the rewards' own move closer to its target, by less and less."""
        self.stride = min(LONGEST, self.stride * math.exp((self.moved[1] - TARGET) / math.sqrt(1 + sweep / 10)))

    def carried(self, rewards: Vector) -> Hidden:
        """Other rewards, with every belief at its old distance from its mean."""
        from onlooker.kernels.beliefs import carry_beliefs, reward_slopes, sum_rewards

        model, log, old = self.model, self.model.log, self.hidden
        sums, pulls = np.empty_like(old.sums), np.empty_like(old.beliefs)
        beliefs, likelihoods = np.empty_like(old.beliefs), np.empty(model.n_rounds)
        sum_rewards(model.picked, rewards, sums)

        def carry(block: tuple[int, int, int]) -> None:
            number, start, stop = block
            carry_beliefs(
                *(log.dense, log.offsets, log.chosen, model.picked, start, stop, self._roots[number], model.alpha),
                *(old.sums, sums, old.beliefs, beliefs, likelihoods, pulls),
            )

        for _ in ordered_map(carry, model.blocks):
            pass
        slopes = np.empty(model.n_rounds)
        reward_slopes(model.picked, pulls, slopes)
        return Hidden(rewards=rewards, sums=sums, beliefs=beliefs, likelihoods=likelihoods, slopes=slopes)

    def _first(self) -> Hidden:
        """Rewards without noise, beliefs at their means."""
        n_rounds, d = self.model.picked.shape
        self.hidden = Hidden(
            rewards=np.zeros(n_rounds),
            sums=np.zeros((n_rounds + 1, d)),
            beliefs=np.zeros((n_rounds, d)),
            likelihoods=np.empty(n_rounds),
            slopes=np.empty(n_rounds),
        )
        return self.carried(self.model.rewards(self.theta))

    def _redraw_beliefs(self) -> float:
        from onlooker.kernels.beliefs import redraw_beliefs

        model, log, hidden = self.model, self.model.log, self.hidden

        def redraw(block: tuple[int, int, int]) -> tuple[int, Vector]:
            number, start, stop = block
            random, slopes = self._blocks[number], np.zeros(2)
            n, d = stop - start, model.n_features
            steps = np.where(random.random(n) < 0.5, *STEPS)
            moved = redraw_beliefs(
                *(log.dense, log.offsets, log.chosen, model.picked, start, stop, self._roots[number]),
                *(model.alpha, self.noise, hidden.sums, steps, random.standard_normal((n, d)), random.random(n)),
                *(hidden.beliefs, hidden.likelihoods, slopes),
            )
            return moved, slopes

        found = list(ordered_map(redraw, model.blocks))
        self.slopes = np.sum([slopes for _, slopes in found], axis=0)
        return sum(moved for moved, _ in found) / model.n_rounds

    def _redraw_rewards(self) -> None:
        from onlooker.kernels.beliefs import draw_rewards

        model = self.model
        draw_rewards(
            *(model.picked, self._gains, self._sizes, self.hidden.beliefs, model.rewards(self.theta), self.noise),
            *(self.random.standard_normal(model.n_rounds), self.hidden.rewards, self.hidden.sums),
        )

    def _move_rewards(self) -> float:
        """Move the rewards along the gradient of the picks' probabilities; returns the chance that it was taken.

        In `u = (r - x' theta*) / noise`, standard normal before the picks are seen, the proposal is

            u' = ((2 - s) u + 2 s g(u) + sqrt(8 s) z) / (2 + s)

        with g the gradient: Crank and Nicolson's step of the Langevin equation, which long logs do not slow down.
        """
        model, s = self.model, self.stride
        here = self.carried(self.hidden.rewards)
        expected = model.rewards(self.theta)
        u, pull = (here.rewards - expected) / self.noise, self.noise * here.slopes
        z = self.random.standard_normal(model.n_rounds)
        other = ((2 - s) * u + 2 * s * pull + math.sqrt(8 * s) * z) / (2 + s)
        there = self.carried(expected + self.noise * other)
        back = ((2 + s) * u - (2 - s) * other - 2 * s * self.noise * there.slopes) / math.sqrt(8 * s)
        gain = there.likelihood - here.likelihood + 0.5 * (square(u) - square(other) + square(z) - square(back))
        self.hidden = there if math.log1p(-self.random.random()) < gain else here
        return math.exp(min(0.0, gain))
