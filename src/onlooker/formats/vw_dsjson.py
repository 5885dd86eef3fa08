"""Vowpal Wabbit's decision-service JSON (DSJSON): one event a line, its arms under `c._multi`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

from onlooker.categories import Encoded
from onlooker.errors import InputError, SkippedLinesWarning
from onlooker.formats.compressed import LogFile
from onlooker.formats.dsjson_features import ObjectReader
from onlooker.formats.dsjson_writing import write
from onlooker.formats.format import Format
from onlooker.formats.sparse_log import SparseLog
from onlooker.formats.text_lines import as_text, at_line, numbered_lines
from onlooker.formats.times import falls, time_order
from onlooker.json_input import parsed
from onlooker.log import BanditLog
from onlooker.moments import tell_falls

_TIMESTAMP = "Timestamp"
"""Where events have their time."""
_DANGLING = frozenset({"RewardValue", "EventId", "ActionTaken", "DeferredAction", "o", "v"})
"""Fields of the lines that bring a reward, or news of an action, to an event of long ago."""
_REFUSED = {
    "_slots": "fills several slots (_slots: CCB or slates), each a choice of its own: log one choice an event",
    "_outcomes": "has the outcomes of several slots (CCB or slates): log one choice an event",
    "_label_ca": "picks from a continuous range (_label_ca): only choices among arms can be read",
}


def recognises(file: LogFile) -> bool:
    """Whether the file begins with events, not with the rows of a table."""
    start = file.head()
    return b'"_multi"' in start or b'"_labelIndex"' in start or b'"_label_Action"' in start or b'"RewardValue"' in start


def read(
    file: LogFile,
    *,
    features: Sequence[str] | None = None,
    cross: bool = False,
    order_by: str | None = None,
    like: Encoded | None = None,
) -> BanditLog:
    """Read an event a line; `_labelIndex` (from 0) or `_label_Action` (from 1) is the pick.

    Features are called `namespace^name`, entries of arrays `name[0]` and so on; text makes a category. Those outside of
    `_multi` are shared by the arms: left out, or with `cross` multiplied with every feature of the arms, called
    `shared x arm`. `order_by` names a field of the events, such as `Timestamp`. `EventId` is the round's id.
    """
    events = _Events(SparseLog(features, cross, like), order_by)
    for number, line in numbered_lines(file):
        if line and not line.isspace():
            with at_line(number):
                events.take(number, _parsed(line))
    if order_by is None and falls(events.times):
        tell_falls([_TIMESTAMP])
    log = events.rounds.log(None if order_by is None else time_order(events.times, order_by))
    if events.skipped:
        warnings.warn(
            f"{events.skipped} lines bring a reward or news of an action, but no choice: they were skipped",
            SkippedLinesWarning,
            stacklevel=2,
        )
    return log


def _parsed(line: bytes) -> dict[str, Any]:
    as_text(line)
    try:
        event = parsed(line)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"is not JSON ({str(error)[:80]}): write one event a line") from error
    if not isinstance(event, dict):
        raise InputError(f"is not an event but JSON of another kind ({type(event).__name__}): write one event a line")
    return event


class _Events:
    """The rounds so far."""

    def __init__(self, rounds: SparseLog, order_by: str | None) -> None:
        self.rounds = rounds
        self._arms, self._shared = ObjectReader(rounds.arms), ObjectReader(rounds.shared)
        self.skipped = 0
        self.times: list[Any] = []
        self._order_by = order_by

    def take(self, number: int, event: dict[str, Any]) -> None:
        """Add an event, or count what is none."""
        context = event.get("c")
        if context is None and _DANGLING & event.keys() and not any(key.startswith("_label") for key in event):
            self.skipped += 1
            return
        if not isinstance(context, dict):
            raise InputError("has no 'c' with the context and the arms: it is not an event of DSJSON")
        for key, reason in _REFUSED.items():
            if key in event or key in context:
                raise InputError(reason)
        arms = context.get("_multi")
        if not isinstance(arms, list) or not arms:
            raise InputError("offers no arm: 'c' has the arms as a list under '_multi'")
        pick = _pick(event, len(arms))
        self._take_features(number, context, arms)
        self.times.append((number, event.get(self._order_by or _TIMESTAMP)))
        if event.get("EventId") is not None:
            self.rounds.round_ids.append(str(event["EventId"]))
        self.rounds.end_round(number, pick)

    def _take_features(self, number: int, context: dict[str, Any], arms: list[Any]) -> None:
        self._shared.add(context)
        for k, arm in enumerate(arms):
            if not isinstance(arm, dict):
                raise InputError(f"has an arm {k} that is no object: describe every arm by its features")
            self._arms.add(arm)
            if arm.get("_tag") is not None:
                self.rounds.arm_ids.append(str(arm["_tag"]))
            self.rounds.arms.end_row(number)


def _pick(event: dict[str, Any], n_arms: int) -> int:
    """Position of the pick; where both fields are given they agree."""
    index = _whole(event, "_labelIndex")
    action = _whole(event, "_label_Action", "_label_action")
    if index is None and action is None:
        raise InputError("has no pick: give '_labelIndex' (from 0) or '_label_Action' (from 1), or leave it out")
    if index is not None and action is not None and action != index + 1:
        raise InputError(
            f"picks position {index} by '_labelIndex' (from 0) but {action} by '_label_Action' (from 1): mend one"
        )
    pick = index if index is not None else (action or 0) - 1
    if not 0 <= pick < n_arms:
        raise InputError(f"picks position {pick}, but offers {n_arms} arms (positions count from 0): mend it")
    return pick


def _whole(event: dict[str, Any], *names: str) -> int | None:
    for name in names:
        value = event.get(name)
        if value is not None:
            if type(value) is not int:
                raise InputError(f"has {str(value)[:40]!r} as {name!r}: it must be a whole number")
            return value
    return None


FORMAT = Format(name="DSJSON", suffixes=(".dsjson",), recognises=lambda _: True, read=read, write=write)
GZIPPED = Format(
    name="DSJSON",
    suffixes=(".dsjson.gz",),
    recognises=lambda _: True,
    read=read,
    write=partial(write, compress=True),
)
BY_CONTENT = Format(
    name="DSJSON",
    suffixes=(".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz"),
    recognises=recognises,
    read=read,
)
