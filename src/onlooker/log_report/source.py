"""Where a log came from: its files with their hashes, the command, and what was assumed."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onlooker import __version__
from onlooker.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Input:
    """A file that was read."""

    file: str
    """Its name."""
    sha256: str
    """Hash of its content, in hexadecimal digits."""
    size: int
    """Bytes."""

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Input:
        """Read a file for its hash.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     _ = Path(folder, "log.csv").write_bytes(b"abc")
        ...     found = Input.of(Path(folder, "log.csv"))
        >>> found.file, found.size, found.sha256[:8]
        ('log.csv', 3, 'ba7816bf')
        """
        try:
            with open(path, "rb") as content:
                digest = hashlib.file_digest(content, "sha256").hexdigest()
                size = content.tell()
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror})") from error
        return cls(file=Path(path).name, sha256=digest, size=size)


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a report says about where its log came from."""

    name: str = "the log"
    """What to call it."""
    by: str | None = None
    """The column that tells several learners in it apart."""
    inputs: tuple[Input, ...] = ()
    """Files that were read."""
    assumed: tuple[str, ...] = ()
    """What was assumed about them, a line each."""
    warnings: tuple[str, ...] = ()
    """What was said while they were read."""
    command: str = ""
    """The command that made the report, as it was typed."""
    saving: str = (
        'from onlooker import SuffixImitation\n\nSuffixImitation(burn_in="auto").fit(log).policy_.save("policy.json")'
    )
    """Lines that save the policy."""


def versions() -> Iterable[tuple[str, str]]:
    """What the figures were made with."""
    return ("onlooker", __version__), ("numpy", np.__version__), ("Python", platform.python_version())
