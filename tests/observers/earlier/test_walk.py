"""The nonparametric chain: its draws against brute force, its starting point forgotten."""

import numpy as np

from believer import ALPHA
from onlooker import BanditLog, Environment, LinUCB, simulate
from onlooker.observers.earlier.belief_observer import Imitation
from onlooker.observers.earlier.beliefs import BeliefModel, walk_moments
from onlooker.observers.earlier.beliefs.walk import Walk, WalkSampler


def test_draws_have_the_moments_of_weighted_draws_from_the_model():
    rng = np.random.default_rng(6)
    X, chosen, n = rng.normal(size=(4, 3, 2)), np.array([0, 1, 2, 0]), 100_000
    walk = Walk(first=0.05, step=0.01, spread=0.005)
    betas = np.cumsum(rng.normal(size=(4, n, 2)) * np.sqrt([0.05, 0.01, 0.01, 0.01])[:, None, None], axis=0)
    scores = ALPHA * np.einsum("tnd,tkd->tnk", betas + np.sqrt(0.005) * rng.normal(size=betas.shape), X)
    picked = scores[np.arange(4), :, chosen] - np.logaddexp.reduce(scores, axis=2)
    weights = np.exp(picked.sum(axis=0) - picked.sum(axis=0).max())
    weights /= weights.sum()
    mean = np.einsum("n,tnd->td", weights, betas)
    deviation = np.sqrt(np.einsum("n,tnd->td", weights, betas**2) - mean**2)

    model = BeliefModel.of(BanditLog.from_dense(X, chosen), alpha=ALPHA)
    sampler = WalkSampler(model, walk, theta=np.zeros(2), curvature=5 * np.eye(2), seed=1)
    moments, (moved, taken) = walk_moments(sampler, rounds=np.arange(1, 5), sweeps=4000, burn_in_sweeps=500)
    assert 0.2 < taken < 0.95
    assert 0.2 < moved < 1.0
    np.testing.assert_allclose(moments.path / model.scale, mean, atol=0.15 * deviation.max())
    errors = np.sqrt(np.diagonal(moments.path_covariance, axis1=1, axis2=2)) / model.scale
    np.testing.assert_allclose(errors, deviation, rtol=0.12)


def test_the_start_is_forgotten():
    log = simulate(Environment(3, 8), LinUCB(), n_rounds=400).log
    model = BeliefModel.of(log, alpha=ALPHA)
    imitation = Imitation(model)
    walk = Walk(first=1.0, step=5e-5, spread=5e-4)
    found = []
    for stretch in (1.0, 0.0, 2.0):
        curvature = imitation.curvature(imitation.theta) / 400
        sampler = WalkSampler(model, walk, theta=stretch * imitation.theta, curvature=curvature, seed=0)
        found.append(walk_moments(sampler, rounds=np.array([50, 400]), sweeps=500, burn_in_sweeps=250)[0])
    errors = np.sqrt(np.diag(found[0].covariance))
    for other in found[1:]:
        assert (np.abs(found[0].theta - other.theta) < errors).all()
