"""What this process and the one that speaks to Ray tell each other, and what workers answer."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from onlooker.base.errors import OnlookerWarning


def make_folder() -> str:
    """A private folder with a short name: sockets in it have at most some hundred characters.

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


@dataclass(frozen=True)
class Open:
    """Join a cluster, or start one."""

    address: str | None
    """Where it is; None to start one on this machine."""
    workers: int | None
    """How many workers there will be; None for one a core of the cluster."""
    folder: str
    """For the files of a cluster on this machine."""
    silence: float
    """Seconds without a sign of life after which a worker is given up."""


@dataclass(frozen=True)
class Hire:
    """Start a worker."""

    slot: int
    """Its place among the workers."""
    life: int
    """Which one it is in that place, counted from 0: the next one has the next number."""
    maker: bytes
    """Pickled object that it calls with what it is sent."""


@dataclass(frozen=True)
class Call:
    """Have a worker do something."""

    slot: int
    """Which worker."""
    life: int
    """Which one in that place."""
    number: int
    """Of the call."""
    payload: bytes
    """Pickled arguments."""


@dataclass(frozen=True)
class Opened:
    """The cluster is there."""

    workers: int
    """How many workers there will be."""


@dataclass(frozen=True)
class Hired:
    """A worker has started."""

    slot: int
    life: int
    version: str
    """Its version of onlooker."""


@dataclass(frozen=True)
class Answered:
    """A worker has answered a call."""

    slot: int
    life: int
    number: int
    payload: bytes
    """Pickled `Answer`."""


@dataclass(frozen=True)
class Lost:
    """A worker has died, fell silent, or could not be started."""

    slot: int
    life: int
    why: str
    """In one line."""


@dataclass(frozen=True)
class Closed:
    """The cluster could not be joined or started."""

    why: str
    """In one line."""


Request = Open | Hire | Call
Event = Opened | Hired | Answered | Lost | Closed


@dataclass(frozen=True)
class Answer:
    """The result of a call, in the worker."""

    result: object = None
    """What was found."""
    error: str = ""
    """Why nothing was, in one line."""
    is_input: bool = False
    """Whether that is for the user to mend: the message says how."""
    details: str = ""
    """The traceback in the worker."""
    warnings: tuple[OnlookerWarning, ...] = ()
    """What was said on the way."""


def one_line(error: BaseException) -> str:
    r"""What an error says that was not meant for the user.

    Examples
    --------
    >>> one_line(ValueError("a\n b"))
    'ValueError: a b'
    """
    return " ".join(f"{type(error).__name__}: {error}".split())
