"""Charts of dots, and of a comparison."""

import math
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from onlooker.base.errors import InputError
from onlooker.report.plots import DotChart, Level, comparison_charts, to_png, to_svg


def chart(**changes):
    parts = {
        "title": "Error",
        "x_label": "error",
        "y_label": "observer",
        "names": ("a", "b", "c"),
        "values": [0.1, math.nan, 0.3],
    }
    return DotChart(**parts | changes)


def row(name, **values):
    empty = {"direction_error": None, "predictive_regret": None, "agreement": 0.9, "seconds": 1.0}
    return {"name": name} | empty | values


def texts(svg):
    return [element.text for element in ET.fromstring(svg).iter() if element.tag.endswith("text")]  # noqa: S314 - ours


def test_every_name_and_value_is_written():
    svg = to_svg(chart(level=Level("learner", 0.05), log_x=True))
    shown = texts(svg)
    assert {"a", "b", "c", "0.1", "0.3", "none", "learner (0.05)", "Error", "error"} <= set(shown)
    assert svg == to_svg(chart(level=Level("learner", 0.05), log_x=True))


def test_names_from_other_peoples_data_are_harmless():
    svg = to_svg(chart(names=("<script>", "$x$", "a" * 200)))
    assert "<script" not in svg
    assert "$x$" in texts(svg)
    assert max(len(text) for text in texts(svg) if text) <= 40


def test_rows():
    found = chart(low=[0.0, math.nan, 0.2], high=[0.2, math.nan, 0.4], level=Level("learner", 0.05))
    assert found.rows() == (
        ("observer", "error", "low", "high", "learner"),
        (("a", 0.1, 0.0, 0.2, 0.05), ("b", None, None, None, 0.05), ("c", 0.3, 0.2, 0.4, 0.05)),
    )


def test_png(tmp_path):
    to_png([chart(), chart(low=[0.05, math.nan, 0.2], high=[0.2, math.nan, 0.4])], tmp_path / "dots.png")
    assert (tmp_path / "dots.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": (), "values": []}, "has no names"),
        ({"values": [1.0]}, "values has 1 values for 3 names"),
        ({"values": [1.0, math.inf, 2.0]}, "values is inf at position 1"),
        ({"low": [0.0, 0.0, 0.0]}, "one end of a band"),
        ({"values": [0.0, 1.0, 2.0], "log_x": True}, "log_x needs every value"),
        ({"level": Level("x", -1.0), "log_x": True}, "log_x needs every value"),
    ],
)
def test_refusals(changes, message):
    with pytest.raises(InputError, match=message):
        chart(**changes)


def test_a_comparison_with_the_truth():
    rows = [
        row("learner", direction_error=0.02, predictive_regret=1e-4, seconds=None),
        row("rule", direction_error=0.03, predictive_regret=0.0),
        row("lost", predictive_regret=0.5),
    ]
    error, regret, time = comparison_charts(rows, reference="learner")
    assert (error.title, regret.title, time.title) == ("Direction error", "Predictive regret", "Time")
    assert error.names == regret.names == time.names == ("rule", "lost")
    np.testing.assert_array_equal(error.values, [0.03, math.nan])
    assert (error.level.label, error.level.y, error.log_x) == ("learner", 0.02, True)
    # A regret of exactly zero has no logarithm.
    assert not regret.log_x
    assert time.level is None


def test_a_comparison_without_the_truth():
    assert [chart.title for chart in comparison_charts([row("a"), row("b")])] == ["Agreement", "Time"]


@pytest.mark.parametrize("log_x", [False, True])
def test_values_at_one_place_beside_a_level_at_the_same(log_x):
    chart = DotChart(
        title="t", x_label="x", y_label="y", names=("a", "b"), values=[0.1, 0.1], level=Level("l", 0.1), log_x=log_x
    )
    assert ">0.1<" in to_svg(chart)


def test_names_that_are_too_long_are_broken_and_ticks_stay_apart(tmp_path):
    rows = [
        {"name": name, "direction_error": None, "predictive_regret": value, "agreement": 0.5, "seconds": None}
        for name, value in (("suffix imitation, oracle in hindsight", 4e-5), ("ranked blocks (T-REX-style)", 0.4))
    ]
    (regret, _) = comparison_charts(rows)
    drawn = texts(to_svg(regret))
    assert {"suffix imitation, oracle in", "hindsight", "ranked blocks (T-REX-style)"} <= set(drawn)
    assert {"1e-4", "0.01"} <= set(drawn)
    assert not {"0.001", "0.1"} & set(drawn)
    to_png(regret, tmp_path / "chart.png")
