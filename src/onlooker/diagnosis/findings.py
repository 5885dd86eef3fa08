"""Everything that a verdict rests on, found in one go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker.diagnosis.bins import Diagnostics, find_diagnostics
from onlooker.diagnosis.change import Change, find_change
from onlooker.diagnosis.policies import FAST, LATE, Foretold, cross_foretell, edges, imitate
from onlooker.diagnosis.preference import Preference, find_preference
from onlooker.diagnosis.settling import Settling, find_settling
from onlooker.log import BanditLog
from onlooker.types import Index

BIN_ROUNDS_PER_DIRECTION, LEAST_BIN = 5, 20
"""A bin has at least so many rounds, for every direction and at all: shorter ones have no policy to speak of."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Findings:
    """What was found on the rounds of a log that offer a choice."""

    rounds: Index
    """Which rounds of the whole log those are."""
    preference: Preference
    """Whether the picks depend on the features at all."""
    final: Foretold
    """How well the policy of the last 30% foretells every round."""
    diagnostics: Diagnostics
    """The paper's."""
    settling: Settling | None
    """Since when the final policy has fitted; None where it foretells late picks no better than guessing does."""
    change: Change
    """Whether there was another policy before it."""
    before: Change | None
    """The change before that one; None where there was none."""


def usable_bins(log: BanditLog, bins: int) -> tuple[Preference, list[int]]:
    """Test for a preference on as many of the `bins` as are long enough to look at; give their bounds too."""
    used = max(2, min(bins, log.n_rounds // LEAST_BIN))
    preference = find_preference(log, edges(log.n_rounds, used))
    fewer = max(2, min(used, log.n_rounds // (BIN_ROUNDS_PER_DIRECTION * max(1, preference.rank))))
    bounds = edges(log.n_rounds, fewer)
    return (preference if fewer == used else find_preference(log, bounds)), bounds


def find_all(log: BanditLog, rounds: Index, preference: Preference, bounds: list[int], level: float) -> Findings:
    """Look at a log in which every round offers a choice; `rounds` says where they stand in the log as it was given."""
    from scipy.special import ndtri

    late = int(LATE * log.n_rounds)
    fit = imitate(log.suffix(late), tolerance=FAST)
    final = cross_foretell(log, late, fit)
    chance = 1 / log.n_arms
    gain = (final.given - chance)[late:]
    error = float(gain.std()) / len(gain) ** 0.5
    # Without a policy that foretells anything its share of foresight is a division of noise by noise.
    foretells = preference.p_value < 1 - level and float(gain.mean()) > float(ndtri(level)) * error
    starts = [0, *(int(rounds[bound]) for bound in bounds[1:-1]), int(rounds[-1]) + 1]
    change = find_change(log, bounds, fit, preference.spread, level)
    return Findings(
        rounds=rounds,
        preference=preference,
        final=final,
        diagnostics=find_diagnostics(log, bounds, starts, final, level),
        settling=find_settling(final, np.asarray(chance), level) if foretells else None,
        change=change,
        before=_earlier(log[: change.round], preference, len(bounds) - 1, level) if change.found else None,
    )


def _earlier(log: BanditLog, preference: Preference, bins: int, level: float) -> Change | None:
    """Look for a change in the rounds before the last one."""
    used = min(bins, log.n_rounds // max(LEAST_BIN, BIN_ROUNDS_PER_DIRECTION * preference.rank))
    if used < 3:
        return None
    fit = imitate(log.suffix(int(LATE * log.n_rounds)), tolerance=FAST)
    change = find_change(log, edges(log.n_rounds, used), fit, preference.spread, level)
    return change if change.found else None
