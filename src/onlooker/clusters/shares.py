"""Which parts of a log each worker keeps, and how it gets them: from the files, by itself."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from onlooker.errors import InputError
from onlooker.formats import FORMATS, LogScan
from onlooker.formats.format import Format
from onlooker.log import BanditLog


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
        """How to make an object anew."""
        if isinstance(obj, Format):
            return _format, (FORMATS.index(obj),)
        return NotImplemented
