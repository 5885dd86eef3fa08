"""The folder of an experiment: its settings, and one file for every finished task."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onlooker.base.documents import check_fits
from onlooker.base.errors import InputError, OnlookerWarning
from onlooker.base.files import locked, remove_temporaries, write_text
from onlooker.base.text import one_line

SETTINGS, CELLS, LOCK = "settings.json", "cells", "run.lock"


def as_json(value: object, what: str) -> str:
    """The text to keep of a value; `what` names it should it have none.

    Examples
    --------
    >>> as_json({"seed": 7, "d": (20, 50)}, "settings")
    '{"seed": 7, "d": [20, 50]}'
    """
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{what}: cannot be kept as JSON ({error}): use numbers, text, lists and dicts") from error


@dataclass(frozen=True)
class Job:
    """One call to make, as it is kept."""

    key: str
    """Its name."""

    arguments: str
    """Keyword arguments, as a JSON object."""


@dataclass(frozen=True)
class Ledger:
    """The finished tasks of one experiment."""

    folder: Path
    """Where they are kept."""

    def path(self, job: Job) -> Path:
        """File of one job."""
        return self.folder / CELLS / f"{job.key}.json"

    def read(self, job: Job) -> tuple[Any, ...]:
        """The stored result of a job, alone in a tuple; nothing in it where there is none.

        A damaged file is as good as none: it is reported, and the job counts as not done. A result for other
        arguments is the result of another run: it is refused, never replaced.
        """
        path = self.path(job)
        try:
            check_fits(path)
            cell = json.loads(path.read_bytes())
            stored, result = cell["arguments"], cell["result"]
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror})") from error
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
        except (ValueError, KeyError, TypeError, RecursionError):
            message = f"{path}: is damaged, so its task is run again"
            warnings.warn(message, OnlookerWarning, stacklevel=2)
            return ()
        if difference := first_difference(stored, json.loads(job.arguments)):
            said = one_line(difference, 300)
            message = f"is a result for other arguments ({said}): delete it, or name another folder"
            raise InputError(f"{path}: {message}")
        return (result,)

    def write(self, job: Job, result: str) -> None:
        """Keep the result of a job, given as JSON."""
        write_text(self.path(job), f'{{"key": "{job.key}", "arguments": {job.arguments}, "result": {result}}}\n')


@contextmanager
def open_ledger(folder: str | os.PathLike[str], settings: Mapping[str, Any]) -> Iterator[Ledger]:
    """Lock the folder of an experiment with these settings, and create it if it is missing.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, open_ledger(folder, {"schema": 1}) as ledger:
    ...     ledger.write(Job("first", '{"seed": 0}'), '"a result"')
    ...     ledger.read(Job("first", '{"seed": 0}'))
    ('a result',)
    """
    place, wanted = Path(folder), as_json(settings, "settings")
    with ExitStack() as held:
        try:
            place.mkdir(parents=True, exist_ok=True)
            held.enter_context(locked(place / LOCK, place, "another folder"))
            remove_temporaries(place)
            _agree_on_settings(place, wanted)
            (place / CELLS).mkdir(exist_ok=True)
            remove_temporaries(place / CELLS)
        except OSError as error:
            reason = f"cannot hold an experiment ({error.strerror}): name another folder"
            raise InputError(f"{error.filename or place}: {reason}") from error
        yield Ledger(place)


def first_difference(before: object, now: object, name: str = "") -> str:
    """Describe the first difference between two JSON values; empty if there is none.

    Examples
    --------
    >>> first_difference({"grid": {"d": [20, 50], "K": 9}}, {"grid": {"d": [20, 60], "K": 9}})
    'grid.d[1] was 50, now is 60'
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now}):
            inner = f"{name}.{key}" if name else key
            if key not in before or key not in now:
                was, here = (_short(value[key]) if key in value else "missing" for value in (before, now))
                return f"{inner} was {was}, now is {here}"
            if difference := first_difference(before[key], now[key], inner):
                return difference
        return ""
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        inside = (first_difference(*pair, f"{name}[{k}]") for k, pair in enumerate(zip(before, now, strict=True)))
        return next(filter(None, inside), "")
    # By their text: NaN equals itself there, and true differs from 1.
    if json.dumps(before, sort_keys=True) == json.dumps(now, sort_keys=True):
        return ""
    return f"{name or 'it'} was {_short(before)}, now is {_short(now)}"


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _agree_on_settings(folder: Path, wanted: str) -> None:
    path = folder / SETTINGS
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        others = sorted({entry.name for entry in folder.iterdir()} - {LOCK})
        if others:
            message = f"holds {others[0]!r} but no {SETTINGS}, so it is not an experiment: name a new or empty folder"
            raise InputError(f"{folder}: {message}") from None
        write_text(path, json.dumps(json.loads(wanted), indent=2) + "\n")
        return
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not valid JSON ({error}): name another folder, or delete this one") from error
    if difference := first_difference(found, json.loads(wanted)):
        message = f"was made with other settings ({difference}): name another folder, or delete this one"
        raise InputError(f"{folder}: {message}")
