"""What a fit cannot tell, found and named: each finding is a warning that teaches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlooker.errors import (
    CollinearFeaturesWarning,
    ConvergenceWarning,
    NoPreferenceWarning,
    OneArmRoundsWarning,
    OnlookerWarning,
    PenaltyDominatesWarning,
    SeparableDataWarning,
    TooFewRoundsWarning,
)
from onlooker.log import feature_labels
from onlooker.newton import Fit, minimise
from onlooker.softmax import SoftmaxObjective
from onlooker.types import Matrix

SPREAD_ROUNDS = 512
"""A feature's spread within the rounds is first judged by about this many of them."""

FLAT = 1e-8
"""Curvature below this fraction of a feature's spread within the rounds counts as none."""

RUNAWAY = 1e-6
"""A coefficient whose curvature has fallen below this fraction of its feature's spread was growing without bound."""

SEPARATION_STEPS = 6
"""How many times the penalty is cut to a tenth to see whether nearly separable picks are separable."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Trouble:
    """What was found."""

    warnings: tuple[OnlookerWarning, ...]
    """In the order in which to read them."""

    identified: NDArray[np.bool_]
    """Which coefficients the rounds can tell at all, shape (d,)."""


def find_trouble(objective: SoftmaxObjective, fit: Fit, hessian: Matrix) -> Trouble:
    """Look for everything that makes the fitted theta less than it seems; `hessian` is the objective's there."""
    names = feature_labels(objective.log.feature_names, objective.log.n_features)
    data_hessian = hessian - objective.l2 * np.eye(len(names))
    null = _null_space(objective, data_hessian)
    identified = np.abs(null).max(axis=1, initial=0.0) < 1e-6
    findings = [
        *_about_rounds(objective),
        *_about_collinearity(null, names),
        *_about_separation(objective, fit, data_hessian, identified, names),
        *_about_preference(objective, fit),
    ]
    return Trouble(warnings=tuple(findings), identified=identified)


def likelihood_ratio(log_likelihood: float, null_log_likelihood: float, n_features: int) -> tuple[float, float]:
    """Twice the gain in log-likelihood over uniform picks, and its p-value (chi-square, d degrees of freedom)."""
    from scipy.special import chdtrc

    ratio = max(0.0, 2 * (log_likelihood - null_log_likelihood))
    return ratio, float(chdtrc(n_features, ratio))


def _about_rounds(objective: SoftmaxObjective) -> Iterator[OnlookerWarning]:
    one_arm = int(np.count_nonzero(objective.log.n_arms == 1))
    if one_arm:
        yield OneArmRoundsWarning(f"{one_arm} rounds offer a single arm: nothing was chosen there, they are left out")
    d = objective.log.n_features
    if objective.n_rounds < d:
        yield TooFewRoundsWarning(
            f"{objective.n_rounds} rounds with a choice for {d} features: theta rests on the penalty (l2); "
            "keep more rounds or fewer features"
        )


def _about_collinearity(null: Matrix, names: Sequence[str]) -> Iterator[OnlookerWarning]:
    involved = np.abs(null).max(axis=1, initial=0.0)
    alone = [j for j in range(len(names)) if involved[j] > 1 - 1e-6]
    tangled = [j for j in range(len(names)) if 1e-6 <= involved[j] <= 1 - 1e-6]
    if alone:
        yield CollinearFeaturesWarning(
            f"{_some(names, alone)} never varies within a round, so no pick depends on it: its coefficient is 0 "
            "and has no interval; leave it out, or cross it with a feature of the arms"
        )
    if tangled:
        yield CollinearFeaturesWarning(
            f"{_some(names, tangled)} cannot be told apart: within the rounds only a combination of them counts; the "
            "smallest coefficients that make it are given, without intervals; leave one of them out"
        )


