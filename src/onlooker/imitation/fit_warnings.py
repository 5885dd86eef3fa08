"""Checks of a fit: each problem is a named warning that says what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlooker.base.checks import counted
from onlooker.base.errors import (
    CoarseSetsWarning,
    CollinearFeaturesWarning,
    ConvergenceWarning,
    NoIntervalsWarning,
    NoPreferenceWarning,
    OneArmRoundsWarning,
    OnlookerWarning,
    PenaltyDominatesWarning,
    SeparableDataWarning,
    TooFewRoundsWarning,
    UncomparedArmsWarning,
)
from onlooker.base.numerics import (
    UNIDENTIFIED,
    Curvature,
    chi_square_p,
    cholesky_inverse,
    inverse,
    inverse_square_root,
    largest,
)
from onlooker.base.types import Index, Matrix, Vector
from onlooker.imitation.newton import Fit, minimise
from onlooker.imitation.objective import ArmsSeen, CurvedPoint, Objective
from onlooker.imitation.softmax import SoftmaxObjective, round_losses
from onlooker.logs.layouts import MOST_WEIGHTS
from onlooker.logs.log import BanditLog, feature_labels

UNBOUNDED = 1e-10
"""Without regularisation, a direction with less than this fraction of the spread's curvature grows without bound."""

BOUNDED = 1e-6
"""Rounds with more than this fraction of their own spread's curvature in every direction bound theta."""

LOOKS = 4
"""How often the rounds that fit worst are added to the sample, before all rounds are used."""

NEARLY_SEPARABLE = 0.98
"""If the fitted policy agrees with at least this share of the picks, the data may be separable."""

COARSE = 1e-3
"""Sets that leave less than this share of the information in some direction do not identify it."""

WEAK = 0.15
"""Regularisation dominates a coefficient if it shrinks it by this share or more."""


Flags = NDArray[np.bool_]
"""One flag per feature."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FitFindings:
    """What the checks of a fit found."""

    warnings: tuple[OnlookerWarning, ...]
    """Most basic first."""

    constant: Flags
    """Which features never vary within a round, shape (d,): their coefficients are not identified."""

    identified: Flags
    """Which coefficients the rounds identify, shape (d,)."""

    rank: int
    """How many directions of theta the rounds identify."""


def check_fit(objective: Objective, fit: Fit, hessian: Matrix, smooth: Flags | None = None) -> FitFindings:
    """Check what the data identify and how far the fit can be trusted; `hessian` is the objective's at the fit.

    Weights that are `smooth` have a penalty that was chosen for them: it is meant to decide, so it identifies them.
    They count for as much as the rounds decide of them.
    """
    names = feature_labels(objective.feature_names, objective.n_features)
    hessian = objective.filled(hessian)
    of_data = hessian.copy()
    of_data[np.diag_indices_from(of_data)] -= objective.l2
    own = np.ones(objective.n_features, dtype=bool) if smooth is None else ~smooth
    curvature = _curvature(objective, fit, of_data, own)
    inverse_diagonal = _inverse_diagonal(objective, fit, hessian)
    bent = int(np.ceil((1 - objective.l2 * inverse_diagonal[~own]).sum()))
    rank = curvature.rank - objective.n_redundant + bent
    constant, tangled = ~own, ~own
    constant[own], tangled[own] = curvature.constant, curvature.tangled
    constant, tangled = constant & own, tangled & own
    unbounded = _unbounded(objective, fit, hessian) & own
    coarse = _coarse(objective, fit, of_data) & ~constant & ~tangled & own
    findings = [
        *_about_rounds(objective, int(np.count_nonzero(own)) + bent),
        *_about_arms(objective.arms),
        *_about_sets(coarse, names),
        *about_collinearity(constant & ~_of_lone_arms(objective), tangled, names),
        *_about_separation(objective, fit, unbounded & ~constant, names),
        *_about_penalty(objective, inverse_diagonal, own & ~constant & ~tangled, unbounded, names),
        *_about_convergence(fit, unbounded),
    ]
    if not any(isinstance(finding, PenaltyDominatesWarning) for finding in findings):
        findings += _about_preference(objective, fit, rank=rank)
    return FitFindings(
        warnings=tuple(findings),
        constant=constant,
        identified=~(constant | tangled | coarse | unbounded),
        rank=rank,
    )


def check_large_fit(objective: Objective, fit: Fit, variances: Vector) -> FitFindings:
    """Check a fit of too many weights for a Hessian, or for its rounds; `variances` are the Hessian's diagonal.

    What is collinear is then not known, nor what regularisation decides beside the weights that it decides alone.
    """
    names = feature_labels(objective.feature_names, objective.n_features)
    constant = variances <= objective.rounding() ** 2
    nothing = np.zeros(len(constant), dtype=bool)
    unbounded = ~constant if _explains_all(objective, fit) else nothing
    lower = 1 / np.maximum(variances + objective.l2, 1e-300)
    findings = [
        *_about_rounds(objective, objective.n_features),
        *_about_arms(objective.arms),
        *_about_size(objective.n_features),
        *_about_separation(objective, fit, unbounded, names),
        *_about_penalty(objective, lower, ~constant, unbounded, names),
        *_about_convergence(fit, unbounded),
    ]
    return FitFindings(
        warnings=tuple(findings), constant=constant, identified=nothing, rank=int(np.count_nonzero(~constant))
    )


def _inverse_diagonal(objective: Objective, fit: Fit, hessian: Matrix) -> Vector:
    """Diagonal of the Hessian's inverse, which a search for many weights has found already."""
    return np.diag(fit.metric if objective.many and fit.metric is not None else inverse(hessian))


