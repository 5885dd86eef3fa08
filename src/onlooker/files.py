"""Writing files whole or not at all, and reading back what names its schema."""

import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onlooker.errors import InputError


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside `path`; move it into place when the block ends without an error.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with atomic_path(Path(folder) / "answer.txt") as temporary:
    ...         _ = temporary.write_text("42")
    ...     os.listdir(folder)
    ['answer.txt']
    """
    target = Path(path)
    temporary = _temporary_beside(target)
    try:
        yield temporary
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        if target.exists():
            os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
        os.replace(temporary, target)
        _sync_folder(target.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _temporary_beside(target: Path) -> Path:
    """Make an empty file in the same folder, refusing targets that a rename could not or should not replace."""
    # Shortened, so that a name as long as the system allows still has a temporary beside it.
    temporary = target.parent / f".{target.name[:40]}.{secrets.token_hex(8)}.part"
    try:
        folder, special = target.is_dir(), target.exists() and not target.is_file()
        if not (folder or special):
            # Opened as an ordinary file would be, so that the system applies the user's mask.
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{target}: cannot be written ({reason})") from error
    if folder:
        raise InputError(f"{target}: is a folder, name a file in it")
    if special:
        raise InputError(f"{target}: is a device or a pipe, which cannot be replaced: name a file")
    return temporary


def read_document(path: str | os.PathLike[str], schema: str, kind: str, *, writer: str) -> dict[str, Any]:
    """Read a JSON object that names its schema; nothing in it is run."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not a {kind}, its JSON does not parse") from error
    if not isinstance(document, dict) or document.get("schema") != schema:
        raise InputError(f"{path}: is not a {kind} of schema {schema!r}, as written by {writer}")
    return document


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` as UTF-8, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the system has folders that can be synced."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
