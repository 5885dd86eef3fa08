"""Ranking in the style of T-REX: what a learner did later is taken to be better than what it did before."""

from __future__ import annotations

from typing import Self

import numpy as np

from onlooker.base.checks import as_number, as_whole
from onlooker.base.errors import InputError
from onlooker.base.types import Matrix, Vector
from onlooker.imitation.newton import minimise
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.logs.layouts import Layout
from onlooker.logs.log import BanditLog, as_narrow
from onlooker.logs.policy import LinearPolicy
from onlooker.observers.base import Observer


class RankedBlocks(Observer):
    """Learn theta from the order of blocks alone: the picks of a later one should be worth more.

    A block stands for the mean of its picks, less that of what was offered beside them; of every two the later wins
    with probability `sigmoid(theta' difference)`. Blocks grow by a constant factor, as a learner improves early. It
    uses nothing but improvement, and most learners have improved before there are enough rounds to see it: expect
    little, and compare.

    Parameters
    ----------
    blocks
        How many, at most.
    l2
        Penalty on the mean loss of the pairs.

    Attributes
    ----------
    policy_, theta_
        What was recovered.

    Examples
    --------
    A learner that improves slowly: its policy is mixed with ever fewer picks at random.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 5, 2))
    >>> good = (X @ [1.0, -1.0]).argmax(axis=1)
    >>> chosen = np.where(rng.random(4000) < np.arange(4000) / 4000, good, rng.integers(5, size=4000))
    >>> theta = RankedBlocks().fit(BanditLog.from_dense(X, chosen)).theta_
    >>> theta[0] > 0 > theta[1]
    np.True_
    """

    def __init__(self, *, blocks: int = 20, l2: float = 1e-2) -> None:
        self.blocks = blocks
        self.l2 = l2

    def fit(self, log: BanditLog) -> Self:
        """Recover the policy."""
        blocks, l2 = as_whole(self.blocks, "blocks", least=2), as_number(self.l2, "l2", least=0.0)
        if not (as_narrow(log, type(self).__name__).n_arms > 1).any():
            raise InputError("no round offers a choice between two arms or more: there is nothing to imitate")
        means = _means(log, blocks)
        if len(means) < 2:
            raise InputError(f"{log.n_rounds} rounds make no two blocks to rank: use a longer log")
        earlier, later = np.triu_indices(len(means), 1)
        pairs = BanditLog.from_dense(np.stack([means[earlier], means[later]], axis=1), chosen=np.ones_like(later))
        theta = minimise(SoftmaxObjective(pairs, l2=l2)).theta
        self.policy_ = LinearPolicy.of(theta, log)
        self._remember(log)
        return self


def _means(log: BanditLog, blocks: int) -> Matrix:
    """Mean of every block's picks, less that of its offers, shape (blocks, d)."""
    ends = np.ceil(float(log.n_rounds) ** (np.arange(blocks + 1) / blocks)).astype(np.int64)
    edges = np.unique(np.concatenate([[0], np.minimum(ends, log.n_rounds)]))
    found = []
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        part = log[start:stop]
        found.append(_mean_lead(part))
    return np.array(found)


def _mean_lead(log: BanditLog) -> Vector:
    """Mean of the picks less that of what was offered beside them, shape (d,)."""
    if isinstance(log.features, Layout):
        shares = np.repeat(-1.0 / log.n_arms, log.n_arms)
        shares[log.chosen_rows] += 1.0
        found: Vector = log.features.T @ shares / log.n_rounds
        return found
    offered = np.add.reduceat(log.features, log.offsets[:-1], axis=0, dtype=np.float64) / log.n_arms[:, None]
    return np.asarray((log.features[log.chosen_rows] - offered).mean(axis=0))
