"""The path: its checkpoints, the covariance of a direction, and when it settled."""

import numpy as np
import pytest

from onlooker.observers.tracking.path import Checkpoint, Path, direction_covariance, next_checkpoint, settled_round


def test_the_schedule_has_eight_checkpoints_a_decade():
    found = [0]
    while found[-1] < 100_000:
        found.append(next_checkpoint(found[-1], None))
    assert [one for one in found if one in {1, 10, 100, 1000, 10_000, 100_000}] == [1, 10, 100, 1000, 10_000, 100_000]
    for start in (100, 1000, 10_000):
        assert sum(start <= one < 10 * start for one in found) == 8


def test_a_schedule_of_ones_own_ends():
    assert next_checkpoint(0, (5, 20)) == 5
    assert next_checkpoint(5, (5, 20)) == 20
    assert next_checkpoint(20, (5, 20)) > 10**9


def test_the_covariance_of_a_direction_is_that_of_samples():
    rng = np.random.default_rng(0)
    theta, root = rng.normal(size=4) * 10, rng.normal(size=(4, 4)) / 5
    covariance = root @ root.T
    draws = rng.multivariate_normal(theta, covariance, size=400_000)
    sampled = np.cov(draws / np.linalg.norm(draws, axis=1, keepdims=True), rowvar=False)
    found = direction_covariance(theta, covariance)
    np.testing.assert_allclose(found, sampled, atol=0.02 * sampled.max())
    assert found @ theta == pytest.approx(np.zeros(4), abs=1e-12)
    np.testing.assert_array_equal(direction_covariance(np.zeros(4), covariance), np.eye(4))


def walk(shifts, seed, d=10, deviation=0.02):
    """Checkpoints of an estimate that is known up to noise, and moved by `shifts` from one to the next."""
    rng = np.random.default_rng(seed)
    theta, found = rng.normal(size=d), []
    for number, shift in enumerate(shifts):
        theta = theta + shift * rng.normal(size=d)
        seen = theta + deviation * rng.normal(size=d)
        found.append(Checkpoint.of(10 * (number + 1), seen, deviation**2 * np.eye(d)))
    return found


def test_settled_is_since_the_last_move_beyond_the_noise():
    # The bound is a test at 5% for each of the checkpoints after the move.
    found = [settled_round(walk([0.0, 0.5, 0.5, 0.0, 0.0, 0.0], seed)) for seed in range(200)]
    assert np.mean([one == 30 for one in found]) > 0.8
    assert all(one is None or one >= 30 for one in found)


def test_what_moves_at_the_end_has_not_settled():
    assert all(settled_round(walk([0.0, 0.0, 0.0, 0.5], seed)) is None for seed in range(20))
    assert settled_round(walk([0.0], 0)) is None


def test_the_path_stacks_checkpoints():
    steps = walk([0.0, 0.5], 1, d=3)
    path = Path.of(steps)
    assert path.rounds.tolist() == [10, 20]
    np.testing.assert_array_equal(path.theta[1], steps[1].theta)
    np.testing.assert_allclose(np.linalg.norm(path.direction, axis=1), 1.0)
    again = Checkpoint.from_dict(steps[1].to_dict())
    np.testing.assert_array_equal(again.theta, steps[1].theta)
    assert again.noise == steps[1].noise
