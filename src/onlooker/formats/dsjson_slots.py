"""Events of DSJSON that fill several slots: conditional contextual bandits and slates of Vowpal Wabbit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onlooker.base.errors import InputError


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
