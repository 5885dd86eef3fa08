"""A limit on memory, and what may be held under it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from onlooker.errors import InputError

LIBRARIES = 450_000_000
"""What a process takes at most before it holds any round: interpreter, libraries, and kernels being compiled.

Compiling happens once on a machine; later processes take some 200 MB less.
"""

LEAST = 500_000_000
"""Limits below this leave too little for the rounds."""

SAMPLE_SHARE = 0.25
"""Part of what the libraries leave that a sample may fill; working on it takes up to three times as much besides."""

BATCH_SHARE = 1 / 64
"""The same for the rounds of one part: several are in hand at a time, with what Parquet needs to unpack them."""

_UNITS = {"": 1, "b": 1} | {
    f"{letter}{kind}": base**power
    for power, letter in enumerate("kmgt", 1)
    for kind, base in (("", 1000), ("b", 1000), ("ib", 1024))
}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*([a-z]*)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Room:
    """What may be held of a log with `n_features` features under a limit in bytes.

    Examples
    --------
    >>> Room(limit=as_bytes("1 GB"), n_features=20).batch_rows
    53710
    """

    limit: int
    """Peak resident memory of the process."""
    n_features: int
    """Number of features, d."""

    @property
    def batch_rows(self) -> int:
        """Offered arms in a part."""
        # Counted as float64, which most formats are read into.
        return max(1, int(BATCH_SHARE * (self.limit - LIBRARIES) / (8 * self.n_features)))

    @property
    def sample_bytes(self) -> int:
        """Features of the rounds that are kept as a sample."""
        return int(SAMPLE_SHARE * (self.limit - LIBRARIES))


def as_bytes(limit: object) -> int:
    """A limit on memory in bytes, from a number of them or from text such as "800MB" or "2 GiB".

    Examples
    --------
    >>> as_bytes("800MB"), as_bytes("1.5 GiB"), as_bytes(600_000_000)
    (800000000, 1610612736, 600000000)
    """
    if isinstance(limit, str):
        found = _SIZE.fullmatch(limit)
        unit = None if found is None else _UNITS.get(found[2].lower())
        size = None if found is None or unit is None else int(float(found[1]) * unit)
    else:
        size = limit if isinstance(limit, int) and not isinstance(limit, bool) else None
    if size is None:
        raise InputError(f"memory_limit is {limit!r}: pass bytes, or text such as '800MB' or '2GB'")
    if size < LEAST:
        raise InputError(
            f"memory_limit is {_words(size)}: interpreter and libraries alone take up to {_words(LIBRARIES)}, "
            f"so give at least {_words(LEAST)}"
        )
    return size


def check_resident(limit: int) -> None:
    """Refuse a limit that the process has nearly used up before anything is read."""
    resident = _resident()
    if resident is not None and resident - LIBRARIES > 0.1 * (limit - LIBRARIES):
        raise InputError(
            f"memory_limit is {_words(limit)}, but this process takes {_words(resident)} already: "
            "raise the limit, or read in a fresh process"
        )


def _resident() -> int | None:
    """Bytes of memory that the process takes now; None where the system does not say."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
    return None if found is None else 1024 * int(found[1])


def _words(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