def likelihood_ratio(log_likelihood: float, null_log_likelihood: float, rank: int) -> tuple[float, float]:
    """Twice the gain in log-likelihood over uniform picks, and its p-value (chi-square, `rank` degrees of freedom)."""
    ratio = max(0.0, 2 * (log_likelihood - null_log_likelihood))
    return ratio, chi_square_p(ratio, rank)


def _about_rounds(objective: Objective, n_weights: int) -> Iterator[OnlookerWarning]:
    if objective.n_one_arm:
        yield OneArmRoundsWarning(
            f"in {counted(objective.n_one_arm, 'round')} a single arm was offered, so there was no choice. "
            "Such rounds are left out; no action is needed"
        )
    if objective.n_vague:
        yield CoarseSetsWarning(
            f"in {counted(objective.n_vague, 'round')} every offered arm may have been the pick, which says nothing. "
            "Such rounds are left out; no action is needed"
        )
    if objective.n_rounds < n_weights:
        yield TooFewRoundsWarning(
            f"{objective.n_rounds} rounds with a choice for {n_weights} features are too few: the weights depend on "
            "the regularisation (l2). Keep more rounds or use fewer features"
        )


def _about_size(n_features: int) -> Iterator[OnlookerWarning]:
    if n_features > MOST_WEIGHTS:
        yield NoIntervalsWarning(
            f"{n_features} weights are too many for intervals: their covariance would take "
            f"{8e-9 * n_features**2:,.1f} GB. Weights have no standard errors; use fewer features to get some"
        )


def _about_arms(arms: ArmsSeen | None) -> Iterator[OnlookerWarning]:
    """Say which arms nothing, or little, is known of."""
    if arms is None:
        return
    ids = [str(arm) for arm in arms.ids]
    if len(arms.alone):
        yield UncomparedArmsWarning(
            f"{_listed(ids, arms.alone)} is never offered beside another arm, so nothing is known of its weights: they "
            "are set to 0 and have no intervals. Leave the arm out"
        )
    if len(arms.unpicked):
        yield UncomparedArmsWarning(
            f"{_listed(ids, arms.unpicked)} is offered but never picked: its weights say only that it scores low, and "
            "how low may depend on regularisation. Leave the arm out, or keep more rounds"
        )
    if arms.n_groups > 1:
        yield UncomparedArmsWarning(
            f"the arms form {arms.n_groups} groups that are never offered together: weights are differences to the "
            "mean over the arms of a group. Do not compare them between groups"
        )


def _coarse(objective: Objective, fit: Fit, data_hessian: Matrix) -> Flags:
    """Which weights the picks would identify, but the sets that they are known to do not.

    Either hardly any of the information is left in some direction, or another theta explains the sets as well.
    """
    none = np.zeros(objective.n_features, dtype=bool)
    if not objective.sets:
        return none
    whole = objective.bounded(fit.theta).hessian
    whole[np.diag_indices_from(whole)] -= objective.l2
    root = inverse_square_root(objective.filled(whole))
    values, vectors = np.linalg.eigh(root.T @ data_hessian @ root)
    size = np.sqrt(np.maximum(np.diag(whole), 0.0))
    directions = size[:, None] * (root @ vectors[:, values < COARSE])
    found = np.abs(directions).max(axis=1, initial=0.0) > 0.1
    # Where another theta is as good, weights that differ by more than their standard errors could be either.
    errors = np.sqrt(np.maximum(np.diag(inverse(data_hessian)), 0.0) / objective.total)
    for other in fit.rivals:
        found |= np.abs(other - fit.theta) > 3 * errors
    return np.asarray(found)


