"""The objective against finite differences, and its minimiser against SciPy's, on random ragged problems."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize as scipy_minimise

from onlooker.base.errors import InputError
from onlooker.imitation.newton import minimise, minimise_and_look
from onlooker.imitation.softmax import SoftmaxObjective, round_losses
from onlooker.logs.log import BanditLog


@st.composite
def problems(draw):
    """A ragged log, weights and a penalty: one to four features, up to 40 rounds of one to six arms."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rounds, d = draw(st.integers(1, 40)), draw(st.integers(1, 4))
    sizes = rng.integers(draw(st.integers(1, 2)), 7, size=n_rounds)
    sizes[0] = max(2, sizes[0])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    features = rng.normal(scale=draw(st.sampled_from([0.1, 1.0, 5.0])), size=(offsets[-1], d))
    if draw(st.booleans()):
        features = features.astype(np.float32)
    weights = rng.uniform(0.2, 3.0, size=n_rounds) if draw(st.booleans()) else None
    log = BanditLog(features, offsets, rng.integers(0, sizes))
    return log, weights, draw(st.sampled_from([1e-4, 1e-2, 1.0])), rng


def reference_value(log, weights, l2, theta):
    """The definition, one round at a time."""
    total, weight = 0.0, 0.0
    for t in range(log.n_rounds):
        scores = log.arms(t).astype(np.float64) @ theta
        if len(scores) == 1:
            continue
        w = 1.0 if weights is None else weights[t]
        total += w * (np.log(np.exp(scores - scores.max()).sum()) + scores.max() - scores[log.chosen[t]])
        weight += w
    return total / weight + l2 / 2 * theta @ theta


@settings(max_examples=150, deadline=None, derandomize=True)
@given(problems())
def test_derivatives_and_minimum(problem):
    log, weights, l2, rng = problem
    objective = SoftmaxObjective(log, l2=l2, weights=weights)
    theta = rng.normal(size=log.n_features)
    here = objective.evaluate(theta)
    assert here.value == pytest.approx(reference_value(log, weights, l2, theta), rel=1e-10, abs=1e-12)

    step = 1e-5
    size = 1 + float(np.abs(log.features).max()) ** 2
    for j, unit in enumerate(np.eye(log.n_features)):
        after, before = objective.evaluate(theta + step * unit), objective.evaluate(theta - step * unit)
        assert here.gradient[j] == pytest.approx((after.value - before.value) / (2 * step), abs=1e-7 * size)
        slope = (after.gradient - before.gradient) / (2 * step)
        # Arms that hold less than a millionth of a round's unpicked probability are left out of the Hessian.
        np.testing.assert_allclose(here.hessian[j], slope, atol=1e-5 * size, rtol=1e-5)

    fit = minimise(objective)
    assert fit.converged
    reached = objective.slope(fit.theta)
    assert np.abs(reached.gradient).max() <= 1e-8
    assert fit.loss == pytest.approx(reached.loss, rel=1e-12, abs=1e-12)
    found = scipy_minimise(
        lambda point: (reference_value(log, weights, l2, point), objective.evaluate(point).gradient),
        np.zeros(log.n_features),
        jac=True,
        method="BFGS",
        options={"gtol": 1e-11},
    )
    np.testing.assert_allclose(fit.theta, found.x, rtol=1e-6, atol=1e-6)
    assert reached.value <= found.fun + 1e-12


