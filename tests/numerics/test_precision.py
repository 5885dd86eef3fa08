"""Features in single precision: the answer that their digits allow, and no digit lost on top."""

import numpy as np
import pytest

from numerics.reference import linucb_log, minimiser, softmax_log
from onlooker import BanditLog, SuffixImitation, TrackingObserver, burn_in_sweep, diagnose

LOG = softmax_log(31, 400, (3, 6), [1.0, -0.5, 0.0, 0.8])


def single(log):
    return BanditLog(log.features.astype(np.float32), log.offsets, log.chosen)


def rounded(log):
    """The same values as in single precision, kept in double."""
    return BanditLog(log.features.astype(np.float32).astype(np.float64), log.offsets, log.chosen)


@pytest.mark.parametrize("covariance", ["sandwich", "model"])
@pytest.mark.parametrize("l2", [0.0, 1e-4])
def test_sums_are_double_whatever_the_features_are(l2, covariance):
    """The same values in either precision differ by the order of additions alone."""
    observers = [
        SuffixImitation(burn_in="naive", l2=l2, covariance=covariance).fit(log) for log in (single(LOG), rounded(LOG))
    ]
    np.testing.assert_allclose(observers[0].theta_, observers[1].theta_, rtol=1e-9)
    np.testing.assert_allclose(observers[0].covariance_, observers[1].covariance_, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(observers[0].theta_, minimiser(rounded(LOG), l2).astype(float), rtol=1e-6)


def test_rounded_features_move_theta_by_their_rounding():
    """Single precision keeps a feature to 6e-8 of itself; theta moves by about as much."""
    double, floats = (SuffixImitation(burn_in="naive", l2=0.0).fit(log) for log in (LOG, single(LOG)))
    np.testing.assert_allclose(floats.theta_, double.theta_, atol=1e-6)
    assert (floats.theta_ != double.theta_).any()


def test_sweep_tracking_and_diagnosis_in_single_precision():
    log = linucb_log(32, 600, 6, [0.6, -0.7, 0.4])
    sweeps = [burn_in_sweep(one, [0.0, 0.8]).thetas for one in (single(log), rounded(log))]
    np.testing.assert_allclose(sweeps[0], sweeps[1], rtol=1e-5)
    tracked = [TrackingObserver().fit(one) for one in (single(log), rounded(log))]
    assert tracked[0].exploration_ == tracked[1].exploration_
    np.testing.assert_allclose(tracked[0].theta_, tracked[1].theta_, rtol=1e-5)
    assert len({diagnose(one).verdict for one in (single(log), rounded(log), log)}) == 1
