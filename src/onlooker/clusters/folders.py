"""Folders for the files of a cluster of our own."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path


def make_folder() -> str:
    """A folder that nobody else can look into, with a short name: sockets in it have at most some hundred characters.

    Examples
    --------
    >>> folder = make_folder()
    >>> remove_folder(folder)
    >>> Path(folder).exists()
    False
    """
    short = "/tmp" if os.access("/tmp", os.W_OK) else None  # noqa: S108 - mkdtemp makes a new one in it
    return tempfile.mkdtemp(prefix="onlooker-", dir=short)


def remove_folder(folder: str) -> None:
    """Remove it; processes that are about to end may still write to it."""
    for _ in range(30):
        shutil.rmtree(folder, ignore_errors=True)
        if not Path(folder).exists():
            return
        time.sleep(0.1)
