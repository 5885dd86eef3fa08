"""Charts of a tracked learner."""

import numpy as np
import pytest

from onlooker import UCB, BanditLog, Environment, LinUCB, TrackingObserver, UniformRandom, simulate
from onlooker.report.plots import to_svg
from onlooker.report.plots.results import tracking_charts


@pytest.fixture(scope="module")
def log():
    found = simulate(Environment(8, 10, seed=1), LinUCB(), 1500, seed=1).log
    return BanditLog(found.features, found.offsets, found.chosen, feature_names=list("abcdefgh"))


def test_the_largest_coordinates_are_drawn_from_where_they_are_known(log):
    observer = TrackingObserver(exploration=UCB(1.0)).fit(log)
    (chart,) = tracking_charts(observer)
    path = observer.path_
    order = np.argsort(-np.abs(path.direction[-1]))[:6]
    assert [series.label for series in chart.series] == ["abcdefgh"[j] for j in order]
    n = len(chart.series[0].x)
    assert 5 < n <= len(path.rounds)
    for j, series in zip(order, chart.series, strict=True):
        np.testing.assert_array_equal(series.x, path.rounds[-n:])
        np.testing.assert_array_equal(series.y, path.direction[-n:, j])
        reach = 1.96 * path.standard_error[-n:, j]
        np.testing.assert_allclose(series.high, np.clip(series.y + reach, -1, 1))
        np.testing.assert_allclose(series.low, np.clip(series.y - reach, -1, 1))
        assert (reach < 1).all()
    assert chart.log_x
    assert "estimate stable" in to_svg(chart)
    assert [mark.x for mark in chart.marks] == [observer.settled_round_]


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
def test_no_direction_no_chart():
    assert tracking_charts(TrackingObserver().fit(simulate(Environment(3, 4), UniformRandom(), 300).log)) == ()


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
@pytest.mark.parametrize("n_rounds", [1, 2, 5])
def test_a_few_rounds_can_be_drawn(log, n_rounds):
    charts = tracking_charts(TrackingObserver(exploration=UCB(1.0)).fit(log[:n_rounds]))
    assert all(to_svg(chart) for chart in charts)
    assert len(charts) == 1
