"""Logs that know picks only to a set: picks are drawn within the sets, some times, and each draw is diagnosed.

Draws come from policies fitted to windows of time, each to the sets of its own rounds, so that what changed stays
visible in them. Rounds in which every arm may have been the pick are no evidence: there only the pick is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from onlooker.base.checks import counted
from onlooker.base.defaults import L2
from onlooker.base.errors import InputError
from onlooker.base.types import Vector
from onlooker.diagnosis.result import Diagnosis
from onlooker.imitation.newton import minimise
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.logs.drawn import draw_picks, picks_alone, with_picks
from onlooker.logs.log import BanditLog
from onlooker.logs.policy import LinearPolicy

DRAWS = 3
"""Draws that are diagnosed: the answer is what most of them say."""
SINGLE = "a single arm was offered, so there was no choice"
"""What a note says of such rounds."""
WINDOWS, FEWEST = 8, 60
"""Windows of time at most, and rounds of a window for every feature at least."""


def diagnose_drawn(log: BanditLog, diagnose: Callable[[BanditLog], Diagnosis]) -> Diagnosis:
    """What most diagnoses of drawn picks say; a note says how many agree."""
    probabilities, vague = _probabilities(log), (log.n_arms > 1) & ~log.informative
    draws = [draw_picks(log, probabilities, np.random.default_rng(seed)) for seed in range(DRAWS)]
    found = [diagnose(picks_alone(with_picks(log, picks), vague)) for picks in draws]
    state, agree = Counter(one.values.state for one in found).most_common(1)[0]
    best = next(one for one in found if one.values.state == state)
    note = (
        f"in {log.n_sets:,} of {log.n_rounds:,} rounds only a set of arms is known that holds the pick: picks were "
        f"drawn within the sets, and {agree} of {DRAWS} draws agree. Intervals leave out what sets leave open"
    )
    notes = [note, *(text for text in best.notes if SINGLE not in text)]
    for rounds, why in ((vague, "every offered arm may have been the pick"), (log.n_arms == 1, SINGLE)):
        if rounds.any():
            notes.append(f"in {counted(int(rounds.sum()), 'round')} {why}. Such rounds are left out")
    return replace(best, notes=tuple(notes))


def _probabilities(log: BanditLog) -> Vector:
    """Of all arms, by the policy of each round's own window."""
    n_windows = int(np.clip(log.n_rounds // (FEWEST * log.n_features), 1, WINDOWS))
    edges = np.arange(n_windows + 1) * log.n_rounds // n_windows
    parts = []
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        part = log[start:stop]
        try:
            theta = minimise(SoftmaxObjective(part, l2=L2)).theta
        except InputError:
            # Nothing is known of any pick here.
            theta = np.zeros(log.n_features)
        parts.append(LinearPolicy(theta, log.feature_names, log.categories, log.crossing).probabilities(part))
    return np.concatenate(parts)
