"""The environment: what it draws, and from which seed."""

import dataclasses
import pickle

import numpy as np
import pytest

from onlooker.base.errors import InputError
from onlooker.simulation.environment import Environment, Stream, generator


def drawn(environment, n_rounds, seed, stream=Stream.CONTEXTS):
    contexts = environment.contexts(n_rounds, seed, stream)
    # Backwards, since the order of the blocks must not matter.
    for block in reversed(range(contexts.n_blocks)):
        contexts.draw(block)
    return contexts


@pytest.mark.parametrize("d", [1, 2, 50])
def test_theta_star_has_norm_one_and_is_read_only(d):
    theta_star = Environment(d, 3, seed=d).theta_star
    assert np.linalg.norm(theta_star) == pytest.approx(1.0, abs=1e-15)
    with pytest.raises(ValueError, match="read-only"):
        theta_star[0] = 0.0


def test_theta_star_has_no_preferred_direction():
    thetas = np.array([Environment(3, 2, seed=seed).theta_star for seed in range(2000)])
    # The mean of 2,000 unit vectors has standard deviation 1 / sqrt(3 * 2000) = 0.013 in each coordinate.
    assert np.abs(thetas.mean(axis=0)).max() < 0.05
    assert np.abs(thetas.T @ thetas / 2000 - np.eye(3) / 3).max() < 0.05


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_have_norm_at_most_one(dtype):
    contexts = drawn(Environment(5, 20, dtype=dtype), 600, seed=3)
    norms = np.linalg.norm(contexts.features.astype(np.float64), axis=1)
    assert contexts.features.dtype == dtype
    assert norms.max() <= 1 + 4 * np.finfo(dtype).eps
    assert norms.min() < 0.9


def test_rows_are_normal_before_they_are_scaled():
    contexts = drawn(Environment(2, 10, dtype="float64"), 5000, seed=0)
    norms = np.linalg.norm(contexts.features, axis=1)
    # In two dimensions a normal vector has norm below r with probability 1 - exp(-r^2 / 2).
    for radius in (0.3, 0.6, 0.9):
        assert np.mean(norms < radius) == pytest.approx(1 - np.exp(-(radius**2) / 2), abs=0.01)
    angles = np.arctan2(contexts.features[:, 1], contexts.features[:, 0])
    counts, _ = np.histogram(angles, bins=8, range=(-np.pi, np.pi))
    assert np.abs(counts / len(angles) - 1 / 8).max() < 0.006


def test_round_sizes_are_uniform_on_their_range():
    sizes = np.diff(Environment(2, (3, 6)).contexts(8000, seed=1).offsets)
    counts = np.bincount(sizes, minlength=8)
    assert counts[:3].sum() == 0
    assert counts[7:].sum() == 0
    assert np.abs(counts[3:7] / 8000 - 0.25).max() < 0.02


@pytest.mark.parametrize("n_arms", [7, (2, 9)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_short_log_is_the_beginning_of_a_longer_one(n_arms, dtype):
    environment = Environment(4, n_arms, dtype=dtype)
    short, long = drawn(environment, 700, seed=5), drawn(environment, 1300, seed=5)
    assert short.n_blocks == 2
    assert long.n_blocks == 3
    np.testing.assert_array_equal(short.offsets, long.offsets[:701])
    np.testing.assert_array_equal(short.features, long.features[: len(short.features)])


@pytest.mark.parametrize(("d", "n_arms", "rounds"), [(50, 200, 104), (2, 2, 512), (2000, (5, 1000), 16)])
def test_blocks_depend_on_the_width_alone(d, n_arms, rounds):
    assert Environment(d, n_arms).contexts(1, seed=0).block_rounds == rounds


def test_blocks_do_not_repeat_each_other():
    contexts = drawn(Environment(4, 3), 1024, seed=0)
    assert contexts.n_blocks == 2
    assert abs(np.corrcoef(contexts.features[: 512 * 3].ravel(), contexts.features[512 * 3 :].ravel())[0, 1]) < 0.05


def test_streams_of_one_seed_are_unrelated():
    draws = np.array([generator(0, stream).standard_normal(4000) for stream in Stream])
    correlation = np.corrcoef(draws) - np.eye(len(draws))
    assert np.abs(correlation).max() < 0.08


def test_the_seed_of_the_environment_decides_theta_star_alone():
    one, two = Environment(4, (2, 5), seed=1), Environment(4, (2, 5), seed=2)
    assert np.abs(one.theta_star - two.theta_star).max() > 0.1
    np.testing.assert_array_equal(drawn(one, 50, seed=7).features, drawn(two, 50, seed=7).features)


def test_a_test_log_offers_what_no_learner_saw():
    environment = Environment(4, (2, 9))
    test, seen = environment.test_log(300, seed=0), drawn(environment, 300, seed=0)
    assert not np.array_equal(test.offsets, seen.offsets)
    assert np.intersect1d(test.features[:, 0], seen.features[:, 0]).size < 5


@pytest.mark.parametrize("threads", ["1", "2", "3"])
def test_a_test_log_picks_the_best_arms_whatever_the_threads(threads, monkeypatch):
    environment = Environment(3, (1, 6), seed=4)
    expected = environment.test_log(600, seed=9)
    monkeypatch.setenv("ONLOOKER_THREADS", threads)
    test = environment.test_log(600, seed=9)
    np.testing.assert_array_equal(test.features, expected.features)
    for t in range(600):
        assert test.chosen[t] == np.argmax(test.arms(t).astype(np.float64) @ environment.theta_star)


def test_reward_noise_has_the_standard_deviation_asked_for():
    noise = Environment(2, 2, noise=0.3).reward_noise(20_000, seed=1)
    assert noise.std() == pytest.approx(0.3, rel=0.02)
    assert abs(noise.mean()) < 0.01
    assert not Environment(2, 2, noise=0).reward_noise(5, seed=1).any()


def test_an_environment_is_a_value():
    environment = Environment(n_features=3, n_arms=[2, 4], noise=0.2, seed=8, dtype=np.float64)
    assert environment == Environment(3, (2, 4), noise=0.2, seed=8, dtype="float64")
    assert repr(environment) == "Environment(n_features=3, n_arms=(2, 4), noise=0.2, seed=8, dtype='float64')"
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(environment)).theta_star, environment.theta_star)
    with pytest.raises(dataclasses.FrozenInstanceError):
        environment.noise = 0.3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_features": 0}, "n_features is 0"),
        ({"n_features": 2.5}, r"n_features is 2\.5"),
        ({"n_arms": 0}, "n_arms is 0"),
        ({"n_arms": (0, 3)}, "low end, is 0"),
        ({"n_arms": (4, 3)}, "high end, is 3: pass a whole number of at least 4"),
        ({"n_arms": (1, 2, 3)}, "a pair"),
        ({"n_arms": "10"}, "a pair"),
        ({"noise": -0.1}, "noise is -0.1"),
        ({"noise": float("nan")}, "noise is nan"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": None}, "seed is None"),
        ({"dtype": "float16"}, "dtype is 'float16'"),
        ({"dtype": "single precision"}, "dtype is 'single precision'"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments, message):
    with pytest.raises(InputError, match=message):
        Environment(**({"n_features": 3, "n_arms": 4} | arguments))


@pytest.mark.parametrize(("arguments", "message"), [((0,), "n is 0"), ((5, -2), "seed is -2")])
def test_a_test_log_refuses_bad_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        Environment(2, 2).test_log(*arguments)
