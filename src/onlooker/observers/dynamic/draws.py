"""What the picks leave open about how a learner picked: draws from the belief about its weights before each round."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from onlooker.base.types import Matrix
from onlooker.logs.log import BanditLog
from onlooker.observers.dynamic.follower import Follower
from onlooker.observers.dynamic.members import Block, as_times, bank, copied, no_record, run
from onlooker.observers.dynamic.smoother import Rounds, roots_of

WIDER = 1.5
"""Standard deviations of the belief that a draw counts as one. No law of motion is exactly a learner's, and with 1 the
intervals of Vowpal Wabbit's epsilon-greedy and SquareCB learners cover too little (`docs/propensities.md`)."""


def drawn_probabilities(log: BanditLog, n_draws: int, seed: int) -> Iterator[Matrix]:
    """Draws of all arms' probabilities, some rounds at a time, shape (n_draws, rows).

    The weights are those of the law of motion that predicted best, given the picks before each round. A draw is as many
    standard deviations away from their mean in all rounds: what is wrong in one round is wrong in the next ones too.
    """
    d = log.n_features
    normal = WIDER * np.random.default_rng(seed).standard_normal((n_draws, d + 1))
    for block, means, spreads in _beliefs(log):
        bounds = zip(block.offsets[:-1].tolist(), block.offsets[1:].tolist(), strict=True)
        yield np.concatenate(
            [
                _probabilities(block.rows[start:stop], mean + normal * root if root.ndim == 1 else mean + normal @ root)
                for (start, stop), mean, root in zip(bounds, means, roots_of(spreads), strict=True)
            ],
            axis=1,
        )


def _beliefs(log: BanditLog) -> Iterator[tuple[Block, Matrix, NDArray[np.float64]]]:
    """Means and spreads of the weights, and of the logit of the share of random picks, before each round."""
    times = as_times(None, log)
    follower = Follower(log.n_features)
    follower.follow(log, times)
    rounds = Rounds.of(log, times, None, follower.bank)
    laws = bank(log.n_features)
    law, still = laws[rounds.best], laws[0]
    member, static = copied(rounds.before.members[rounds.best]), copied(rounds.before.members[0])
    none = no_record(log.n_features)
    for start, stop in rounds.stretches():
        block = rounds.take(start, stop)
        n = stop - start
        arms, logs = np.empty(len(block.rows)), np.empty(n)
        anchors = np.empty((n, log.n_features + 1))
        run(still, static, block, none.means, none._replace(means=anchors), arms, logs)
        record = type(none)(*(np.empty((n, *array.shape[1:])) for array in none))
        run(law, member, block, anchors, record, arms, logs)
        yield block, record.means, record.spreads


def _probabilities(rows: Matrix, weights: Matrix) -> Matrix:
    """Of a round's arms, random picks included, one line a draw."""
    from onlooker.kernels.logit_round import LEAST

    scores = weights[:, :-1] @ rows.T
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    random = np.maximum(LEAST, 1.0 / (1.0 + np.exp(-weights[:, -1:])))
    found: Matrix = (1.0 - random) * shares + random / len(rows)
    return found
