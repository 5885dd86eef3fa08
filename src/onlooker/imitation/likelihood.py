"""What a round reveals, as a likelihood: from the scores of the arms on offer to how probable what was seen is.

Today a round reveals its pick. The likelihood of anything else about the pick (that it is one of a set, say) is another
function with the same result: gradients and curvature follow from the two sets of probabilities alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlooker.base.types import Vector
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog

Flags = NDArray[np.bool_]
"""One flag per round."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Likelihood:
    """How probable what the rounds reveal is, given the arms' scores.

    With `r = predicted - expected`, the gradient of a round's loss with respect to its scores is `r`.
    """

    losses: Vector
    """Minus the log-probability of what each round reveals, shape (N,)."""
    predicted: Vector
    """Probability of picking each arm, one per row."""
    expected: Vector
    """The same, given what the round reveals, one per row: 1 for a pick that was seen."""


def pick_likelihood(scores: Vector, log: BanditLog) -> Likelihood:
    """Likelihood of the picks, all of which were seen.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.zeros((1, 2, 1)), chosen=[1])
    >>> found = pick_likelihood(np.zeros(2), log)
    >>> found.losses.round(3), found.predicted, found.expected
    (array([0.693]), array([0.5, 0.5]), array([0., 1.]))
    """
    starts, sizes = log.offsets[:-1], log.n_arms
    best = np.maximum.reduceat(scores, starts)
    weights = np.exp(scores - np.repeat(best, sizes))
    totals = np.add.reduceat(weights, starts)
    expected = np.zeros(len(scores))
    expected[log.chosen_rows] = 1.0
    return Likelihood(
        losses=best + np.log(totals) - scores[log.chosen_rows],
        predicted=weights / np.repeat(totals, sizes),
        expected=expected,
    )


def explained_and_agreed(scores: Vector, log: BanditLog) -> tuple[Flags, Flags]:
    """In which rounds the pick scores strictly above every other arm, and in which it is the first of the best."""
    best = np.maximum.reduceat(scores, log.offsets[:-1])
    top = scores == np.repeat(best, log.n_arms)
    alone = np.add.reduceat(top.astype(np.int64), log.offsets[:-1]) == 1
    agreed = ragged.argmax(scores, log.offsets) == log.chosen
    return top[log.chosen_rows] & alone, agreed
