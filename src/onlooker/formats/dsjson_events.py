"""Events of Vowpal Wabbit's DSJSON: the features of their objects, and the slots of those that fill several.

Nested objects are namespaces, and the type of a value decides what kind of feature it is. Slots are those of
conditional contextual bandits and of slates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onlooker.base.errors import InputError
from onlooker.formats.sparse_rows import Columns, SparseRows

_NUMBERS = {int, float}


class ObjectReader:
    """Adds the features of objects to the current row.

    Examples
    --------
    >>> rows = SparseRows(Columns())
    >>> reader = ObjectReader(rows)
    >>> reader.add({"ad": {"price": 2, "new": True, "colour": "red", "size": [3, 4]}, "_tag": "ad 7"})
    >>> list(rows.columns), list(rows.values)
    (['ad^price', 'ad^new', ('ad^colour', 'red'), 'ad^size[0]', 'ad^size[1]'], [2.0, 1.0, 1.0, 3.0, 4.0])
    """

    def __init__(self, rows: SparseRows) -> None:
        self._rows = rows
        self._namespaces: dict[str, _Namespace] = {}

    def add(self, node: dict[str, Any], prefix: str = "") -> None:
        """Add an object's features, called `prefix` and their keys."""
        if self._add_numbers(node, prefix):
            return
        for key, value in node.items():
            if key.startswith("_"):
                self._add_special(key, value, prefix)
            elif isinstance(value, dict):
                self.add(value, f"{prefix}{key}^")
            elif isinstance(value, list):
                self._add_list(value, prefix, key)
            else:
                self._add_value(prefix + key, value)

    def _add_numbers(self, node: dict[str, Any], prefix: str) -> bool:
        """Add an object that has nothing but numbers, which is fast; or do nothing and give False."""
        if not _NUMBERS.issuperset(map(type, node.values())):
            return False
        if prefix not in self._namespaces:
            self._namespaces[prefix] = _Namespace(prefix, self._rows.columns)
        try:
            numbers, values = [*map(self._namespaces[prefix].__getitem__, node)], [*map(float, node.values())]
        except (KeyError, OverflowError):
            return False
        self._rows.extend(numbers, values)
        return True

    def _add_list(self, values: list[Any], prefix: str, key: str) -> None:
        for place, value in enumerate(values):
            if isinstance(value, dict):
                self.add(value, f"{prefix}{key}^")
            elif isinstance(value, str | list):
                kind = type(value).__name__
                raise InputError(f"has a {kind} in the list {prefix + key!r}: a list of features has numbers")
            else:
                self._add_value(f"{prefix}{key}[{place}]", value)

    def _add_value(self, name: str, value: Any) -> None:
        if value is None:
            return
        if isinstance(value, str):
            self._rows.add((name, value), 1.0)
            return
        try:
            self._rows.add(name, float(value))
        except OverflowError as error:
            raise InputError(f"has a number in {name!r} that is too large: keep it below 1e308") from error

    def _add_special(self, key: str, value: Any, prefix: str) -> None:
        """Keys that begin with an underscore are not features, except `_text`, of which every word is one."""
        if key == "_text" and isinstance(value, str):
            for word in value.split():
                self._rows.add(prefix + word, 1.0)
        elif key == "__aid":
            raise InputError("refers to an arm that another line describes (__aid): write the log without such ids")


class _Namespace(dict[str, int]):
    """Number of each feature of one namespace by its key; keys that are special are not in it."""

    def __init__(self, prefix: str, columns: Columns) -> None:
        super().__init__()
        self._prefix, self._columns = prefix, columns

    def __missing__(self, key: str) -> int:
        if key.startswith("_"):
            raise KeyError(key)
        number = self[key] = self._columns[self._prefix + key]
        return number


@dataclass(frozen=True)
class Slot:
    """One choice of an event."""

    features: dict[str, Any]
    """What describes the slot."""
    offered: Sequence[int]
    """Arms that it could be filled with."""
    pick: int
    """Position of the pick among them."""


def slots(event: dict[str, Any], arms: Sequence[dict[str, Any]]) -> list[Slot]:
    """The choices of an event, in the order of its slots.

    `_a` of an outcome lists the arms that were left, the pick first. Where arms name their slot (`_slot_id`), it counts
    among those of the slot, and nothing is taken from the others.

    Examples
    --------
    >>> event = {"c": {"_slots": [{}, {}]}, "_outcomes": [{"_a": [2, 0, 1]}, {"_a": [1, 0]}]}
    >>> [(slot.offered, slot.pick) for slot in slots(event, [{}, {}, {}])]
    [([0, 1, 2], 2), ([0, 1], 1)]
    """
    outcomes, given = event.get("_outcomes"), event["c"].get("_slots")
    if not isinstance(outcomes, list) or not outcomes:
        raise InputError("fills slots, but has no picks: '_outcomes' lists an object with '_a' for every slot")
    if given is not None and (not isinstance(given, list) or len(given) != len(outcomes)):
        found = len(given) if isinstance(given, list) else "no list of"
        raise InputError(f"has {found} slots in '_slots', but {len(outcomes)} in '_outcomes': describe every slot once")
    left = list(range(len(arms)))
    found_slots: list[Slot] = []
    for number, outcome in enumerate(outcomes):
        features = given[number] if given is not None and isinstance(given[number], dict) else {}
        own = [k for k, arm in enumerate(arms) if arm.get("_slot_id") == number]
        order = _order(outcome, number, len(own) or len(arms))
        if own:
            found_slots.append(Slot(features, own, order[0]))
            continue
        gone = next((k for k in order if k not in left), None)
        if gone is not None:
            raise InputError(f"offers arm {gone} in slot {number}, but an earlier slot has it: offer what is left")
        # Some write the pick alone.
        offered = sorted(order) if len(order) > 1 else list(left)
        found_slots.append(Slot(features, offered, offered.index(order[0])))
        left.remove(order[0])
    return found_slots


def _order(outcome: Any, number: int, n_arms: int) -> list[int]:
    """Arms of a slot, the pick first."""
    order = outcome.get("_a") if isinstance(outcome, dict) else None
    if not isinstance(order, list) or not order:
        raise InputError(f"has no pick for slot {number}: '_a' lists the arms that were left, the pick first")
    odd = next((k for k in order if type(k) is not int or not 0 <= k < n_arms), None)
    if odd is not None or len({*order}) < len(order):
        what = "an arm twice" if odd is None else f"{str(odd)[:40]!r}"
        raise InputError(f"has {what} in '_a' of slot {number}: list arms from 0 to {n_arms - 1}, each once")
    return order
