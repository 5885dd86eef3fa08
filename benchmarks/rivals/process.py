"""A worker seen from outside: start it, ask it for one run at a time, and never wait for it longer than allowed."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, Self

from rivals.environments import RivalError, clean_environment, python_of, reason_of
from rivals.methods import Method

FOLDER = Path(__file__).parent.parent


class Rival:
    """A method's process, with the data loaded. Use it in a `with` statement, which ends the process."""

    def __init__(self, method: Method, data: Path, cache: Path, *, timeout: float) -> None:
        self.method = method
        self._timeout = timeout
        self._messages = TemporaryFile()  # noqa: SIM115 - closed by `close`
        command = [str(python_of(method, cache)), "-m", "rivals.worker", method.adapter, str(data)]
        # Unbuffered, so that nothing can hide from the selector.
        self._process = subprocess.Popen(  # noqa: S603
            command,
            cwd=FOLDER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            env=clean_environment(),
            bufsize=0,
        )
        try:
            self.settings: list[Any] = self._answer("load the data")["settings"]
        except RivalError:
            self.close()
            raise

    def run(self, setting: Any) -> dict[str, Any]:
        """Do the work once, and say how long it took, how good the result is, and the memory on top."""
        assert self._process.stdin is not None
        order = {"setting": setting, "penalised": self.method.penalised}
        try:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
        except BrokenPipeError:
            raise RivalError(f"failed: {self._reason()}") from None
        return {"setting": setting, **self._answer("finish")}

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._messages.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answer(self, what: str) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(self._timeout):
                    raise RivalError(f"did not {what} within {self._timeout:.0f} s")
                part = os.read(self._process.stdout.fileno(), 1 << 16)
                if not part:
                    raise RivalError(f"failed: {self._reason()}")
                line += part
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _reason(self) -> str:
        self._process.wait()
        self._messages.seek(0)
        return reason_of(self._messages.read().decode(errors="replace"))
