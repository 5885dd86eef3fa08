"""The compiled filter against one written from its equations in long double, and against closed forms and sampling.

The reference keeps matrices where the filter keeps inverses, and carries all that a pick depends on in one Gaussian:
theta*, the sampled deviation and the noise of every arm.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import multivariate_normal, norm, truncnorm

from onlooker import TS, UCB, BanditLog, Environment, EpsilonGreedy, Lapse, LinTS, LinUCB, Softmax, simulate
from onlooker.kernels.margins import CUT, LIVE
from onlooker.observers.tracking.assumptions import Assumption
from onlooker.observers.tracking.follower import SPARK, Follower

Real = np.longdouble

FAMILIES = {"ucb": UCB(0.7), "ts": TS(6.0), "lapse": Lapse(0.06), "noise": Lapse(0.004)}
NOISE = {"noise": 0.5}
"""Deviation of normal noise on scores, by name of the family."""


def inverse(matrix):
    """By Gauss and Jordan: numpy inverts no long doubles."""
    d = len(matrix)
    work = np.concatenate([matrix, np.eye(d, dtype=Real)], axis=1)
    for k in range(d):
        pivot = k + int(np.argmax(np.abs(work[k:, k])))
        work[[k, pivot]] = work[[pivot, k]]
        work[k] /= work[k, k]
        for i in range(d):
            if i != k:
                work[i] -= work[i, k] * work[k]
    return work[:, d:]


def reference(log, assumption):
    """Mean and covariance of theta* in units of the noise, and every round's log-probability and share of lapse."""
    d, kind = log.n_features, assumption.exploration
    eps = Real(assumption.lapse)
    width = Real(kind.alpha) if isinstance(kind, UCB) else Real(0)
    nu = Real(kind.nu) if isinstance(kind, TS) else Real(0)
    jitter = Real(assumption.noise) ** 2
    V, W = (np.eye(d, dtype=Real) * Real(one) for one in (assumption.ridge, assumption.precision))
    m, P = np.zeros(d, dtype=Real), np.eye(d, dtype=Real) * Real(SPARK) / Real(assumption.precision)
    logs, lapses = [], []
    for t in range(log.n_rounds):
        X, a = log.arms(t).astype(Real), int(log.chosen[t])
        K, Vi = len(X), inverse(V)
        A = np.eye(d, dtype=Real) - Real(assumption.ridge - assumption.precision) * Vi
        scores = X @ A @ m + width * np.sqrt(np.einsum("ki,ij,kj->k", X, Vi, X))
        mean = np.concatenate([m, np.zeros(d + K, dtype=Real)])
        S = np.zeros((2 * d + K, 2 * d + K), dtype=Real)
        S[:d, :d], S[d : 2 * d, d : 2 * d], S[2 * d :, 2 * d :] = P, nu * Vi, jitter * np.eye(K)
        start, log_Z, used = S, Real(0), 0
        for b in sorted(set(range(K)) - {a}, key=lambda k: (-scores[k], k))[:LIVE]:
            arms = np.zeros(K, dtype=Real)
            arms[a], arms[b] = 1, -1
            v = np.concatenate([A.T @ (X[a] - X[b]), X[a] - X[b], arms])
            if scores[a] - scores[b] > CUT * np.sqrt(v @ start @ v):
                continue
            used += 1
            # What was learned before shifts the margin, the rest of it is the difference in score.
            margin = scores[a] - scores[b] + v @ (mean - np.concatenate([m, np.zeros(d + K, dtype=Real)]))
            s = np.sqrt(v @ S @ v)
            z = float(margin / s)
            log_Z += log_ndtr(z)
            if z > CUT:
                continue
            r = math.exp(norm.logpdf(z) - log_ndtr(z))
            Sv = S @ v
            mean = mean + Sv * (r / s)
            S = S - np.outer(Sv, Sv) * (r * (r + z) / s**2)
        Z = np.exp(log_Z)
        total = (1 - eps) * Z + eps / K
        w = (1 - eps) * Z / total
        logs.append(float(np.log(total)))
        lapses.append(float(1 - w))
        if used:
            jump = mean[:d] - m
            P = w * S[:d, :d] + (1 - w) * P + w * (1 - w) * np.outer(jump, jump)
            m = m + w * jump
        step = inverse(W) @ X[a]
        P = P + np.outer(step, step) / (1 + X[a] @ step)
        V, W = V + np.outer(X[a], X[a]), W + np.outer(X[a], X[a])
    return m, P, V, W, np.array(logs), np.array(lapses)


