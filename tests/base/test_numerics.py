"""The one rule for flat directions: constant features and combinations are found, the rest is inverted."""

import numpy as np
import pytest

from onlooker.base.errors import InputError
from onlooker.base.numerics import UNIDENTIFIED, Curvature, inverse
from onlooker.diagnosis.findings import find_preference
from onlooker.logs.log import BanditLog


def matrix(seed: int, d: int, *, constant: tuple[int, ...] = (), copies: tuple[tuple[int, int], ...] = ()):
    """A covariance with some features that do not vary, and some that repeat another."""
    rows = np.random.default_rng(seed).normal(size=(10 * d, d))
    for here, there in copies:
        rows[:, here] = 3.0 * rows[:, there]
    rows[:, list(constant)] = 0.0
    return rows.T @ rows / len(rows)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("unit", [1e-60, 1.0, 1e60])
def test_constant_and_tangled_features_are_found_whatever_the_units(seed, unit):
    units = unit * 10.0 ** np.random.default_rng(seed).uniform(-6, 6, size=8)
    spread = matrix(seed, 8, constant=(2, 5), copies=((7, 1),)) * np.outer(units, units)
    found = Curvature.of(spread, flat=UNIDENTIFIED)
    assert np.flatnonzero(found.constant).tolist() == [2, 5]
    assert np.flatnonzero(found.tangled).tolist() == [1, 7]
    assert found.rank == 5
    assert found.root.shape == found.half.shape == (8, 5)
    np.testing.assert_allclose(found.half.T @ found.root, np.eye(5), atol=1e-9)
    np.testing.assert_allclose(
        found.half @ found.half.T / np.outer(units, units),
        matrix(seed, 8, constant=(2, 5), copies=((7, 1),)),
        atol=1e-9,
    )


def test_inverse_is_numpys_where_nothing_is_flat():
    full = matrix(1, 6)
    np.testing.assert_allclose(inverse(full), np.linalg.inv(full), rtol=1e-9)
    assert Curvature.of(full).rank == 6
    assert not Curvature.of(full).tangled.any()


def test_thresholds_differ_only_in_how_flat_is_flat():
    nearly = np.array([[1.0, 1.0 - 1e-10], [1.0 - 1e-10, 1.0]])
    assert Curvature.of(nearly).rank == 2
    assert Curvature.of(nearly, flat=UNIDENTIFIED).rank == 1


def test_noise_is_a_floor_for_each_feature():
    found = Curvature.of(np.diag([1.0, 1e-20, 1e-20]), noise=np.array([1e-18, 1e-18, 1e-22]))
    assert found.constant.tolist() == [False, True, False]
    assert found.rank == 2


def test_infinite_curvature_is_refused():
    with pytest.raises(InputError, match="too large for double precision"):
        inverse(np.array([[np.inf]]))


@pytest.mark.parametrize("seed", range(3))
def test_a_score_test_counts_the_directions_that_it_sums(seed):
    """A copy with noise in its ninth digit is no direction of the statistic if it is none of its degrees of freedom."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(400, 4, 3))
    copied = np.concatenate([features, features[:, :, :1] * (1 + 3e-6 * random.normal(size=(400, 4, 1)))], axis=2)
    chosen = random.integers(4, size=400)
    alone, beside = (find_preference(BanditLog.from_dense(x, chosen), [0, 200, 400]) for x in (features, copied))
    assert (alone.rank, beside.rank) == (3, 3)
    np.testing.assert_allclose([beside.whole, beside.binned], [alone.whole, alone.binned], rtol=1e-3)
