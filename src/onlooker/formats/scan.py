"""Logs that are not loaded: larger than memory, or spread over many files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from onlooker.categories import Categories
from onlooker.checks import counted
from onlooker.errors import InputError
from onlooker.formats.format import Format, Scanned, Stretch, named
from onlooker.log import BanditLog, as_log
from onlooker.memory_limit import Room, check_held, memory_limited
from onlooker.parts import Result, Task
from onlooker.survey import SAMPLE_BYTES
from onlooker.threads import ahead, ordered_map


class LogScan:
    """A log that stays in its files; made by `scan_log`.

    Iterating gives it in parts, each a `BanditLog` of whole rounds, oldest first, as often as asked; the next one is
    read while the last one is worked on. `SuffixImitation`, `TrackingObserver`, `burn_in_sweep` and `diagnose` take a
    scan in place of a log.
    """

    def __init__(self, paths: Sequence[Path], scanned: Scanned, limit: int | None = None) -> None:
        self.paths = tuple(paths)
        """The files, in order."""
        self.memory_limit = limit
        """Peak memory in bytes that working on the scan may take, or None."""
        self._scanned = scanned
        if limit is not None:
            scanned.batch_rows = Room(limit, scanned.n_features).batch_rows

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """One name per feature, or None."""
        return self._scanned.feature_names

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return self._scanned.n_features

    @property
    def categories(self) -> Categories | None:
        """Levels of every category by its column, the reference first, or None."""
        return self._scanned.categories

    @property
    def sample_bytes(self) -> int:
        """Memory that the features of a sample of the rounds may take."""
        return SAMPLE_BYTES if self.memory_limit is None else Room(self.memory_limit, self.n_features).sample_bytes

    def __iter__(self) -> Iterator[BanditLog]:
        return self._limited(self._not_empty(ahead(self._scanned)))

    def run(self, task: Task[Result], start: int = 0, stop: int | None = None) -> Iterator[Result]:
        """Run the task on every part that has rounds from `start` to before `stop`, cut to these; results in order.

        Parts are read and worked on side by side, by as many threads as there are, which gives the same results as one.
        """

        def work(stretch: tuple[int, Stretch]) -> Result:
            first, log = stretch[0], stretch[1].read()
            begin = max(0, start - first)
            return task(log[begin : None if stop is None else stop - first], first + begin)

        found = ordered_map(work, _placed(self._stretches(), start, stop), per_thread=2)
        return self._limited(self._not_empty(found) if start == 0 and stop is None else found)

    def stretches(self) -> Iterator[Stretch] | None:
        """The parts that `run` works on, each to be read by itself; None where they can only be read in order."""
        return self._scanned.stretches()

    def _stretches(self) -> Iterator[Stretch]:
        stretches = self.stretches()
        if stretches is not None:
            return stretches
        return (Stretch(log.n_rounds, partial(as_log, log)) for log in ahead(self._scanned))

    def _limited(self, found: Iterator[Result]) -> Iterator[Result]:
        with memory_limited(self.memory_limit):
            yield from found

    def _not_empty(self, found: Iterator[Result]) -> Iterator[Result]:
        empty = True
        for one in found:
            empty = False
            yield one
        if empty:
            raise InputError(f"{self.paths[0]}: holds no rounds: nothing was offered")

    def read(self) -> BanditLog:
        """Load all of it."""
        return joined(list(self))

    def __repr__(self) -> str:
        return f"LogScan({counted(len(self.paths), 'file')}, {counted(self.n_features, 'feature')})"


class WholeFiles:
    """Files of a format that is read whole: one at a time, the later ones encoded like the first."""

    def __init__(self, found: Format, paths: Sequence[Path], batch_rows: int, options: dict[str, Any]) -> None:
        self._format, self._paths, self.batch_rows, self._options = found, paths, batch_rows, options
        self._head = self._read(paths[0])[:1]
        if "like" in signature(found.read).parameters and self._head.feature_names is not None:
            encoded = {"like": self._head}
            self._options = {
                name: options[name] for name in options if name not in {"features", "categories"}
            } | encoded

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """One name per feature, or None."""
        return self._head.feature_names

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self._head.n_features

    @property
    def categories(self) -> Categories | None:
        """Levels of the features that came from text, or None."""
        return self._head.categories

    def __iter__(self) -> Iterator[BanditLog]:
        for path in self._paths:
            log = self._read(path)
            if (log.feature_names, log.n_features) != (self.feature_names, self.n_features):
                raise InputError(f"{path}: has other features than {self._paths[0]}: scan it alone")
            start = 0
            while start < log.n_rounds:
                stop = int(np.searchsorted(log.offsets, log.offsets[start] + self.batch_rows, side="right")) - 1
                stop = max(stop, start + 1)
                yield log[start:stop]
                start = stop

    def stretches(self) -> None:
        """Files are read one at a time, so that only one is in memory."""

    def _read(self, path: Path) -> BanditLog:
        with named(path, "read"):
            log = self._format.read(path, **self._options)
            check_held(log.features.nbytes)
        return log


def _placed(stretches: Iterable[Stretch], start: int, stop: int | None) -> Iterator[tuple[int, Stretch]]:
    """Those that have rounds from `start` to before `stop`, each with its first round."""
    first = 0
    for stretch in stretches:
        if stop is not None and first >= stop:
            return
        if first + stretch.n_rounds > start:
            yield first, stretch
        first += stretch.n_rounds


def joined(logs: Sequence[BanditLog]) -> BanditLog:
    """Logs laid end to end as one.

    Examples
    --------
    >>> log = BanditLog(np.eye(3), offsets=[0, 1, 3], chosen=[0, 1])
    >>> joined([log[:1], log[1:]])
    BanditLog(2 rounds, 1 to 2 arms, 3 features, float64)
    """
    if not logs:
        raise InputError("there are no rounds: nothing was offered")
    first = as_log(logs[0])
    sizes = np.concatenate([log.n_arms for log in logs])
    return BanditLog(
        np.concatenate([log.features for log in logs]),
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([log.chosen for log in logs]),
        feature_names=first.feature_names,
        round_ids=None if first.round_ids is None else np.concatenate([log.round_ids for log in logs]),
        arm_ids=None if first.arm_ids is None else np.concatenate([log.arm_ids for log in logs]),
        times=None if first.times is None else np.concatenate([log.times for log in logs]),
        categories=first.categories,
    )
