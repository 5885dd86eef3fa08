"""The U-curve as two charts."""

import numpy as np
import pytest

from onlooker.base.errors import InputError
from onlooker.report.plots import burn_in_curves

ALPHAS = np.array([0.0, 0.5, 0.9, 1.0])
ERRORS = np.array([0.076, np.nan, 0.060, 0.9])
REGRETS = np.array([0.0021, 0.0020, 0.0013, 0.2])


def curves(**changes):
    levels = {"learner_error": 0.052, "learner_regret": 0.001}
    return burn_in_curves(ALPHAS, changes.pop("errors", ERRORS), changes.pop("regrets", REGRETS), **levels | changes)


def test_each_chart_holds_its_metric_the_learner_and_the_marks():
    error, regret = curves(marks={"naive": 0.0, "auto": 0.87}, regret_band=(REGRETS / 2, REGRETS * 2))
    for chart, values, learner in ((error, ERRORS, 0.052), (regret, REGRETS, 0.001)):
        np.testing.assert_array_equal(chart.series[0].x, ALPHAS)
        np.testing.assert_array_equal(chart.series[0].y, values)
        assert [(level.label, level.y) for level in chart.levels] == [("learner", learner)]
        assert [(mark.label, mark.x) for mark in chart.marks] == [("naive", 0.0), ("auto", 0.87)]
        assert chart.log_y
    assert error.series[0].low is None
    np.testing.assert_array_equal(regret.series[0].high, REGRETS * 2)


def test_observers_without_a_burn_in_are_levels_of_their_own_metric():
    error, regret = curves(others={"tracking": (0.055, 0.0011)})
    assert [(level.label, level.y) for level in error.levels] == [("learner", 0.052), ("tracking", 0.055)]
    assert [(level.label, level.y) for level in regret.levels] == [("learner", 0.001), ("tracking", 0.0011)]
    assert not curves(others={"tracking": (0.055, 0.0)})[1].log_y


def test_a_metric_of_exactly_zero_is_drawn_on_a_linear_axis():
    error, regret = curves(regrets=[0.1, 0.0, 0.1, 0.2])
    assert error.log_y
    assert not regret.log_y


def test_metrics_of_another_length_are_refused():
    with pytest.raises(InputError, match="y has 3 values, but x has 4"):
        curves(errors=ERRORS[:3])
