"""One process at a time: a lock that the system lets go when its holder ends, however it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from onlooker.base.errors import InputError
from onlooker.base.text import shown


@contextmanager
def locked(path: Path, held: Path, other: str) -> Iterator[None]:
    """Hold a lock file, where the system has locks; refuse if another process holds it.

    `held` is what it stands for, and `other` what to name instead.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, locked(Path(folder) / "run.lock", Path(folder), "another folder"):
    ...     os.listdir(folder)
    ['run.lock']
    """
    if os.name != "posix":
        yield
        return
    descriptor = _lock(path, held, other)
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        yield
    finally:
        # The work is done, and the system lets go of a lock that is left behind.
        for undo in (path.unlink, partial(os.close, descriptor)):
            with suppress(OSError):
                undo()


def _lock(path: Path, held: Path, other: str) -> int:
    import fcntl

    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The last holder may have removed the file after it was opened here: then the lock is on a file of no name.
            if path.exists() and os.path.samestat(path.stat(), os.fstat(descriptor)):
                return descriptor
        except BlockingIOError:
            holder = os.read(descriptor, 20).decode(errors="replace") or "of unknown number"
            os.close(descriptor)
            message = f"process {holder} is at work in it: wait until it ends, or name {other}"
            raise InputError(f"{shown(held)}: {message}") from None
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)
