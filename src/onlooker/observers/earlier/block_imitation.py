"""The k-block fit: a policy for every block of the log, the last of which counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import as_number, as_whole
from onlooker.base.defaults import L2
from onlooker.base.errors import InputError
from onlooker.imitation.newton import minimise
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.logs.log import BanditLog, as_narrow
from onlooker.logs.policy import LinearPolicy
from onlooker.observers.base import Observer
from onlooker.observers.tracking.path import Path


def bare_path(rounds: Sequence[int], thetas: ArrayLike) -> Path:
    """Estimates after so many rounds, their standard errors NaN.

    Examples
    --------
    >>> path = bare_path([10, 20], [[0.0, 0.0], [3.0, 4.0]])
    >>> path.direction[1], path.standard_error[1]
    (array([0.6, 0.8]), array([nan, nan]))
    """
    theta = np.array(thetas, dtype=np.float64)
    lengths = np.linalg.norm(theta, axis=1, keepdims=True)
    return Path(
        rounds=np.array(rounds, dtype=np.int64),
        theta=theta,
        direction=theta / np.where(lengths > 0, lengths, 1.0),
        standard_error=np.full(theta.shape, np.nan),
    )


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
        if as_narrow(log, type(self).__name__).n_rounds < blocks:
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
        self.policy_ = LinearPolicy.of(thetas[-1], log)
        self.burn_in_ = int(edges[-2])
        self.path_ = bare_path(edges[1:].tolist(), thetas)
        self._remember(log)
        return self
