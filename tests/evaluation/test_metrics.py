"""Metrics against their definitions."""

import numpy as np
import pytest

from onlooker.base.errors import InputError
from onlooker.evaluation.metrics import agreement, direction_error, predictive_regret
from onlooker.logs.log import BanditLog
from onlooker.logs.policy import LinearPolicy
from onlooker.observers.suffix_imitation import SuffixImitation


@pytest.fixture(scope="module")
def log():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 6, 200)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return BanditLog(rng.normal(size=(offsets[-1], 3)), offsets, rng.integers(0, sizes), feature_names=["a", "b", "c"])


def test_direction_error_ignores_length():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 5))
    assert direction_error(3 * a, 7 * b) == pytest.approx(direction_error(a, b))
    cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    assert direction_error(a, b) == pytest.approx(np.sqrt(2 - 2 * cosine))
    assert np.isnan(direction_error([np.nan, 1.0], [1.0, 1.0]))


def test_direction_error_refuses_what_has_none():
    with pytest.raises(InputError, match="length zero"):
        direction_error([0.0, 0.0], [1.0, 0.0])
    with pytest.raises(InputError, match="shapes"):
        direction_error([1.0], [1.0, 0.0])


def test_predictive_regret_round_by_round(log):
    theta, theta_star = np.array([1.0, 0.0, -1.0]), np.array([0.5, 1.0, -0.2])
    missed = []
    for t in range(log.n_rounds):
        rewards = log.arms(t) @ theta_star
        missed.append(rewards.max() - rewards[(log.arms(t) @ theta).argmax()])
    policy = LinearPolicy(theta, ["a", "b", "c"])
    assert predictive_regret(policy, theta_star, log) == pytest.approx(np.mean(missed))
    assert predictive_regret(theta, theta_star, log) == pytest.approx(np.mean(missed))
    assert predictive_regret(theta_star, theta_star, log) == 0.0


def test_agreement_of_policy_array_and_observer(log):
    observer = SuffixImitation(burn_in="naive", l2=0.1)
    with pytest.warns(match="single arm|uniformly"):
        observer.fit(log)
    expected = np.mean([(log.arms(t) @ observer.theta_).argmax() == log.chosen[t] for t in range(log.n_rounds)])
    assert agreement(observer, log) == agreement(observer.policy_, log) == agreement(observer.theta_, log) == expected
    assert observer.score(log) == expected
