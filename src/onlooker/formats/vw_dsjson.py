"""Vowpal Wabbit's decision-service JSON (DSJSON): one event per line, its arms under `c._multi`."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import Any, BinaryIO

import numpy as np

from onlooker.base.checks import parsed
from onlooker.base.errors import InputError, SkippedLinesWarning, warn
from onlooker.base.types import Index, Vector
from onlooker.formats.dsjson_events import ObjectReader, Slot, slots
from onlooker.formats.format import Format
from onlooker.formats.sparse_log import SparseLog, values_of
from onlooker.formats.text_lines import LogFile, as_text, as_text_file, at_line, numbered_lines
from onlooker.logs.categories import Encoded
from onlooker.logs.log import BanditLog, feature_labels
from onlooker.logs.timestamps import microseconds, warn_falls


def time_order(times: Sequence[tuple[int, Any]], name: str) -> Index:
    """Order of the rounds by time, given as pairs of line and value: numbers, or ISO 8601; equal times stay in order.

    Examples
    --------
    >>> time_order([(1, "2024-05-01T10:00:00.5Z"), (2, "2024-05-01T10:00:00Z")], "Timestamp")
    array([1, 0])
    """
    keys = _known(times)
    for place, (line, value) in enumerate(times):
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            keys[place] = value
        if keys[place] is None:
            raise InputError(
                f"line {line} has {str(value)[:40]!r} as its {name!r}: it must be a number or a time such as "
                "2024-05-01T10:00:00Z"
            )
        if isinstance(value, str) != isinstance(times[0][1], str):
            raise InputError(
                f"line {line} has {str(value)[:40]!r} as its {name!r}: it mixes numbers and times, use one"
            )
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def falls(times: Sequence[tuple[int, Any]]) -> bool:
    """Whether times of ISO 8601, given as pairs of line and value, are out of order; others say nothing.

    Examples
    --------
    >>> falls([(1, "2024-05-02"), (2, "2024-05-01")]), falls([(1, 2), (2, "2024-05-01")])
    (True, False)
    """
    known = _known(times)
    return None not in known and bool((np.diff(known) < 0).any())


def _known(times: Sequence[tuple[int, Any]]) -> list[Any]:
    """Microseconds since 1970, None for what is not a time as text."""
    import pyarrow as pa

    texts = [value if isinstance(value, str) and value.isascii() else None for _, value in times]
    known: list[Any] = microseconds(pa.array(texts, pa.large_string())).to_pylist()
    return known


def write(log: BanditLog, target: BinaryIO, *, compress: bool = False, propensities: Vector | None = None) -> None:
    """Write every value so that it reads back exactly; zeros only in the first arm, which names the features.

    The format wants a cost and probabilities. A log has neither: 0 and 1 stand in for them, unless `propensities` are
    given, one per row.
    """
    paths, ids = _paths(feature_labels(log.weight_names, log.n_features)), log.arm_ids
    with as_text_file(target, compress=compress) as file:
        for t in range(log.n_rounds):
            arms = [_arm(paths, row) for row in values_of(log, t, zeros=t == 0)]
            if ids is not None:
                for arm, name in zip(arms, ids[log.offsets[t] : log.offsets[t + 1]].tolist(), strict=True):
                    arm["_tag"] = str(name)
            known = None if propensities is None else propensities[log.offsets[t] : log.offsets[t + 1]].tolist()
            event = _event(int(log.chosen[t]), arms, known)
            if log.round_ids is not None:
                event["EventId"] = str(log.round_ids[t])
            json.dump(event, file, ensure_ascii=False, separators=(",", ":"))
            file.write("\n")


def _event(pick: int, arms: list[dict[str, Any]], propensities: list[float] | None) -> dict[str, Any]:
    others = [k for k in range(len(arms)) if k != pick]
    chances = [float(k == pick) for k in range(len(arms))] if propensities is None else propensities
    return {
        "_label_cost": 0,
        "_label_probability": chances[pick],
        "_label_Action": pick + 1,
        "_labelIndex": pick,
        "Version": "1",
        "a": [pick + 1, *(k + 1 for k in others)],
        "p": [chances[k] for k in (pick, *others)],
        "c": {"_multi": arms},
    }


def _arm(paths: Sequence[tuple[str, str]], row: Iterable[tuple[int, float]]) -> dict[str, Any]:
    arm: dict[str, Any] = {}
    for place, value in row:
        namespace, name = paths[place]
        (arm.setdefault(namespace, {}) if namespace else arm)[name] = value
    return arm


def _paths(names: Sequence[str]) -> list[tuple[str, str]]:
    """Namespace, or nothing, and name of every feature."""
    parted = [name.partition("^") for name in names]
    runs = Counter(namespace for namespace, _ in groupby(parts[0] for parts in parted))
    paths: list[tuple[str, str]] = []
    for name, (namespace, _, rest) in zip(names, parted, strict=True):
        if name.startswith("_"):
            raise InputError(f"DSJSON cannot hold a feature called {name!r}: rename it without the leading underscore")
        # Where an object would change the features' order or hide one, a key with the mark in it reads the same.
        nested = namespace and rest and not rest.startswith("_") and runs[namespace] == 1 and namespace not in names
        paths.append((namespace, rest) if nested else ("", name))
    return paths


_TIMESTAMP = "Timestamp"
"""Where events have their time."""
_DANGLING = frozenset({"RewardValue", "EventId", "ActionTaken", "DeferredAction", "o", "v"})
"""Fields of the lines that bring a reward, or news of an action, to an event of long ago."""
_REFUSED = {
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
    """Read one event per line; `_labelIndex` (from 0) or `_label_Action` (from 1) is the pick.

    Features are called `namespace^name`, entries of arrays `name[0]` and so on; text makes a category. Those outside of
    `_multi` are shared by the arms: left out, or with `cross` multiplied with every feature of the arms, called
    `shared x arm`. `order_by` names a field of the events, such as `Timestamp`. `EventId` is the round's id. An event
    that fills slots (`_slots`, `_outcomes`) is a slate: every slot is a round, among the arms that are left.
    """
    events = _Events(SparseLog(features, cross, like), order_by)
    for number, line in numbered_lines(file):
        if line and not line.isspace():
            with at_line(number):
                events.take(number, _parsed(line))
    if order_by is None and falls(events.times):
        warn_falls([_TIMESTAMP])
    log = events.rounds.log(None if order_by is None else time_order(events.times, order_by))
    if events.skipped:
        warn(
            f"{events.skipped} lines bring a reward or news of an action, but no choice: they were skipped",
            SkippedLinesWarning,
        )
    return log


def _parsed(line: bytes) -> dict[str, Any]:
    as_text(line)
    try:
        event = parsed(line)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"is not JSON ({str(error)[:80]}): write one event per line") from error
    if not isinstance(event, dict):
        raise InputError(f"is not an event but JSON of another kind ({type(event).__name__}): write one event per line")
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
        """Add an event, or count a line that is not one."""
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
        for k, arm in enumerate(arms):
            if not isinstance(arm, dict):
                raise InputError(f"has an arm {k} that is not an object: describe every arm by its features")
        choices = [Slot({}, range(len(arms)), _pick(event, len(arms)))] if not _has_slots(event) else slots(event, arms)
        for slot in choices:
            self._take_features(number, context, slot.features, [arms[k] for k in slot.offered])
            self.times.append((number, event.get(self._order_by or _TIMESTAMP)))
            if event.get("EventId") is not None:
                self.rounds.round_ids.append(str(event["EventId"]))
            self.rounds.end_round(number, slot.pick)

    def _take_features(
        self, number: int, context: dict[str, Any], slot: dict[str, Any], arms: Sequence[dict[str, Any]]
    ) -> None:
        self._shared.add(context)
        self._shared.add(slot)
        for arm in arms:
            self._arms.add(arm)
            if arm.get("_tag") is not None:
                self.rounds.arm_ids.append(str(arm["_tag"]))
            self.rounds.arms.end_row(number)


def _has_slots(event: dict[str, Any]) -> bool:
    return "_outcomes" in event or "_slots" in event["c"]


def _pick(event: dict[str, Any], n_arms: int) -> int:
    """Position of the pick; where both fields are given they agree."""
    index = _whole(event, "_labelIndex")
    action = _whole(event, "_label_Action", "_label_action")
    if index is None and action is None:
        raise InputError("has no pick: give '_labelIndex' (from 0) or '_label_Action' (from 1), or leave it out")
    if index is not None and action is not None and action != index + 1:
        raise InputError(
            f"picks position {index} by '_labelIndex' (from 0) but {action} by '_label_Action' (from 1): correct one"
        )
    pick = index if index is not None else (action or 0) - 1
    if not 0 <= pick < n_arms:
        raise InputError(f"picks position {pick}, but offers {n_arms} arms (positions count from 0): correct it")
    return pick


def _whole(event: dict[str, Any], *names: str) -> int | None:
    for name in names:
        value = event.get(name)
        if value is not None:
            if type(value) is not int:
                raise InputError(f"has {str(value)[:40]!r} as {name!r}: it must be a whole number")
            return value
    return None


FORMAT = Format(name="DSJSON", suffixes=(".dsjson",), recognises=lambda _: True, read=read, write=write, by_name=True)
GZIPPED = Format(
    name="DSJSON",
    suffixes=(".dsjson.gz",),
    recognises=lambda _: True,
    read=read,
    write=partial(write, compress=True),
    by_name=True,
)
BY_CONTENT = Format(
    name="DSJSON",
    suffixes=(".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz"),
    recognises=recognises,
    read=read,
    by_name=True,
)
