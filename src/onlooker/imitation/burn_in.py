"""Where to start: rules for the burn-in, the curve over all of them, and the choice by held-out picks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import as_number, as_whole
from onlooker.base.defaults import L2
from onlooker.base.errors import InputError
from onlooker.base.memory_limit import FITTING
from onlooker.base.threads import n_threads
from onlooker.base.types import Index, Matrix, Progress, Vector
from onlooker.imitation.choice_model import LINEAR, AnyScore, Basis, Linear, as_score
from onlooker.imitation.newton import Fit, minimise
from onlooker.imitation.out_of_core import refine_suffixes
from onlooker.imitation.short import is_short, short_fit, short_losses, short_suffixes
from onlooker.imitation.softmax import SoftmaxObjective, round_losses, split
from onlooker.logs.categories import Categories
from onlooker.logs.crossing import Crossing
from onlooker.logs.log import BanditLog, as_log, check_room
from onlooker.logs.parts import Parts
from onlooker.logs.parts_summary import PartsSummary, summarise_parts
from onlooker.logs.policy import LinearPolicy, Policy
from onlooker.logs.ragged import whole_slates


@runtime_checkable
class BurnIn(Protocol):
    """Anything that can say where a log's suffix starts."""

    def start(self, log: BanditLog) -> int:
        """Number of rounds to discard."""


@runtime_checkable
class LengthRule(Protocol):
    """A burn-in that depends on nothing but the length of the log, so that the log itself need not be there."""

    def start_of(self, n_rounds: int) -> int:
        """Number of rounds to discard out of `n_rounds`."""


@dataclass(frozen=True)
class FixedStart:
    """Throw away the same number of rounds whatever the log."""

    rounds: int = 0
    """How many."""

    def __post_init__(self) -> None:
        as_whole(self.rounds, "the burn-in")

    def start(self, log: BanditLog) -> int:
        """Number of rounds to discard."""
        return self.start_of(log.n_rounds)

    def start_of(self, n_rounds: int) -> int:  # noqa: ARG002  the protocol's shape
        """Number of rounds to discard out of `n_rounds`."""
        return self.rounds


@dataclass(frozen=True)
class Fraction:
    """Throw away a fraction of the log."""

    fraction: float
    """Between 0 and 1, 1 excluded."""

    def __post_init__(self) -> None:
        if as_number(self.fraction, "the burn-in fraction", least=0.0) >= 1:
            raise InputError(f"the burn-in fraction is {self.fraction}: it must lie below 1")

    def start(self, log: BanditLog) -> int:
        """Number of rounds to discard."""
        return self.start_of(log.n_rounds)

    def start_of(self, n_rounds: int) -> int:
        """Number of rounds to discard out of `n_rounds`."""
        return int(self.fraction * n_rounds + 1e-9)


@dataclass(frozen=True)
class PowerRule:
    """The paper's rule: discard `N ** exponent` rounds.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.zeros((10_000, 2, 1)), chosen=np.zeros(10_000, dtype=int))
    >>> PowerRule(0.9).start(log)
    3981
    """

    exponent: float = 0.9
    """Between 0 and 1."""

    def __post_init__(self) -> None:
        as_number(self.exponent, "the burn-in exponent", least=0.0, most=1.0)

    def start(self, log: BanditLog) -> int:
        """Number of rounds to discard."""
        return self.start_of(log.n_rounds)

    def start_of(self, n_rounds: int) -> int:
        """Number of rounds to discard out of `n_rounds`."""
        return power_start(n_rounds, self.exponent)


def power_start(n_rounds: int, exponent: float) -> int:
    """`floor(N ** exponent)`, exact where the power is a whole number."""
    power = float(n_rounds) ** exponent
    return min(n_rounds, int(np.floor(power * (1 + 1e-12))))


DEFAULT_ALPHAS = (
    *(0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.84),
    *(0.87, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99),
)
"""Dense near 1, where `N ** alpha` runs from a quarter of the log to nearly all of it."""

