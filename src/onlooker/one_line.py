"""Messages in one short line, whatever a hostile file put into them."""

from __future__ import annotations

import os


def one_line(said: BaseException | str | os.PathLike[str], longest: int = 160) -> str:
    r"""Say an error, a text or a path in one line: of a long one the beginning, and the end if there is room for both.

    Examples
    --------
    >>> one_line(ValueError("row 3:\n  bad\x1b[0m value."))
    'row 3: bad [0m value'
    >>> one_line("column " + "x" * 1000 + " is missing: fill it in", longest=60)
    'column xxxxxxxxxxxxxxxxxxxxxxxxxx ... is missing: fill it in'
    """
    text = os.strerror(said.errno) if isinstance(said, OSError) and said.errno else os.fspath(_plain(said))
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split()).rstrip(".")
    if len(line) <= longest:
        return line
    end = (longest - 5) * 2 // 5
    return f"{line[: longest - 5 - end]} ... {line[-end:]}"


def shown(path: str | os.PathLike[str]) -> str:
    """A path as a message names it: as it is, but for letters that would break the line or command a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in os.fspath(path))


def _plain(said: BaseException | str | os.PathLike[str]) -> str | os.PathLike[str]:
    return str(said) if isinstance(said, BaseException) else said
