"""Files written whole or not at all, and locks that keep a second process away from them."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from onlooker.base.errors import InputError
from onlooker.base.text import one_line, shown

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.part")
"""The suffix of a file while it is being written."""

_NO_ROOM = "free some space there, or name a place with more"
_ADVICE = {
    errno.ENOSPC: _NO_ROOM,
    errno.EDQUOT: _NO_ROOM,
    errno.EIO: "check the disk, or name a place on another",
    errno.ENOENT: "make its folder, or name another place",
    errno.ENOMEM: "free some memory, or raise the limit on it (ulimit -v)",
}
"""The remedy for an error of the operating system."""


def advice_on(error: OSError) -> str:
    """The remedy for an error of the operating system.

    Examples
    --------
    >>> advice_on(OSError(errno.ENOSPC, "No space left on device"))
    'free some space there, or name a place with more'
    """
    return _ADVICE.get(error.errno or 0, "name another place")


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a file to write to; it takes its place at `path` when the block ends without an error.

    Until then nothing is seen there but what was there before, and after an error that stays. A link is followed: the
    file behind it is replaced. What the system refuses is one `InputError`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with atomic_file(Path(folder) / "answer.txt") as file:
    ...         _ = file.write(b"42")
    ...     os.listdir(folder)
    ['answer.txt']
    """
    target, mode = _behind_links(Path(path))
    # Shortened, so that a name as long as the system allows still has a temporary beside it.
    temporary = target.parent / f".{target.name[:40]}.{secrets.token_hex(8)}.part"
    try:
        with _synced(temporary, mode) as file:
            yield file
        os.replace(temporary, target)
        _sync_folder(target.parent)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise _refusal(path, error) from error
        raise


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content`, whole or not at all."""
    with atomic_file(path) as file:
        file.write(content)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` as UTF-8, whole or not at all."""
    write_bytes(path, text.encode())


def remove_temporaries(folder: Path) -> None:
    """Delete the temporary files of killed processes. No other process may be writing into the folder."""
    for path in folder.iterdir():
        if _TEMPORARY.fullmatch(path.name):
            path.unlink(missing_ok=True)


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Refuse what `atomic_file` would refuse, before any computation."""
    _behind_links(Path(path))


def _behind_links(path: Path) -> tuple[Path, int | None]:
    """The file to replace and its mode, None if it does not exist yet; refuses what a rename should not replace."""
    try:
        state = path.stat()
    except FileNotFoundError:
        return _real(path), None
    except OSError as error:
        raise _refusal(path, error) from error
    except ValueError as error:
        raise InputError(f"{shown(path)}: cannot be written ({error}): name another place") from error
    if stat.S_ISDIR(state.st_mode):
        raise InputError(f"{shown(path)}: is a folder, name a file in it")
    if not stat.S_ISREG(state.st_mode):
        raise InputError(f"{shown(path)}: is a device or a pipe, which cannot be replaced: name a file")
    if any(_is_open_as(number, state) for number in (1, 2)):
        raise InputError(f"{shown(path)}: is where this command prints, which would be lost: name another file")
    return _real(path), stat.S_IMODE(state.st_mode)


def _real(path: Path) -> Path:
    """The file behind all links."""
    try:
        return Path(os.path.realpath(path))
    except FileNotFoundError as error:
        raise InputError(
            f"{shown(path)}: cannot be written, the working folder is gone: change to another, or give a full path"
        ) from error


def _is_open_as(number: int, state: os.stat_result) -> bool:
    """Whether a standard stream goes to the file."""
    try:
        return os.path.samestat(os.fstat(number), state)
    except OSError:
        return False


@contextmanager
def _synced(temporary: Path, mode: int | None) -> Iterator[BinaryIO]:
    """A new file, on the disk when the block ends; without a mode of its own, the system applies the user's mask."""
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, 0o666 if mode is None else mode)
    # Some libraries close what they write to, but it can only be synced while it is open.
    file = os.fdopen(descriptor, "wb", closefd=False)
    try:
        if mode is not None:
            os.chmod(temporary, mode)
        yield file
        file.close()
        os.fsync(descriptor)
    except BaseException:
        # What is left in the buffer is dropped, and the first error is the one reported.
        for close in (file.close, partial(os.close, descriptor)):
            with suppress(OSError):
                close()
        raise
    os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the system has folders that can be synced."""
    if os.name != "posix":
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        # A folder that one may write to, but not list.
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise
    finally:
        os.close(descriptor)


def _refusal(path: str | os.PathLike[str], error: OSError) -> InputError:
    return InputError(f"{shown(path)}: cannot be written ({one_line(error)}): {advice_on(error)}")


@contextmanager
def locked(path: Path, held: Path, other: str) -> Iterator[None]:
    """Hold a lock file, where the system has locks; refuse if another process holds it.

    `held` is what it protects, and `other` the alternative that the message names.

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
        # The work is done, and the system releases a lock that is left behind.
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
