"""Workers of a cluster: they may die at any moment, and their unfinished jobs are run again by others."""

from __future__ import annotations

import pickle
import time
from collections import Counter, deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Protocol

from onlooker.base.errors import ClusterError
from onlooker.clusters.messages import Answer, Answered, Call, Event, Hire, Hired, Lost, Request

DEATHS = 3
"""A job whose workers died this often has failed: fewer deaths may have been chance."""
PATIENCE = 60.0
"""Seconds that a worker may take to start before others do its work."""


class Cluster(Protocol):
    """Where requests are sent, and events come from."""

    def send(self, requests: Sequence[Request]) -> None:
        """Send some requests at once."""

    def receive(self, seconds: float) -> Event | None:
        """The next event; None if there is none for so long."""


@dataclass(frozen=True, eq=False)
class Job:
    """Something for a worker to do."""

    key: Hashable
    """Its name. A worker that did a job of this name gets the next of that name, too."""
    arguments: tuple[Any, ...]
    """What the workers' object is called with."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Done:
    """How a job ended."""

    job: Job
    """Which one."""
    answer: Answer
    """What was found, or why nothing was."""
    seconds: float
    """How long it took."""


@dataclass(eq=False)
class _Seat:
    """A place for a worker."""

    number: int
    life: int = -1
    there: bool = False
    since: float = 0.0
    stillborn: int = 0
    call: int | None = None
    job: Job | None = None

    @property
    def idle(self) -> bool:
        return self.there and self.call is None

    def late(self) -> bool:
        """Whether to stop waiting for the worker."""
        return not self.there and (self.stillborn >= DEATHS or time.monotonic() - self.since > PATIENCE)


@dataclass(eq=False)
class Pool:
    """Some workers that all call the same object, each a copy of its own.

    Parameters
    ----------
    cluster
        Where they are.
    maker
        The object, pickled.
    number
        How many of them.
    homes
        Which worker, counted from 0, does the jobs of a name first; names that are missing are anyone's.
    """

    cluster: Cluster
    maker: bytes
    number: int
    homes: Mapping[Hashable, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._homes = dict(self.homes)
        self._calls = 0
        self._why = ""
        self._seats = [_Seat(number) for number in range(self.number)]
        self._hire(self._seats)

    def busy(self) -> float:
        """Seconds that the running jobs have taken so far, together."""
        now = time.monotonic()
        return sum(now - slot.since for slot in self._seats if slot.job is not None)

    def run(self, jobs: Sequence[Job], seconds: float) -> Iterator[Done]:
        """Run the jobs in order, and yield their outcomes as they end.

        All are done within so many seconds, or it is an error.
        """
        # Jobs left running by an earlier run are no longer waited for.
        for slot in self._seats:
            slot.job = None
        end = time.monotonic() + seconds
        waiting, open_jobs = deque(jobs), len(jobs)
        deaths: Counter[int] = Counter()
        while open_jobs:
            self._assign(waiting)
            event = self.cluster.receive(min(end - time.monotonic(), 1.0))
            if time.monotonic() >= end:
                raise ClusterError(
                    f"the cluster did not finish within {seconds:g} s: see `ray status`, or allow longer"
                )
            if event is None:
                self._check_hope()
                continue
            for done in self._handled(event, waiting, deaths):
                open_jobs -= 1
                yield done

    def _handled(self, event: Event, waiting: deque[Job], deaths: Counter[int]) -> Iterator[Done]:
        """Take note of an event; it may end a job."""
        assert isinstance(event, Hired | Lost | Answered)
        slot = self._seats[event.slot]
        if event.life != slot.life:
            return
        if isinstance(event, Hired):
            ours = version("onlooker")
            if event.version != ours:
                raise ClusterError(f"workers have onlooker {event.version}, this is {ours}: install the same")
            slot.there, slot.stillborn = True, 0
            return
        job, took = slot.job, time.monotonic() - slot.since
        slot.call = slot.job = None
        if isinstance(event, Answered):
            answer = pickle.loads(event.payload)
        else:
            self._why = event.why
            slot.stillborn += not slot.there
            if slot.stillborn < DEATHS:
                self._hire([slot])
            else:
                slot.there = False
                self._check_hope()
            if job is None:
                return
            deaths[id(job)] += 1
            if deaths[id(job)] < DEATHS:
                waiting.appendleft(job)
                return
            answer = Answer(error=f"its worker died {DEATHS} times, perhaps for lack of memory ({event.why[:300]})")
        if job is not None:
            yield Done(job=job, answer=answer, seconds=took)

    def _assign(self, waiting: deque[Job]) -> None:
        """Give every idle worker the first job that is its own, anyone's, or of a worker that is not coming."""
        calls: list[Request] = []
        for slot in self._seats:
            job = next((job for job in waiting if self._may_take(slot, job)), None) if slot.idle else None
            if job is None:
                continue
            waiting.remove(job)
            self._calls += 1
            self._homes[job.key] = slot.number
            slot.call, slot.job, slot.since = self._calls, job, time.monotonic()
            calls.append(Call(slot.number, slot.life, self._calls, pickle.dumps(job.arguments)))
        if calls:
            self.cluster.send(calls)

    def _may_take(self, slot: _Seat, job: Job) -> bool:
        home = self._homes.get(job.key, slot.number)
        return home == slot.number or self._seats[home].late()

    def _hire(self, slots: Sequence[_Seat]) -> None:
        for slot in slots:
            slot.life, slot.there, slot.since = slot.life + 1, False, time.monotonic()
        self.cluster.send([Hire(slot.number, slot.life, self.maker) for slot in slots])

    def _check_hope(self) -> None:
        if all(slot.late() for slot in self._seats):
            reason = f" ({self._why[:300]})" if self._why else ": the cluster may have no free core"
            raise ClusterError(f"none of {self.number} workers is left and none could be started{reason}")
