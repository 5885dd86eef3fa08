"""Choosing the burn-in from the log alone, by which suffix best predicts held-out picks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker.base.checks import as_number
from onlooker.base.defaults import L2
from onlooker.base.types import Index, Progress, Vector
from onlooker.imitation.round_weights import split
from onlooker.imitation.softmax import round_losses
from onlooker.imitation.sweep import fit_suffixes
from onlooker.logs.log import BanditLog

CANDIDATES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""Fractions of the log that may be discarded."""

TOLERANCE = 2.0
"""How many standard errors (of the paired differences) worse than the best a longer suffix may be.

A compromise found by trial on simulated logs: a smaller one cuts stationary logs more often, a larger one keeps more of
a learner's burn-in. Where some picks are random (epsilon-greedy) the differences are noisy and most of it is kept.
"""

BLOCKS = 100
"""Parts of the log, equally long; whole ones are held out, since neighbouring rounds are alike."""

EVERY = 5
"""Of the log's second half one part in so many is held out: ten in all, a tenth of the log."""

LEAST_ROUNDS = 10
"""Fewer held-out rounds than this judge nothing."""


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Keep the longest suffix that predicts the log's second half about as well as the best suffix does.

    Every candidate suffix is fitted without some parts of the log's second half, on which their losses are compared.
    The longest suffix that is not clearly worse than the best is kept (`TOLERANCE`, with the error taken between the
    parts): on a log of a settled system, where all are alike, that is (nearly) everything. No reward is needed, and no
    exponent.

    Examples
    --------
    A learner that picks at random for 500 rounds, then always what it values:

    >>> X = np.random.default_rng(0).normal(size=(2000, 5, 3))
    >>> chosen = (X @ [1.0, -1.0, 0.5]).argmax(axis=1)
    >>> chosen[:500] = 0
    >>> HeldOut().start(BanditLog.from_dense(X, chosen)) >= 500
    True
    """

    l2: float = L2
    """Strength of the L2 regularisation of the fits."""

    progress: Progress | None = None
    """Called with how many candidates are fitted, and of how many."""

    def __post_init__(self) -> None:
        as_number(self.l2, "l2", least=0.0)

    def start(self, log: BanditLog, weights: Vector | None = None) -> int:
        """Number of rounds to discard; 0 where the log is too short to decide."""
        found = self.curve(log, weights)
        return 0 if found is None else found.start

    def curve(self, log: BanditLog, weights: Vector | None = None) -> HeldOutCurve | None:
        """Loss on the held-out rounds after every candidate burn-in; None where the log is too short to decide.

        With `weights`, one a round, each round counts as often as its weight says, in burn-ins too.
        """
        n = log.n_rounds if weights is None else int(weights.sum())
        edges = np.arange(BLOCKS + 1) * n // BLOCKS
        sides = edges[[(k, k + 1) for k in range(BLOCKS // 2 + EVERY - 1, BLOCKS, EVERY)]]
        starts = np.unique([int(fraction * n) for fraction in CANDIDATES])
        counts = np.ones(log.n_rounds)
        places, parts = starts, sides
        if weights is not None:
            log, counts, split_at = split(log, weights, np.concatenate([starts, sides.ravel()]))
            places, parts = split_at[: len(starts)], split_at[len(starts) :].reshape(sides.shape)
        kept, held = counts.copy(), np.zeros(log.n_rounds)
        for start, stop in parts:
            kept[start:stop], held[start:stop] = 0.0, counts[start:stop]
        enough = max(LEAST_ROUNDS, 2 * log.n_features)
        long = np.array([kept[place:].sum() >= enough for place in places.tolist()])
        if not long.any() or held[log.n_arms > 1].sum() < LEAST_ROUNDS:
            return None
        thetas, _ = fit_suffixes(log, places[long], l2=self.l2, weights=kept, progress=self.progress)
        judged = np.isfinite(thetas).all(axis=1)
        if not judged.any():
            return None
        losses = np.array([[_mean_loss(log, counts, part, theta) for part in parts] for theta in thetas[judged]])
        best = int(losses.mean(axis=1).argmin())
        worse = losses - losses[best]
        errors = worse.std(axis=1, ddof=1) / np.sqrt(len(parts))
        within = worse.mean(axis=1) <= TOLERANCE * errors
        left = starts[long][judged]
        return HeldOutCurve(
            burn_ins=left, losses=losses.mean(axis=1), errors=errors, best=best, start=int(left[within][0])
        )


def _mean_loss(log: BanditLog, counts: Vector, part: Index, theta: Vector) -> float:
    rounds = slice(*part.tolist())
    return float(np.average(round_losses(log[rounds], theta), weights=counts[rounds]))


# eq=False: `==` on arrays is elementwise, so a generated __eq__ would raise.
@dataclass(frozen=True, kw_only=True, eq=False)
class HeldOutCurve:
    """What `HeldOut` compares: how well the suffix after each burn-in predicts the held-out rounds."""

    burn_ins: Index
    """Rounds discarded, fewest first, shape (m,)."""
    losses: Vector
    """Mean softmax loss on the held-out rounds, shape (m,)."""
    errors: Vector
    """Standard error of each loss less the smallest one, shape (m,)."""
    best: int
    """Position of the smallest loss."""
    start: int
    """The burn-in to take: the shortest that is not clearly worse than the best."""
