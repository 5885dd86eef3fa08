"""Workers of a Ray cluster that run the jobs of an experiment."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Self, cast

from onlooker.base.threads import n_threads
from onlooker.clusters.link import Link
from onlooker.clusters.pool import Done, Pool
from onlooker.clusters.pool import Job as Call
from onlooker.experiments.ledger import Job
from onlooker.experiments.workers import Outcome, attempt


class ClusterWorkers:
    """Like `Workers`, on a cluster: one at `address`, or one of our own on this machine. It starts with the first job.

    The function must be importable there: one of an installed module.
    """

    def __init__(self, function: Callable[..., Any], number: int | None = None, *, address: str | None = None) -> None:
        self._maker = pickle.dumps(partial(attempt, pickle.dumps(function)))
        self._address, self._wanted = address, number
        self._link: Link | None = None
        self._crew: Pool | None = None
        self.number = n_threads() if number is None else number
        """How many there are; of a cluster's cores once it is joined."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._link is not None:
            self._link.close()

    def busy(self) -> float:
        """Seconds that the running jobs have taken so far, together."""
        return 0.0 if self._crew is None else self._crew.busy()

    def run(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Run the jobs, the first ones first, and yield their outcomes as they come."""
        calls = {Call(job.key, (job.arguments,)): job for job in jobs}
        if not calls:
            return
        if self._crew is None:
            self._link = Link(self._address, self._wanted)
            self.number = self._link.workers
            self._crew = Pool(self._link, self._maker, min(self.number, len(calls)))
        for done in self._crew.run(list(calls), math.inf):
            yield _outcome(calls[done.job], done)


def _outcome(job: Job, done: Done) -> Outcome:
    answer = done.answer
    if answer.error:
        return Outcome(job=job, seconds=done.seconds, error=answer.error, details=answer.details)
    result, error, details = cast("tuple[str, str, str]", answer.result)
    return Outcome(job=job, seconds=done.seconds, result=result, error=error, details=details)