@settings(max_examples=100, deadline=None, derandomize=True)
@given(problems())
def test_order_repetition_and_one_arm_rounds(problem):
    log, _, l2, rng = problem
    theta = minimise(SoftmaxObjective(log, l2=l2)).theta

    permuted = minimise(SoftmaxObjective(log[rng.permutation(log.n_rounds)], l2=l2)).theta
    np.testing.assert_allclose(permuted, theta, rtol=1e-7, atol=1e-8)

    twice = rng.integers(log.n_rounds)
    rounds = np.sort(np.append(np.arange(log.n_rounds), twice))
    doubled = np.ones(log.n_rounds)
    doubled[twice] = 2.0
    repeated = minimise(SoftmaxObjective(log[rounds], l2=l2)).theta
    weighted = minimise(SoftmaxObjective(log, l2=l2, weights=doubled)).theta
    np.testing.assert_allclose(repeated, weighted, rtol=1e-7, atol=1e-8)

    alone = BanditLog(
        np.vstack([log.features, log.features[:1]]), np.append(log.offsets, len(log.features) + 1), [*log.chosen, 0]
    )
    np.testing.assert_array_equal(minimise(SoftmaxObjective(alone, l2=l2)).theta, theta)


def test_large_scores_do_not_overflow():
    log = BanditLog.from_dense(np.array([[[1e6], [-1e6]], [[1e6], [-1e6]]]), chosen=[0, 1])
    here = SoftmaxObjective(log, l2=0.0).evaluate(np.array([1.0]))
    assert here.value == pytest.approx(1e6)
    assert np.isfinite(here.gradient).all()


def test_a_sketch_is_the_objective_of_every_strideth_round():
    rng = np.random.default_rng(0)
    log = BanditLog.from_dense(rng.normal(size=(5000, 30, 40)), rng.integers(0, 30, 5000))
    theta = rng.normal(size=40)
    sketch = SoftmaxObjective(log, l2=0.1, stride=7).evaluate(theta)
    picked = SoftmaxObjective(log[::7], l2=0.1).evaluate(theta)
    assert sketch.value == pytest.approx(picked.value, rel=1e-12)
    np.testing.assert_allclose(sketch.gradient, picked.gradient, rtol=1e-10)


