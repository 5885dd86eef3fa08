"""What runs in a worker of a cluster: one object, called with whatever arrives."""

from __future__ import annotations

import os
import pickle
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from onlooker.base.errors import InputError, OnlookerError, OnlookerWarning
from onlooker.clusters.messages import Answer, one_line


class Actor:
    """A worker. It uses one thread, as it holds one core.

    Parameters
    ----------
    maker
        Pickled object that is called with the arguments of every call.
    folder
        Where the user is: names of files count from there.

    Examples
    --------
    >>> answer = Actor(pickle.dumps(divmod), ".").call(pickle.dumps((7, 2)))
    >>> pickle.loads(answer).result
    (3, 1)
    """

    def __init__(self, maker: bytes, folder: str) -> None:
        os.environ["ONLOOKER_THREADS"] = "1"
        # On another machine there may be no such folder: files are then named from the root on.
        with suppress(OSError):
            os.chdir(folder)
        self._maker = maker
        self._work: Callable[..., Any] | None = None
        # Ray's own thread may have too small a stack to compile on.
        self._thread = ThreadPoolExecutor(1)

    def hello(self) -> str:
        """Version of onlooker here."""
        return version("onlooker")

    def pulse(self) -> None:
        """Shows that the worker is alive, also during a call."""

    def call(self, payload: bytes) -> bytes:
        """Call the object; whatever goes wrong is an answer, too."""
        return self._thread.submit(self._called, payload).result()

    def _called(self, payload: bytes) -> bytes:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", OnlookerWarning)
            answer = self._answer(payload)
        said = tuple(warning.message for warning in caught if isinstance(warning.message, OnlookerWarning))
        return pickle.dumps(replace(answer, warnings=said))

    def _answer(self, payload: bytes) -> Answer:
        try:
            if self._work is None:
                self._work = pickle.loads(self._maker)
            return Answer(self._work(*pickle.loads(payload)))
        except InputError as error:
            return Answer(error=str(error), is_input=True)
        except OnlookerError as error:
            return Answer(error=str(error), details=traceback.format_exc())
        except MemoryError:
            return Answer(error="a worker has too little memory: use more workers, or larger machines", is_input=True)
        except Exception as error:  # noqa: BLE001 - the worker goes on, and the caller gets the error
            return Answer(error=one_line(error), details=traceback.format_exc())
