"""The chain: its parts against numerical derivatives, its draws against brute force, and the same on any threads."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from believer import ALPHA, NOISE, play
from onlooker import BanditLog
from onlooker.kernels.beliefs import redraw_beliefs
from onlooker.observers.earlier.belief_observer import Imitation
from onlooker.observers.earlier.beliefs import BeliefModel, Schedule, maximise
from onlooker.observers.earlier.beliefs.posterior import Draws, posterior
from onlooker.observers.earlier.beliefs.sampler import BeliefSampler


@pytest.fixture(scope="module")
def model():
    return BeliefModel.of(play(3, (1, 6), 300, seed=1).log, alpha=ALPHA)


@pytest.fixture
def sampler(model):
    sampler = BeliefSampler(model, noise=NOISE, theta=Imitation(model).theta, seed=0)
    sampler.set_n0(0.7)
    for _ in range(3):
        sampler.sweep()
    return sampler


def test_the_gradient_in_the_rewards_is_the_derivative(sampler, model):
    at = sampler.carried(sampler.hidden.rewards)
    np.testing.assert_allclose(at.likelihoods, sampler.hidden.likelihoods, rtol=1e-9, atol=1e-12)
    for t in (0, 1, 17, 200, 299):
        step = 1e-5 * np.eye(model.n_rounds)[t]
        after, before = (sampler.carried(at.rewards + sign * step).likelihood for sign in (1, -1))
        assert at.slopes[t] == pytest.approx((after - before) / 2e-5, rel=1e-5, abs=1e-6)


def test_carried_beliefs_keep_their_distance_from_their_means(sampler, model):
    old, new = sampler.hidden, sampler.carried(sampler.hidden.rewards + 0.3)
    for t in (0, 1, 40, 299):
        N = sampler.n0 * np.eye(3) + model.picked[:t].T @ model.picked[:t]
        distances = [one.beliefs[t] - np.linalg.solve(N, one.sums[t]) for one in (old, new)]
        np.testing.assert_allclose(*distances, rtol=1e-8, atol=1e-10)


def test_the_slope_in_n0_is_the_derivative_of_the_beliefs_density(sampler, model):
    n, hidden, slopes = 200, sampler.hidden, np.zeros(2)
    beliefs, zeros = hidden.beliefs.copy(), np.zeros(n)
    redraw_beliefs(
        *(model.log.features, model.log.offsets, model.log.chosen, model.picked, 0, n, np.eye(3) / np.sqrt(0.7)),
        *(model.alpha, NOISE, hidden.sums, zeros, np.zeros((n, 3)), zeros, beliefs, hidden.likelihoods, slopes),
    )
    np.testing.assert_allclose(beliefs, hidden.beliefs, rtol=1e-12, atol=1e-12)

    def density(n0):
        total = 0.0
        for t in range(n):
            inverse = np.linalg.inv(n0 * np.eye(3) + model.picked[:t].T @ model.picked[:t])
            total += multivariate_normal(inverse @ hidden.sums[t], NOISE**2 * inverse).logpdf(beliefs[t])
        return total

    assert slopes[0] == pytest.approx((density(0.7 + 1e-5) - density(0.7 - 1e-5)) / 2e-5, rel=1e-5)


def test_draws_have_the_moments_of_weighted_draws_from_the_model():
    """Four rounds, two features: draw hidden values from the model without the picks, weight them by the picks."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(4, 3, 2))
    log, theta = BanditLog.from_dense(X, chosen=[0, 2, 1, 1]), np.array([0.3, -0.2])
    n, picked = 100_000, X[np.arange(4), [0, 2, 1, 1]]
    rewards = picked @ theta + NOISE * rng.normal(size=(n, 4))
    weights = np.zeros(n)
    for t in range(4):
        N = 0.5 * np.eye(2) + picked[:t].T @ picked[:t]
        means = rewards[:, :t] @ picked[:t] @ np.linalg.inv(N)
        rho = means + NOISE * rng.normal(size=(n, 2)) @ np.linalg.inv(np.linalg.cholesky(N))
        scores = ALPHA * rho @ X[t].T
        weights += scores[:, log.chosen[t]] - np.logaddexp.reduce(scores, axis=1)
    weights = np.exp(weights - weights.max())
    weights /= weights.sum()
    mean = weights @ rewards
    deviation = np.sqrt(weights @ (rewards - mean) ** 2)

    model = BeliefModel.of(log, alpha=ALPHA)
    sampler = BeliefSampler(model, noise=NOISE, theta=theta * model.scale, seed=4)
    sampler.set_n0(0.5 / model.scale**2)
    draws = np.array([sampler.sweep().rewards.copy() for _ in range(3000)])[200:]
    assert np.abs(mean - picked @ theta).max() > 0.1 * NOISE, "the picks say something"
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.12 * NOISE)
    np.testing.assert_allclose(draws.std(axis=0), deviation, rtol=0.1)


def test_the_chain_mixes(sampler, model):
    """Draws ten sweeps apart; without the joint move their largest correlation is 0.7 here."""
    thetas = []
    for sweep in range(400):
        thetas.append(model.least_squares(sampler.sweep().sums[-1]))
        if sweep < 100:
            sampler.adapt(sweep)
    late = np.array(thetas[100:])
    assert max(np.corrcoef(x[10:], x[:-10])[0, 1] for x in late.T) < 0.4


def test_threads_and_precision_make_no_difference(model, monkeypatch):
    log = model.log
    double = BanditLog(log.features.astype(np.float64), log.offsets, log.chosen)
    found = []
    for threads, one in (("1", log), ("3", log), ("1", double)):
        monkeypatch.setenv("ONLOOKER_THREADS", threads)
        sampler = BeliefSampler(BeliefModel.of(one, alpha=ALPHA), noise=NOISE, theta=np.ones(3), seed=5)
        found.append([sampler.sweep().rewards.copy() for _ in range(5)][-1])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_maximum_and_mean_of_the_posterior_agree(model):
    imitation = Imitation(model)
    sampler = BeliefSampler(model, noise=NOISE, theta=2 * imitation.theta, seed=0)
    found = maximise(sampler, Schedule(iterations=30, sweeps=5, burn_in_sweeps=1), curvature=imitation.curvature)
    sampler.theta = found.theta
    sampler.set_n0(found.n0)
    curvature = imitation.curvature(found.theta)
    moments = posterior(sampler, curvature=curvature, rounds=np.array([10, 300]), sweeps=400)
    errors = np.sqrt(np.diag(moments.covariance))
    assert (np.abs(moments.theta - found.theta) < errors).all()
    assert (np.abs(moments.path[1] - moments.theta) < errors).all()
    assert np.linalg.norm(moments.path[0]) < np.linalg.norm(moments.path[1]), "the prior holds the first beliefs back"


def test_moments_that_come_one_by_one():
    values = np.random.default_rng(0).normal(size=(50, 2, 3))
    draws = Draws((2, 3))
    for one in values:
        draws.add(one)
    np.testing.assert_allclose(draws.mean, values.mean(axis=0))
    for place in (0, 1):
        np.testing.assert_allclose(draws.covariance[place], np.cov(values[:, place].T))
