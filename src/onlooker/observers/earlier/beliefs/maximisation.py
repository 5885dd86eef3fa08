"""Expectation and maximisation: theta* and n0 under which the picks are most probable."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onlooker.base.numerics import inverse
from onlooker.base.types import Matrix, Progress, Vector
from onlooker.observers.earlier.beliefs.sampler import BeliefSampler

LARGEST_STEP = 0.5
"""Of log n0, in one iteration."""

NO_CURVATURE = 1e-9
"""Directions with less than this share of their features' curvature are not moved along."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How long to sample."""

    iterations: int
    """Of expectation and maximisation."""
    sweeps: int
    """In each of them."""
    burn_in_sweeps: int
    """At the beginning of each, not used."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Maximum:
    """Where the iterations ended, in the model's units."""

    theta: Vector
    n0: float
    acceptance: tuple[float, float]
    """Share of beliefs that moved in a sweep, and of the rewards' own moves that were taken; over the second half."""


def maximise(
    sampler: BeliefSampler,
    schedule: Schedule,
    *,
    curvature: Callable[[Vector], Matrix],
    progress: Progress | None = None,
) -> Maximum:
    """Alternate: sample what is hidden; then move theta* and n0 to where it makes that most probable.

    Theta* becomes the least squares of the mean rewards (the published step), plus `G^-1` times the mean gradient of
    the picks' log-probability in theta*, all noise held; G, that log-probability's `curvature` at theta*, is looked at
    again after 1, 2, 4, ... iterations. The published step alone is slow where picks carry little information, as
    about the length. Each is a step of expectation and maximisation; where all is Gaussian, both together are Newton's.

    A step of log n0 is the mean gradient of the beliefs' log-density over its information,

        n0 sum of [tr N_t^-1 - (|rho_t|^2 - |m_t|^2) / noise^2] / 2
        n0^2 sum of [tr N_t^-2 / 2 + m_t' N_t^-1 m_t / noise^2]

    The chain goes on from one iteration to the next. Over the second half of them theta* and log n0 are averaged, so
    that few sweeps an iteration are enough.
    """
    model, half = sampler.model, schedule.iterations // 2
    theta, log_n0, acceptance = sampler.theta, math.log(sampler.n0), np.zeros(2)
    for iteration in range(schedule.iterations):
        if iteration & (iteration - 1) == 0:
            metric = inverse(curvature(sampler.theta), flat=NO_CURVATURE)
        means = _sample(sampler, schedule, before=iteration * schedule.sweeps)
        shift = metric @ model.sums(means.slopes)
        sampler.theta = model.least_squares(means.sums) + shift
        sampler.hidden = sampler.carried(sampler.hidden.rewards + model.rewards(shift))
        sampler.set_n0(_stepped(sampler, means.n0_slopes))
        weight = 1 / max(1, iteration + 1 - half)
        theta = theta + weight * (sampler.theta - theta)
        log_n0 += weight * (math.log(sampler.n0) - log_n0)
        acceptance += weight * (means.acceptance - acceptance)
        if progress is not None:
            progress(iteration + 1, schedule.iterations)
    moved, taken = acceptance.tolist()
    return Maximum(theta=theta, n0=math.exp(log_n0), acceptance=(moved, taken))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Means:
    """Over the sweeps of one iteration."""

    sums: Vector
    """Of `sum of r x`."""
    slopes: Vector
    """Of the gradient in the rewards."""
    n0_slopes: Vector
    acceptance: Vector


def _sample(sampler: BeliefSampler, schedule: Schedule, *, before: int) -> _Means:
    model, kept = sampler.model, schedule.sweeps - schedule.burn_in_sweeps
    sums, slopes = np.zeros(model.n_features), np.zeros(model.n_rounds)
    n0_slopes, acceptance = np.zeros(2), np.zeros(2)
    for sweep in range(schedule.sweeps):
        hidden = sampler.sweep()
        sampler.adapt(before + sweep)
        if sweep >= schedule.burn_in_sweeps:
            sums += hidden.sums[-1] / kept
            slopes += hidden.slopes / kept
            n0_slopes += sampler.slopes / kept
            acceptance += np.array(sampler.moved) / kept
    return _Means(sums=sums, slopes=slopes, n0_slopes=n0_slopes, acceptance=acceptance)


def _stepped(sampler: BeliefSampler, slopes: Vector) -> float:
    information = sampler.n0 * (0.5 * sampler.squares + slopes[1])
    step = float(slopes[0]) / information if information > 0.0 else 0.0
    return sampler.n0 * math.exp(min(max(step, -LARGEST_STEP), LARGEST_STEP))
