"""The page: self-contained, escaped, readable without a script."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from onlooker.report.page import Column, Page, Section, Table, render
from onlooker.report.plots import Chart, Mark, Series, burn_in_curves
from onlooker.report.plots.style import DARK

HOSTILE = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "</style></title></svg><script>alert(1)</script>",
    "]]><!--",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt; & $x$",
]
VOID = {"meta", "path", "rect", "use"}


class Reader(HTMLParser):
    """Collects tags, attributes and the text in each kind of tag; fails on tags that do not nest."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.text, self.open = [], [], {}, []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.text.setdefault(self.open[-1], []).append(data)


@pytest.fixture(scope="module")
def demo():
    """A learner's U-curves and the comparison of its observers."""
    charts = burn_in_curves(
        [0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 1.0],
        [0.0761, 0.0760, 0.0722, 0.0621, 0.0604, 0.1210, 0.9400],
        [0.00210, 0.00210, 0.00193, 0.00140, 0.00133, 0.00570, 0.15000],
        learner_error=0.0521,
        learner_regret=0.00098,
        marks={"naive": 0.0, "rule": 0.9, "auto": 0.83, "oracle": 0.88},
    )
    right = {"align": "right"}
    table = Table(
        columns=(
            Column("observer"),
            Column("burn-in", **right),
            Column("direction error", ".4f", **right),
            Column("predictive regret", ".5f", **right),
            Column("agreement", ".1%", **right),
            Column("seconds", ".2f", **right),
        ),
        rows=(
            ("learner (saw the rewards)", None, 0.0521, 0.00098, 0.912, None),
            ("naive", 0, 0.0761, 0.00210, 0.871, 0.42),
            ("rule", 3981, 0.0604, 0.00133, 0.889, 0.31),
        ),
        caption="Lower errors are better.",
        highlight=2,
    )
    return Page(
        title="What the bandit learned",
        lead="Its rewards were hidden.\n\nIts actions were not.",
        sections=(
            Section(title="How much to leave out", text="Early picks explore.", charts=charts),
            Section(title="Comparison", table=table),
        ),
        footer="Written by a test.",
    )


def test_the_page_has_its_text_its_charts_and_a_table_for_each_and_for_itself(demo):
    page = Reader(render(demo))
    assert page.text["h1"] == ["What the bandit learned"]
    assert [text for text in page.text["p"] if text.strip()] == [
        "Its rewards were hidden.",
        "Its actions were not.",
        "Early picks explore.",
        "Lower errors are better.",
        "Written by a test.",
    ]
    assert page.text["figcaption"] == ["Direction error", "Predictive regret"]
    assert page.tags.count("svg") == page.tags.count("details") == 2
    assert page.tags.count("table") == 3
    assert {"rule", "3,981", "0.0604", "0.00133", "88.9%", "0.31"} <= {*page.text["td"], *page.text["th"]}
    assert ("lang", "en") in page.attributes
    assert ("class", "highlight") in page.attributes


def test_the_numbers_behind_a_chart_are_those_that_it_draws(demo):
    html = render(demo)
    behind = re.findall(r"<details>.*?</details>", html, re.DOTALL)
    for chart, part in zip(demo.sections[0].charts, behind, strict=True):
        cells = re.findall(r"<t[hd] (?:scope=\"row\" )?class=\"\w+\">(.*?)</t[hd]>", part)
        assert cells == [cell for row in Table.behind(chart).text() for cell in row]


def test_the_policy_allows_the_one_style_sheet_and_nothing_else(demo):
    html = render(demo)
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)[1]
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert html.index("Content-Security-Policy") < html.index("<style")
    page = Reader(html)
    assert page.tags.count("style") == 1
    assert not {"script", "link", "img", "iframe", "object", "base", "form"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in {"style", "src"}]
    assert html.replace('xmlns="http://www.w3.org/2000/svg"', "").count("http://") == 0
    assert "https://" not in html
    assert not re.search(r"url\((?!#)|@import", html)


def test_ids_are_unique_on_the_page(demo):
    ids = [value for name, value in Reader(render(demo)).attributes if name == "id"]
    assert len(ids) > 4
    assert len(set(ids)) == len(ids)


def test_the_same_page_gives_the_same_bytes(demo):
    assert render(demo) == render(demo)


def test_dark_pages_have_colours_of_their_own_and_print_stays_light(demo):
    html = render(demo)
    dark = html[html.index("@media screen and (prefers-color-scheme: dark)") :]
    assert all(colour in dark for colour in DARK)
    assert "@media print" in html


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_and_never_obeyed(text):
    chart = Chart(title=text, x_label=text, y_label=text, series=(Series(text, [0], [1]),), marks=(Mark(text, 0),))
    table = Table((Column(text), Column("n")), ((text, 1), ("b", 2)), caption=text, highlight=0)
    section = Section(title=text, text=text, charts=(chart,), table=table)
    page = Reader(render(Page(title=text, lead=text, sections=(section,), footer=text)))
    assert not {"script", "img", "b"} & set(page.tags)
    assert page.tags.count("style") == page.tags.count("svg") == 1
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    for tag in ("h1", "h2", "figcaption", "title"):
        assert "".join(page.text[tag]) == text
    assert page.text["p"].count(text) == 4
    assert page.text["th"].count(text) == 4
    assert page.text["td"].count(text) == 1


def test_characters_that_reorder_or_cannot_be_written_are_replaced():
    name = "evil\u202egpj.exe\u2066\x00\x1b\ud800"
    html = render(Page(title=name, sections=(Section(title=name, table=Table((Column(name),), ((name,),))),)))
    html.encode()
    assert "evil\ufffdgpj.exe\ufffd\ufffd\ufffd\ufffd" in html
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b]", html)


def test_right_to_left_names_stay_as_they_are():
    assert "שלום" in render(Page(title="שלום"))


def test_a_page_of_a_title_alone_is_complete():
    page = Reader(render(Page(title="Nothing yet")))
    assert "section" not in page.tags
    assert "footer" not in page.tags


def test_a_long_table_can_stand_behind_a_line_to_click():
    table = Table.of(["a"], [["x"], ["y"]])
    shown, folded = (
        render(Page(title="t", sections=(Section(title="s", table=table, folded=f),))) for f in (False, True)
    )
    assert "<details>" not in shown
    assert re.search(r"<details>\s*<summary>The table, 2 rows</summary>.*<table.*</details>", folded, re.DOTALL)


def test_only_columns_of_sentences_are_broken_into_lines():
    table = Table((Column("claim", wrap=True), Column("n", align="right")), (("a sentence", 1.0),))
    html = render(Page(title="t", sections=(Section(title="s", table=table),)))
    assert '<th scope="row" class="left wrap">a sentence</th>' in html
    assert '<td class="right">1</td>' in html


def test_warnings_stand_above_the_sections_and_lines_to_copy_stay_as_they_are():
    lines = 'policy = load("<a&b>")\n\n    indented'
    page = Page(title="t", lead="l", warnings=["look <out>", "twice"], sections=(Section(title="s", code=lines),))
    html = render(page)
    read = Reader(html)
    assert [text for text in read.text["li"] if text.strip()] == ["look <out>", "twice"]
    assert html.index("look &lt;out&gt;") < html.index("<section")
    assert "".join(read.text["code"]) == lines
    assert "Before relying on it" not in render(Page(title="t"))
    assert "<pre" not in render(Page(title="t", sections=(Section(title="s"),)))


def test_tables_behind_charts_are_printed_open():
    printed = render(Page(title="t")).partition("@media print")[2]
    assert "::details-content { content-visibility: visible" in printed
