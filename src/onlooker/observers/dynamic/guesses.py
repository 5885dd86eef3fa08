"""Which picks were the learner's best guess: the arm that its own weights scored highest in that round.

The weights of a round are known with an error only, from the picks before and after it. So a pick that is not the best
of the estimated weights has two explanations: the learner explored, or it followed weights a little different from
these. Draws of the weights weigh one against the other. How much of the scatter is the error of the weights (`WIDER`),
and how much is noise around the learner's own weights (`SHARPER`), is left open: each combination has a likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlooker.base.types import Index, Matrix, Vector
from onlooker.logs.log import BanditLog
from onlooker.observers.dynamic.draws import roots_of
from onlooker.observers.dynamic.follower import Follower
from onlooker.observers.dynamic.offers import as_times
from onlooker.observers.dynamic.rounds import Rounds
from onlooker.observers.dynamic.smoother import beliefs_without_own

WIDER = (1.0, 1.5)
"""Standard deviations of the belief about a round's weights that a draw counts as one."""
SHARPER = (1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 16.0)
"""How many times as decisive picks are as the filter takes them to be: it counts its own error as their noise."""
ALIKE = 4.0
"""Rounds that count as one when combinations are weighed: beliefs err alike in neighbouring rounds, and are normal only
approximately. Softmax learners lose a hundred times as much by another `SHARPER` as gradient learners do."""
DRAWS, MORE_DRAWS = 32, 256
"""Weights that are drawn for a round, and for one whose pick is not the best of their mean: with few draws, none of
which has the pick as its best, the pick would look like exploration."""
TIE = 1e-9
"""Arms whose scores differ by less are both the best."""
MOST_ROUNDS = 2000
"""Rounds that are looked at, evenly spread."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Guesses:
    """Whether picks were best guesses, under each combination of `WIDER` and `SHARPER`."""

    rounds: Index
    """The rounds that were looked at, in order, shape (n,)."""
    missed: Matrix
    """Probability that the pick of each was not the best guess, shape (combinations, n)."""
    log_probabilities: Matrix
    """Log-probability of the pick of each, given all other picks, same shape."""

    @property
    def weights(self) -> Vector:
        """How much each combination counts by the picks of these rounds, shape (combinations,); they sum to 1."""
        total = self.log_probabilities.sum(axis=1) / ALIKE
        found = np.exp(total - total.max())
        return np.asarray(found / found.sum())


def best_guesses(log: BanditLog, since: int = 0, most: int = MOST_ROUNDS) -> Guesses:
    """Follow the learner through a log, and look at `most` of the rounds from `since` on.

    Examples
    --------
    >>> from onlooker import Environment, EpsilonGreedy, simulate
    >>> log = simulate(Environment(5, 10), EpsilonGreedy(0.2), n_rounds=1500).log
    >>> found = best_guesses(log, since=1000)
    >>> round(float(found.weights @ found.missed.mean(axis=1)), 1)
    0.2
    """
    times, follower = as_times(None, log), Follower(log.n_features)
    follower.follow(log, times)
    wanted = np.unique(np.linspace(since, log.n_rounds - 1, min(most, log.n_rounds - since)).astype(np.int64))
    normal = np.random.default_rng(0).standard_normal((MORE_DRAWS, log.n_features + 1))
    shape = len(WIDER) * len(SHARPER), len(wanted)
    missed, logs = np.empty(shape), np.empty(shape)
    for start, block, means, spreads in beliefs_without_own(Rounds.of(log, times, None, follower.bank)):
        if start + len(means) <= since:
            break
        here = np.flatnonzero((wanted >= start) & (wanted < start + len(means)))
        places = wanted[here] - start
        for at, place, root in zip(here.tolist(), places.tolist(), roots_of(spreads[places]), strict=True):
            rows = block.rows[block.offsets[place] : block.offsets[place + 1]]
            missed[:, at], logs[:, at] = _look(rows, int(block.chosen[place]), means[place], root, normal)
    return Guesses(rounds=wanted, missed=missed, log_probabilities=logs)


def _look(rows: Matrix, pick: int, mean: Vector, root: Vector | Matrix, normal: Matrix) -> tuple[Vector, Vector]:
    """For one round: the probability that the pick was not the best guess, and the log-probability of the pick."""
    middle = rows @ mean[:-1]
    normal = normal[: DRAWS if middle[pick] >= middle.max() - TIE else MORE_DRAWS]
    away = normal * root if root.ndim == 1 else normal @ root
    random = 1.0 / (1.0 + np.exp(-mean[-1]))
    found = []
    for wider in WIDER:
        scores = (mean[:-1] + wider * away[:, :-1]) @ rows.T
        below = scores - scores.max(axis=1, keepdims=True)
        weights = _powers(np.exp(below / 2))
        given = (1.0 - random) * weights[:, :, pick] / weights.sum(axis=2) + random / len(rows)
        found.append((given @ (below[:, pick] < -TIE) / given.sum(axis=1), np.log(given.mean(axis=1))))
    missed, logs = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return missed, logs


def _powers(half: Matrix) -> NDArray[np.float64]:
    """`exp(sharper * below)` for each of `SHARPER`, from `exp(below / 2)`: products take a tenth of the time."""
    one = half * half
    three = one * one * one
    five = three * one * one
    eight = five * three
    return np.stack([one, one * half, one * one, three, five, eight, eight * eight])
