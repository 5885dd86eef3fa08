"""How much memory a process holds now, and which processes it has started (Linux)."""

import os
from contextlib import suppress
from pathlib import Path


def resident(pid: int | str = "self") -> float:
    """Megabytes; 0 where the process has ended."""
    with suppress(OSError, IndexError):
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    return 0.0


def children(pid: int) -> list[int]:
    """Processes that it started and that still run."""
    with suppress(OSError):
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    return []
