"""The step size of the smoother: that which makes the rounds most probable, one step ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlooker.base.threads import ordered_map
from onlooker.observers.dynamic.bank import copied, fresh_member, no_record, run
from onlooker.observers.dynamic.laws import bank, scaled
from onlooker.observers.dynamic.rounds import Rounds

if TYPE_CHECKING:
    from onlooker.kernels.dynamic import Law

ROUNDS = 5000
"""So many rounds at the end decide."""
ENOUGH = 200
"""With fewer the member's own step size stays."""
WIDEST = 4
"""Steps get at most 2 to the power of this times as large, or as small, as the member's."""


def tuned_law(rounds: Rounds) -> Law:
    """The law of the member that predicted best, its steps as large as the picks ask for."""
    d = len(rounds.after.units)
    law = bank(d)[rounds.best]
    if rounds.best == 0 or rounds.n_rounds < ENOUGH:
        return law
    blocks = [rounds.take(*one) for one in rounds.stretches() if one[1] > rounds.n_rounds - ROUNDS]
    first = rounds.before.members[rounds.best] if blocks[0].first == rounds.first else fresh_member(d, law)
    found: dict[int, float] = {}

    def evidence(power: int) -> float:
        member, total = copied(first), 0.0
        for block in blocks:
            logs, arms = np.empty(len(block.chosen)), np.empty(len(block.rows))
            run(scaled(law, 2.0**power), member, block, rounds.anchor, no_record(d), arms, logs)
            total += float(logs.sum())
        return total

    place = 0
    while True:
        near = [one for one in (place - 1, place, place + 1) if one not in found and abs(one) <= WIDEST]
        found.update(zip(near, ordered_map(evidence, near), strict=True))
        top = max(found, key=lambda one: (found[one], -abs(one)))
        if top == place:
            return scaled(law, 2.0 ** _peak(found, place))
        place = top


def _peak(found: dict[int, float], place: int) -> float:
    """Where a parabola through the best power and its neighbours is highest.

    Examples
    --------
    >>> _peak({-1: -4.0, 0: -1.0, 1: -2.0}, 0)
    0.25
    """
    if place - 1 not in found or place + 1 not in found:
        return float(place)
    low, here, high = (found[place + shift] for shift in (-1, 0, 1))
    bend = low - 2 * here + high
    return place + (0.5 * (low - high) / bend if bend < 0 else 0.0)