def _about_sets(coarse: Flags, names: Sequence[str]) -> Iterator[OnlookerWarning]:
    if coarse.any():
        yield CoarseSetsWarning(
            f"the sets that picks are known to are too coarse to identify {_some(names, coarse)}: the weight has no "
            "interval and may even have the wrong sign. Get smaller sets or some picks, or leave the feature out"
        )


def _of_lone_arms(objective: Objective) -> Flags:
    """Which weights belong to arms that are never offered beside another."""
    found = np.zeros(objective.n_features, dtype=bool)
    if objective.arms is not None:
        first, K = objective.arms.first, len(objective.arms.ids)
        found[first:].reshape(K, -1)[objective.arms.alone] = True
    return found


def about_collinearity(constant: Flags, tangled: Flags, names: Sequence[str]) -> Iterator[OnlookerWarning]:
    """Name the features that no pick depends on, and those that are not identifiable separately."""
    if constant.any():
        yield CollinearFeaturesWarning(
            f"{_some(names, constant)} never varies within a round, so no pick depends on it: its weight is set to 0 "
            "and has no interval. Leave it out, cross it with a feature of the arms, or, if it distinguishes several "
            "learners, split the log by it"
        )
    if tangled.any():
        yield CollinearFeaturesWarning(
            f"{_some(names, tangled)} are not identifiable separately: within the rounds they are collinear, so their "
            "weights are not unique and have no intervals. Leave one of the features out"
        )


def _about_separation(
    objective: Objective, fit: Fit, unbounded: Flags, names: Sequence[str]
) -> Iterator[OnlookerWarning]:
    if not unbounded.any():
        return
    if objective.l2 == 0 and not _explains_all(objective, fit):
        yield SeparableDataWarning(
            f"{_some(names, unbounded)} decides some picks without exception, so the data do not bound its weight. "
            "Read the weight only as large, or set l2 above 0"
        )
        return
    yield SeparableDataWarning(
        f"the picks are separable: one theta explains (nearly) all {objective.n_rounds} picks, so only regularisation "
        "bounds its length and there are no intervals. Use its direction only, or keep more rounds"
    )


def _about_penalty(
    objective: Objective, inverse_diagonal: Vector, identified: Flags, unbounded: Flags, names: Sequence[str]
) -> Iterator[OnlookerWarning]:
    weak = identified & ~unbounded & (objective.l2 * inverse_diagonal > WEAK)
    if weak.any():
        yield PenaltyDominatesWarning(
            f"regularisation (l2 = {objective.l2:g}) determines the weight of {_some(names, weak)} as much as the "
            "picks do: the feature is on a tiny scale, nearly collinear with others, or nearly always (or never) "
            "picked. Lower l2, or rescale or drop the feature"
        )


def _about_convergence(fit: Fit, unbounded: Flags) -> Iterator[OnlookerWarning]:
    if not fit.converged and not unbounded.any():
        yield ConvergenceWarning(
            f"the solver did not converge: it stopped after {fit.n_iter} passes with a gradient of "
            f"{largest(fit.at.gradient):.1e}. Bring the features to similar scales, or try a larger l2"
        )


def _unbounded(objective: Objective, fit: Fit, hessian: Matrix) -> Flags:
    """Which coefficients maximum likelihood would send to infinity, as far as a cheap check shows."""
    none = np.zeros(objective.n_features, dtype=bool)
    if objective.l2 > 0 and fit.at.agreed < NEARLY_SEPARABLE * objective.total:
        return none
    spread = objective.spread(full=True)
    root = inverse_square_root(spread)
    if objective.l2 > 0:
        if _explains_all(objective, fit):
            # This theta and all near it explain every pick, and so do their multiples.
            return np.asarray(root.any(axis=1))
        if _hardest_bound(objective, fit.theta, root):
            return none
        objective = objective.unpenalised()
        fit = minimise(objective, fit)
        hessian = objective.evaluate(fit.theta).hessian
    values, vectors = np.linalg.eigh(root.T @ hessian @ root)
    directions = np.sqrt(np.diag(spread))[:, None] * (root @ vectors[:, values < UNBOUNDED])
    return np.asarray(np.abs(directions).max(axis=1, initial=0.0) > 1e-2)


