"""The change-point fit: two policies, one before a round and one after it, whichever round explains the picks best."""

from __future__ import annotations

from typing import Self

import numpy as np

from onlooker.base.checks import as_number
from onlooker.base.defaults import L2
from onlooker.base.types import Index
from onlooker.imitation.burn_in import fit_suffixes
from onlooker.imitation.newton import minimise
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.logs.log import BanditLog, as_narrow
from onlooker.logs.policy import LinearPolicy
from onlooker.observers.base import Observer

PLACES = 20
"""Equal parts of the log; a change may lie between any two of them."""


class ChangePointImitation(Observer):
    """Imitate as if the learner changed its mind once, and take what it held after that.

    The change is where two policies make the picks most probable, if they do so by more than d + 1 further parameters
    should (the Bayesian information criterion); otherwise there is none, and all rounds are imitated.

    Parameters
    ----------
    l2
        Penalty on the mean loss of each piece.

    Attributes
    ----------
    policy_, theta_
        Of the last piece.
    burn_in_
        First round of it: 0 where no change was found.

    Examples
    --------
    A system that was replaced after 600 of 1,000 rounds:

    >>> X = np.random.default_rng(0).normal(size=(1000, 5, 3))
    >>> noise = np.random.default_rng(1).gumbel(size=(1000, 5))
    >>> before, after = X @ [1.0, 1.0, 0.0], X @ [1.0, -1.0, 0.0]
    >>> utility = np.where(np.arange(1000)[:, None] < 600, before, after) + noise
    >>> observer = ChangePointImitation().fit(BanditLog.from_dense(X, chosen=utility.argmax(axis=1)))
    >>> observer.burn_in_, bool(np.allclose(observer.theta_, [1.0, -1.0, 0.0], atol=0.2))
    (600, True)
    """

    burn_in_: int

    def __init__(self, *, l2: float = L2) -> None:
        self.l2 = l2

    def fit(self, log: BanditLog) -> Self:
        """Recover the policy."""
        l2 = as_number(self.l2, "l2", least=0.0)
        choices = as_narrow(log, type(self).__name__).n_arms > 1
        whole = minimise(SoftmaxObjective(log, l2=l2))
        starts = _starts(log)
        theta, start = whole.theta, 0
        if len(starts):
            thetas, losses = fit_suffixes(log, starts, l2=l2)
            after = np.array([np.count_nonzero(choices[place:]) for place in starts])
            before = np.array([minimise(SoftmaxObjective(log[:place], l2=l2)).loss for place in starts.tolist()])
            totals = losses * after + before * (choices.sum() - after)
            best = int(totals.argmin())
            worth = 0.5 * (log.n_features + 1) * np.log(choices.sum())
            if totals[best] + worth < whole.loss * choices.sum():
                theta, start = thetas[best], int(starts[best])
        self.policy_ = LinearPolicy.of(theta, log)
        self.burn_in_ = start
        self._remember(log)
        return self


def _starts(log: BanditLog) -> Index:
    """Places of a change that leave rounds with a choice, twice as many as features, on both sides."""
    seen = np.concatenate([[0], np.cumsum(log.n_arms > 1)])
    places = np.unique(np.arange(1, PLACES) * log.n_rounds // PLACES)
    least = 2 * log.n_features
    return np.asarray(places[(seen[places] >= least) & (seen[-1] - seen[places] >= least)], dtype=np.int64)
