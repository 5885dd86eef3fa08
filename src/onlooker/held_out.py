"""Choosing the burn-in from the log alone, by which suffix best foretells the picks that come after it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker.checks import as_number
from onlooker.log import BanditLog
from onlooker.softmax import round_losses
from onlooker.sweep import fit_suffixes
from onlooker.types import Index, Progress, Vector

CANDIDATES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""Fractions of the log that may be thrown away."""

TOLERANCE = 1.5
"""How many standard errors (of the paired differences) worse than the best a longer suffix may be.

A compromise found by trial on simulated logs: a smaller one cuts stationary logs more often, a larger one keeps more of
a learner's burn-in. Where picks lapse at random (epsilon-greedy) the differences are noisy and most of it is kept.
"""

LEAST_ROUNDS = 10
"""Fewer held-out rounds than this judge nothing."""


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Keep as much of the log as foretells its last rounds no worse than the best suffix does.

    Every candidate suffix is fitted without the log's last rounds, on which their losses are compared round by round.
    The longest suffix that is not clearly worse than the best is kept (`TOLERANCE`): on a log of a settled system,
    where all are alike, that is (nearly) everything. No reward is needed, and no exponent.

    Examples
    --------
    A learner that picks at random for 500 rounds, then always what it values:

    >>> X = np.random.default_rng(0).normal(size=(2000, 5, 3))
    >>> chosen = (X @ [1.0, -1.0, 0.5]).argmax(axis=1)
    >>> chosen[:500] = 0
    >>> HeldOut().start(BanditLog.from_dense(X, chosen)) >= 500
    True
    """

    l2: float = 1e-4
    """Penalty of the fits."""

    fraction: float = 0.1
    """Part of the log, its end, to compare on."""

    progress: Progress | None = None
    """Called with how many candidates are fitted, and of how many."""

    def __post_init__(self) -> None:
        as_number(self.fraction, "the held-out fraction", above=0.0, most=0.5)
        as_number(self.l2, "l2", least=0.0)

    def start(self, log: BanditLog) -> int:
        """Number of rounds to throw away; 0 where the log is too short to tell."""
        found = self.curve(log)
        return 0 if found is None else found.start

    def curve(self, log: BanditLog) -> HeldOutCurve | None:
        """Loss on the last rounds after every candidate burn-in; None where the log is too short to tell."""
        n_held_out = int(self.fraction * log.n_rounds)
        past, future = log[: log.n_rounds - n_held_out], log[log.n_rounds - n_held_out :]
        burn_ins = [int(fraction * log.n_rounds) for fraction in CANDIDATES]
        enough = max(LEAST_ROUNDS, 2 * log.n_features)
        burn_ins = sorted({burn_in for burn_in in burn_ins if past.n_rounds - burn_in >= enough})
        if not burn_ins or np.count_nonzero(future.n_arms > 1) < LEAST_ROUNDS:
            return None
        thetas, _ = fit_suffixes(past, burn_ins, l2=self.l2, progress=self.progress)
        judged = np.isfinite(thetas).all(axis=1)
        losses = np.array([round_losses(future, theta) for theta in thetas[judged]])
        if not len(losses):
            return None
        best = int(losses.mean(axis=1).argmin())
        worse = losses - losses[best]
        errors = worse.std(axis=1) / np.sqrt(worse.shape[1])
        within = worse.mean(axis=1) <= TOLERANCE * errors
        kept = np.asarray(burn_ins, dtype=np.int64)[judged]
        return HeldOutCurve(
            burn_ins=kept, losses=losses.mean(axis=1), errors=errors, best=best, start=int(kept[within][0])
        )


# eq=False: `==` on arrays is elementwise, so a generated __eq__ would raise.
@dataclass(frozen=True, kw_only=True, eq=False)
class HeldOutCurve:
    """What `HeldOut` looks at: how well the suffix after each burn-in foretells the log's last rounds."""

    burn_ins: Index
    """Rounds thrown away, fewest first, shape (m,)."""
    losses: Vector
    """Mean softmax loss on the held-out rounds, shape (m,)."""
    errors: Vector
    """Standard error of each loss less the smallest one, shape (m,)."""
    best: int
    """Position of the smallest loss."""
    start: int
    """The burn-in to take: the shortest that is not clearly worse than the best."""