def _explains_all(objective: Objective, fit: Fit) -> bool:
    """Whether every pick has the best score; fractional round weights do not add up exactly."""
    return fit.at.explained > objective.total * (1 - 1e-12)


def _hardest_bound(objective: Objective, theta: Vector, root: Matrix) -> bool:
    """Whether the rounds that are hardest to explain bound every coefficient: then all rounds do.

    Where some theta explains them, those that are hardest for it are added, a few times. False if that does not help.
    """
    rounds: BanditLog | None = None
    for _ in range(LOOKS):
        hardest = objective.hardest(theta)
        if hardest is None or round_losses(hardest, theta).max(initial=0.0) < np.log(2):
            return False
        rounds = hardest if rounds is None else BanditLog.concat([rounds, hardest])
        some = SoftmaxObjective(rounds, l2=0.0)
        fit = minimise(some)
        # They must have all directions that the log has, and bend in each of them.
        own = inverse_square_root(root.T @ some.spread(full=True) @ root)
        curvature = np.linalg.eigvalsh(own.T @ root.T @ some.evaluate(fit.theta).hessian @ root @ own)
        if fit.converged and len(curvature) == root.shape[1] and (curvature > BOUNDED).all():
            return True
        theta = fit.theta
    return False


def _about_preference(objective: Objective, fit: Fit, *, rank: int) -> Iterator[OnlookerWarning]:
    total = objective.total
    ratio, p = likelihood_ratio(-total * fit.loss, -total * objective.null_loss, rank)
    if p > 0.05:
        yield NoPreferenceWarning(
            f"the picks are explained as well by picking uniformly at random (likelihood ratio {ratio:.1f} on {rank} "
            f"degrees of freedom, p = {p:.2f}). Do not interpret the weights as preferences; more rounds may help"
        )


def _curvature(objective: Objective, fit: Fit, data_hessian: Matrix, own: Flags) -> Curvature:
    """Which directions of theta the choices depend on; a feature that varies by no more than rounding is constant.

    Of the weights that are their `own`: those of a curve may well do what another does.

    Judged by the fit's own curvature first, then by a sample of the rounds; all are used only if both look flat.
    """
    noise = objective.rounding() ** 2
    if objective.many and own.all() and (np.diag(data_hessian) > noise).all():
        if _least_eigenvalue(objective, fit, np.diag(data_hessian)) > UNIDENTIFIED:
            return Curvature.without_flat(data_hessian)
        solved = cholesky_inverse(data_hessian)
        if solved is not None and solved[1] > UNIDENTIFIED:
            return Curvature.without_flat(data_hessian)
    if not own.any():
        return Curvature.without_flat(np.zeros((0, 0)))
    these = np.ix_(own, own)
    found = Curvature.of(data_hessian[these], flat=UNIDENTIFIED, noise=noise[own])
    for full in (False, True):
        if found.n_flat:
            spread = objective.filled(objective.spread(full=full))
            found = Curvature.of(spread[these], flat=UNIDENTIFIED, noise=noise[own])
    return found


def _least_eigenvalue(objective: Objective, fit: Fit, diagonal: Vector) -> float:
    """A bound from below for the data's Hessian, scaled to a diagonal of ones, from the inverse that the search found.

    That is the inverse with regularisation, which adds no more than its part of the smallest curvature.
    """
    if fit.metric is None:
        return 0.0
    sizes = np.sqrt(diagonal)
    norm = float(np.linalg.norm(sizes[:, None] * fit.metric * sizes))
    return 1 / norm - objective.l2 / float(diagonal.min()) if np.isfinite(norm) and norm > 0 else 0.0


def _some(names: Sequence[str], which: Flags) -> str:
    return _listed(names, np.flatnonzero(which))


def _listed(names: Sequence[str], places: Index) -> str:
    shown = [repr(names[j]) for j in places.tolist()]
    return ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")


def enough(objective: Objective) -> bool:
    """Whether there are more rounds than weights that they could identify."""
    return objective.n_rounds > objective.n_features - objective.n_redundant


def shrinkage(objective: Objective, at: CurvedPoint, fit: Fit, smooth: NDArray[np.bool_] | None) -> float:
    """By how much regularisation shrinks the weights, to first order; those of curves are shrunken on purpose."""
    theta = at.theta if smooth is None else np.where(smooth, 0.0, at.theta)
    squared = float(theta @ theta)
    metric = fit.metric if objective.many and fit.metric is not None else inverse(at.hessian)
    return float(objective.l2 * theta @ metric @ theta) / squared if squared else 0.0
