"""Where to start, and what the rounds from there on show.

Rules for the burn-in, the choice by held-out picks, the objective of the rounds after it, and the estimate from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import as_number, as_whole
from onlooker.base.defaults import L2
from onlooker.base.errors import InputError
from onlooker.base.memory_limit import FITTING
from onlooker.base.numerics import inverse_of
from onlooker.base.types import Index, Matrix, Progress, Vector
from onlooker.imitation.choice_model import Band, Basis
from onlooker.imitation.fit_warnings import enough
from onlooker.imitation.leverage import with_leverage
from onlooker.imitation.newton import Fit, minimise, minimise_and_look
from onlooker.imitation.objective import (
    CurvedPoint,
    Objective,
    Point,
    model_covariance,
    sandwich_covariance,
    window_width,
)
from onlooker.imitation.out_of_core import PartedObjective
from onlooker.imitation.scores.smooth_fit import smooth_estimate
from onlooker.imitation.short import is_short, short_fit, short_losses, short_suffixes
from onlooker.imitation.softmax import SoftmaxObjective, after, as_weights, round_losses, split
from onlooker.logs.factored import FactoredRows
from onlooker.logs.layouts import MOST_WEIGHTS, Layout
from onlooker.logs.log import BanditLog, as_log, check_room
from onlooker.logs.parts import Parts
from onlooker.logs.parts_summary import summarise_parts
from onlooker.logs.ragged import whole_slates

SWEEP_TOLERANCE = 3e-5
"""Newton decrement at which a fit of a sweep is done: far below what tells two burn-ins apart."""
WITHOUT_INTERVALS = 1e-5
"""Newton decrement at which a fit without intervals is done: the loss is then within 1e-10 of its minimum."""


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


def as_burn_in(burn_in: object, *, l2: float = L2) -> BurnIn:
    """The rule that a `burn_in` parameter stands for.

    Examples
    --------
    >>> as_burn_in("rule"), as_burn_in(500), as_burn_in(0.25)
    (PowerRule(exponent=0.9), FixedStart(rounds=500), Fraction(fraction=0.25))
    """
    named: dict[object, BurnIn] = {"naive": FixedStart(0), "rule": PowerRule(0.9), "auto": HeldOut(l2=l2)}
    if isinstance(burn_in, str) and burn_in in named:
        return named[burn_in]
    if isinstance(burn_in, (int, np.integer)) and not isinstance(burn_in, bool):
        return FixedStart(int(burn_in))
    if isinstance(burn_in, (float, np.floating)):
        return Fraction(float(burn_in))
    if isinstance(burn_in, BurnIn) and not isinstance(burn_in, type):
        return burn_in
    raise InputError(
        f"burn_in is {burn_in!r}: use 'naive', 'rule', 'auto', a number of rounds, a fraction below 1, "
        "or an object with start(log)"
    )


def suffix_objective(
    log: BanditLog | Parts,
    burn_in: BurnIn,
    *,
    l2: float,
    sample_weight: ArrayLike | None = None,
    scaled: bool = False,
) -> tuple[Objective, int]:
    """Objective of the rounds after the burn-in, and how many are discarded.

    Of a log in parts, a burn-in that looks at the log itself sees an even sample of its rounds: its answer is a
    multiple of the distance between them. Where all rounds fit into the sample, it is the log. With weights, rules and
    `"auto"` count a round as often as its weight says; a number of rounds is a place in the log, whatever the weights.
    Weights that are `scaled` do not count rounds: each is one piece of evidence, however large its weight.
    """
    if isinstance(log, Parts):
        if sample_weight is not None:
            raise InputError("sample_weight is for logs in memory: leave it out, or read the log")
        return _of_parts(log, burn_in, l2)
    if scaled and sample_weight is not None:
        n_rounds = as_log(log).n_rounds
        start = _checked(burn_in.start(log), n_rounds)
        shares = as_weights(sample_weight, n_rounds)[start:]
        return SoftmaxObjective(log.suffix(start), l2=l2, weights=shares / shares.mean(), scaled=True), start
    start, weights = suffix_start(as_log(log), burn_in, sample_weight)
    return SoftmaxObjective(log.suffix(start), l2=l2, weights=weights), start


def suffix_start(log: BanditLog, burn_in: BurnIn, sample_weight: ArrayLike | None = None) -> tuple[int, Vector | None]:
    """How many rounds the burn-in discards, and the weights of the others where there are weights."""
    if sample_weight is not None:
        return _weighted_suffix(log, burn_in, as_weights(sample_weight, log.n_rounds, "sample_weight"))
    start = _checked(burn_in.start(log), log.n_rounds)
    return int(whole_slates(log.round_ids, log.n_arms, np.array([start]))[0]), None


def _weighted_suffix(log: BanditLog, burn_in: BurnIn, weights: Vector) -> tuple[int, Vector]:
    """Rounds discarded altogether, and the weights of the others."""
    if isinstance(burn_in, FixedStart):
        start = _checked(burn_in.rounds, log.n_rounds)
        return start, weights[start:]
    if not weights.any():
        raise InputError("every round has weight 0: there is nothing to imitate")
    n_counted = int(weights.sum())
    if isinstance(burn_in, HeldOut):
        return after(weights, burn_in.start(log, weights))
    if isinstance(burn_in, LengthRule):
        return after(weights, _checked(burn_in.start_of(n_counted), n_counted))
    raise InputError(
        f"burn_in={burn_in!r} does not see sample_weight: use 'naive', 'rule', 'auto', a number of rounds or a fraction"
    )


def _of_parts(parts: Parts, burn_in: BurnIn, l2: float) -> tuple[Objective, int]:
    found = summarise_parts(parts)
    if isinstance(found.sample.features, FactoredRows) and getattr(parts, "crossing", None) is None:
        raise InputError("the parts hold contexts and arms, but no `crossing` names their weights: give them one")
    if isinstance(burn_in, LengthRule):
        start = _checked(burn_in.start_of(found.n_rounds), found.n_rounds)
    else:
        start = _checked(found.stride * as_whole(burn_in.start(found.sample), "the burn-in"), found.n_rounds)
    start = found.behind_slate(parts, start)
    if found.stride == 1:
        return SoftmaxObjective(found.sample.suffix(start), l2=l2), start
    return PartedObjective(parts, start=start, l2=l2, summary=found), start


def _checked(start: object, n_rounds: int) -> int:
    found = as_whole(start, "the burn-in")
    if found >= n_rounds:
        raise InputError(f"a burn-in of {found} rounds leaves nothing of a log with {n_rounds}: make it shorter")
    return found


def estimate(
    objective: Objective, basis: Basis, lags: int | None, *, model: bool
) -> tuple[Fit, Point, Matrix | None, Band | None]:
    """The minimum, the curvature there, the covariance that follows, None for too many weights; bands of curves."""
    if basis.smooth is not None:
        return smooth_estimate(objective, basis, None if model else window_width(objective, lags))
    if objective.many and not _has_covariance(objective):
        fit = minimise(objective, tolerance=WITHOUT_INTERVALS)
        fit = replace(fit, at=objective.judged(fit.theta))
        return fit, fit.at, None, None
    if model:
        fit, curved = minimise_and_look(objective, objective.evaluate)
        return fit, curved, model_covariance(objective, curved, _metric(objective, curved, fit)), None
    width = window_width(objective, lags)
    fit, scattered = minimise_and_look(objective, lambda theta: objective.at_minimum(theta, width))
    metric = _metric(objective, scattered, fit)
    covariance = sandwich_covariance(objective, scattered, width, metric)
    return fit, scattered, with_leverage(objective, scattered, covariance, metric), None


def _has_covariance(objective: Objective) -> bool:
    """Whether there are intervals: of dense rows always."""
    dense = isinstance(objective, SoftmaxObjective) and not isinstance(objective.log.features, Layout)
    return dense or (objective.n_features <= MOST_WEIGHTS and enough(objective))


def _metric(objective: Objective, at: CurvedPoint, fit: Fit) -> Matrix | None:
    """Inverse of the Hessian where that is known, or has to leave out what is redundant by design; else None."""
    if objective.many:
        return fit.metric
    return inverse_of(objective.filled(at.hessian)) if objective.n_redundant else None
