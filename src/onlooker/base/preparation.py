"""Time that goes into kernels before they run, counted where it can be asked for without importing the compiler."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Preparation:
    """Time that goes into kernels before they run: loading them from disk, or compiling them."""

    def __init__(self) -> None:
        self.busy = 0
        """Kernels that are being loaded or compiled at this moment, those that they call included."""
        self.compiled = 0
        """Kernels that had to be compiled, as they were not on disk."""
        self._seconds: dict[int, float] = {}
        self._depth = threading.local()

    @property
    def seconds(self) -> float:
        """Seconds that the calling thread has spent so far."""
        return self._seconds.get(threading.get_ident(), 0.0)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count what happens inside; a kernel that is prepared for another one counts with it."""
        depth = getattr(self._depth, "value", 0)
        started = time.perf_counter()
        self.busy, self._depth.value = self.busy + 1, depth + 1
        try:
            yield
        finally:
            self.busy, self._depth.value = self.busy - 1, depth
            if not depth:
                thread = threading.get_ident()
                self._seconds[thread] = self._seconds.get(thread, 0.0) + time.perf_counter() - started


preparation = Preparation()
"""Of all kernels of this process."""
