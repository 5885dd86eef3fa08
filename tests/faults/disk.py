"""A disk that fails: the calls by which files come to be are counted, and one of them does what it is told."""

import io
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock


def kill() -> None:
    """End this process as the system does when it runs out of memory."""
    os.kill(os.getpid(), signal.SIGKILL)


class Disk:
    """Calls are numbered from 0. That of number `at` fails by `strike`; a write does so after half of its bytes."""

    def __init__(self, strike: Callable[[], None] | int, at: int, *, lasting: bool) -> None:
        self._strike, self._at, self._lasting = strike, at, lasting
        self.calls: list[str] = []
        self.moved: set[Path] = set()

    def bad(self, name: str) -> bool:
        """Count a call; say whether it is to fail."""
        self.calls.append(name)
        number = len(self.calls) - 1
        return number == self._at or (self._lasting and number > self._at >= 0)

    def strike(self) -> None:
        """Fail."""
        if isinstance(self._strike, int):
            raise OSError(self._strike, os.strerror(self._strike))
        self._strike()

    def around(self, name: str, *, after: bool = False) -> Callable:
        """A function of `os` that is counted and may fail, before or after it does its work."""
        # What survives a kill need not be on the disk: only a power failure would tell, and syncing takes its time.
        real = getattr(os, name) if name != "fsync" else lambda _: None

        def call(*arguments, **options):
            bad = self.bad(name)
            if bad and not after:
                self.strike()
            found = real(*arguments, **options)
            if bad:
                self.strike()
            if name == "replace":
                self.moved.add(Path(arguments[1]))
            return found

        return call


class _File(io.FileIO):
    disk: Disk

    def write(self, data) -> int:
        bad = self.disk.bad("write")
        with memoryview(data) as view, view.cast("B") as content:
            written = super().write(content[: len(content) // 2] if bad else content)
        if bad:
            self.disk.strike()
        return written


@contextmanager
def disk(strike: Callable[[], None] | int = 0, at: int = -1, *, lasting: bool = False) -> Iterator[Disk]:
    """Put the disk under whatever runs in the block; with `lasting`, all calls fail from number `at` on."""
    found = Disk(strike, at, lasting=lasting)

    def fdopen(descriptor, _mode, closefd):
        file = _File(descriptor, "wb", closefd=closefd)
        file.disk = found
        return io.BufferedWriter(file)

    with ExitStack() as held:
        for name in ("open", "mkdir", "chmod", "write", "fsync", "replace"):
            held.enter_context(mock.patch.object(os, name, found.around(name)))
        # A descriptor is closed even where closing it fails.
        held.enter_context(mock.patch.object(os, "close", found.around("close", after=True)))
        held.enter_context(mock.patch.object(os, "fdopen", fdopen))
        yield found


def lay(folder: Path, files: dict[str, bytes]) -> None:
    """Put files into a new folder."""
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def contents(folder: Path) -> dict[str, bytes]:
    """What a folder holds, by name; what was half-written when a process was killed is not looked at."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }
