"""Running the tasks of an experiment in parallel processes: finished ones are kept, and never run again."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onlooker.base.errors import InputError, OnlookerError
from onlooker.experiments.ledger import Job, as_json, open_ledger
from onlooker.experiments.workers import Outcome, Workers, WorkersOf

TaskProgress = Callable[[int, int, float | None], None]
"""Called with how many tasks are done, of how many, and the seconds left (None until a task has shown its pace)."""

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


@dataclass(frozen=True)
class Task:
    """One call of an experiment's function.

    Examples
    --------
    >>> Task("LinUCB-d50-K200-seed07", {"learner": "LinUCB", "d": 50, "K": 200, "seed": 7}).cost
    1.0
    """

    key: str
    """Its name, and that of its file: letters, digits, `.`, `_` and `-`."""

    arguments: Mapping[str, Any]
    """Keyword arguments: what JSON can hold, numbers, text, lists and dicts."""

    cost: float = 1.0
    """How long it takes, in any unit. Long tasks start first, and the time left is estimated from it."""


def run_tasks(
    function: Callable[..., Any],
    tasks: Sequence[Task],
    folder: str | os.PathLike[str],
    *,
    settings: Mapping[str, Any],
    workers: int | None = None,
    progress: TaskProgress | None = None,
    hire: WorkersOf = Workers,
) -> dict[str, Any]:
    """Call `function` once per task, in parallel processes, and keep every result in `folder` as soon as it is there.

    Run again after Ctrl-C, a crash or a kill, it does what is missing: the files and results are then the same as of
    a run without a break, whatever the number of workers.

    Parameters
    ----------
    function
        A function of a module, or any object that can be called and pickled. It gets a task's arguments as JSON gives
        them back (a tuple as a list) and returns what JSON can hold.
    tasks
        What to run. One that raises does not stop the others: it is reported at the end, and run again the next time.
    folder
        Where results are kept: a new or empty folder, or one of the same experiment. One run at a time can use it.
    settings
        What makes this experiment this one: a folder made with other settings is refused.
    workers
        How many, each with one thread; as many processes as `onlooker.base.threads.n_threads()` by default.
    progress
        Called after every finished task.
    hire
        Where the tasks are run: by processes of this machine by default.

    Returns
    -------
    dict
        Result by task key, in the order of `tasks`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     run_tasks(dict, [Task("a", {"seed": 0}), Task("b", {"seed": 1})], folder, settings={"schema": 1})
    {'a': {'seed': 0}, 'b': {'seed': 1}}
    """
    jobs = _jobs(tasks)
    if workers is not None and workers < 1:
        raise InputError(f"workers is {workers}: pass at least 1")
    with open_ledger(folder, settings) as ledger:
        results = {job.key: result for job in jobs for result in ledger.read(job)}
        missing = [job for job in jobs if job.key not in results]
        pace = _Pace({task.key: task.cost for task in tasks if task.key not in results})
        report = progress or (lambda *_: None)
        report(len(results), len(jobs), None if missing else 0.0)
        failed: dict[str, Outcome] = {}
        with hire(function, workers) as crew:
            for outcome in crew.run(sorted(missing, key=lambda job: -pace.costs[job.key])):
                key = outcome.job.key
                if outcome.error:
                    failed[key] = outcome
                else:
                    ledger.write(outcome.job, outcome.result)
                    results[key] = json.loads(outcome.result)
                pace.note(key, outcome.seconds)
                report(len(results), len(jobs), pace.seconds_left(crew.busy(), crew.number))
    if failed:
        raise _failure([failed[job.key] for job in missing if job.key in failed], len(jobs))
    return {job.key: results[job.key] for job in jobs}


@dataclass
class _Pace:
    """How long the tasks that are not done will take, by their costs."""

    costs: dict[str, float]
    spent: float = 0.0
    seconds: float = 0.0

    def note(self, key: str, seconds: float) -> None:
        self.spent += self.costs.pop(key)
        self.seconds += seconds

    def seconds_left(self, busy: float, workers: int) -> float:
        """Time left for this many workers, when the running tasks have taken `busy` seconds so far."""
        work = self.seconds / self.spent * sum(self.costs.values()) - busy
        return max(work, 0.0) / max(1, min(workers, len(self.costs)))


def _jobs(tasks: Sequence[Task]) -> list[Job]:
    names: dict[str, str] = {}
    for task in tasks:
        if not _KEY.fullmatch(task.key):
            raise InputError(
                f"task key {task.key!r}: use up to 200 letters, digits, '.', '_' and '-', a letter or digit first"
            )
        # Some file systems treat names that differ in case as the same.
        if task.key.lower() in names:
            other = names[task.key.lower()]
            raise InputError(f"task key {task.key!r}: its file name would be the same as that of {other!r}: rename one")
        names[task.key.lower()] = task.key
        if not (task.cost > 0 and math.isfinite(task.cost)):
            raise InputError(f"task {task.key}: cost is {task.cost}, it must be above 0 and finite")
    return [Job(task.key, as_json(dict(task.arguments), f"arguments of task {task.key}")) for task in tasks]


def _failure(failed: Sequence[Outcome], total: int) -> OnlookerError:
    first = failed[0]
    count = f"{len(failed)} of {total} tasks failed" if len(failed) > 1 else "the other tasks are done"
    error = OnlookerError(f"task {first.job.key}: {first.error} ({count}; results are kept, run again to resume)")
    for outcome in failed:
        if outcome.details:
            error.add_note(f"In the worker, task {outcome.job.key}:\n{outcome.details}")
    return error
