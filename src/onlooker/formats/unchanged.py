"""The files of a log, which must not change while they are read: an answer would mix two versions of the log.

A change is noticed by what the system says of a file, and by the content of every part that is read more than once.
"""

from __future__ import annotations

import glob
import os
import stat
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from onlooker.base.errors import InputError
from onlooker.base.text import by_number, shown
from onlooker.formats.open_bandit import ITEMS
from onlooker.logs.layouts import Layout
from onlooker.logs.log import BanditLog

_REMEDY = "an answer would mix two versions of it, so run this again when it is complete, or on a copy"
_TICK = 0.02
"""Seconds within which a file system may give two writes the same time; its clock ticks every 1 to 10 ms."""
_ENDS = 1 << 16
"""Bytes at either end of a file that workers compare; the end of a Parquet file describes the rest of it."""


def is_hidden(name: str) -> bool:
    """Whether a file below a folder is none of its log: it, or a folder above it, begins with a dot or underscore.

    Examples
    --------
    >>> is_hidden("_SUCCESS"), is_hidden("year=2024/.part-0.crc"), is_hidden("year=2024/part-0.parquet")
    (True, True, False)
    """
    return any(part.startswith((".", "_")) for part in name.split("/"))


def is_pattern(name: str) -> bool:
    """Whether a name denotes several files: it has a *, ? or [ and is not itself the name of one."""
    return glob.has_magic(name) and not os.path.lexists(name)


def matching(name: str) -> list[Path]:
    """The files of a folder, of its folders too, or those that match a pattern; in the order of their names."""
    if is_pattern(name):
        found = [Path(one) for one in glob.glob(name, recursive=True)]  # noqa: PTH207  it may begin at the root
        return sorted((path for path in found if not path.is_dir()), key=by_number)
    folder = Path(name)
    inside = (path for path in folder.rglob("*") if not is_hidden(path.relative_to(folder).as_posix()))
    return sorted((path for path in inside if path.is_file()), key=by_number)


@dataclass(frozen=True)
class FileState:
    """The state of a file as reported by the system."""

    device: int
    inode: int
    size: int
    written: int
    """When its content was last written, in nanoseconds; anyone may set this."""
    touched: int
    """When its content, permissions or links last changed, in nanoseconds; only the system sets this."""

    @classmethod
    def of(cls, path: Path) -> FileState | None:
        """The state of a file now; None for what is not an ordinary file."""
        try:
            found = path.stat()
        except OSError as error:
            raise InputError(f"{shown(path)}: cannot be read any more ({error.strerror}): {_REMEDY}") from error
        if not stat.S_ISREG(found.st_mode):
            return None
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)

    def change_to(self, now: FileState, *, touched: bool) -> str:
        """Describe how the file changed; empty if it did not. `touched`: compare its time of change, too."""
        if (now.device, now.inode) != (self.device, self.inode):
            return "was replaced"
        if now.size != self.size:
            done = "grew" if now.size > self.size else "was cut"
            return f"{done} from {self.size:,} to {now.size:,} bytes"
        return "was written to" if now.written != self.written or (touched and now.touched != self.touched) else ""


class UnchangedFiles:
    """The files of a log, as they were when it was opened.

    It can be pickled. Files that a worker finds under the same names may be copies: they must have the same size and
    the same bytes at either end, and must not change from then on.

    Parameters
    ----------
    paths
        The logs, a file or folder each.
    pattern
        The folder or pattern that they were found by, if they were: no other file may come to belong to it.
    """

    def __init__(self, paths: Iterable[Path], pattern: str | None = None) -> None:
        self._paths = [file for path in paths for file in _files_of(path)]
        self._pattern = pattern
        self.compared = False
        """Whether all content will be compared with what it was before: new permissions or links then do not matter."""
        self._matched = self._matching()
        self._known = self._states()
        latest = max((state.touched for state in self._known.values()), default=0)
        if 0 <= time.time() - latest / 1e9 < _TICK:
            # A second write would not show in the times.
            time.sleep(_TICK)
            self._known = self._states()

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Refuse what the block finds if the files change; this error takes precedence over any other."""
        self.check()
        try:
            yield
        except Exception:
            self.check()
            raise
        self.check()

    def check(self) -> None:
        """Refuse files that have changed."""
        for path, known in self._known.items():
            now = FileState.of(path)
            what = "was replaced" if now is None else known.change_to(now, touched=not self.compared)
            if what:
                raise InputError(f"{shown(path)}: {what} while it was read: {_REMEDY}")
        more = self._matching() - self._matched
        if more:
            raise InputError(
                f"{shown(min(more))}: appeared while the files of {self._pattern} were read: run this again, "
                "or name the files"
            )

    def _matching(self) -> set[str]:
        return set() if self._pattern is None else {os.fspath(path) for path in matching(self._pattern)}

    def _states(self) -> dict[Path, FileState]:
        found = {path: FileState.of(path) for path in self._paths}
        return {path: state for path, state in found.items() if state is not None}

    def __getstate__(self) -> dict[str, Any]:
        return {"ends": {path: (known.size, _ends(path)) for path, known in self._known.items()}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._paths, self._pattern, self._matched, self.compared = list(state["ends"]), None, set(), False
        self._known = self._states()
        for path, (size, ends) in state["ends"].items():
            if path not in self._known or self._known[path].size != size or _ends(path) != ends:
                raise InputError(f"{shown(path)}: is not the file that was opened, or has changed since: {_REMEDY}")


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
        return InputError(f"{shown(self._name)}: the content of the log changed while it was read: {_REMEDY}")


def _files_of(path: Path) -> list[Path]:
    """The files that a log may be read from: its own, and a table of items beside it; none where it does not exist."""
    if path.is_dir():
        return [file for file in path.iterdir() if file.is_file()]
    return [file for file in (path, path.parent / ITEMS) if file.is_file()]


def _ends(path: Path) -> int:
    """Checksum of the first and the last bytes."""
    try:
        with open(path, "rb") as file:
            checksum = zlib.crc32(file.read(_ENDS))
            file.seek(-min(_ENDS, os.fstat(file.fileno()).st_size), os.SEEK_END)
            return zlib.crc32(file.read(_ENDS), checksum)
    except OSError as error:
        raise InputError(f"{shown(path)}: cannot be read any more ({error.strerror}): {_REMEDY}") from error
