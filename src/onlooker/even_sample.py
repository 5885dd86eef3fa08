"""Rounds at even distances, gathered in bounded memory while nobody knows yet how many there will be."""

from __future__ import annotations

import numpy as np

from onlooker.log import BanditLog
from onlooker.types import Features, Index

_MOVED_ROWS = 1 << 14
"""Rows that are moved at a time when the sample is thinned."""


class EvenSample:
    """Every `stride`-th round of a log that comes in parts; the stride doubles whenever they would take too much room.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.arange(16.0).reshape(8, 2, 1), chosen=[0] * 8)
    >>> sample = EvenSample(n_bytes=64)
    >>> sample.add(log[:5], 0)
    >>> sample.add(log[5:], 5)
    >>> sample.stride, sample.log().features[::2, 0]
    (2, array([ 0.,  4.,  8., 12.]))
    """

    def __init__(self, n_bytes: int, stride: int = 1) -> None:
        self.stride = stride
        """Distance between the rounds that are kept."""
        self._n_bytes = n_bytes
        self._rows: Features = np.empty((0, 1))
        self._sizes: list[Index] = []
        self._chosen: list[Index] = []
        self._n_rows = 0
        self._like: BanditLog | None = None

    def add(self, rounds: BanditLog, first: int, stride: int = 1) -> None:
        """Take the rounds `first`, `first + stride` and so on of the log, `first` a multiple of the stride."""
        self._like = rounds[:0] if self._like is None else self._like
        taken = self._taken(rounds, first, stride)
        while not self._fits(taken):
            self._thin()
            taken = self._taken(rounds, first, stride)
        stop = self._n_rows + len(taken.features)
        self._rows[self._n_rows : stop] = taken.dense
        self._n_rows = stop
        self._sizes.append(taken.n_arms)
        self._chosen.append(taken.chosen)

    def log(self) -> BanditLog:
        """What was kept, without ids; it shares the sample's memory."""
        assert self._like is not None
        return BanditLog(
            self._rows[: self._n_rows],
            np.concatenate([[0], *map(np.asarray, self._sizes)]).cumsum(),
            np.concatenate(self._chosen),
            feature_names=self._like.feature_names,
            categories=self._like.categories,
        )

    def _taken(self, rounds: BanditLog, first: int, stride: int) -> BanditLog:
        apart = self.stride // stride
        return rounds if apart == 1 else rounds[(-(first // stride)) % apart :: apart]

    def _fits(self, taken: BanditLog) -> bool:
        """Whether the rounds fit in; room is made for them where thinning cannot."""
        dtype = np.result_type(self._rows, taken.features) if self._n_rows else taken.features.dtype
        room = max(1, self._n_bytes // (taken.n_features * dtype.itemsize))
        kept = sum(map(len, self._sizes)) + taken.n_rounds
        needed = self._n_rows + len(taken.features)
        if needed > room and kept > 1:
            return False
        if needed > len(self._rows) or dtype != self._rows.dtype:
            # Memory that is never written to is never taken.
            rows: Features = np.empty((max(room, needed), taken.n_features), dtype=dtype)
            rows[: self._n_rows] = self._rows[: self._n_rows]
            self._rows = rows
        return True

    def _thin(self) -> None:
        """Keep every second round, in place."""
        self.stride *= 2
        if not self._sizes:
            return
        sizes, chosen = np.concatenate(self._sizes), np.concatenate(self._chosen)
        offsets = np.concatenate([[0], sizes.cumsum()])
        starts, sizes = offsets[:-1][::2], sizes[::2]
        ends = np.concatenate([[0], sizes.cumsum()])
        source = np.repeat(starts - ends[:-1], sizes) + np.arange(ends[-1])
        for begin in range(0, len(source), _MOVED_ROWS):
            rows = source[begin : begin + _MOVED_ROWS]
            self._rows[begin : begin + len(rows)] = self._rows[rows]
        self._n_rows = len(source)
        self._sizes, self._chosen = [sizes], [chosen[::2]]
