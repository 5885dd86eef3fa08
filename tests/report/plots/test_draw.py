"""Drawings: the same bytes, well formed, nothing to run and nothing to fetch."""

import re
import struct
import subprocess
import sys
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest

from onlooker.base.errors import InputError
from onlooker.report.plots import Chart, Level, Mark, Series, to_png, to_svg
from onlooker.report.plots.axes import spread
from onlooker.report.plots.style import DARK, LIGHT

SVG = "{http://www.w3.org/2000/svg}"
NAN = float("nan")


def chart(*series, **parts):
    shown = series or (
        Series("observer", [0.0, 0.5, 1.0], [0.2, 0.1, 0.4], low=[0.1, 0.05, 0.3], high=[0.3, 0.2, 0.5]),
    )
    texts = {"title": "Error", "x_label": "alpha", "y_label": "error"}
    return Chart(**texts | {"series": shown} | parts)


FULL = chart(levels=(Level("learner", 0.15, low=0.1, high=0.2),), marks=(Mark("naive", 0.0), Mark("rule", 0.9)))


def parse(svg):
    return ET.fromstring(svg)  # noqa: S314 - it was drawn a moment ago


def texts(svg):
    return [element.text for element in parse(svg).iter(f"{SVG}text")]


def paths(svg, stroke):
    return [element.get("d") for element in parse(svg).iter(f"{SVG}path") if element.get("stroke") == stroke]


def markers(svg, stroke):
    return [element for element in parse(svg).iter(f"{SVG}use") if element.get("stroke") == stroke]


def test_the_same_chart_gives_the_same_bytes_whatever_the_users_settings():
    first = to_svg(FULL)
    to_svg(chart(log_y=True))
    with mpl.rc_context({"font.size": 30, "svg.hashsalt": "x", "axes.facecolor": "red", "lines.linewidth": 9}):
        assert to_svg(FULL) == first
        assert mpl.rcParams["font.size"] == 30
    assert to_svg(FULL) == first


def test_another_process_draws_the_same_bytes():
    program = (
        "from onlooker.report.plots import *;"
        "print(to_svg(Chart(title='t', x_label='x', y_label='y', series=(Series('a', [0, 1], [1, 2]),))), end='')"
    )
    here = to_svg(chart(Series("a", [0, 1], [1, 2]), title="t", x_label="x", y_label="y"))
    there = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert there.stdout == here


def test_a_drawing_needs_nothing_from_outside_and_runs_nothing():
    svg = to_svg((FULL, FULL))
    root = parse(svg)
    assert {element.tag for element in root.iter()} <= {
        SVG + tag for tag in ("svg", "g", "defs", "clipPath", "path", "rect", "use", "text")
    }
    assert svg.replace('xmlns="http://www.w3.org/2000/svg"', "").count("http") == 0
    names = {name for element in root.iter() for name in element.attrib}
    assert not [name for name in names if name.startswith("on") or name == "style"]
    assert root.get("role") == "img"
    assert root.get("aria-label", "").startswith("Error: error against alpha")


def test_ink_is_the_colour_of_the_page_and_series_have_a_colour_for_the_dark():
    svg = to_svg(FULL)
    assert "#000000" not in svg
    assert "#ffffff" not in svg
    assert 'stroke="currentColor"' in svg
    assert set(re.findall(r"#[0-9a-f]{6}\b(?=\")", svg)) == {LIGHT[0]}
    assert len(set(DARK)) == len(DARK) == len(LIGHT)


def test_ids_are_prefixed_and_every_reference_finds_its_target():
    root = parse(to_svg(FULL, prefix="fig-7-"))
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    used = [name for element in root.iter() for name in re.findall(r"#([^)]+)\)", element.get("clip-path", ""))]
    used += [element.get("href")[1:] for element in root.iter() if element.get("href")]
    assert len(set(ids)) == len(ids)
    assert all(name.startswith("fig-7-") for name in ids)
    assert set(used) == set(ids)


def test_titles_can_be_left_to_the_page():
    assert "Error" in texts(to_svg(FULL))
    assert "Error" not in texts(to_svg(FULL, titles=False))


def test_labels_are_shown_as_they_are_and_cannot_break_out():
    labels = ("<script>alert(1)</script>", '"> onload="x', "]]>", "$x_1$ & $", "_hidden")
    svg = to_svg(chart(*(Series(label, [0, 1], [i, 2]) for i, label in enumerate(labels)), title="</svg>&lt;"))
    assert set(labels) | {"</svg>&lt;"} <= set(texts(svg))
    assert "<script" not in svg


