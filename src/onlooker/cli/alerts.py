"""`--alert`: conditions on a diagnosis for which a command exits with 3."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, get_args

from onlooker.base.errors import InputError

if TYPE_CHECKING:
    from onlooker.diagnosis import Diagnosis

ALERT = 3
"""Exit code of a command one of whose alerts holds."""

_EXPLORATION = re.compile(r"exploration\s*([<>])\s*([0-9.]+)\s*(%?)")


def check_alerts(conditions: Sequence[str]) -> None:
    """Refuse a condition that means nothing, before any work is done."""
    for condition in conditions:
        _condition(condition)


def alerts_met(found: Diagnosis, conditions: Sequence[str]) -> list[str]:
    """Those of the conditions that hold, as they were written.

    Examples
    --------
    >>> from onlooker import Environment, EpsilonGreedy, diagnose, simulate
    >>> found = diagnose(simulate(Environment(5, 10), EpsilonGreedy(0.3), n_rounds=1000).log)
    >>> alerts_met(found, ["changed", "moving", "exploration>0.2", "exploration > 90%"])
    ['exploration>0.2']
    """
    return [condition for condition in conditions if _condition(condition)(found)]


def _condition(text: str) -> Callable[[Diagnosis], bool]:
    from onlooker.diagnosis.result import State

    state = text.strip().replace("-", " ")
    if state in get_args(State):
        return lambda found: found.values.state == state
    matched = _EXPLORATION.fullmatch(text.strip())
    if matched is None or matched[2].count(".") > 1 or matched[2] == ".":
        states = ", ".join(one.replace(" ", "-") for one in get_args(State))
        raise InputError(f"--alert {text}: is no condition; use one of {states}, or exploration>0.2, exploration<0.01")
    above, limit = matched[1] == ">", float(matched[2]) / (100 if matched[3] else 1)

    def met(found: Diagnosis) -> bool:
        share = found.exploration.share
        return share is not None and (share > limit if above else share < limit)

    return met
