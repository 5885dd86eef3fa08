"""Two hundred attacks in every text of every page and drawing: nothing runs, nothing is asked for, all is shown."""

from functools import cache
from unittest.mock import patch

import pytest

from onlooker.base.text import showable
from onlooker.report.page import render
from payload_pages import PAGES, Skeleton, chunks, comparison_drawing
from payloads import EVENTS, PAYLOADS, SCRIPTS

SIZES = {"features": 76, "categories": 76}
"""Texts on one page; all of them unless said."""
NARROW = ("charts", "sources")
"""Texts stand in every kind of place on these: so do these pages fit onto a phone."""
DRAWN = {"svg", "g", "defs", "clippath", "path", "rect", "use", "text"}


def utf8(texts):
    """What a table, or the names of a log's features, can hold: lone surrogates are refused before there is a page."""
    return tuple(dict.fromkeys(text.encode("utf-8", "replace").decode() for text in texts))


CASES = [
    (kind, part)
    for kind in PAGES
    for part in chunks(
        utf8(PAYLOADS) if kind in {"categories", "features"} else PAYLOADS, SIZES.get(kind, len(PAYLOADS))
    )
]


@cache
def harmless(kind, count):
    """The page with as many plain words; what is in its drawings is not looked at, so there is nothing in them."""
    page = PAGES[kind]([f"word {number:03}" for number in range(count)])
    with patch("onlooker.report.page.to_svg", lambda *_, **__: "<svg></svg>"):
        return Skeleton(render(page))


def test_there_are_enough():
    assert len(PAYLOADS) >= 200
    assert len({text for kind, part in CASES if kind == "features" for text in part}) == len(utf8(PAYLOADS)) >= 200


@pytest.mark.parametrize(("kind", "texts"), CASES, ids=[f"{kind}-{len(part)}" for kind, part in CASES])
def test_nothing_runs_nothing_leaves_and_all_is_shown(visit, measured, tmp_path, kind, texts):
    path = tmp_path / "page.html"
    path.write_text(render(PAGES[kind](texts)), encoding="utf-8")
    seen = visit(path)
    assert seen.console == []
    assert seen.requests == []
    assert seen.title != "pwned"
    found = Skeleton(seen.dom)
    plain = harmless(kind, len(texts))
    assert found.page == plain.page
    assert {element[0] for element in found.elements} <= {element[0] for element in plain.elements} | DRAWN
    assert not [name for element in found.elements for name in element[1:] if name.startswith("on") or name == "style"]
    everything = "\x00".join(found.texts)
    # Sentences quote names as Python does.
    missing = [t for t in texts if showable(t) not in everything and showable(repr(t)) not in everything]
    assert missing == []
    if kind in NARROW:
        assert measured(path, "return [innerWidth, document.documentElement.scrollWidth]", 390) == [390, 390]


def test_a_drawing_by_itself(visit, tmp_path):
    path = tmp_path / "chart.svg"
    path.write_text(comparison_drawing(PAYLOADS), encoding="utf-8")
    seen = visit(path)
    assert seen.console == []
    assert seen.requests == []
    assert {element[0] for element in Skeleton(seen.dom).elements} <= DRAWN
    assert "<script>document.title='pwned" in "".join(Skeleton(seen.dom).texts)


def test_the_checks_see_attacks_that_succeed(visit, tmp_path):
    path = tmp_path / "bad.html"
    path.write_text(
        f"<!DOCTYPE html><title>page</title><p>{' '.join((*SCRIPTS, *EVENTS))}</p>", encoding="utf-8", errors="replace"
    )
    seen = visit(path)
    assert seen.title == "pwned"
    assert "http://127.0.0.1:9/leak.js" in seen.requests