SWEEP_TOLERANCE = 3e-5
"""Newton decrement at which a fit of a sweep is done: far below what tells two burn-ins apart."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BurnInSweep:
    """What imitation finds after each burn-in."""

    alphas: Vector
    """Exponents: `N ** alpha` rounds are discarded, shape (m,)."""

    burn_ins: Index
    """Rounds discarded, shape (m,)."""

    thetas: Matrix
    """One row per alpha, shape (m, d); NaN where no round with a choice is left. Trees and networks have none."""

    losses: Vector
    """Mean softmax loss on each suffix, shape (m,)."""

    feature_names: tuple[str, ...] | None
    """Of the log."""

    categories: Categories | None = None
    """Of the log."""

    crossing: Crossing | None = None
    """Of the log."""

    basis: Basis | None = None
    """What thetas are weights of, where the score is not linear."""

    policies: tuple[Policy | None, ...] | None = None
    """One per alpha, where the score is not linear in any basis; None where no round with a choice is left."""

    def policy(self, index: int) -> Policy:
        """Policy found at the `index`-th alpha."""
        theta, found = self.thetas[index], None if self.policies is None else self.policies[index]
        if found is not None:
            return found
        if np.isnan(self.losses[index]):
            raise InputError(f"a burn-in of {self.burn_ins[index]} rounds leaves no round with a choice")
        return LinearPolicy.of(theta, self) if self.basis is None else self.basis.policy(theta, self)


def burn_in_sweep(
    log: BanditLog | Parts,
    alphas: ArrayLike | None = None,
    *,
    l2: float = L2,
    progress: Progress | None = None,
    score: Any = LINEAR,
) -> BurnInSweep:
    """Fit the suffix after `N ** alpha` rounds for every alpha (`DEFAULT_ALPHAS` unless given).

    An alpha of 0 discards one round, an alpha of 1 all of them: there thetas are NaN. A log that is not in memory,
    as `scan_log` gives it, is scanned a few times, for all alphas at once.

    With a `score` that is linear in a basis, as `Additive()`, thetas are the weights of the basis, which is chosen on
    the second half of the log. Trees and networks are fitted again after every burn-in; `policy(index)` gives them.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(300, 4, 2))
    >>> log = BanditLog.from_dense(X, chosen=(X @ [1.0, 2.0]).argmax(axis=1))
    >>> sweep = burn_in_sweep(log, [0.0, 0.5, 0.9])
    >>> sweep.burn_ins
    array([  1,  17, 169])
    >>> sweep.thetas.shape
    (3, 2)
    """
    try:
        grid = np.array(DEFAULT_ALPHAS if alphas is None else alphas, dtype=np.float64)
    except (TypeError, ValueError):
        grid = np.full(1, np.nan)
    if grid.ndim != 1 or not len(grid) or not ((grid >= 0) & (grid <= 1)).all():
        raise InputError("alphas must be a list of numbers between 0 and 1")
    model = as_score(score)
    if not isinstance(model, Linear):
        log = as_log(log, f"a sweep with score={score!r}")
    # Of a log in parts, every pass finds the curvature of every suffix.
    check_room(log, FITTING + (len(grid) * (2 + 2 * n_threads()) if isinstance(log, Parts) else 0))
    seen = summarise_parts(log) if isinstance(log, Parts) else None
    if seen is not None and seen.sample.partial:
        raise InputError(
            "picks or offers are known only in part, and a sweep over burn-ins then needs the log in memory: read it "
            "with read_log(path) instead of scan_log"
        )
    n_rounds = as_log(log).n_rounds if seen is None else seen.n_rounds
    burn_ins = np.array([power_start(n_rounds, float(alpha)) for alpha in grid], dtype=np.int64)
    if isinstance(log, BanditLog):
        burn_ins = whole_slates(log.round_ids, log.n_arms, burn_ins)
    if not isinstance(model, Linear):
        return _score_sweep(as_log(log), grid, burn_ins, model, l2=l2, progress=progress)
    if isinstance(log, Parts) and seen is not None:
        thetas, losses = _fit_parts(log, seen, burn_ins, l2=l2, progress=progress)
    else:
        thetas, losses = fit_suffixes(as_log(log), burn_ins, l2=l2, progress=progress)
    return BurnInSweep(
        alphas=grid,
        burn_ins=burn_ins,
        thetas=thetas,
        losses=losses,
        feature_names=log.feature_names,
        categories=log.categories,
        crossing=getattr(log, "crossing", None),
    )


def _score_sweep(
    log: BanditLog, grid: Vector, burn_ins: Index, model: AnyScore | str, *, l2: float, progress: Progress | None
) -> BurnInSweep:
    """A sweep with a score that is not linear; `"auto"` takes one for all burn-ins."""
    from onlooker.imitation.scores.choice import choose_score
    from onlooker.imitation.scores.sweep import swept

    if log.partial:
        raise InputError(f"score={model!r} needs all rounds, picks and offers: use score=Linear() here")
    taken = choose_score(log, l2=l2).model if isinstance(model, str) else model
    written = log.written_out()
    found = swept(written, burn_ins, taken, l2=l2, progress=progress)
    return BurnInSweep(
        alphas=grid,
        burn_ins=burn_ins,
        feature_names=written.feature_names,
        categories=written.categories,
        **{name: getattr(found, name) for name in ("thetas", "losses", "basis", "policies")},
    )


def _fit_parts(
    parts: Parts, seen: PartsSummary, burn_ins: Index, *, l2: float, progress: Progress | None
) -> tuple[Matrix, Vector]:
    """Theta and mean loss for each suffix: those of a sample first, then of all rounds from there."""
    near, losses = fit_suffixes(seen.sample, -(-burn_ins // seen.stride), l2=l2)
    if seen.stride == 1:
        return near, losses
    return refine_suffixes(
        parts, burn_ins, near, n_rounds=seen.n_rounds, l2=l2, tolerance=SWEEP_TOLERANCE, progress=progress
    )


def fit_suffixes(
    log: BanditLog,
    burn_ins: Sequence[int] | Index,
    *,
    l2: float,
    weights: Vector | None = None,
    progress: Progress | None = None,
) -> tuple[Matrix, Vector]:
    """Theta and mean loss for the suffix after each burn-in; NaN where it has no choice.

    `weights`, one per round of the log, are 1 by default; a round without weight counts as none.
    """
    check_room(log, FITTING)
    counts = np.where(log.informative, 1.0 if weights is None else weights, 0.0)
    thetas = np.full((len(burn_ins), log.n_features), np.nan)
    losses = np.full(len(burn_ins), np.nan)
    last_choice = int(np.flatnonzero(counts).max(initial=-1))
    distinct = np.unique(burn_ins)
    last: tuple[int, SoftmaxObjective, Fit] | None = None
    short, near = is_short(log, l2), None
    for done, burn_in in enumerate(distinct.tolist(), 1):
        near = _short(log, burn_in, l2, counts, near) if short and burn_in <= last_choice else None
        if near is not None:
            same = np.asarray(burn_ins) == burn_in
            lost = round_losses(log.suffix(burn_in), near)
            thetas[same], losses[same] = near, float(counts[burn_in:] @ lost / counts[burn_in:].sum())
        elif burn_in <= last_choice:
            last = _next_fit(log, burn_in, l2, counts, last)
            same = np.asarray(burn_ins) == burn_in
            thetas[same], losses[same] = last[2].theta, last[2].loss
        if progress is not None:
            progress(done, len(distinct))
    return thetas, losses


def _short(log: BanditLog, burn_in: int, l2: float, weights: Vector, near: Vector | None) -> Vector | None:
    """Theta of one suffix of a short log; None where the longer way has to be taken."""
    return short_fit(log, l2=l2, tolerance=SWEEP_TOLERANCE, weights=weights, start=burn_in, near=near)


def _next_fit(
    log: BanditLog, burn_in: int, l2: float, weights: Vector, last: tuple[int, SoftmaxObjective, Fit] | None
) -> tuple[int, SoftmaxObjective, Fit]:
    """Fit of one suffix, started from the last, longer one."""
    objective = SoftmaxObjective(log.suffix(burn_in), l2=l2, weights=weights[burn_in:])
    # Without regularisation a feature that stops varying would keep its old coefficient, so no fit is warm-started.
    if last is None or l2 == 0:
        return burn_in, objective, minimise(objective, tolerance=SWEEP_TOLERANCE)
    before, longer, near = last
    dropped, weight = log[before:burn_in], weights[before:burn_in]
    here = longer.without(near.at, SoftmaxObjective(dropped, l2=0.0, weights=weight)) if weight.any() else None
    return burn_in, objective, minimise(objective, near, here=here, tolerance=SWEEP_TOLERANCE)


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
        if weights is None:
            starts = np.unique(whole_slates(log.round_ids, log.n_arms, starts))
            sides = whole_slates(log.round_ids, log.n_arms, sides.ravel()).reshape(sides.shape)
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
        thetas = self._thetas(log, places[long], kept)
        judged = np.isfinite(thetas).all(axis=1)
        if not judged.any():
            return None
        losses = _mean_losses(log, counts, parts, thetas[judged])
        best = int(losses.mean(axis=1).argmin())
        worse = losses - losses[best]
        errors = worse.std(axis=1, ddof=1) / np.sqrt(len(parts))
        within = worse.mean(axis=1) <= TOLERANCE * errors
        left = starts[long][judged]
        return HeldOutCurve(
            burn_ins=left, losses=losses.mean(axis=1), errors=errors, best=best, start=int(left[within][0])
        )

    def _thetas(self, log: BanditLog, places: Index, kept: Vector) -> Matrix:
        """Theta for the suffix after each place."""
        counts, found = np.where(log.n_arms > 1, kept, 0.0), None
        if is_short(log, self.l2) and counts[places[-1] :].any():
            found = short_suffixes(log, places, counts, l2=self.l2, tolerance=SWEEP_TOLERANCE)
        if found is None:
            return fit_suffixes(log, places, l2=self.l2, weights=kept, progress=self.progress)[0]
        if self.progress is not None:
            self.progress(len(places), len(places))
        return found


def _mean_losses(log: BanditLog, counts: Vector, parts: Index, thetas: Matrix) -> Matrix:
    """Mean loss on each part of the log, a theta a row."""
    rounds = np.concatenate([np.arange(*part) for part in parts])
    held, weights = log[rounds], counts[rounds]
    starts = np.cumsum(np.append(0, np.diff(parts)[:-1]))
    totals = np.add.reduceat(weights, starts)
    if is_short(log, L2):
        return np.asarray(np.add.reduceat(weights * short_losses(held, thetas), starts, axis=1) / totals)
    return np.array([np.add.reduceat(weights * round_losses(held, theta), starts) / totals for theta in thetas])


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
