"""An environment for every rival, made once: packages from whatever registry pip is configured for on the machine."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

from rivals.methods import Method

_PLACE = re.compile(r"(\w+://|/)[^\s'\"]*/\S*")


class RivalError(Exception):
    """A rival cannot take part; the message is one line for the table."""


def python_of(method: Method, cache: Path) -> Path:
    """The interpreter of a method's environment, made on first use; a failed attempt is not kept."""
    if not method.packages:
        return Path(sys.executable)
    pins = (*method.packages, *method.bare, *method.without)
    digest = hashlib.sha256("\n".join(pins).encode()).hexdigest()[:8]
    folder = cache / "environments" / f"{pins[0].partition('==')[0]}-{digest}"
    python, ready = folder / "bin" / "python", folder / "ready"
    if ready.exists():
        return python
    print(f"making an environment for {method.name}", file=sys.stderr)
    _run([sys.executable, "-m", "venv", "--clear", str(folder)])
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "install", *method.packages])
    if method.bare:
        _run([*pip, "install", "--no-deps", "--ignore-requires-python", *method.bare])
    if method.without:
        _run([*pip, "uninstall", "--yes", *method.without])
    ready.touch()
    return python


def clean_environment() -> dict[str, str]:
    """Environment variables of a worker: nothing that brings in packages from elsewhere."""
    return {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME"}}


def reason_of(text: str) -> str:
    """The line of an output that says what went wrong, without addresses and paths.

    >>> reason_of("Looking in indexes: https://example.org/simple\\nERROR: No matching distribution found for larch")
    'ERROR: No matching distribution found for larch'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if re.match(r"(ERROR|[\w.]*Error)\b", line)] or lines or ["no message"]
    return _PLACE.sub("…", telling[-1])[:160]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env=clean_environment(), check=False)  # noqa: S603
    if done.returncode:
        raise RivalError(f"did not install: {reason_of(done.stdout + done.stderr)}")
