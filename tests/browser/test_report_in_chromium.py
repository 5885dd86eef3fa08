"""The report as a reader has it: silent, harmless, legible on a phone and on a desk, in light, dark and print."""

import os
from pathlib import Path

import pytest
from matplotlib.image import imread

from hostile import BY, ENDING, IMAGE, SCRIPT, SHOP, write_hostile
from onlooker import Environment, LinUCB, read_log, report_page, simulate, write_report
from onlooker.report.page import Input, Source

OPEN = 'document.querySelectorAll("details").forEach(one => one.open = true);'
KEPT = ["item_feature_0", "item_feature_1", "item_feature_3", "user-item_affinity"]
NAMES = ("linucb", "bandit", "hostile", "several")


@pytest.fixture(scope="session")
def pages(tmp_path_factory, data_folder):
    """A report of LinUCB, one of real data, one of hostile names, and one of several learners with such names."""
    folder = tmp_path_factory.mktemp("pages")
    learner = simulate(Environment(20, 50), LinUCB(), 5000).log
    bandit = data_folder / "obd" / "bts" / "women"
    path, columns = write_hostile(folder)
    hostile = read_log(path, **columns)
    named = {
        "inputs": (Input.of(path),),
        "assumed": (f"features {SCRIPT}", ENDING),
        "warnings": (IMAGE, ENDING),
        "command": f"onlooker report {path.name}",
        "saving": f"$ onlooker fit {path.name} --feature {ENDING}",
    }
    made = {
        "linucb": (learner, Source(name="linucb.parquet", command="onlooker report linucb.parquet")),
        "bandit": (read_log(bandit, features=KEPT), Source(name="women", inputs=(Input.of(bandit / "women.csv.gz"),))),
        "hostile": (hostile, Source(name=path.name, **named)),
        "several": ({SHOP: hostile[:150], SCRIPT: hostile[150:]}, Source(name=path.name, by=BY, **named)),
    }
    for name, (log, source) in made.items():
        write_report(report_page(log, source), folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in made}


@pytest.fixture(scope="session")
def shots(tmp_path_factory):
    """Where screenshots go: to the folder that SHOTS names, to be looked at."""
    folder = Path(os.environ["SHOTS"]).absolute() if "SHOTS" in os.environ else tmp_path_factory.mktemp("shots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_a_page_asks_for_nothing_says_nothing_and_runs_nothing(pages, visit, name):
    seen = visit(pages[name])
    assert seen.console == []
    assert seen.requests == []
    assert seen.title.startswith("What the learner")
    assert "<script" not in seen.dom
    assert "<img" not in seen.dom


def test_the_policy_holds_even_if_a_script_got_in(pages, visit, tmp_path):
    """The second line of defence: the page's policy stops what escaping would have let through."""
    broken = tmp_path / "broken.html"
    attack = f"{SCRIPT}<img src='http://127.0.0.1:9/x.png' onerror=\"document.title='pwned'\"></body>"
    broken.write_text(pages["linucb"].read_text().replace("</body>", attack))
    seen = visit(broken)
    assert seen.title.startswith("What the learner")
    assert seen.requests == []
    assert len(seen.console) >= 2


def test_the_checks_see_a_page_that_does_all_of_it(visit, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!DOCTYPE html><title>What the learner</title><script>console.error('oh'); document.title = 'pwned'</script>"
        "<img src='http://127.0.0.1:9/x.png'>"
    )
    seen = visit(bad)
    assert seen.title == "pwned"
    assert seen.requests == ["http://127.0.0.1:9/x.png"]
    assert any("oh" in line for line in seen.console)


@pytest.mark.parametrize("opened", ["", OPEN], ids=["folded", "open"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_wider_than_the_window(pages, measured, name, width, opened):
    body = f"{opened} return [innerWidth, document.documentElement.scrollWidth]"
    assert measured(pages[name], body, width) == [width, width]


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", NAMES)
def test_no_letter_of_a_chart_is_cut_off_or_too_small(pages, measured, name, width):
    body = """
    const found = [];
    document.querySelectorAll("svg").forEach(svg => {
      const box = svg.getBoundingClientRect();
      svg.querySelectorAll("text").forEach(text => {
        const at = text.getBoundingClientRect();
        const inside = at.left > box.left - 3 && at.right < box.right + 3 && at.top > box.top - 3
          && at.bottom < box.bottom + 3;
        const size = parseFloat(getComputedStyle(text).fontSize) * box.width / svg.viewBox.baseVal.width;
        if (!inside || size < 10) found.push([text.textContent, inside, size]);
      });
    });
    return [document.querySelectorAll("svg text").length > 50, found]"""
    assert measured(pages[name], body, width) == [True, []]


@pytest.mark.parametrize("name", NAMES)
def test_print_shows_every_table_within_the_paper(pages, measured, name):
    body = """
    const tables = [...document.querySelectorAll("details table")];
    return [tables.length > 5, tables.every(one => one.checkVisibility()),
      tables.every(one => one.getBoundingClientRect().right <= innerWidth),
      getComputedStyle(document.body).backgroundColor, document.querySelectorAll("details[open]").length]"""
    assert measured(pages[name], body, 700, media="print") == [True, True, True, "rgb(255, 255, 255)", 0]


@pytest.mark.parametrize(("scheme", "paper"), [("light", (255, 255, 255)), ("dark", (20, 24, 29))])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["linucb", "bandit", "hostile"])
def test_light_and_dark(pages, browser, shots, name, width, scheme, paper):
    target = shots / f"{name}-{width}-{scheme}.png"
    prefers = [{"name": "prefers-color-scheme", "value": scheme}]
    with browser.opened(pages[name], width, 6600, features=prefers) as page:
        target.write_bytes(page.shot())
    pixels = (imread(target)[:, :, :3] * 255).round().astype(int)
    assert pixels.shape[1] == width
    assert tuple(pixels[2, 2]) == paper
    ink = abs(pixels - paper).sum(axis=2) > 300
    assert 0.005 < ink.mean() < 0.3
