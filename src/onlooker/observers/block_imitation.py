"""The k-block fit: a policy for every block of the log, the last of which counts."""

from __future__ import annotations

from typing import Self

import numpy as np

from onlooker.checks import as_number, as_whole
from onlooker.defaults import L2
from onlooker.errors import InputError
from onlooker.log import BanditLog, as_log
from onlooker.newton import minimise
from onlooker.observers.bare_path import bare_path
from onlooker.observers.base import Observer
from onlooker.policy import LinearPolicy
from onlooker.softmax import SoftmaxObjective
from onlooker.tracking.path import Path


class BlockImitation(Observer):
    """Cut the log into blocks of equal length, imitate each, take the last: what a learner came to believe.

    Parameters
    ----------
    blocks
        How many.
    l2
        Penalty on the mean loss of each.

    Attributes
    ----------
    policy_, theta_
        Of the last block.
    burn_in_
        Rounds before it.
    path_
        Theta of every block, at its end; without standard errors (NaN), as `SuffixImitation` is the one to ask.

    Examples
    --------
    >>> from onlooker import Environment, LinTS, direction_error, simulate
    >>> simulation = simulate(Environment(20, 50), LinTS(), n_rounds=3000)
    >>> observer = BlockImitation(blocks=3).fit(simulation.log)
    >>> first, *_, last = [direction_error(theta, simulation.theta_star) for theta in observer.path_.theta]
    >>> last < first
    True
    """

    burn_in_: int
    path_: Path

    def __init__(self, *, blocks: int = 5, l2: float = L2) -> None:
        self.blocks = blocks
        self.l2 = l2

    def fit(self, log: BanditLog) -> Self:
        """Recover the policy."""
        blocks, l2 = as_whole(self.blocks, "blocks", least=1), as_number(self.l2, "l2", least=0.0)
        if as_log(log, type(self).__name__).n_rounds < blocks:
            raise InputError(f"{log.n_rounds} rounds cannot make {blocks} blocks: use fewer blocks, or more rounds")
        if not (log.n_arms > 1).any():
            raise InputError("no round offers a choice between two arms or more: there is nothing to imitate")
        edges = np.arange(blocks + 1) * log.n_rounds // blocks
        thetas = []
        for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            part = log[start:stop]
            if not (part.n_arms > 1).any():
                raise InputError(f"rounds {start} to {stop} of {log.n_rounds} offer no choice: use fewer blocks")
            thetas.append(minimise(SoftmaxObjective(part, l2=l2)).theta)
        self.policy_ = LinearPolicy(thetas[-1], log.feature_names, log.categories)
        self.burn_in_ = int(edges[-2])
        self.path_ = bare_path(edges[1:].tolist(), thetas)
        return self
