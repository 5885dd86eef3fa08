"""What a worker does for a log: it keeps its parts in memory and runs tasks on them."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from onlooker.base.errors import InputError
from onlooker.formats import FORMATS, LogScan
from onlooker.formats.format import Format
from onlooker.formats.scan import Held
from onlooker.logs.log import BanditLog
from onlooker.logs.parts import Task


@dataclass(frozen=True)
class Share:
    """Parts number `first`, `first + step`, ... before `stop`."""

    first: int
    stop: int | None
    step: int

    def read(self, scan: LogScan) -> Iterator[tuple[int, BanditLog]]:
        """Its parts with their numbers."""
        return scan.numbered(self.first, self.stop, self.step)


def shares_of(scan: LogScan, workers: int) -> list[Share]:
    """A share for every worker, or fewer where there are fewer parts.

    Parts that can be read by themselves are dealt out in runs of about as many rounds. Others can only be come upon by
    reading all: every worker reads the whole log and keeps every so-many-th part.
    """
    stretches = scan.stretches()
    if stretches is None:
        return [Share(worker, None, workers) for worker in range(workers)]
    ends = np.cumsum([stretch.n_rounds for stretch in stretches])
    if not len(ends):
        raise InputError(f"{scan.name}: holds no rounds: nothing was offered")
    shared = np.searchsorted(ends, ends[-1] * np.arange(1, workers) / workers, side="right")
    bounds = sorted({0, *shared.tolist(), len(ends)})
    return [Share(first, stop, 1) for first, stop in pairwise(bounds)]


def packed(value: object) -> bytes:
    """Pickle a scan, or something that holds one.

    Examples
    --------
    >>> pickle.loads(packed(FORMATS[0])) is FORMATS[0]
    True
    """
    buffer = io.BytesIO()
    _Pickler(buffer).dump(value)
    return buffer.getvalue()


def _format(place: int) -> Format:
    return FORMATS[place]


class _Pickler(pickle.Pickler):
    """A pickler that knows a format by its place in the list."""

    def reducer_override(self, obj: Any) -> Any:
        """How to rebuild an object."""
        if isinstance(obj, Format):
            return _format, (FORMATS.index(obj),)
        return NotImplemented


@dataclass(frozen=True)
class Span:
    """Rounds of a part that a task is run on."""

    part: int
    """Number of the part."""
    held: Held
    """What the part held when it was first read, by whichever worker."""
    begin: int
    """First round of it, counted within the part."""
    end: int
    """Before which round it ends."""
    first: int
    """Which round of the log that first one is."""


class PartStore:
    """Parts of a log, loaded when they are first needed: by the first task, or by a worker that takes over."""

    def __init__(self, scan: LogScan) -> None:
        self._scan = scan
        self._kept: dict[Share, dict[int, BanditLog]] = {}

    def __call__(
        self, share: Share, task: Task[Any] | None = None, spans: Sequence[Span] = ()
    ) -> list[tuple[int, Any]]:
        """Number and result of every span's part.

        Without a task, number of every part that was come upon, with what it held and whether it is kept.
        """
        if share not in self._kept:
            self._kept[share] = dict(share.read(self._scan))
        parts = self._kept[share]
        if task is None:
            return [(number, (held, number in parts)) for number, held in self._scan.held.known.items()]
        return [(span.part, task(self._part(parts, span)[span.begin : span.end], span.first)) for span in spans]

    def _part(self, parts: dict[int, BanditLog], span: Span) -> BanditLog:
        part = parts.get(span.part)
        if part is None or self._scan.held.known[span.part] != span.held:
            raise InputError(f"{self._scan.name}: the log has changed since it was opened: run this again")
        return part
