"""What a format is, and what the formats share: errors in one line, and no more memory than there is."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from onlooker.errors import InputError
from onlooker.log import BanditLog


@dataclass(frozen=True, kw_only=True)
class Format:
    """One way to keep a log in a file. Its functions raise `InputError` without the path, which the caller adds."""

    name: str
    """How messages call it, such as "long CSV"."""
    suffixes: tuple[str, ...]
    """How such files end, in lower case."""
    recognises: Callable[[Path], bool]
    """Whether the content is this format's; the last format of a suffix is not asked."""
    read: Callable[..., BanditLog]
    """From a path and column options, the keyword arguments of this function, to a log."""
    write: Callable[[BanditLog, Path], None] | None = None
    """From a log to a file, or None where this format is only read."""
    scan: Callable[..., Iterator[BanditLog]] | None = None
    """Like `read`, with `batch_rows` besides: logs of whole rounds, one after the other, at most about so many rows
    each; or None where a file is read whole."""
    folder: bool = False
    """Whether such a log may be a folder; `recognises` is asked about every folder."""


def one_line(error: BaseException) -> str:
    r"""Say an error in one short line, whatever a hostile file put into it.

    Examples
    --------
    >>> one_line(ValueError("row 3:\n  bad\x1b[0m value"))
    'row 3: bad [0m value'
    """
    text = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    words = "".join(letter if letter.isprintable() else " " for letter in text).split()
    line = " ".join(words).rstrip(".")
    return line if len(line) <= 160 else line[:157] + "..."


@contextmanager
def arrow_errors(kind: str) -> Iterator[None]:
    """Turn what pyarrow raises into `InputError`, in one line."""
    import pyarrow as pa

    try:
        yield
    except MemoryError as error:
        raise InputError("does not fit into memory: read a part of it") from error
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise InputError(f"cannot be read as {kind} ({one_line(error)})") from error


def check_memory(needed: int) -> None:
    """Refuse to expand a file beyond the machine's memory: a small one may declare, or hold, a vast log."""
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > memory:
        raise InputError(
            f"would take {needed / 1e9:,.1f} GB, but this machine has {memory / 1e9:,.1f} GB: read a part of it"
        )
