"""Headless Chromium, started once and spoken to over its debugging pipe: a JSON object a message, ended by a zero."""

import fcntl
import json
import os
import select
import subprocess
import time
from base64 import b64decode
from contextlib import contextmanager, suppress

OPTIONS = (
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
    "--remote-debugging-pipe",
)
PATIENCE = 120.0
"""Seconds to wait for an answer, on a machine that does much else."""


class Browser:
    """The process. Pages see nothing of one another: each has cookies, storage and a cache of its own."""

    def __init__(self, profile):
        # Chromium reads from descriptor 3 and writes to 4: copies far above, so that neither is laid over the other.
        theirs_in, self._write = os.pipe()
        self._read, theirs_out = os.pipe()
        ends = [fcntl.fcntl(one, fcntl.F_DUPFD, 100) for one in (theirs_in, theirs_out)]

        def lay():
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        command = [os.environ.get("CHROMIUM", "chromium"), *OPTIONS, f"--user-data-dir={profile}"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(command, pass_fds=(3, 4), preexec_fn=lay, **quiet)  # noqa: PLW1509
        for one in (theirs_in, theirs_out, *ends):
            os.close(one)
        self._number, self._unread, self.events = 0, b"", []

    def close(self):
        with suppress(BrokenPipeError, EOFError):
            self.call("Browser.close")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def call(self, method, session=None, **parameters):
        """The answer to a call; what happens meanwhile is added to `events`."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        text = json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0"
        while text:
            text = text[os.write(self._write, text) :]
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method):
        """Wait until something happens, unless it has."""
        while not any(event["method"] == method for event in self.events):
            self.events.append(self._next())

    def _next(self):
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._unread:
            assert select.select([self._read], [], [], max(end - time.monotonic(), 0.0))[0], "no answer from Chromium"
            piece = os.read(self._read, 1 << 20)
            if not piece:
                raise EOFError("Chromium has ended")
            self._unread += piece
        message, _, self._unread = self._unread.partition(b"\0")
        return json.loads(message)

    @contextmanager
    def opened(self, path, width=1280, height=900, **media):
        """A file in a window of some size, loaded; `media` are what `Emulation.setEmulatedMedia` takes."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable", session)
        self.call("Emulation.setDeviceMetricsOverride", session, **size)
        self.call("Emulation.setEmulatedMedia", session, **media)
        self.events.clear()
        try:
            document = self.call("Page.navigate", session, url=path.as_uri())["loaderId"]
            self.wait_for("Page.loadEventFired")
            yield Page(self, session, document)
        finally:
            self.call("Target.disposeBrowserContext", browserContextId=context)


class Page:
    """A loaded page."""

    def __init__(self, browser, session, document):
        self._browser, self._session = browser, session
        self.document = document
        """The request for the page itself."""

    def evaluate(self, expression):
        """The value of an expression, or of what it promises. The page's policy against scripts is not asked."""
        ask = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        found = self._browser.call("Runtime.evaluate", self._session, **ask)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def shot(self):
        """The window as a PNG."""
        return b64decode(self._browser.call("Page.captureScreenshot", self._session)["data"])

    def events(self, *methods):
        """Parameters of all that happened under these names."""
        return [event["params"] for event in self._browser.events if event["method"] in methods]
