"""The documentation site: built without a warning, complete, no dead link, nothing from elsewhere."""

import re
import subprocess
import sys
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

import onlooker
from onlooker.cli import commands

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; a warning is an error, and so is a name of ours that leads nowhere."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-d", folder / "doctrees"]
    built = subprocess.run([*command, ROOT / "docs", folder / "html"], capture_output=True, text=True, check=False)
    assert not built.returncode, built.stderr
    return folder / "html"


def reference(site):
    return {page.stem: page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html")}


def test_every_public_name_is_in_the_reference(site):
    pages = "".join(reference(site).values())
    missing = [name for name in onlooker.__all__ if f'id="onlooker.{name}"' not in pages]
    assert missing == []
    assert [name for name in onlooker.bounds.__all__ if f'id="onlooker.bounds.{name}"' not in pages] == []


def test_every_command_is_in_the_reference(site):
    page = unescape(re.sub(r"<[^>]+>", "", reference(site)["command_line"]))
    for name, command in commands.commands.items():
        assert f"Usage: onlooker {name} [OPTIONS]" in page
        assert all(option in page for parameter in command.params for option in parameter.opts if option[:2] == "--")


def test_docstrings_are_rendered_by_section(site):
    page = reference(site)["suffix_imitation"]
    assert "Parameters<" in page
    assert "Examples</p>" in page
    assert "<strong>log_likelihood_, null_log_likelihood_</strong>" in page
    assert "_SupportsArray" not in page
    # Between single backticks is code, and a link where it is a name of ours.
    assert re.search(
        r'<a class="reference internal" href="#onlooker.HeldOut"[^>]*><code[^>]*><span class="pre">HeldOut', page
    )


def test_links_between_pages_are_links_in_the_site(site):
    for page in (ROOT / "docs").glob("*.md"):
        made = (site / f"{page.stem}.html").read_text(encoding="utf-8")
        for target in re.findall(r"\]\((\w[\w/]*)\.(?:md|rst)[)#]", page.read_text(encoding="utf-8")):
            assert re.search(rf'<a class="reference internal" href="{target}\.html', made), f"{page.name}: {target}"


@cache
def anchors(page):
    return set(re.findall(r'\bid="([^"]+)"', page.read_text(encoding="utf-8")))


def test_no_link_is_dead(site):
    checked = 0
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for link in set(re.findall(r'\b(?:href|src)="([^"]+)"', text)):
            if page.is_relative_to(site / "_downloads") or re.match(r"https?:|data:|mailto:", link):
                continue
            path, _, anchor = unescape(unquote(link)).partition("#")
            target = (page.parent / path.partition("?")[0]) if path else page
            assert target.is_file(), f"{page.name}: {link}"
            if anchor and target.suffix == ".html":
                assert anchor in anchors(target), f"{page.name}: {link}"
            checked += 1
    assert checked > 500


def test_nothing_is_fetched_from_elsewhere(site):
    fetched = re.compile(r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="(?:https?:)?//')
    imported = re.compile(r"""@import|url\(\s*["']?(?:https?:)?//""")
    for path in [*site.rglob("*.html"), *site.rglob("*.css")]:
        text = path.read_text(encoding="utf-8")
        assert not (imported if path.suffix == ".css" else fetched).search(text), path.name
