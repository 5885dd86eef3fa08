"""`onlooker demo`."""

import json
import re
from html import unescape


def test_table_and_page(run, tmp_path):
    page = tmp_path / "page.html"
    ran = run("demo", "--rounds", 1000, "--out", page)
    assert ran.code == 0, ran.err
    for name in ("learner (sees rewards)", "naive", "rule N^0.9", "auto", "tracking", "oracle"):
        assert name in ran.out
    html = page.read_text()
    assert html.count("<svg") == 3
    assert "rule N^0.9" in html
    for words in re.search(r"from its picks alone:\n(.*\n)(.*\n)\n", ran.out).groups():
        assert words.strip() in unescape(html)
    shown = re.search(r"rule N\^0\.9 +\d+ +(0\.\d+)", ran.out)[1]
    assert shown in html


def test_json_and_seed(run, tmp_path):
    first = json.loads(run("demo", "--rounds", 300, "--seed", 1, "--out", tmp_path / "a.html", "--json").out)
    again = json.loads(run("demo", "--rounds", 300, "--seed", 1, "--out", tmp_path / "b.html", "--json").out)
    other = json.loads(run("demo", "--rounds", 300, "--seed", 2, "--out", tmp_path / "c.html", "--json").out)
    errors = [[row["direction_error"] for row in found["rows"]] for found in (first, again, other)]
    assert errors[0] == errors[1] != errors[2]
    assert len(first["tracked"]) == 2


def test_a_page_that_cannot_be_written(refused, tmp_path):
    assert "nowhere" in refused("demo", "--rounds", 300, "--out", tmp_path / "nowhere" / "page.html")
