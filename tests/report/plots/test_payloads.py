"""Attacks as names: drawn as they are, in SVG and in PNG, without markup and without a warning."""

from xml.etree import ElementTree as ET

import numpy as np
import pytest

from onlooker.base.text import ends_of, showable, start_of, two_lines
from onlooker.report.plots import Chart, DotChart, IntervalChart, Level, Mark, Series, to_png, to_svg
from onlooker.report.plots.axes import NAME
from payload_pages import chunks
from payloads import PAYLOADS, TEMPLATES

SVG = "{http://www.w3.org/2000/svg}"
DRAWN = {SVG + tag for tag in ("svg", "g", "defs", "clipPath", "path", "rect", "use", "text")}


def parsed(svg):
    return ET.fromstring(svg)  # noqa: S314 - it was drawn a moment ago


def texts(svg):
    """Texts of a drawing; SVG counts spaces at the ends for nothing."""
    return {(element.text or "").strip() for element in parsed(svg).iter(f"{SVG}text")}


def lines(names):
    series = [Series(name, [0, 1], [number, 1]) for number, name in enumerate(names)]
    marks = [Mark(name, number) for number, name in enumerate(names)]
    first, second, third, *_ = names
    level = Level("level of " + first, 0.5)
    return Chart(title=first, x_label=second, y_label=third, series=series, levels=(level,), marks=marks)


def test_names_one_under_the_other():
    some, others = PAYLOADS[::2], PAYLOADS[1::2]
    values = np.arange(1.0, len(some) + 1)
    dots = DotChart(title="t", x_label="x", y_label="y", names=some, values=values)
    values = values[: len(others)]
    intervals = {"estimates": values, "low": values - 1, "high": values + 1}
    whiskers = IntervalChart(title="t", x_label="x", y_label="y", names=others, **intervals)
    broken = {line.strip() for name in some for line in two_lines(name, NAME).split("\n")}
    for chart, shown in ((dots, broken), (whiskers, {ends_of(name, 26).strip() for name in others})):
        drawn = to_svg(chart)
        assert shown <= texts(drawn)
        assert {element.tag for element in parsed(drawn).iter()} <= DRAWN


@pytest.mark.parametrize("names", chunks(PAYLOADS, 24), ids=lambda part: str(len(part)))
def test_titles_labels_legends_and_marks(names):
    drawn = to_svg(lines(names))
    found = texts(drawn)
    assert {ends_of(name, 42).strip() for name in names} <= found
    assert start_of(names[0], 38).strip() in found
    assert start_of(names[1], 44).strip() in found
    assert {element.tag for element in parsed(drawn).iter()} <= DRAWN


def test_what_looks_like_mathematics_is_not_read_as_such(tmp_path):
    chart = lines(TEMPLATES)
    assert "$\\frac{1}{2}$" in texts(to_svg(chart))
    to_png(chart, tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("nothing", ["", " ", "\u200b", "\u2060\ufeff"])
def test_names_without_width(nothing):
    series = (Series("a", [0, 1], [0, 1]),)
    marks = [Mark(text, 0.5) for text in (nothing, "a long name of a mark " * 3, nothing, "another long name " * 3)]
    assert to_svg(Chart(title=nothing, x_label=nothing, y_label=nothing, series=series, marks=marks))


def test_everything_shown_can_be_written_as_utf_8():
    for text in PAYLOADS:
        assert showable(text).encode()
