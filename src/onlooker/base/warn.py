"""Warnings that point at the caller's line, however deep in the library they arise."""

import os
import sys
import warnings
from itertools import count
from pathlib import Path

from onlooker.base.errors import OnlookerWarning

_PACKAGE = str(Path(__file__).parent.parent) + os.sep


def warn(message: OnlookerWarning | str, category: type[OnlookerWarning] = OnlookerWarning) -> None:
    """Warn at the innermost line outside this package; at the outermost line where all are inside.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("look here")
    >>> caught[0].filename.startswith("<doctest")
    True
    """
    frame = sys._getframe(1)  # noqa: SLF001  the documented way to the caller's frame
    for level in count(2):
        if frame.f_back is None or not frame.f_code.co_filename.startswith(_PACKAGE):
            warnings.warn(message, category, stacklevel=level)
            return
        frame = frame.f_back
