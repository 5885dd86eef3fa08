"""Logs that are not loaded: larger than memory, or spread over many files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from onlooker.categories import Categories
from onlooker.errors import InputError
from onlooker.formats.format import Format, Scanned, named
from onlooker.log import BanditLog, as_log


class LogScan:
    """A log that stays in its files; made by `scan_log`.

    Iterating gives it in parts, each a `BanditLog` of whole rounds, oldest first, as often as asked.
    """

    def __init__(self, paths: Sequence[Path], scanned: Scanned) -> None:
        self.paths = tuple(paths)
        """The files, in order."""
        self._scanned = scanned

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

    def __iter__(self) -> Iterator[BanditLog]:
        empty = True
        for log in self._scanned:
            empty = False
            yield log
        if empty:
            raise InputError(f"{self.paths[0]}: holds no rounds: nothing was offered")

    def read(self) -> BanditLog:
        """Load all of it."""
        return joined(list(self))

    def __repr__(self) -> str:
        return f"LogScan({len(self.paths)} files, {self.n_features} features)"


class WholeFiles:
    """Files of a format that is read whole: one at a time, the later ones encoded like the first."""

    def __init__(self, found: Format, paths: Sequence[Path], batch_rows: int, options: dict[str, Any]) -> None:
        self._format, self._paths, self._batch_rows, self._options = found, paths, batch_rows, options
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
                stop = int(np.searchsorted(log.offsets, log.offsets[start] + self._batch_rows, side="right")) - 1
                stop = max(stop, start + 1)
                yield log[start:stop]
                start = stop

    def _read(self, path: Path) -> BanditLog:
        with named(path, "read"):
            return self._format.read(path, **self._options)


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
        categories=first.categories,
    )
