"""What is assumed: how weights may move, and what is known of them before the first pick.

Steps are measured by the variance that they add to the score of a typical arm, so that one bank serves any number of
features in any units. Nothing is tuned to a log: all members follow it side by side, and each counts by how well it
predicted the picks so far, one step ahead. Each member was kept because some learner is predicted better with it than
without (`benchmarks/outside_learners.py`).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onlooker.kernels.dynamic import Law

PRIOR = 1.0
"""Variance of a typical arm's score before the first pick. Logs of 1,000 rounds hardly notice it."""
RANDOM = (-2.5, 2.0)
"""Mean and variance of the logit of the share of random picks before the first: about 8%, between 0.5% and 57%."""
NEVER = (-8.0, 1e-8)
"""The same where no picks are random."""
FULL = 40
"""Up to so many features their covariances are followed, beyond them only their variances: d against d^2 an arm."""


@cache
def bank(n_features: int) -> tuple[Law, ...]:
    """All laws of motion; the first is that nothing moves, which those that revert need.

    Examples
    --------
    >>> len(bank(10)), len(bank(100)), bank(10)[0].every
    (9, 9, 0.0)
    """
    from onlooker.kernels.dynamic import Law

    still = Law(every=0.0, pick=0.0, surprise=0.0, shrinks=0.0, averages=0.0, reverts=0.0, grows=0.0, random=1.0)
    if n_features <= FULL:
        settling = (
            # Ridge regression whose picks stay random, as softmax picks do; and a fixed policy that decides clearly,
            # which the first law takes long to reach from what it believes at first.
            still._replace(pick=2.0, shrinks=1.0, averages=1.0),
            # Learners that explore less and less, as Thompson sampling: the direction settles, the weights grow.
            still._replace(pick=0.01, shrinks=1.0, grows=0.35),
        )
    else:
        # Without covariances a mean lags behind, and only steps that go on let it catch up.
        settling = (still._replace(pick=0.03, shrinks=1.0), still._replace(pick=1.0, shrinks=1.0))
    return (
        still,
        # Ridge regression whose picks are nearly certain.
        still._replace(pick=3000.0, averages=1.0),
        *settling,
        # Gradient steps that never end, and importance-weighted ones, which jump after an improbable pick.
        still._replace(pick=0.1),
        still._replace(pick=0.01, surprise=3.0),
        # Anything that drifts; and what strays from a level and comes back, slowly or fast.
        still._replace(every=0.003),
        still._replace(every=0.01, reverts=0.003, random=0.0),
        still._replace(every=0.003, reverts=0.003),
    )


def scaled(law: Law, factor: float) -> Law:
    """The same law with steps whose variance is `factor` times as large."""
    return law._replace(every=factor * law.every, pick=factor * law.pick, surprise=factor * law.surprise)
