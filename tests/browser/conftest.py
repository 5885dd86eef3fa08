"""Headless Chromium on pages of the report. Run by `make browser`, not with the other tests."""

import html
import json
import os
import re
import subprocess
from dataclasses import dataclass

import pytest

CHROMIUM = (
    os.environ.get("CHROMIUM", "chromium"),
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    # What it asks for of its own accord gets no answer, and neither would a page.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


@dataclass
class Visit:
    """What came of opening a page."""

    dom: str
    """The page as the browser has it after loading."""
    console: list[str]
    """Messages on the console."""
    requests: list[str]
    """Addresses that the page asked for, besides itself."""

    @property
    def title(self):
        return html.unescape(re.search(r"<title>(.*?)</title>", self.dom, re.DOTALL)[1])


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """Run Chromium on an address, with a profile of its own."""

    def run(address, *options):
        profile = tmp_path_factory.mktemp("profile")
        command = [*CHROMIUM, f"--user-data-dir={profile}", *options, address]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)

    return run


@pytest.fixture
def visit(chromium, tmp_path):
    """Open a file; give the resulting page, the console's messages and the page's requests."""

    def opened(path):
        record = tmp_path / "net.json"
        ran = chromium(path.as_uri(), "--enable-logging=stderr", "--v=0", f"--log-net-log={record}", "--dump-dom")
        console = [line for line in ran.stderr.splitlines() if "CONSOLE" in line]
        return Visit(ran.stdout, console, _page_requests(json.loads(record.read_text())["events"]))

    return opened


def _page_requests(events):
    """Addresses asked for by a page: Chromium's own requests have no origin as their initiator."""
    params = [event.get("params", {}) for event in events]
    return [one["url"] for one in params if "url" in one and one.get("initiator", "not an origin") != "not an origin"]


@pytest.fixture
def measured(chromium, tmp_path):
    """Evaluate a function's body in a copy of a page, in a frame of some width."""

    def evaluate(path, body, width, *changes):
        text = path.read_text(encoding="utf-8")
        # The page's policy is against scripts, and it is the page's layout that is measured.
        text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        script = f"<script>parent.document.body.dataset.found = JSON.stringify((() => {{{body}}})())</script></body>"
        frame = html.escape(text.replace("</body>", script))
        # A window is never narrower than 500 pixels; a frame is as narrow as one likes.
        copy = tmp_path / "framed.html"
        copy.write_text(
            f'<!DOCTYPE html><meta charset="utf-8"><body><iframe srcdoc="{frame}" width="{width}" height="900"'
            ' style="border:0"></iframe></body>',
            encoding="utf-8",
        )
        ran = chromium(copy.as_uri(), "--window-size=1400,1000", "--dump-dom")
        return json.loads(html.unescape(re.search(r'<body data-found="([^"]*)"', ran.stdout)[1]))

    return evaluate
