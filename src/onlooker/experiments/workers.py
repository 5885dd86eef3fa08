"""Worker processes: each runs one job after the other, on one thread, and may die without harm to the rest."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Protocol, Self

from onlooker.base.errors import OnlookerError
from onlooker.base.threads import n_threads
from onlooker.experiments.ledger import Job, as_json

ONE_THREAD = (
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "ONLOOKER_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
"""Variables that are 1 in the environment of a worker: as many threads as workers, and sums in one order."""

DEATHS = 2
"""A job whose process died this often has failed: the first time may have been chance."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a job ended."""

    job: Job
    """Which one."""

    seconds: float
    """How long it took."""

    result: str = ""
    """What the function returned, as JSON; empty if it failed."""

    error: str = ""
    """Why it failed, in one line."""

    details: str = ""
    """Where it failed: the traceback in the worker."""


class Hired(Protocol):
    """Workers that call one function, wherever they are."""

    number: int
    """How many there are, at most."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def busy(self) -> float:
        """Seconds that the running jobs have taken so far, together."""

    def run(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Run the jobs in order, and yield their outcomes as they end."""


WorkersOf = Callable[[Callable[..., Any], int | None], Hired]
"""Starts workers that call a function: the given number, or as many as there is room for."""


@dataclass(eq=False)
class _Worker:
    process: SpawnProcess
    connection: Connection
    job: Job | None = None
    started: float = 0.0
    ready: bool = False


class Workers:
    """Processes that call one function. Leaving the block ends them at once.

    A `ProcessPoolExecutor` will not do: the death of one process ends all of them and does not say whose job it was,
    and one that is killed while its result is on the way, once that is larger than a pipe holds, is never noticed.

    Examples
    --------
    >>> with Workers(dict, 1) as workers:
    ...     [outcome.result for outcome in workers.run([Job("first", '{"seed": 7}')])]
    ['{"seed": 7}']
    """

    def __init__(self, function: Callable[..., Any], number: int | None = None) -> None:
        self._function = pickle.dumps(function)
        self.number = n_threads() if number is None else number
        """How many there are, at most."""
        self._crew: list[_Worker] = []
        self._stillborn = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._crew:
            worker.process.kill()
        for worker in self._crew:
            worker.process.join()
            worker.connection.close()

    def busy(self) -> float:
        """Seconds that the running jobs have taken so far, together."""
        now = time.monotonic()
        return sum(now - worker.started for worker in self._crew if worker.job)

    def run(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Run the jobs in order, and yield their outcomes as they end."""
        waiting = deque(jobs)
        deaths: Counter[Job] = Counter()
        while self._assign(waiting):
            for connection in wait([worker.connection for worker in self._crew]):
                worker = next(worker for worker in self._crew if worker.connection is connection)
                job, seconds = worker.job, time.monotonic() - worker.started
                try:
                    answer = worker.connection.recv()
                except (EOFError, OSError):
                    how = self._bury(worker)
                    if job is None:
                        continue
                    deaths[job] += 1
                    if deaths[job] < DEATHS:
                        waiting.appendleft(job)
                    else:
                        yield Outcome(job=job, seconds=seconds, error=f"its process died {DEATHS} times ({how})")
                    continue
                worker.ready, worker.job = True, None
                if job is not None:
                    result, error, details = answer
                    yield Outcome(job=job, seconds=seconds, result=result, error=error, details=details)

    def _assign(self, waiting: deque[Job]) -> bool:
        """Assign jobs to free workers, replacing missing workers; return whether anything is left to do."""
        for worker in self._crew:
            if waiting and worker.ready and worker.job is None:
                worker.job, worker.started = waiting.popleft(), time.monotonic()
                # A worker that has died in the meantime is noticed when its answer is read.
                with suppress(OSError):
                    worker.connection.send(worker.job.arguments)
        busy = sum(worker.job is not None for worker in self._crew)
        while len(self._crew) < min(self.number, busy + len(waiting)):
            self._start()
        return bool(busy or waiting)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, self._function), daemon=True)
        with _one_thread(), _without_interrupts():
            process.start()
            self._crew.append(_Worker(process, ours))
        # Else the end of the worker would not end the pipe.
        theirs.close()

    def _bury(self, worker: _Worker) -> str:
        """Remove a worker that died; return the cause."""
        worker.process.join()
        worker.connection.close()
        self._crew.remove(worker)
        code = worker.process.exitcode or 0
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        if code == -9:
            how += ", perhaps for lack of memory"
        if not worker.ready:
            self._stillborn += 1
        if self._stillborn > DEATHS:
            message = f"worker processes die before their first task ({how})"
            raise OnlookerError(f'{message}: in a script, run tasks under `if __name__ == "__main__":`')
        return how


@contextmanager
def _one_thread() -> Iterator[None]:
    """Set the environment that a process started in this block inherits."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back: a process started in this block never gets it, this one gets it afterwards."""
    if os.name != "posix":
        yield
        return
    from multiprocessing import resource_tracker

    # Starting this helper of multiprocessing's would lift the block.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(connection: Connection, function: bytes) -> None:
    """The loop of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    connection.send("ready")
    while True:
        try:
            arguments = connection.recv()
        except EOFError:
            return
        connection.send(attempt(function, arguments))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def attempt(function: bytes, arguments: str) -> tuple[str, str, str]:
    """Result, error and traceback of one call, whose arguments are JSON and whose function is pickled."""
    try:
        # Loaded again for every job, so that no job can see what another left in the function's object.
        result = pickle.loads(function)(**json.loads(arguments))
        return as_json(result, "its result"), "", ""
    except Exception as error:  # noqa: BLE001 - whatever a job raises is its outcome, and the worker goes on
        message = str(error) if isinstance(error, OnlookerError) else f"{type(error).__name__}: {error}"
        return "", " ".join(message.split()), traceback.format_exc()
