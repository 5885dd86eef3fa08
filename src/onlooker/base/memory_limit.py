"""A limit on memory: the one in force, what may be held under it, and what is refused before it is broken."""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from onlooker.base.errors import InputError
from onlooker.base.text import one_line

LIBRARIES = 450_000_000
"""What a process takes at most before it holds any round: interpreter, libraries, and kernels being compiled.

Compiling happens once on a machine; later processes take some 200 MB less.
"""

LEAST = 500_000_000
"""Limits below this leave too little for the rounds."""

SAMPLE_SHARE = 0.25
"""Part of what libraries and matrices leave that a sample may fill; working on it takes three times as much besides."""

BATCH_SHARE = 1 / 64
"""The same for the rounds of one part: several are held at a time, with what Parquet needs to unpack them."""

FITTING = 20
"""Matrices of d x d doubles that imitation takes at its peak, with intervals and warnings; a diagnosis takes fewer."""

FOLLOWING, FAMILY = 14, 5
"""The same for tracking, and for every further family that is tried at the same time."""

CONTEST = 45
"""The same for all families and the model-free observer, which predict side by side where none is given."""

STATE = 110
"""The same for tracking that is saved as text, and read back from it before it is written."""

WIDEST = 32
"""Memory for this many matrices is kept free of a scan's rounds, whatever is done with it."""

ROUNDS = 20_000_000
"""Bytes that rounds need in any case, in addition to such matrices."""

HELD = 4
"""Memory that rounds take while they are worked on, as a multiple of their features, themselves included."""

LITTLE = 1_000_000
"""Bytes that are allocated without checking the machine's memory, which would take longer."""

