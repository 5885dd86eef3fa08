"""The rounds after a burn-in: where they start, with their weights, their objective, and the estimate from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlooker.base.checks import as_whole
from onlooker.base.defaults import L2
from onlooker.base.errors import InputError
from onlooker.base.numerics import inverse, inverse_of
from onlooker.base.types import Matrix, Vector
from onlooker.imitation.burn_in import BurnIn, FixedStart, Fraction, HeldOut, LengthRule, PowerRule
from onlooker.imitation.choice_model import Band, Basis
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
from onlooker.imitation.softmax import SoftmaxObjective, after, as_weights
from onlooker.logs.factored import FactoredRows
from onlooker.logs.layouts import MOST_WEIGHTS, Layout
from onlooker.logs.log import BanditLog, as_log
from onlooker.logs.parts import Parts
from onlooker.logs.parts_summary import summarise_parts
from onlooker.logs.ragged import whole_slates


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


WITHOUT_INTERVALS = 1e-5
"""Newton decrement at which a fit without intervals is done: the loss is then within 1e-10 of its minimum."""


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


def enough(objective: Objective) -> bool:
    """Whether there are more rounds than weights that they could identify."""
    return objective.n_rounds > objective.n_features - objective.n_redundant


def shrinkage(objective: Objective, at: CurvedPoint, fit: Fit, smooth: NDArray[np.bool_] | None) -> float:
    """By how much regularisation shrinks the weights, to first order; those of curves are shrunken on purpose."""
    theta = at.theta if smooth is None else np.where(smooth, 0.0, at.theta)
    squared = float(theta @ theta)
    metric = fit.metric if objective.many and fit.metric is not None else inverse(at.hessian)
    return float(objective.l2 * theta @ metric @ theta) / squared if squared else 0.0
