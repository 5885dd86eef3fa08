"""What this process and the one that speaks to Ray tell each other, and what workers answer."""

from __future__ import annotations

from dataclasses import dataclass

from onlooker.errors import OnlookerWarning


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

    seat: int
    """Its place among the workers."""
    life: int
    """Which one it is in that place, counted from 0: the next one has the next number."""
    maker: bytes
    """Pickled object that it calls with what it is sent."""


@dataclass(frozen=True)
class Call:
    """Have a worker do something."""

    seat: int
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

    seat: int
    life: int
    version: str
    """Its version of onlooker."""


@dataclass(frozen=True)
class Answered:
    """A worker has answered a call."""

    seat: int
    life: int
    number: int
    payload: bytes
    """Pickled `Answer`."""


@dataclass(frozen=True)
class Lost:
    """A worker has died, fell silent, or could not be started."""

    seat: int
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
    """What came of a call, in the worker."""

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