_UNITS = {"": 1, "b": 1} | {
    f"{letter}{kind}": base**power
    for power, letter in enumerate("kmgt", 1)
    for kind, base in (("", 1000), ("b", 1000), ("ib", 1024))
}
_limits: list[int] = []
_OUT_OF_MEMORY = (
    *("can't start new thread", "cannot allocate memory", "failed to map segment", "bad_alloc", "out of memory"),
    *("unable to allocate", "nomemory"),
)
"""What libraries say where they have no error of their own for it."""
_NOT_LOADED = "could not find/load shared object"
"""The message of a library that cannot be loaded; where memory is limited, that is the reason."""
_SIZE = re.compile(r"\s*((?:\d{1,20}(?:\.\d*)?|\.\d+)(?:e\d{1,2})?)\s*([a-z]*)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Room:
    """What may be held of a log with `n_features` features under a limit in bytes.

    Examples
    --------
    >>> Room(limit=as_bytes("1 GB"), n_features=20).batch_rows
    53700
    """

    limit: int
    """Peak resident memory of the process."""
    n_features: int
    """Number of features, d."""
    row_bytes: int | None = None
    """What an offered arm takes; a double for every feature unless given."""

    @property
    def rounds(self) -> int:
        """Memory for work on rounds: what libraries and matrices of d x d leave of the limit."""
        return max(ROUNDS, self.limit - LIBRARIES - WIDEST * square(self.n_features))

    @property
    def batch_rows(self) -> int:
        """Offered arms in a part."""
        # Counted as float64, which most formats are read into.
        return max(1, int(BATCH_SHARE * self.rounds / (self.row_bytes or 8 * self.n_features)))

    @property
    def sample_bytes(self) -> int:
        """Features of the rounds that are kept as a sample."""
        return int(SAMPLE_SHARE * self.rounds)

    @property
    def parts_at_once(self) -> int:
        """Parts to work on side by side: a pass over one finds up to two matrices."""
        return max(1, int(SAMPLE_SHARE * self.rounds / (2 * square(self.n_features))))


def square(n_features: int) -> int:
    """Bytes of a matrix of d x d doubles."""
    return 8 * n_features**2


def as_bytes(limit: object) -> int:
    """A limit on memory in bytes, from a number of them or from text such as "800MB" or "2 GiB".

    Examples
    --------
    >>> as_bytes("800MB"), as_bytes("1.5 GiB"), as_bytes("1e3MB"), as_bytes(600_000_000)
    (800000000, 1610612736, 1000000000, 600000000)
    """
    if isinstance(limit, str):
        found = _SIZE.fullmatch(limit)
        unit = None if found is None else _UNITS.get(found[2].lower())
        size = None if found is None or unit is None else int(float(found[1]) * unit)
    else:
        size = limit if isinstance(limit, int) and not isinstance(limit, bool) else None
    if size is None or size < 0:
        raise InputError(f"memory_limit is {limit!r}: pass bytes, or text such as '800MB' or '2GB'")
    if size < LEAST:
        said = limit if isinstance(limit, str) else f"{size:,} byte{'' if size == 1 else 's'}"
        raise InputError(
            f"memory_limit is {said}: interpreter and libraries alone take up to {_words(LIBRARIES)}, "
            f"so give at least {_words(LEAST)}"
        )
    return size


@contextmanager
def memory_limited(limit: int | None) -> Iterator[None]:
    """Hold the whole process to a limit in bytes while the block runs; of several in force the smallest counts.

    Examples
    --------
    >>> try:
    ...     with memory_limited(as_bytes("600MB")):
    ...         check_memory(10**9)
    ... except InputError as error:
    ...     print(str(error).partition(" leaves")[0])
    would take 1,000 MB more, but the memory limit of 600 MB
    """
    if limit is None:
        yield
        return
    # Of the process, not of a thread: all of them fill the same memory.
    _limits.append(limit)
    try:
        yield
    finally:
        _limits.remove(limit)


def limit_in_force() -> int | None:
    """The limit that the user has set, in bytes."""
    return min(_limits, default=None)


def check_memory(needed: int) -> None:
    """Refuse to allocate this many more bytes than the process has: a small file may declare, or hold, a vast log.

    Without a limit the machine's memory is one.
    """
    limit = limit_in_force()
    if limit is None and needed < LITTLE:
        return
    taken = resident() or 0
    if limit is not None:
        if taken + needed > limit:
            # What earlier work has freed may still count.
            give_back()
            taken = resident() or 0
        if taken + needed > limit:
            left = f"leaves {_words(max(0, limit - taken))}"
            raise InputError(
                f"would take {_words(needed)} more, but the memory limit of {_words(limit)} {left}: "
                "raise the limit, or read a part of it"
            )
        return
    memory = _machine()
    if memory is not None and taken + needed > memory:
        raise InputError(
            f"would take {needed / 1e9:,.1f} GB, but this machine has {memory / 1e9:,.1f} GB: read a part of it"
        )


def check_held(n_bytes: int) -> None:
    """Refuse features that a limit leaves room for, but not for working on them."""
    limit = limit_in_force()
    if limit is not None and not may_hold(n_bytes):
        room = _words(int(SAMPLE_SHARE * (limit - LIBRARIES)))
        raise InputError(
            f"has features of {_words(n_bytes)}, but a memory limit of {_words(limit)} has room for {room} of them and "
            "the work on them: raise the limit"
        )


def may_hold(n_bytes: int) -> bool:
    """Whether a limit in force has room for features of this many bytes and the work on them."""
    limit = limit_in_force()
    return limit is None or n_bytes <= SAMPLE_SHARE * (limit - LIBRARIES)


def check_work(n_features: int, matrices: int, *, held: int = 0, limit: int | None = None) -> None:
    """Refuse work that takes this many matrices of d x d doubles at its peak, beside rounds.

    `held` are the bytes of the features that are in memory; where none are, the current rounds take some. `limit`
    counts beside the one in force.

    Examples
    --------
    >>> check_work(n_features=20, matrices=30, limit=as_bytes("16GB"))
    >>> try:
    ...     check_work(n_features=3000, matrices=20, limit=as_bytes("600MB"))
    ... except InputError as error:
    ...     print(str(error).partition(": ")[0])
    3,000 features take matrices of 1,440 MB, in all some 1,910 MB, but the memory limit is 600 MB
    """
    needed = matrices * square(n_features)
    with memory_limited(limit):
        least = limit_in_force()
    if least is None:
        check_memory(needed)
        return
    total = LIBRARIES + max(ROUNDS, HELD * held) + needed
    if total <= least and (resident() or 0) + (HELD - 1) * held + needed > least:
        # What earlier work has freed may still count.
        give_back()
        total = (resident() or 0) + (HELD - 1) * held + needed
    if total > least:
        raise InputError(
            f"{n_features:,} features take matrices of {_words(needed)}, in all some {_words(total)}, but the memory "
            f"limit is {_words(least)}: raise it, or use fewer features"
        )


def give_back() -> None:
    """Return what earlier work freed to the system, where that can be done: it would count until it is used again."""
    gc.collect()
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def check_resident(limit: int) -> None:
    """Refuse a limit that the process has nearly used up before anything is read."""
    room, taken = 0.1 * (limit - LIBRARIES), resident()
    if taken is not None and taken - LIBRARIES > room:
        # What earlier work has freed may still count.
        give_back()
        taken = resident()
    if taken is not None and taken - LIBRARIES > room:
        raise InputError(
            f"memory_limit is {_words(limit)}, but this process takes {_words(taken)} already: "
            "raise the limit, or read in a fresh process"
        )


def is_memory_error(error: BaseException | None) -> bool:
    """Whether an error means that memory ran out, whichever library raised it.

    Examples
    --------
    >>> is_memory_error(RuntimeError("can't start new thread")), is_memory_error(ValueError("wrong"))
    (True, False)
    """
    while error is not None:
        said = str(error).lower()
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        limited = _address_space() is not None
        # Of a library that could not even say what went wrong.
        if limited and (isinstance(error, SystemError) or _NOT_LOADED in said):
            return True
        if isinstance(error, RuntimeError | ImportError | OSError) and any(words in said for words in _OUT_OF_MEMORY):
            return True
        error = error.__cause__ or error.__context__
    return False


def memory_error_words(error: BaseException) -> str:
    """The message for an error that `is_memory_error`, with the remedy."""
    limit, said = _address_space(), one_line(error)
    allowed = "" if limit is None else f"; the system allows {_words(limit)} of address space (ulimit -v): raise that"
    remedy = ": use" if limit is None else ", or use"
    return f"memory ran out{f' ({said})' if said else ''}{allowed}{remedy} fewer rounds, arms or features"


def _address_space() -> int | None:
    """Bytes of address space that the system allows; None where it allows any number, or does not say."""
    try:
        import resource
    except ImportError:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def resident() -> int | None:
    """Bytes of memory that the process takes now; None where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def _machine() -> int | None:
    """Bytes of memory that the machine has, or grants to a container; None where the system does not say."""
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return None
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        granted = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return memory
    return min(memory, int(granted)) if granted.isdecimal() else memory


def _words(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