@pytest.mark.parametrize("threads", ["1", "2", "3"])
def test_the_number_of_threads_changes_nothing(threads, monkeypatch):
    rng = np.random.default_rng(1)
    log = BanditLog.from_dense(rng.normal(size=(4000, 60, 40)).astype(np.float32), rng.integers(0, 60, 4000))
    objective = SoftmaxObjective(log, l2=1e-4)
    theta = rng.normal(size=40)
    monkeypatch.setenv("ONLOOKER_THREADS", "1")
    alone = objective.at_minimum(theta, 5)
    monkeypatch.setenv("ONLOOKER_THREADS", threads)
    here = objective.at_minimum(theta, 5)
    assert here.value == alone.value
    np.testing.assert_array_equal(here.gradient, alone.gradient)
    np.testing.assert_array_equal(here.hessian, alone.hessian)
    np.testing.assert_array_equal(here.scatter, alone.scatter)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_arms_far_from_the_origin_against_the_definition(dtype):
    """More arms than are gathered at a time, features that fill no tile, rounds without weight, a common offset."""
    rng = np.random.default_rng(4)
    X = (rng.normal(size=(60, 33, 7)) + 1000.0).astype(dtype)
    chosen, weights = rng.integers(0, 33, 60), rng.integers(0, 3, 60).astype(float)
    theta = rng.normal(size=7)
    at = SoftmaxObjective(BanditLog.from_dense(X, chosen), l2=0.0, weights=weights).at_minimum(theta, 1)

    apart = X.astype(np.float64) - X[np.arange(60), chosen].astype(np.float64)[:, None]
    shares = np.exp(apart @ theta)
    loss = np.log(shares.sum(axis=1))
    shares /= shares.sum(axis=1, keepdims=True)
    means = np.einsum("nk,nkd->nd", shares, apart)
    spreads = np.einsum("nk,nkd,nke->nde", shares, apart, apart) - means[:, :, None] * means[:, None, :]
    total = weights.sum()
    assert at.value == pytest.approx(weights @ loss / total, rel=1e-12)
    assert at.agreed == at.explained == weights[(apart @ theta).max(axis=1) == 0].sum()
    np.testing.assert_allclose(at.gradient, weights @ means / total, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(at.hessian, np.tensordot(weights, spreads, 1) / total, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(at.scatter, (weights[:, None] * means).T @ means, rtol=1e-10)


def test_ties_go_to_the_first_of_the_best():
    tied = BanditLog.from_dense(np.array([[[1.0], [1.0], [0.0]]] * 3), chosen=[0, 1, 2])
    at = SoftmaxObjective(tied, l2=0.0).evaluate(np.array([1.0]))
    assert (at.explained, at.agreed) == (0, 1)


def test_few_passes_at_the_papers_scale_and_the_last_sees_all(monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(6000, 50, 20)).astype(np.float32)
    X /= np.maximum(1, np.linalg.norm(X, axis=2, keepdims=True))
    theta = rng.normal(size=20)
    log = BanditLog.from_dense(X, (X @ (30 * theta / np.linalg.norm(theta)) + rng.gumbel(size=(6000, 50))).argmax(1))
    objective, looks = SoftmaxObjective(log, l2=1e-4), []
    run = objective.run
    monkeypatch.setattr(objective, "run", lambda wanted: looks.append(wanted) or run(wanted))
    fit, at = minimise_and_look(objective, lambda theta: objective.at_minimum(theta, 3))
    assert fit.converged
    assert fit.n_iter == len(looks) <= 4
    assert sum(wanted.width > 0 for wanted in looks) == 1
    np.testing.assert_array_equal(at.theta, fit.theta)
    exact = objective.scattered(objective.slope(fit.theta), 3)
    np.testing.assert_allclose(at.scatter, exact.scatter, rtol=1e-6, atol=1e-6 * np.abs(exact.scatter).max())


def test_round_losses_average_to_the_objective():
    rng = np.random.default_rng(3)
    log = BanditLog.from_dense(rng.normal(size=(50, 4, 3)), rng.integers(0, 4, 50))
    theta = rng.normal(size=3)
    assert round_losses(log, theta).mean() == pytest.approx(SoftmaxObjective(log, l2=0.0).evaluate(theta).value)


def test_bad_weights_and_empty_problems_are_refused():
    log = BanditLog.from_dense(np.zeros((3, 2, 1)), chosen=[0, 0, 0])
    with pytest.raises(InputError, match="3 rounds"):
        SoftmaxObjective(log, l2=0.0, weights=[1.0])
    with pytest.raises(InputError, match="weight of round 1 is -1"):
        SoftmaxObjective(log, l2=0.0, weights=[1.0, -1.0, 1.0])
    with pytest.raises(InputError, match="nothing to imitate"):
        SoftmaxObjective(BanditLog(np.ones((2, 1)), [0, 1, 2], [0, 0]), l2=0.0)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_rare_features_that_a_sketch_cannot_bound_are_fitted_all_the_same(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20_000, 5, 6))
    X[:, :, 3:] = rng.random((20_000, 5, 3)) < 0.01
    truth = np.array([1.0, -1.0, 0.5, -1.5, 1.0, 2.0])
    log = BanditLog.from_dense(X, (X @ truth + rng.gumbel(size=(20_000, 5))).argmax(axis=1))
    for rounds in (log, log.suffix(18_114)):
        objective = SoftmaxObjective(rounds, l2=0.0)
        fit = minimise(objective)
        assert fit.converged
        assert np.abs(objective.slope(fit.theta).gradient).max() <= 1e-8
        np.testing.assert_allclose(fit.theta, truth, atol=1.0)


def test_a_sketch_without_any_difference_between_arms_does_not_end_the_search():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 4, 2))
    X[::8] = 0.0
    log = BanditLog.from_dense(X, (X @ [1.0, -1.0] + rng.gumbel(size=(800, 4))).argmax(axis=1))
    np.testing.assert_allclose(minimise(SoftmaxObjective(log, l2=0.0)).theta, [1.0, -1.0], atol=0.2)
