"""The race: every method loads its data, finds its setting, and then all take turns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rivals.environments import RivalError
from rivals.methods import Method
from rivals.process import Rival

CLOSE = 1e-6
"""A fit has arrived when its objective is above the minimum by no more than this part of it."""

QUICK = 5.0
"""Seconds. What is over sooner suffers from the turns of others: a virtual machine has to find its memory again."""

Result = dict[str, Any]
"""One method on one workload: `method`, and `runs` or the `reason` for there being none; as JSON keeps it."""


def race(
    methods: Sequence[Method],
    data: Path,
    cache: Path,
    *,
    repeats: int,
    timeout: float,
    known: Mapping[str, Any] | None = None,
) -> list[Result]:
    """Let the methods take turns, `repeats` times; one works at a time, and one that fails leaves with its reason.

    `known` are settings that sufficed in an earlier race: one that still does is not searched for again.
    """
    results: dict[str, Result] = {method.name: {"method": method.name, "runs": []} for method in methods}
    ready: list[tuple[Rival, Any]] = []

    def leave(name: str, error: RivalError) -> None:
        results[name] |= {"runs": [], "reason": str(error)}
        _tell(f"{name}: {error}")

    with ExitStack() as open_rivals:
        for method in methods:
            try:
                rival = open_rivals.enter_context(Rival(method, data, cache, timeout=timeout))
                found = _warmed_up(rival, (known or {}).get(method.name))
            except RivalError as error:
                leave(method.name, error)
                continue
            results[method.name] |= {"setting": found["setting"], "arrived": arrived(found)}
            _tell(f"{method.name}: {_words(found)}")
            ready.append((rival, found["setting"]))
        for turn in range(repeats):
            for rival, setting in list(ready):
                try:
                    results[rival.method.name]["runs"].append(_warm(rival.run, setting))
                except RivalError as error:
                    leave(rival.method.name, error)
                    ready.remove((rival, setting))
            _tell(f"turn {turn + 1} of {repeats}")
    return list(results.values())


def _warm(run: Callable[[Any], dict[str, Any]], setting: Any) -> dict[str, Any]:
    """Run twice where that is quick, and let the second count: others have had the machine since the last turn.

    >>> seconds = iter([0.3, 0.2, 60.0])
    >>> [_warm(lambda _: {"seconds": next(seconds)}, 0)["seconds"] for _ in range(2)]
    [0.2, 60.0]
    """
    first = run(setting)
    return run(setting) if first["seconds"] < QUICK else first


def _warmed_up(rival: Rival, known: Any) -> dict[str, Any]:
    if known in rival.settings:
        found = rival.run(known)
        if arrived(found) or known == rival.settings[-1]:
            return found
    return least_setting(rival.run, rival.settings)


def least_setting(run: Callable[[Any], dict[str, Any]], settings: Sequence[Any]) -> dict[str, Any]:
    """The run with the least setting that arrives, by bisection, or the last one if none does.

    Bisection also warms up what compiles or caches, as it runs every method at least once.

    >>> least_setting(lambda n: {"setting": n, "excess": 0.5**n}, range(1, 64))["setting"]
    20
    """
    low, high = 0, len(settings) - 1
    found = run(settings[high]) if high == 0 else None
    while low < high:
        middle = (low + high) // 2
        tried = run(settings[middle])
        if arrived(tried):
            high, found = middle, tried
        else:
            low = middle + 1
    return run(settings[high]) if found is None else found


def arrived(run: dict[str, Any]) -> bool:
    """Whether a run got close enough to the minimum; a simulation has none to get to."""
    return bool(run.get("excess", 0.0) <= CLOSE)


def _words(run: dict[str, Any]) -> str:
    numbers = ", ".join(f"{key} {value:.3g}" for key, value in run.items() if isinstance(value, float))
    return f"setting {run['setting']}: {numbers}"


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
