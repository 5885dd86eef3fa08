"""Threads, and the time that kernels take to load: counted here, where it costs no import of the compiler."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain, islice
from typing import TypeVar, cast

from onlooker.base.errors import InputError, context_of_caller


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


Item = TypeVar("Item")
_END = object()
Result = TypeVar("Result")


_alone: ContextVar[bool] = ContextVar("_alone", default=False)


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread within: for work that is done in less time than threads take to start.

    Examples
    --------
    >>> with one_thread():
    ...     n_threads()
    1
    """
    before = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(before)


def n_threads() -> int:
    """Threads to use: `ONLOOKER_THREADS` where it is set, else the cores that this process may run on."""
    if _alone.get():
        return 1
    setting = os.environ.get("ONLOOKER_THREADS", "")
    if setting:
        if not setting.isdecimal() or int(setting) < 1:
            raise InputError(f"ONLOOKER_THREADS is {setting!r}: set it to a whole number of at least 1, or unset it")
        return int(setting)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def ordered_map(
    function: Callable[[Item], Result], items: Iterable[Item], *, per_thread: int = 3, most: int | None = None
) -> Iterator[Result]:
    """Apply `function` to every item on the threads that there are, results in order.

    No more than `per_thread` items a thread, and `most` in all, are under way or waiting to be taken.

    Examples
    --------
    >>> list(ordered_map(str.upper, ["a", "b", "c"]))
    ['A', 'B', 'C']
    """
    source = iter(items)
    head = list(islice(source, 2))
    work = chain(head, source)
    workers = n_threads()
    at_once = per_thread * workers if most is None else min(most, per_thread * workers)
    workers = min(workers, at_once)
    if workers == 1 or len(head) < 2:
        yield from map(function, work)
        return
    with ThreadPoolExecutor(workers) as pool:
        pending: deque[Future[Result]] = deque()
        try:
            for item in work:
                pending.append(pool.submit(function, item))
                if len(pending) == at_once:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """The same items, the next one made by a thread while the last one is worked on.

    Examples
    --------
    >>> list(ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    source, context = iter(items), context_of_caller()

    def make() -> object:
        return context.run(next, source, _END)

    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(make)
        while (item := coming.result()) is not _END:
            coming = reader.submit(make)
            yield cast("Item", item)
            # Otherwise it would be held until the one after the next is there.
            del item
