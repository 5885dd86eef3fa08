"""Draws in linear time against the dense Gaussians that they are draws of; exactly, being affine in their noise."""

import numpy as np
import pytest

from believer import NOISE
from onlooker.kernels.belief_walk import draw_walk
from onlooker.kernels.beliefs import draw_rewards, reward_gains, roots_at
from onlooker.observers.earlier.beliefs.model import BLOCK_ROUNDS


def moments(draw, size):
    """Mean and covariance of a draw that is affine in its standard normals: from zero and from the unit vectors."""
    mean = draw(np.zeros(size))
    factor = np.column_stack([draw(unit) - mean for unit in np.eye(size)])
    return mean, factor @ factor.T


def dense_rewards(picked, beliefs, theta, n0):
    """As published: all `Z_t` stacked, a T x T precision."""
    n_rounds, d = picked.shape
    precision, linear = np.eye(n_rounds), picked @ theta
    for t in range(n_rounds):
        Z = np.zeros((n_rounds, d))
        Z[:t] = picked[:t]
        precision += Z @ np.linalg.inv(n0 * np.eye(d) + Z.T @ Z) @ Z.T
        linear = linear + Z @ beliefs[t]
    covariance = np.linalg.inv(precision)
    return covariance @ linear, NOISE**2 * covariance


@pytest.mark.parametrize("n0", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("starts", [[0], [0, 7, 8, 50]])
def test_rewards_are_drawn_from_the_published_gaussian(n0, starts):
    rng = np.random.default_rng(3)
    n_rounds, d = 60, 5
    picked, beliefs, theta = rng.normal(size=(n_rounds, d)), rng.normal(size=(n_rounds, d)), rng.normal(size=d)
    starts = np.array(starts)
    roots, gains, sizes = np.empty((len(starts), d, d)), np.empty((n_rounds, d)), np.empty(n_rounds)
    roots_at(picked, n0, starts, roots)
    reward_gains(picked, starts, roots, gains, sizes)
    sums = np.empty((n_rounds + 1, d))

    def draw(normals):
        rewards = np.empty(n_rounds)
        draw_rewards(picked, gains, sizes, beliefs, picked @ theta, NOISE, normals, rewards, sums)
        np.testing.assert_allclose(sums[1:], np.cumsum(rewards[:, None] * picked, axis=0), rtol=1e-12, atol=1e-12)
        return rewards

    mean, covariance = moments(draw, n_rounds)
    expected_mean, expected_covariance = dense_rewards(picked, beliefs, theta, n0)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(covariance, expected_covariance, rtol=1e-9, atol=1e-13)


def test_roots_are_those_of_the_inverse_after_many_rounds():
    picked = np.random.default_rng(0).normal(size=(20 * BLOCK_ROUNDS, 6)) * [1, 1, 1, 1, 1, 1e-3]
    roots = np.empty((2, 6, 6))
    roots_at(picked, 1e-4, np.array([0, len(picked)]), roots)
    np.testing.assert_allclose(roots[0].T @ roots[0], 1e4 * np.eye(6), rtol=1e-12)
    expected = np.linalg.inv(1e-4 * np.eye(6) + picked.T @ picked)
    np.testing.assert_allclose(roots[1].T @ roots[1], expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("n_rounds", [1, 2, 40])
def test_the_walk_is_drawn_from_its_gaussian(n_rounds):
    first, step, spreads = 1.0, 5e-5, np.array([5e-4, 0.1])
    beliefs = np.random.default_rng(1).normal(size=(n_rounds, 2))
    times = np.arange(n_rounds)
    prior = first + step * np.minimum.outer(times, times)
    gains = [prior @ np.linalg.inv(prior + spread * np.eye(n_rounds)) for spread in spreads]

    def draw(normals):
        walk = np.empty((n_rounds, 2))
        draw_walk(beliefs, first, step, spreads, normals.reshape(n_rounds, 2), walk)
        return walk.ravel()

    mean, covariance = moments(draw, 2 * n_rounds)
    covariance = covariance.reshape(n_rounds, 2, n_rounds, 2)
    for j, gain in enumerate(gains):
        np.testing.assert_allclose(mean.reshape(n_rounds, 2)[:, j], gain @ beliefs[:, j], rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(covariance[:, j, :, j], prior - gain @ prior, rtol=1e-6, atol=1e-11)
    assert not covariance[:, 0, :, 1].any()
