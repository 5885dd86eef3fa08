"""Charts as values: checked on construction, with the table behind them."""

import numpy as np
import pytest

from onlooker.base.errors import InputError
from onlooker.report.plots import Chart, Level, Mark, Series

NAN = float("nan")


def chart(*series, **parts):
    return Chart(**{"title": "t", "x_label": "x", "y_label": "y", "series": series} | parts)


def test_rows_hold_every_number_of_the_chart():
    first = Series("a", [3.0, 1.0, 2.0], [30.0, 10.0, NAN], low=[29.0, 9.0, NAN], high=[31.0, 11.0, NAN])
    second = Series("b", [2.0, 4.0], [200.0, 400.0], style="points")
    level = Level("c", 7.0, low=6.0, high=8.0)
    names, rows = chart(first, second, levels=(level,), marks=(Mark("m", 2.0), Mark("n", 2.0), Mark("o", 2.5))).rows()
    assert names == ("x", "a", "a low", "a high", "b", "c", "c low", "c high", "mark")
    assert rows == (
        (1.0, 10.0, 9.0, 11.0, None, 7.0, 6.0, 8.0, None),
        (2.0, None, None, None, 200.0, 7.0, 6.0, 8.0, "m, n"),
        (2.5, None, None, None, None, 7.0, 6.0, 8.0, "o"),
        (3.0, 30.0, 29.0, 31.0, None, 7.0, 6.0, 8.0, None),
        (4.0, None, None, None, 400.0, 7.0, 6.0, 8.0, None),
    )


def test_points_of_the_same_x_keep_rows_of_their_own():
    assert chart(Series("a", [1, 1, 1], [5, 6, 5])).rows()[1] == ((1.0, 5.0), (1.0, 6.0), (1.0, 5.0))


def test_a_series_keeps_its_own_read_only_numbers():
    y = np.array([1.0, 2.0])
    series = Series("a", [0, 1], y)
    y[0] = 9.0
    assert series.y[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        series.y[0] = 3.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Series("a", [0, 1], [1]), "series 'a': y has 1 values, but x has 2"),
        (lambda: Series("a", [], []), "series 'a' has no points"),
        (lambda: Series("a", [0, NAN], [1, 2]), "series 'a': x is nan at position 1"),
        (lambda: Series("a", [0, 1], [1, np.inf]), "series 'a': y is inf at position 1: .* NaN for a gap"),
        (lambda: Series("a", [[0, 1]], [1, 2]), "x has shape"),
        (lambda: Series("a", ["one"], [1]), "x is not made of numbers"),
        (lambda: Series("a", [0], [1], low=[0]), "one end of a band"),
        (lambda: Series("a", [0, 1], [1, 1], low=[0, 3], high=[2, 2]), "low lies above high at position 1"),
        (lambda: Series("a", [0, 1], [1, 1], low=[0], high=[2]), "low has 1 values, but x has 2"),
        (lambda: Series("a", [0, 1], [1, 1], low=[0, 0], high=[2]), "low has 2 values, but high has 1"),
        (lambda: Series("a", [0], [1], style="bars"), "style 'bars' is not known"),
        (lambda: Level("l", NAN), "level 'l': y is nan"),
        (lambda: Level("l", 1.0, high=2.0), "level 'l' has one end of a band"),
        (lambda: Level("l", 1.0, low=NAN, high=2.0), "level 'l': low is nan"),
        (lambda: Mark("m", np.inf), "mark 'm': x is inf"),
        (chart, "has no series"),
        (lambda: chart(Series("a", [0], [1]), levels=(Level("a", 1.0),)), "has 'a' twice"),
        (lambda: chart(Series("a", [0], [1]), log_x=True), "log_x needs every x to be positive"),
        (lambda: chart(Series("a", [1], [1]), marks=(Mark("m", 0.0),), log_x=True), "log_x"),
        (lambda: chart(Series("a", [1], [0]), log_y=True), "log_y needs every y"),
        (lambda: chart(Series("a", [1], [1], low=[-1], high=[2]), log_y=True), "log_y"),
        (lambda: chart(Series("a", [1], [1]), levels=(Level("l", 0.0),), log_y=True), "log_y"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
