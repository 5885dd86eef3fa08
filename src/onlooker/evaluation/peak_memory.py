"""The peak memory of a piece of work, where the system reports it (Linux)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from onlooker.base.memory_limit import give_back

_STATUS = "/proc/self/status"
_RESET = "/proc/self/clear_refs"


@dataclass
class Peak:
    """Filled when the work is done."""

    mb: float | None = None
    """Peak in megabytes, beyond what was held before; None where the system does not report it."""


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Measure the work within the block; one at a time, as the system keeps one high-water mark per process.

    Examples
    --------
    >>> import numpy as np
    >>> with peak_memory() as peak:
    ...     held = np.ones(8_000_000)
    >>> peak.mb is None or 40 < peak.mb < 120
    True
    """
    peak = Peak()
    # Using again what earlier work freed counts as it would in a fresh process.
    give_back()
    started = _reset_mark()
    yield peak
    if started is not None:
        highest = _read("VmHWM")
        peak.mb = None if highest is None else max(0.0, highest - started)


def _reset_mark() -> float | None:
    """Reset the high-water mark to current usage, and return that."""
    try:
        with open(_RESET, "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        return None
    return _read("VmRSS")


def _read(field: str) -> float | None:
    """A field of the process's status, in megabytes."""
    with suppress(OSError), open(_STATUS, encoding="ascii", errors="replace") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name == field:
                return int(value.split()[0]) * 1024 / 1e6
    return None
