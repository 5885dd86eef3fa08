"""Charts of intervals: what they hold, and that what is drawn is that."""

import math
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from onlooker.base.errors import InputError
from onlooker.report.plots import Chart, IntervalChart, Series, to_png, to_svg

NAN = math.nan


def chart(n=3, **changes):
    parts = {
        "title": "Weights",
        "x_label": "weight",
        "y_label": "feature",
        "names": tuple(f"name {i}" for i in range(n)),
        "estimates": np.linspace(-1, 1, n),
        "low": np.linspace(-1, 1, n) - 0.25,
        "high": np.linspace(-1, 1, n) + 0.25,
    }
    return IntervalChart(**parts | changes)


def parsed(svg):
    return ET.fromstring(svg)  # noqa: S314 - ours


def texts(svg):
    return [element.text for element in parsed(svg).iter() if element.tag.endswith("text")]


def test_rows_are_from_top_to_bottom_and_say_where_there_is_no_interval():
    found = chart(low=[-2, NAN, 0.5], high=[-1, NAN, 1.5])
    assert found.rows() == (
        ("feature", "estimate", "low", "high"),
        (("name 0", -1.0, -2.0, -1.0), ("name 1", 0.0, None, None), ("name 2", 1.0, 0.5, 1.5)),
    )
    assert found.known.tolist() == [True, False, True]
    assert found.clear.tolist() == [True, False, True]


def test_an_interval_that_ends_at_zero_holds_it():
    assert chart(low=[-1, 0, -1], high=[0, 1, 1]).clear.tolist() == [False, False, False]


def test_names_are_drawn_in_order_and_long_ones_keep_both_ends():
    long = "a_feature_with_a_name_that_goes_on_for_ever_42"
    drawn = texts(to_svg(chart(names=("first", long, "<b>&"))))
    assert [text for text in drawn if text in {"first", "a_feature_with_a_…_ever_42", "<b>&"}] == [
        "first",
        "a_feature_with_a_…_ever_42",
        "<b>&",
    ]
    assert long not in drawn


def test_the_legend_names_the_looks_that_occur():
    looks = {"clearly non-zero", "could be zero", "no interval"}
    assert looks & set(texts(to_svg(chart()))) == {"clearly non-zero", "could be zero"}
    assert looks & set(texts(to_svg(chart(low=[NAN] * 3, high=[NAN] * 3)))) == {"no interval"}


def test_dots_and_whiskers_stand_at_their_values():
    """Distances on paper are in proportion to those of the values."""
    from matplotlib.figure import Figure

    from onlooker.report.plots.axes import draw_intervals

    found = chart(low=[-2, NAN, 0.5], high=[-1, NAN, 1.5])
    axes = draw_intervals(Figure().subfigures(1, 1), found, title=True)
    dots = {(x, y) for line in axes.lines[1:] for x, y in zip(*line.get_data(), strict=True)}
    assert dots == {(-1.0, 0), (0.0, 1), (1.0, 2)}
    whiskers = [segment.tolist() for segment in axes.collections[0].get_segments()]
    assert whiskers == [[[-2, 0], [-1, 0]], [[0.5, 2], [1.5, 2]]]
    top, bottom = axes.transData.transform([(0, 0), (0, 2)])[:, 1]
    assert top > bottom


def test_more_names_make_a_taller_drawing_of_the_same_width():
    few, many = (parsed(to_svg(chart(n))).get("viewBox").split() for n in (2, 30))
    assert few[2] == many[2]
    assert float(many[3]) > float(few[3]) + 400


def test_the_same_chart_gives_the_same_bytes_alone_and_beside_another(tmp_path):
    other = Chart(title="t", x_label="x", y_label="y", series=(Series("s", [0, 1], [0, 1]),))
    assert to_svg(chart()) == to_svg(chart())
    assert {"name 0", "s"} <= set(texts(to_svg([chart(), other])))
    to_png(chart(), tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": ()}, "no names"),
        ({"estimates": [0.0, 1.0]}, "estimates has 2 values for 3 names"),
        ({"estimates": [0.0, NAN, 1.0]}, "is nan at position 1"),
        ({"low": [0.0], "high": [1.0]}, "low has 1 values for 3 names"),
        ({"low": [3, 3, 3]}, "low lies above high"),
        ({"low": None}, "one end of a band"),
        ({"low": None, "high": None}, "has no intervals"),
    ],
)
def test_what_does_not_fit_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        chart(**changes)
