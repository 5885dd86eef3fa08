"""Best guesses of a learner that is followed."""

import numpy as np

from onlooker.observers.dynamic.guesses import SHARPER, _powers


def test_powers_are_those_of_every_sharpness():
    below = -np.random.default_rng(0).exponential(3.0, size=(4, 5))
    expected = np.exp(np.array(SHARPER)[:, None, None] * below)
    np.testing.assert_allclose(_powers(np.exp(below / 2)), expected, rtol=1e-12, atol=1e-300)