def _about_separation(
    objective: SoftmaxObjective, fit: Fit, data_hessian: Matrix, identified: NDArray[np.bool_], names: Sequence[str]
) -> Iterator[OnlookerWarning]:
    if _separable(objective, fit):
        yield SeparableDataWarning(
            f"some theta explains all {objective.n_rounds} picks without error: the direction found can be used, but "
            "its length is set by the penalty and its intervals mean little; more rounds would bound it"
        )
        return
    weak = [j for j in np.flatnonzero(identified).tolist() if data_hessian[j, j] < objective.l2]
    if weak:
        yield PenaltyDominatesWarning(
            f"the penalty (l2 = {objective.l2:g}), not the picks, decides {_some(names, weak)}: put the feature on a "
            "larger scale, or lower l2"
        )
    if not fit.converged:
        yield ConvergenceWarning(
            f"the solver stopped after {fit.n_iter} passes with a gradient of {np.abs(fit.at.gradient).max():.1e}: "
            "some picks may be explained without error, try a larger l2"
        )
    elif objective.l2 == 0:
        spread = np.diag(_spread(objective, full=False))
        unbounded = [j for j in np.flatnonzero(identified).tolist() if data_hessian[j, j] < RUNAWAY * spread[j]]
        if unbounded:
            yield SeparableDataWarning(
                f"{_some(names, unbounded)} decides some picks without exception, so the data do not bound its "
                "coefficient: read it as large, or set l2 above 0"
            )


def _separable(objective: SoftmaxObjective, fit: Fit) -> bool:
    """Whether some theta puts every pick strictly first.

    A penalised fit of such data may miss a few; where it misses no more than there are features, weaker penalties tell.
    """
    n_rounds, d = objective.n_rounds, objective.log.n_features
    for _ in range(SEPARATION_STEPS):
        missed = n_rounds - fit.at.explained
        if missed == 0 or missed > d or objective.l2 == 0:
            break
        objective = SoftmaxObjective(objective.log, l2=objective.l2 / 10, weights=objective.weights)
        fit = minimise(objective, fit)
    return fit.at.explained == n_rounds


def _about_preference(objective: SoftmaxObjective, fit: Fit) -> Iterator[OnlookerWarning]:
    total = objective.total
    ratio, p = likelihood_ratio(-total * fit.at.loss, -total * objective.null_loss(), len(fit.at.theta))
    if p > 0.05:
        yield NoPreferenceWarning(
            f"picking uniformly at random explains the picks as well (likelihood ratio {ratio:.1f} on "
            f"{len(fit.at.theta)} degrees of freedom, p = {p:.2f}): do not read theta as a preference"
        )


def _null_space(objective: SoftmaxObjective, data_hessian: Matrix) -> Matrix:
    """Unit directions (columns) of theta that no round's choice depends on; a lone feature is one of its own.

    Judged by a sample of the rounds and by the fit's own curvature first; all rounds are read only if those look flat.
    """
    spread = _spread(objective, full=False)
    if _flat_directions(spread).shape[1] == 0:
        return np.zeros((len(spread), 0))
    if np.diag(data_hessian).min() > 0 and _flat_directions(data_hessian).shape[1] == 0:
        return np.zeros((len(spread), 0))
    spread = _spread(objective, full=True)
    return _flat_directions(spread)


def _spread(objective: SoftmaxObjective, *, full: bool) -> Matrix:
    """Covariance of the features within the rounds, averaged over (a sample of) the rounds."""
    log = objective.log
    stride = 1 if full else max(1, log.n_rounds // SPREAD_ROUNDS)
    weights = (objective.weights > 0).astype(np.float64)
    if not weights[::stride].any():
        stride = 1
    sample = SoftmaxObjective(log, l2=0.0, weights=weights, stride=stride)
    return sample.evaluate(np.zeros(log.n_features)).hessian


def _flat_directions(matrix: Matrix) -> Matrix:
    diagonal = np.diag(matrix)
    still = diagonal <= 1e-24 * max(1e-300, float(diagonal.max()))
    scale = np.where(still, 0.0, 1 / np.sqrt(np.where(still, 1.0, diagonal)))
    values, vectors = np.linalg.eigh(matrix * np.outer(scale, scale) + np.diag(still.astype(np.float64)))
    directions = scale[:, None] * vectors[:, values < FLAT]
    directions /= np.maximum(1e-300, np.linalg.norm(directions, axis=0))
    return np.hstack([np.eye(len(diagonal))[:, still], directions])


def _some(names: Sequence[str], which: Sequence[int]) -> str:
    shown = ", ".join(repr(names[j]) for j in which[:5])
    return shown if len(which) <= 5 else f"{shown} and {len(which) - 5} more"
