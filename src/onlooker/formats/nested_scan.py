"""Nested Parquet that is not loaded: batches of rounds, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.categories import Encoded
from onlooker.errors import InputError
from onlooker.formats.aligning import aligned
from onlooker.formats.format import Stretch, named
from onlooker.formats.nested_file import NestedFile
from onlooker.formats.row_groups import Rounds
from onlooker.log import BanditLog
from onlooker.moments import check_one_kind

_SMALL_GROUP = 1 << 20
"""Row groups of so many feature values, twice what `write_log` makes them, are read whole however small the batch."""


class NestedScan:
    """The log in some nested files, one after the other."""

    def __init__(self, files: Sequence[NestedFile], batch_rows: int, like: Encoded | None) -> None:
        self._files, self.batch_rows, self._like = files, batch_rows, like
        first = files[0]
        for file in files:
            if file.names != first.names or file.categories != first.categories:
                raise InputError(f"{file.path}: has other features than {first.path}: scan it alone")
        with named(first.path, "read"):
            rounds = next(first.batches(1), None)
            if rounds is None:
                raise InputError("holds no rounds: nothing was offered")
            log = first.log(rounds)
            self._width = log.n_features
            head = log if like is None else aligned(log, like)
            self.feature_names, self.n_features, self.categories = head.feature_names, head.n_features, head.categories

    def __iter__(self) -> Iterator[BanditLog]:
        last: NDArray[Any] | None = None
        for file in self._files:
            with named(file.path, "read"):
                for rounds in file.batches(self.batch_rows):
                    if rounds.times is not None:
                        assert file.columns.order_by is not None
                        last = _check_times(rounds, last, file.columns.order_by)
                    yield self._log(file, rounds)

    def stretches(self) -> Iterator[Stretch] | None:
        """The same rounds by row groups; None where those are large, or where times have to be checked in order."""
        largest = max(max(file.values, default=0) for file in self._files)
        large = largest > max(2 * self.batch_rows * self._width, _SMALL_GROUP)
        return None if large or self._files[0].columns.order_by is not None else self._by_groups()

    def _by_groups(self) -> Iterator[Stretch]:
        for file in self._files:
            runs = list(file.neighbours(self.batch_rows * self._width))
            with named(file.path, "read"):
                file.check(max(map(file.n_rounds, runs), default=1))
            for groups in runs:
                yield Stretch(file.n_rounds(groups), partial(self._read, file, groups))

    def _read(self, file: NestedFile, groups: range) -> BanditLog:
        with named(file.path, "read"):
            return self._log(file, file.read_groups(groups))

    def _log(self, file: NestedFile, rounds: Rounds) -> BanditLog:
        log = file.log(rounds)
        if log.n_features != self._width and self._like is None:
            raise InputError(f"has {log.n_features} features, but before {self._width}: scan it alone")
        return log if self._like is None else aligned(log, self._like)


def _check_times(rounds: Rounds, last: NDArray[Any] | None, column: str) -> NDArray[Any]:
    """No time falls; gives the last one, on its own."""
    times = rounds.times
    assert times is not None
    if last is not None:
        check_one_kind(times, last, column)
        times = np.concatenate([last, times])
    falls = np.flatnonzero(times[1:] < times[:-1])
    if len(falls):
        before, after = times[falls[0]], times[falls[0] + 1]
        raise InputError(
            f"column {column!r} falls from {before} to {after}: a scan cannot sort, so read the file whole"
        )
    return times[-1:]
