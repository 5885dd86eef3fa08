"""Small multiples: one legend, letters in print size, the same bytes."""

import struct
from xml.etree import ElementTree as ET

import pytest

from onlooker.base.errors import InputError
from onlooker.report.plots import Chart, Level, Mark, Series, sheet_png, sheet_svg

SVG = "{http://www.w3.org/2000/svg}"


def panel(title="Error", labels=("naive", "rule"), **parts):
    series = tuple(Series(label, [1, 10], [0.1 + i, 0.2 + i]) for i, label in enumerate(labels))
    return Chart(title=title, x_label="N", y_label="error", series=series, **parts)


def parse(svg):
    return ET.fromstring(svg)  # noqa: S314 - it was drawn a moment ago


def texts(svg):
    return [element.text for element in parse(svg).iter(f"{SVG}text")]


def test_panels_keep_their_titles_and_share_a_legend():
    first = panel("First", levels=(Level("learner", 0.3),))
    second = panel("Second", levels=(Level("learner", 0.7),))
    found = texts(sheet_svg([first, second]))
    assert {"First", "Second"} <= set(found)
    assert [found.count(label) for label in ("naive", "rule", "learner")] == [1, 1, 1]


def test_the_sheet_is_as_wide_as_a_page_and_its_letters_have_the_size_of_print():
    root = parse(sheet_svg([panel(str(i)) for i in range(4)]))
    assert float(root.get("width")) == 7 * 72
    sizes = {float(element.get("font-size").removesuffix("px")) for element in root.iter(f"{SVG}text")}
    assert min(sizes) >= 6


def test_panels_beyond_the_columns_go_to_the_next_row():
    one, two = (float(parse(sheet_svg([panel(str(i)) for i in range(n)], columns=2)).get("height")) for n in (2, 3))
    assert two > 1.7 * one


def test_the_same_name_must_mean_the_same_look():
    with pytest.raises(InputError, match="'rule' in another place"):
        sheet_svg([panel(), panel(labels=("rule", "naive"))])
    with pytest.raises(InputError, match="'rule' in another place"):
        sheet_svg([panel(), panel(labels=("naive",), levels=(Level("rule", 0.3),))])
    with pytest.raises(InputError, match="no charts"):
        sheet_svg([])


def test_marks_have_their_names():
    assert "here" in texts(sheet_svg([panel(marks=(Mark("here", 5),)), panel()]))


def test_png_has_300_dots_an_inch_and_the_same_bytes_every_time(tmp_path):
    for name in ("one", "two"):
        sheet_png([panel(), panel()], tmp_path / f"{name}.png")
    one, two = ((tmp_path / f"{name}.png").read_bytes() for name in ("one", "two"))
    assert struct.unpack(">II", one[16:24])[0] == 2100
    assert one == two


@pytest.mark.parametrize("ends", [(0.27, 0.3), (0.281, 0.9), (0.007, 0.03), (3, 4000), (1e-9, 1e3), (0.5, 0.5001)])
def test_logarithmic_axes_have_a_few_ticks_however_narrow(ends):
    chart = Chart(title="t", x_label="x", y_label="y", series=(Series("a", [0, 1], ends),), log_y=True)
    root = parse(sheet_svg(chart))
    ticks = [text for text in texts(ET.tostring(root, encoding="unicode")) if text not in {"t", "x", "y", "a"}]
    on_x = {"0", "0.2", "0.4", "0.6", "0.8", "1"}
    assert 2 <= len([tick for tick in ticks if tick not in on_x]) <= 14