def test_what_xml_cannot_hold_is_replaced():
    svg = to_svg(chart(title="a\x00b\x1b\ud800\u202ec", x_label="中文"))
    assert "a\ufffdb\ufffd\ufffd\ufffdc" in texts(svg)
    assert "中文" in texts(svg)
    svg.encode()


def test_long_labels_are_cut_and_do_not_collapse_the_axes():
    long = "W" * 500
    svg = to_svg(
        chart(
            Series(long, [0, 1], [0, 1]),
            title=long,
            x_label=long,
            y_label=long,
            levels=(Level(long + "!", 0.5),),
            marks=tuple(Mark(long, x) for x in (0.1, 0.2, 0.3)),
        )
    )
    assert max(map(len, texts(svg))) < 50


def test_a_gap_breaks_the_line_and_a_lonely_point_keeps_its_marker():
    y = np.random.default_rng(0).normal(size=60)
    whole = to_svg(chart(Series("a", np.arange(60.0), y)))
    y[[20, 22]] = NAN
    broken = to_svg(chart(Series("a", np.arange(60.0), y)))
    assert [max(paths(svg, LIGHT[0]), key=len).count("M") for svg in (whole, broken)] == [1, 3]
    assert [len(markers(svg, LIGHT[0])) for svg in (whole, broken)] == [0, 1]


@pytest.mark.parametrize("log", [False, True])
def test_a_series_of_gaps_alone_is_drawn_without_a_warning(log):
    svg = to_svg(chart(Series("nothing", [1, 2], [NAN, NAN]), log_y=log, log_x=log))
    assert "nothing" in texts(svg)


def test_logarithmic_axes_have_plain_ticks():
    svg = to_svg(chart(Series("a", [1, 1000], [0.001, 10]), log_x=True, log_y=True))
    assert {"1", "10", "100", "1000", "0.001", "0.1"} <= set(texts(svg))


def test_points_are_not_joined():
    points = to_svg(chart(Series("a", [0, 1, 2], [1, 3, 2], style="points")))
    joined = to_svg(chart(Series("a", [0, 1, 2], [1, 3, 2])))
    assert len(paths(joined, LIGHT[0])) == len(paths(points, LIGHT[0])) + 2  # the line, and its picture in the legend


def test_a_longer_legend_makes_the_drawing_taller():
    few, many = (
        to_svg(chart(*(Series(f"a series with a long name, {i}", [0, 1], [i, i]) for i in range(n)))) for n in (1, 6)
    )
    assert float(parse(many).get("height")) > float(parse(few).get("height")) + 60


def test_spread_names_keep_their_order_their_distance_and_within_the_axes():
    rng = np.random.default_rng(0)
    for _ in range(200):
        widths = rng.uniform(10, 40, size=rng.integers(1, 6))
        placed = spread(np.sort(rng.uniform(0, 300, size=len(widths))), widths, 300.0)
        left, right = placed - widths / 2, placed + widths / 2
        assert (left[1:] - right[:-1] >= 8 - 1e-9).all()
        assert left[0] >= -1e-9
        assert right[-1] <= 300 + 1e-9


def test_names_with_room_stay_where_they_are():
    centres = np.array([30.0, 100.0, 250.0])
    np.testing.assert_allclose(spread(centres, np.full(3, 20.0), 300.0), centres)


def test_png_of_two_charts_is_twice_as_wide_and_the_same_every_time(tmp_path):
    for name, charts in (("one", FULL), ("two", [FULL, FULL]), ("again", [FULL, FULL])):
        to_png(charts, tmp_path / f"{name}.png")
    one, two, again = ((tmp_path / f"{name}.png").read_bytes() for name in ("one", "two", "again"))
    assert one.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", one[16:24])
    assert struct.unpack(">II", two[16:24]) == (2 * width, height)
    assert two == again
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.png", "one.png", "two.png"]


def test_nothing_to_draw_is_refused(tmp_path):
    with pytest.raises(InputError, match="no charts to draw"):
        to_svg([])
    with pytest.raises(InputError, match="cannot be written"):
        to_png(FULL, tmp_path / "absent" / "chart.png")


def test_importing_the_packages_loads_no_renderer():
    program = "import sys, onlooker.report.plots; print({'matplotlib', 'jinja2', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
