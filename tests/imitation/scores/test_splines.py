"""Splines as columns: exact against SciPy, straight beyond their knots, penalised by their curvature."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.interpolate import BSpline

from onlooker import InputError
from onlooker.imitation.scores.splines import Spline, spline_of


@pytest.fixture
def spline():
    return Spline(np.array([0.0, 0.5, 2.0, 3.0]))


def test_columns_are_scipys_b_splines_inside_and_straight_lines_outside(spline):
    coefficients = np.random.default_rng(0).normal(size=spline.n_columns)
    t = np.concatenate([[0.0] * 3, spline.knots, [3.0] * 3])
    x = np.linspace(0, 3, 50)
    np.testing.assert_allclose(spline.columns(x) @ coefficients, BSpline(t, coefficients, 3)(x), atol=1e-12)
    np.testing.assert_allclose(spline.values(x, coefficients), BSpline(t, coefficients, 3)(x), atol=1e-12)
    far = np.array([-7.0, -5.0, -3.0, 5.0, 7.0, 9.0])
    values = spline.values(far, coefficients)
    np.testing.assert_allclose(spline.columns(far) @ coefficients, values)
    np.testing.assert_allclose(np.diff(values[:3], 2), 0, atol=1e-10)
    np.testing.assert_allclose(np.diff(values[3:], 2), 0, atol=1e-10)
    # Continuous with its slope at the last knot.
    step = 1e-6
    before, at, behind = spline.values(np.array([3 - step, 3.0, 3 + step]), coefficients)
    assert (behind - at) / step == pytest.approx((at - before) / step, rel=1e-4)


def test_a_ridge_on_wiggles_is_the_integrated_squared_curvature(spline):
    weights = np.random.default_rng(1).normal(size=spline.n_columns - 2)
    coefficients = spline.wiggles() @ weights
    t = np.concatenate([[0.0] * 3, spline.knots, [3.0] * 3])
    bend = BSpline(t, coefficients, 3).derivative(2)
    pieces = [
        quad(lambda x: float(bend(x)) ** 2, a, b)[0] for a, b in zip(spline.knots, spline.knots[1:], strict=False)
    ]
    # In units of the range, 3: curvature per unit squared, squared, times length.
    assert sum(pieces) * 3.0**3 == pytest.approx(float(weights @ weights))


def test_steps_span_increasing_splines(spline):
    rng = np.random.default_rng(2)
    x = np.linspace(-2, 5, 300)
    for _ in range(20):
        values = spline.values(x, spline.steps() @ rng.exponential(size=spline.n_columns - 1))
        assert (np.diff(values) > -1e-12).all()


def test_knots_are_quantiles_of_distinct_values():
    # Nine rows in ten are 0: the knots are where the other values are.
    values = np.concatenate([np.zeros(900), np.linspace(10, 20, 100)])
    knots = spline_of(values, 6).knots
    assert knots[0] == 0
    assert (knots[1:] >= 10).all()
    assert spline_of(np.array([0.0, 1.0] * 50), 8) is None
    assert len(spline_of(np.array([1.0, 2.0, 3.0] * 50), 8).knots) == 3
    assert spline_of(np.array([0.0, 1e308, -1e308]), 8) is None


@pytest.mark.parametrize("knots", [[1.0], [1.0, 1.0], [2.0, 1.0], [0.0, np.nan], [0.0, np.inf]])
def test_knots_that_do_not_increase_are_refused(knots):
    with pytest.raises(InputError):
        Spline(np.array(knots))


def test_values_far_out_are_taken_as_the_limit():
    x = np.concatenate([np.zeros(500), np.linspace(1, 3, 500), [40.0]])
    spline = spline_of(x, 6)
    high = spline.reach[1]
    assert spline.reach[0] == -np.inf
    assert 3 < high == spline.knots[-1] < 12
    np.testing.assert_array_equal(spline.columns(np.array([40.0, 1e6])), spline.columns(np.array([high, high])))
    np.testing.assert_array_equal(spline.slopes(np.array([40.0])), 0.0)
    # Of values without outliers all are within reach, and beyond them curves are lines.
    assert spline_of(np.random.default_rng(0).normal(size=5000), 6).reach == (-np.inf, np.inf)
    # A heap of its own is a part of the offers, however far from the others.
    heaps = np.concatenate([np.linspace(0, 1, 950), np.linspace(20, 21, 50)])
    assert spline_of(heaps, 6).reach[1] > 20.9
