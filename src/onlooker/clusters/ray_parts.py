"""A log in the memory of a cluster's workers."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np

from onlooker.base.checks import as_number, as_whole, counted
from onlooker.base.errors import ClusterError, InputError
from onlooker.base.types import Index
from onlooker.clusters.link import Link
from onlooker.clusters.part_store import PartStore, Span, packed, shares_of
from onlooker.clusters.pool import Done, Job, Pool
from onlooker.formats import LogScan
from onlooker.logs.categories import Categories
from onlooker.logs.crossing import Crossing
from onlooker.logs.log import BanditLog
from onlooker.logs.parts import Parts, Result, Task


@dataclass(frozen=True)
class RowsByStride:
    """Bytes of a row, and how many rows every `2**j`-th round of the log has in a part, for `j` below `levels`."""

    levels: int

    def __call__(self, part: BanditLog, first: int) -> tuple[int, Index]:
        """Count the rows of a part that begins at round `first`."""
        sizes, strides = part.n_arms, [1 << level for level in range(self.levels)]
        rows = [int(sizes[-first % stride :: stride].sum()) for stride in strides]
        return -(-part.nbytes // max(1, len(part.features))), np.array(rows)


def stride_for(parts: Parts, n_rounds: int, n_bytes: int) -> int:
    """Smallest power of 2 such that every so-many-th of the rounds take no more than `n_bytes`.

    An `EvenSample` of that size would end with this stride, or with a larger one: begun with it, it gives the same.
    """
    width, total = 0, np.zeros(max(1, n_rounds.bit_length()), dtype=np.int64)
    for row, rows in parts.run(RowsByStride(len(total))):
        # Of parts in float32 and in float64 the narrower: a stride too small is mended by the sample.
        width = min(width, row) if width else row
        total += rows
    fits = np.flatnonzero(total <= max(1, n_bytes // max(1, width)))
    return 1 << int(fits[0] if len(fits) else len(total) - 1)


DEADLINE = 900.0
"""Seconds that a pass may take, the first one with loading."""


class RayParts:
    """The parts of a scan, kept by the workers of a Ray cluster.

    `SuffixImitation` and `burn_in_sweep` take it in place of a log. Every worker reads its own parts from the files and
    keeps them; tasks go out, and what they find comes back. Results come in the order of the parts, which are those of
    the scan: sums over them are those of the scan, bit for bit. A worker that dies is replaced, and what it had in hand
    is done again. Files that change until all is loaded, or that a new worker finds changed, are refused.

    Parameters
    ----------
    scan
        What `scan_log` gave. Workers must find its files under the same names.
    address
        Of the cluster, as `HOST:PORT` or `auto`; a cluster of our own on this machine by default.
    workers
        How many, each with a core; as many as the cluster has, or as `onlooker.base.threads.n_threads()` says.
    deadline
        Seconds that a pass may take before it is given up with an error.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from onlooker import Environment, LinTS, SuffixImitation, scan_log, simulate, write_log
    >>> with TemporaryDirectory() as folder:
    ...     write_log(simulate(Environment(5, 10), LinTS(), n_rounds=2000).log, f"{folder}/day1.parquet")
    ...     with RayParts(scan_log(f"{folder}/day*.parquet"), workers=1) as parts:
    ...         observer = SuffixImitation(burn_in="rule").fit(parts)
    >>> observer.n_rounds_
    1065
    """

    def __init__(
        self, scan: LogScan, *, address: str | None = None, workers: int | None = None, deadline: float = DEADLINE
    ) -> None:
        if not isinstance(scan, LogScan):
            raise InputError(f"a {type(scan).__name__} cannot be spread over a cluster: pass what scan_log gives")
        self._scan = scan
        self._deadline = as_number(deadline, "deadline", above=0.0)
        number = None if workers is None else as_whole(workers, "workers", least=1)
        self.link = Link(address, number)
        """The cluster."""
        try:
            self._shares = dict(enumerate(shares_of(scan, self.link.workers)))
            homes: dict[Hashable, int] = {share: share for share in self._shares}
            self._crew = Pool(self.link, packed(PartStore(scan)), len(self._shares), homes)
            self._parts = self._loaded()
        except BaseException:
            self.close()
            raise

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """One name per feature, or None."""
        return self._scan.feature_names

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return self._scan.n_features

    @property
    def crossing(self) -> Crossing | None:
        """What each weight belongs to, where features are made of contexts and arms; else None."""
        return self._scan.crossing

    @property
    def categories(self) -> Categories | None:
        """Levels of every category by its column, the reference first, or None."""
        return self._scan.categories

    @property
    def n_workers(self) -> int:
        """How many workers keep parts."""
        return self._crew.number

    @property
    def sample_bytes(self) -> int:
        """Memory that the features of a sample of the rounds may take."""
        return self._scan.sample_bytes

    def stride_for(self, n_bytes: int) -> int:
        """How far apart rounds must be to take no more than `n_bytes`: a power of 2."""
        return stride_for(self, sum(n_rounds for n_rounds, _ in self._parts.values()), n_bytes)

    def run(self, task: Task[Result], start: int = 0, stop: int | None = None) -> Iterator[Result]:
        """Run the task on every part that has rounds from `start` to before `stop`, cut to these; results in order."""
        spans: dict[int, list[Span]] = {share: [] for share in self._shares}
        order, first = [], 0
        for part, (n_rounds, share) in self._parts.items():
            begin = max(0, start - first)
            end = n_rounds if stop is None else min(stop - first, n_rounds)
            if begin < end:
                spans[share].append(Span(part, self._scan.held.known[part], begin, end, first + begin))
                order.append(part)
            first += n_rounds
        jobs = [Job(share, (self._shares[share], task, wanted)) for share, wanted in spans.items() if wanted]
        found: dict[int, Any] = {}
        coming = iter(order)
        part = next(coming, -1)
        for done in self._crew.run(jobs, self._deadline):
            found.update(_result(done))
            while part in found:
                yield found.pop(part)
                part = next(coming, -1)

    def close(self) -> None:
        """Let the workers go, and end a cluster of our own."""
        self.link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        parts, workers = counted(len(self._parts), "part"), counted(self.n_workers, "worker")
        return f"RayParts({parts} on {workers}, {counted(self.n_features, 'feature')})"

    def _loaded(self) -> dict[int, tuple[int, int]]:
        """Rounds and share of every part, oldest first, once all are loaded."""
        jobs = [Job(share, (self._shares[share],)) for share in self._shares]
        parts: dict[int, tuple[int, int]] = {}
        for done in self._crew.run(jobs, self._deadline):
            for part, (held, kept) in _result(done):
                # Workers that came upon the same part must have found the same in it.
                self._scan.held.see(part, held)
                if kept:
                    parts[part] = held.n_rounds, cast("int", done.job.key)
        self._scan.check_unchanged()
        if not parts:
            raise InputError(f"{self._scan.name}: holds no rounds: nothing was offered")
        return dict(sorted(parts.items()))


def _result(done: Done) -> list[tuple[int, Any]]:
    answer = done.answer
    for warning in answer.warnings:
        warnings.warn(warning, stacklevel=2)
    if answer.error:
        error = InputError(answer.error) if answer.is_input else ClusterError(f"a worker failed: {answer.error}")
        if answer.details:
            error.add_note(f"In the worker:\n{answer.details}")
        raise error
    return cast("list[tuple[int, Any]]", answer.result)
