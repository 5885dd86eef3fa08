"""Headless Chromium on pages of the report. Run by `make browser`, not with the other tests."""

import html
import re
from dataclasses import dataclass

import pytest

from browser.devtools import Browser

LATER = "new Promise(done => setTimeout(done, 100))"
"""What a page does as its images fail, or a little after it has loaded, is waited for."""


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
def browser(tmp_path_factory):
    """Chromium, with a profile of its own."""
    started = Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@pytest.fixture
def visit(browser):
    """Open a file; give the resulting page, the console's messages and the page's requests."""

    def opened(path):
        with browser.opened(path) as page:
            page.evaluate(LATER)
            dom = page.evaluate("document.documentElement.outerHTML")
            said = page.events("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
            return Visit(dom, [str(one) for one in said], _page_requests(page))

    return opened


def _page_requests(page):
    """Addresses asked for by a page: those that its policy blocked were not, and data in the page is no address."""
    failed = page.events("Network.loadingFailed")
    others = {page.document, *(one["requestId"] for one in failed if one.get("blockedReason") == "csp")}
    asked = page.events("Network.requestWillBeSent")
    found = [one["request"]["url"] for one in asked if one["requestId"] not in others]
    found += [one["url"] for one in page.events("Network.webSocketCreated")]
    return [url for url in found if not url.startswith("data:")]


@pytest.fixture
def measured(browser):
    """Evaluate a function's body in a page, in a window of some width."""

    def evaluate(path, body, width, **media):
        with browser.opened(path, width, **media) as page:
            return page.evaluate(f"(() => {{{body}}})()")

    return evaluate
