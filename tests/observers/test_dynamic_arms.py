"""Weights that walk where every arm has its own: what is identified are differences to the mean over the arms."""

import numpy as np
import pytest

from onlooker import BanditLog, DynamicImitation, SuffixImitation

WEIGHTS = np.array([[0.1, -0.9, -0.4], [1.4, 1.9, 0.2], [-0.7, -0.5, 0.4], [-0.8, -0.5, -0.2]])


def softmax_log(arms="abcd", n=3000, seed=0, **options):
    rng = np.random.default_rng(seed)
    contexts = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    chosen = (contexts @ WEIGHTS.T + rng.gumbel(size=(n, 4))).argmax(axis=1)
    return BanditLog.from_contexts(contexts, np.array(list("abcd"))[chosen], arms=list(arms), **options)


def test_a_fixed_policy_has_the_errors_of_a_static_fit():
    """Laws that predict nothing keep a small weight each: it may not widen what is known."""
    log = softmax_log()
    static = SuffixImitation(burn_in="naive", l2=0).fit(log)
    expected = np.sqrt(static.covariance_.diagonal())
    observer = DynamicImitation().fit(log)
    np.testing.assert_allclose(np.sqrt(observer.covariance_.diagonal()), expected, rtol=0.3)
    np.testing.assert_allclose(observer.path_.standard_error[-1], expected, rtol=0.3)
    np.testing.assert_allclose(observer.theta_, static.theta_, atol=expected.max())
    np.testing.assert_allclose(observer.theta_, observer.path_.theta[-1], atol=expected.max())


def test_weights_are_differences_to_the_mean_over_the_arms():
    observer = DynamicImitation().fit(softmax_log(n=500))
    for weights in (observer.theta_, *observer.path_.theta):
        np.testing.assert_allclose(weights.reshape(4, 3).sum(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(observer.covariance_.reshape(4, 3, 12).sum(axis=0), 0.0, atol=1e-9)


def test_an_arm_that_is_never_offered_leaves_the_others_their_intervals():
    n = 500
    offered = np.ones((n, 5), dtype=bool)
    offered[:, 4] = False
    observer = DynamicImitation().fit(softmax_log("abcde", n, offered=offered))
    errors = np.sqrt(observer.covariance_.diagonal()).reshape(5, 3)
    assert np.isfinite(errors[:4]).all()
    assert np.isnan(errors[4]).all()
    shown = observer.path_.standard_error[-1].reshape(5, 3)
    assert np.isfinite(shown[:4]).all()
    assert np.isnan(shown[4]).all()


@pytest.mark.parametrize("n", [400, 900])
def test_a_later_part_continues_the_same_path(n):
    log = softmax_log(n=1200)
    parts = DynamicImitation().fit(log[:n]).partial_fit(log[n:])
    np.testing.assert_array_equal(parts.theta_, DynamicImitation().fit(log).theta_)
    np.testing.assert_array_equal(parts.covariance_, DynamicImitation().fit(log).covariance_)
