"""Logs that are not loaded: larger than memory, or spread over many files."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np

from onlooker.base.checks import counted
from onlooker.base.errors import InputError
from onlooker.base.memory_limit import Room, check_held, limit_in_force, may_hold, memory_limited
from onlooker.base.text import shown
from onlooker.base.threads import ahead, ordered_map
from onlooker.base.types import Ids
from onlooker.formats.format import Format, Scanned, Stretch, named
from onlooker.formats.places import REMEDY, Place, UnchangedFiles
from onlooker.formats.text_lines import LogFile
from onlooker.logs.categories import Categories, Encoded, Growing
from onlooker.logs.crossing import Crossing
from onlooker.logs.layouts import Layout, SparseRows
from onlooker.logs.log import BanditLog, as_log
from onlooker.logs.parts import Result, Task
from onlooker.logs.parts_summary import SAMPLE_BYTES


class LogScan:
    """A log that stays in its files; made by `scan_log`.

    Iterating gives it in parts, each a `BanditLog` of whole rounds, oldest first, as often as asked; the next one is
    read while the last one is worked on. `SuffixImitation`, `TrackingObserver`, `burn_in_sweep` and `diagnose` take a
    scan in place of a log. Files that change in the meantime are refused: what was found would be of two versions.
    """

    def __init__(self, place: Place, scanned: Scanned, files: UnchangedFiles, limit: int | None = None) -> None:
        self.paths = tuple(place.paths)
        """The files, in order, or copies of them; none where a table of another library is scanned."""
        self._place = place
        self.name = place.name if place.table is not None or len(self.paths) > 1 else place.called(self.paths[0])
        """Its name in messages."""
        self.memory_limit = limit
        """Peak memory in bytes that working on the scan may take, or None."""
        self._scanned, self._files = scanned, files
        self.held = UnchangedParts(self.name)
        """What every part that `run` works on held when it was first read."""
        if limit is not None:
            scanned.batch_rows = Room(limit, scanned.n_features, scanned.row_bytes).batch_rows

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
    def crossing(self) -> Crossing | None:
        """What each weight belongs to, where features are made of contexts and arms; else None."""
        found: Crossing | None = getattr(self._scanned, "crossing", None)
        return found

    @property
    def all_arms(self) -> Ids:
        """Ids of all arms, where the log has a fixed set of them; else none."""
        return np.asarray(getattr(self._scanned, "arms", ()))

    @property
    def is_sparse(self) -> bool:
        """Whether parts keep only what is not 0."""
        return self._scanned.row_bytes is not None

    @property
    def sample_bytes(self) -> int:
        """Memory that the features of a sample of the rounds may take."""
        return SAMPLE_BYTES if self.memory_limit is None else Room(self.memory_limit, self.n_features).sample_bytes

    def __iter__(self) -> Iterator[BanditLog]:
        return self._guarded(self._not_empty(ahead(self._scanned)), compared=False)

    def run(self, task: Task[Result], start: int = 0, stop: int | None = None) -> Iterator[Result]:
        """Run the task on every part that has rounds from `start` to before `stop`, cut to these; results in order.

        Parts are read and worked on side by side, by as many threads as there are, which gives the same results as one.
        """

        def work(placed: tuple[int, int, Stretch]) -> Result:
            number, first, stretch = placed
            log = _read(number, stretch, self.held)
            begin = max(0, start - first)
            return task(log[begin : None if stop is None else stop - first], first + begin)

        most = None if self.memory_limit is None else Room(self.memory_limit, self.n_features).parts_at_once
        found = ordered_map(work, _placed(self._stretches(), start, stop), per_thread=2, most=most)
        return self._guarded(self._not_empty(found) if start == 0 and stop is None else found)

    def numbered(self, first: int = 0, stop: int | None = None, step: int = 1) -> Iterator[tuple[int, BanditLog]]:
        """Parts number `first`, `first + step`, ... before `stop`; others are not read where possible."""
        every, wanted = self._stretches(), range(first, sys.maxsize if stop is None else stop, step)
        if self.stretches() is not None:
            every = islice(every, first, stop, step)
        read = ((number, _read(number, one, self.held)) for number, one in every)
        return self._guarded(pair for pair in read if pair[0] in wanted)

    def stretches(self) -> Iterator[Stretch] | None:
        """The parts of `run`, each of which can be read on its own; None where they can only be read in order."""
        return self._scanned.stretches()

    def check_unchanged(self) -> None:
        """Refuse files that have changed since they were opened."""
        self._files.check()

    def _stretches(self) -> Iterator[tuple[int, Stretch]]:
        stretches = self.stretches()
        if stretches is None:
            stretches = (Stretch(log.n_rounds, partial(as_log, log)) for log in ahead(self._scanned))
        return _counted(stretches, self.held)

    def _guarded(self, found: Iterator[Result], *, compared: bool = True) -> Iterator[Result]:
        """Read under the memory limit, with an error if the files change; every pass uses this.

        What `run` works on is `compared` with what it was before; beyond that there is what the system says.
        """
        self._files.compared = compared and self.held.complete
        with memory_limited(self.memory_limit), self._place.said(), self._files.checked():
            yield from found

    def _not_empty(self, found: Iterator[Result]) -> Iterator[Result]:
        empty = True
        for one in found:
            empty = False
            yield one
        if empty:
            raise InputError(f"{self.name}: holds no rounds: nothing was offered")

    def read(self) -> BanditLog:
        """Load the whole log."""
        return BanditLog.concat(list(self))

    def __repr__(self) -> str:
        held = counted(len(self.paths), "file") if self.paths else self.name
        return f"LogScan({held}, {counted(self.n_features, 'feature')})"


class WholeFiles:
    """Files of a format that is read whole: one at a time, encoded alike.

    What was read is kept for the next pass, as far as a memory limit has room for it: text takes long to parse.
    """

    def __init__(self, found: Format, files: Sequence[LogFile], batch_rows: int, options: dict[str, Any]) -> None:
        self._format, self._files, self.batch_rows, self._options = found, files, batch_rows, options
        self._kept: dict[int, BanditLog] = {}
        first = self._read(files[0])
        head = first[:1]
        self._sparse = isinstance(first.features, Layout)
        self.row_bytes = -(-first.nbytes // len(first.features)) if self._sparse else None
        self.feature_names, self.n_features, self.categories = head.feature_names, head.n_features, head.categories
        if found.by_name and head.feature_names is not None:
            self._like(head if options.get("features") or options.get("like") else self._grown(head))

    def _like(self, known: Encoded) -> None:
        self._options = {name: value for name, value in self._options.items() if name != "features"} | {"like": known}

    def _grown(self, head: BanditLog) -> BanditLog:
        """Rounds with the features of all files: a later one may name some for the first time, which are 0 before."""
        for file in self._files[1:]:
            if self._options.get("cross"):
                more = {*(self._read(file).feature_names or ())} - {*(head.feature_names or ())}
                if more:
                    remedy = "read the files whole, as read_log does, or name the features"
                    raise InputError(f"{file.path}: has {min(more)!r}, which {self._files[0].path} lacks: {remedy}")
                continue
            self._like(Growing(head.feature_names, head.categories))
            head = self._read(file)[:1]
        self.feature_names, self.n_features, self.categories = head.feature_names, head.n_features, head.categories
        return head

    def __iter__(self) -> Iterator[BanditLog]:
        from scipy.sparse import csr_array

        for number, file in enumerate(self._files):
            log = self._known(number, file)
            if (log.feature_names, log.n_features) != (self.feature_names, self.n_features):
                raise InputError(f"{file.path}: has other features than {self._files[0].path}: scan it alone")
            if isinstance(log.features, Layout) != self._sparse:
                # Parts are all of one layout, that of the first file.
                rows = SparseRows.of(csr_array(log.dense)) if self._sparse else log.dense
                log = log.with_features(rows, log.feature_names, log.categories)
            start = 0
            while start < log.n_rounds:
                stop = int(np.searchsorted(log.offsets, log.offsets[start] + self.batch_rows, side="right")) - 1
                stop = max(stop, start + 1)
                yield log[start:stop]
                start = stop

    def stretches(self) -> None:
        """Files are read one at a time, so that only one is in memory."""

    def _known(self, number: int, file: LogFile) -> BanditLog:
        """The rounds of a file: read, unless they are kept."""
        if number in self._kept:
            return self._kept[number]
        log = self._read(file)
        taken = log.nbytes + sum(kept.nbytes for kept in self._kept.values())
        # Alone it is in memory during a pass in any case.
        if limit_in_force() is not None and (len(self._files) == 1 or may_hold(taken)):
            self._kept[number] = log
        return log

    def __getstate__(self) -> dict[str, Any]:
        # Workers read their own files.
        return vars(self) | {"_kept": {}}

    def _read(self, file: LogFile) -> BanditLog:
        with named(file.path, "read"), file:
            log = self._format.read(file, **self._options)
            check_held(log.nbytes)
        return log


def _counted(stretches: Iterable[Stretch], held: UnchangedParts) -> Iterator[tuple[int, Stretch]]:
    """The same with their numbers; as many of as many rounds as before."""
    count = 0
    for number, stretch in enumerate(stretches):
        held.see_rounds(number, stretch.n_rounds)
        yield number, stretch
        count += 1
    held.see_end(count)


def _read(number: int, stretch: Stretch, held: UnchangedParts) -> BanditLog:
    """Read a part that holds what it held before."""
    log = stretch.read()
    held.see(number, Held.by(log))
    return log


def _placed(
    stretches: Iterable[tuple[int, Stretch]], start: int, stop: int | None
) -> Iterator[tuple[int, int, Stretch]]:
    """Those that have rounds from `start` to before `stop`: number, first round, and how it is read."""
    first = 0
    for number, stretch in stretches:
        if stop is not None and first >= stop:
            return
        if first + stretch.n_rounds > start:
            yield number, first, stretch
        first += stretch.n_rounds


@dataclass(frozen=True)
class Held:
    """What a part held."""

    n_rounds: int
    checksum: int
    """Of its offers and picks."""

    @classmethod
    def by(cls, log: BanditLog) -> Self:
        """Compute the checksums of a part, as fast as memory can be read: negligible beside a pass of a fit.

        Examples
        --------
        >>> log = BanditLog(np.eye(3), offsets=[0, 1, 3], chosen=[0, 1])
        >>> Held.by(log) == Held.by(log[:]), Held.by(log) == Held.by(BanditLog(np.eye(3), [0, 1, 3], [0, 0]))
        (True, False)
        """
        from onlooker.kernels.checksums import bits_checksum

        checksum = 0
        for array in log.features.arrays if isinstance(log.features, Layout) else (log.features,):
            values = np.ascontiguousarray(array).reshape(-1)
            checksum = checksum << 64 | int(bits_checksum(values.view(f"u{values.itemsize}")))
        for positions in (log.n_arms, log.chosen_or_unknown):
            checksum = checksum << 32 | zlib.crc32(np.ascontiguousarray(positions).data)
        return cls(log.n_rounds, checksum)


class UnchangedParts:
    """What every part of a log held when it was first read: whoever reads one again must find the same."""

    def __init__(self, name: Path | str) -> None:
        self._name = name
        self.known: dict[int, Held] = {}
        """By the number of the part."""
        self._count: int | None = None

    @property
    def complete(self) -> bool:
        """Whether every part was read."""
        return len(self.known) == self._count

    def see(self, number: int, held: Held) -> None:
        """Remember what a part holds, or compare it."""
        if self.known.setdefault(number, held) != held or (self._count is not None and number >= self._count):
            raise self._changed()

    def see_rounds(self, number: int, n_rounds: int) -> None:
        """Compare the rounds of a part, of which no more may be read."""
        known = self.known.get(number)
        if known is not None and known.n_rounds != n_rounds:
            raise self._changed()

    def see_end(self, count: int) -> None:
        """Remember how many parts there are, or compare that."""
        if self._count not in {None, count}:
            raise self._changed()
        self._count = count

    def _changed(self) -> InputError:
        return InputError(f"{shown(self._name)}: the content of the log changed while it was read: {REMEDY}")