def followed(log, assumption):
    follower = Follower.start(assumption, log.n_features, checkpoints=())
    follower.follow(log)
    return follower


def doubled(log):
    return BanditLog(log.features.astype(np.float64), log.offsets, log.chosen)


def close(found, expected, tolerance=1e-9):
    scale = np.abs(expected).max()
    np.testing.assert_allclose(np.asarray(found, dtype=float), expected.astype(float), rtol=0, atol=tolerance * scale)


def agrees(log, assumption):
    follower = followed(log, assumption)
    m, P, V, W, logs, lapses = reference(log, assumption)
    belief = follower.belief
    close(belief.mean, m)
    close(belief.spread, P)
    close(belief.inverse, inverse(V))
    close(belief.prior_inverse, inverse(W))
    assert follower.evidence == pytest.approx(logs.sum(), rel=1e-9)
    several = log.n_arms > 1
    assert follower.random_picks == pytest.approx(lapses[several].sum(), rel=1e-9)
    assert follower.n_choices == several.sum()
    assert follower.chance == pytest.approx(-np.log(log.n_arms).sum(), rel=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(
    ("d", "arms", "learner"), [(3, (1, 8), LinUCB()), (5, 4, LinTS()), (4, (2, 6), EpsilonGreedy(0.1))]
)
def test_the_filter_is_that_of_its_equations(name, d, arms, learner):
    log = doubled(simulate(Environment(d, arms, seed=d), learner, 200, seed=d).log)
    agrees(
        log, Assumption(exploration=FAMILIES[name], ridge=1.3, precision=0.2, slip=0.004, noise=NOISE.get(name, 0.0))
    )


@pytest.mark.parametrize("precision", [1.0, 4.0], ids=["the learner's own ridge", "tighter than the ridge"])
def test_any_prior(precision):
    log = doubled(simulate(Environment(3, 5, seed=8), LinUCB(), 200, seed=8).log)
    agrees(log, Assumption(exploration=UCB(1.0), ridge=1.0, precision=precision, slip=0.001))


def test_no_more_than_the_strongest_rivals_are_looked_at():
    log = doubled(simulate(Environment(2, LIVE + 20, seed=1), LinTS(), 5, seed=1).log)
    agrees(log, Assumption(exploration=Lapse(0.004), ridge=1.0, precision=0.2, slip=0.004, noise=40.0))


def without_random(name):
    """The family without random picks."""
    return Lapse(0.0) if name == "noise" else FAMILIES[name]


def one_round(kind, rows, lapse=0.0, seed=5, noise=0.0):
    """A round whose pick has no features, so that nothing moves after it; and a belief before it."""
    rng = np.random.default_rng(seed)
    d = 3
    assumption = Assumption(exploration=kind, ridge=1.0, precision=0.3, slip=lapse, noise=noise)
    follower = Follower.start(assumption, d, checkpoints=())
    roots = rng.normal(size=(2, d, d))
    follower.belief.mean[:] = rng.normal(size=d)
    follower.belief.spread[:] = roots[0] @ roots[0].T
    follower.belief.inverse[:] = roots[1] @ roots[1].T / 5
    features = np.concatenate([np.zeros((1, d)), rng.normal(size=(rows, d))])
    return follower, BanditLog.from_dense(features[None], [0])


def margins(follower, log):
    """Mean and covariance of what the pick has ahead of its rivals, and covariance of theta* with it."""
    model, belief = follower.assumption.model(), follower.belief
    rivals = -log.features[1:]
    turned = rivals @ (np.eye(3) - model.shrink * belief.inverse)
    bonus = model.width * np.sqrt(np.einsum("ki,ij,kj->k", rivals, belief.inverse, rivals))
    noise = model.jitter * (1 + np.eye(len(rivals)))
    covariance = turned @ belief.spread @ turned.T + model.sampling * rivals @ belief.inverse @ rivals.T + noise
    return turned @ belief.mean - bonus, covariance, belief.spread @ turned.T


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_softmax_is_nearly_that_of_sampling(seed):
    """In a round that says little, as most do: by importance weights of a million draws."""
    follower, log = one_round(Softmax(3.0), 3, lapse=0.1, seed=seed)
    follower.belief.spread[:] /= 20
    model, belief = follower.assumption.model(), follower.belief
    draws = np.random.default_rng(0).multivariate_normal(belief.mean, belief.spread, size=1_000_000)
    scores = draws @ (np.eye(3) - model.shrink * belief.inverse) @ log.features.T / 3.0
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = 0.9 * shares[:, 0] / shares.sum(axis=1) + 0.1 / 4
    mean = weights @ draws / weights.sum()
    deviations = np.sqrt(weights @ (draws - mean) ** 2 / weights.sum())
    follower.follow(log)
    assert math.exp(follower.evidence) == pytest.approx(weights.mean(), rel=0.05)
    assert (np.abs(follower.belief.mean - mean) < 0.1 * deviations).all()
    assert (np.abs(np.sqrt(np.diag(follower.belief.spread)) / deviations - 1) < 0.1).all()


@pytest.mark.parametrize("name", ["ucb", "ts", "noise"])
def test_one_rival_truncates_a_normal(name):
    follower, log = one_round(without_random(name), 1, noise=NOISE.get(name, 0.0))
    (mean,), ((variance,),), carried = margins(follower, log)
    before = follower.belief.mean.copy(), follower.belief.spread.copy()
    deviation = math.sqrt(variance)
    cut = truncnorm(-mean / deviation, np.inf, loc=mean, scale=deviation)
    follower.follow(log)
    gain = carried[:, 0] / variance
    np.testing.assert_allclose(follower.belief.mean, before[0] + gain * (cut.mean() - mean), rtol=1e-9)
    np.testing.assert_allclose(
        follower.belief.spread, before[1] - np.outer(gain, gain) * (variance - cut.var()), rtol=1e-8, atol=1e-10
    )
    assert follower.evidence == pytest.approx(norm.logcdf(mean / deviation), rel=1e-12)


@pytest.mark.parametrize("seed", [3, 6, 8])
@pytest.mark.parametrize("name", ["ucb", "ts", "noise"])
def test_two_rivals_are_nearly_those_of_sampling(name, seed):
    follower, log = one_round(without_random(name), 2, seed=seed, noise=NOISE.get(name, 0.0))
    mean, covariance, carried = margins(follower, log)
    before = follower.belief.mean.copy(), follower.belief.spread.copy()
    joint = np.block([[before[1], carried], [carried.T, covariance]])
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal(np.concatenate([before[0], mean]), joint, size=200_000)
    kept = draws[(draws[:, 3:] > 0).all(axis=1), :3]
    assert len(kept) > 10_000
    follower.follow(log)
    deviations = kept.std(axis=0)
    assert (np.abs(follower.belief.mean - kept.mean(axis=0)) < 0.1 * deviations).all()
    assert (np.abs(np.sqrt(np.diag(follower.belief.spread)) / deviations - 1) < 0.1).all()
    exact = multivariate_normal(-mean, covariance).cdf(np.zeros(2))
    assert math.exp(follower.evidence) == pytest.approx(exact, rel=0.05)


def test_an_impossible_pick_is_a_lapse():
    follower, log = one_round(UCB(0.0), 1, lapse=0.01)
    (mean,), _, _ = margins(follower, log)
    follower.belief.mean[:] *= -1000 * np.sign(mean)
    before = follower.belief.mean.copy()
    follower.follow(log)
    assert follower.evidence == pytest.approx(math.log(0.01 / 2))
    assert follower.random_picks == pytest.approx(1.0)
    np.testing.assert_allclose(follower.belief.mean, before)


def test_a_hundred_thousand_rounds_leave_no_drift():
    log = simulate(Environment(5, 5, seed=2), LinUCB(), 100_000, seed=2).log
    follower = followed(log, Assumption(exploration=UCB(1.0), ridge=1.0, precision=0.1, slip=0.001))
    rows = log.features[log.chosen_rows].astype(np.float64)
    belief = follower.belief
    for ridge, found in ((1.0, belief.inverse), (0.1, belief.prior_inverse)):
        expected = np.linalg.inv(ridge * np.eye(5) + rows.T @ rows)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())
    np.testing.assert_allclose(belief.spread, belief.spread.T, rtol=0, atol=1e-12 * np.abs(belief.spread).max())
    values = np.linalg.eigvalsh(belief.spread)
    assert values[0] > 1e-6 * values[-1] > 0
    assert np.isfinite(follower.evidence)
    assert follower.n_rounds == 100_000


def test_single_and_double_precision_follow_the_same_way():
    log = simulate(Environment(4, (2, 6), seed=6), LinTS(), 500, seed=6).log
    assumption = Assumption(exploration=TS(4.0), ridge=1.0, precision=0.1, slip=0.001)
    for kind in FAMILIES.values():
        single, double = (followed(one, replace(assumption, exploration=kind)) for one in (log, doubled(log)))
        close(single.belief.mean, double.belief.mean, 1e-6)
        assert single.evidence == pytest.approx(double.evidence, rel=1e-6)
