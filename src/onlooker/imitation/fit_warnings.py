"""What a fit cannot tell, found and named: each finding is a warning that teaches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlooker.base.checks import counted
from onlooker.base.errors import (
    CollinearFeaturesWarning,
    ConvergenceWarning,
    NoPreferenceWarning,
    OneArmRoundsWarning,
    OnlookerWarning,
    PenaltyDominatesWarning,
    SeparableDataWarning,
    TooFewRoundsWarning,
)
from onlooker.base.line_search import largest
from onlooker.base.linear_algebra import UNIDENTIFIED, Curvature, inverse, inverse_square_root
from onlooker.base.p_values import chi_square_p
from onlooker.base.types import Matrix, Vector
from onlooker.imitation.newton import Fit, minimise
from onlooker.imitation.objective import Objective
from onlooker.imitation.softmax import SoftmaxObjective, round_losses
from onlooker.logs.log import BanditLog, feature_labels

UNBOUNDED = 1e-10
"""Without a penalty, a direction with less than this fraction of the spread's curvature was growing without bound."""

BOUNDED = 1e-6
"""Where every direction has more than this fraction of their own spread's, some of the rounds bound theta for all."""

LOOKS = 4
"""How often rounds are added that are hard to explain, before all are asked."""

NEARLY_SEPARABLE = 0.98
"""A fit whose policy makes this part of the picks may be the penalised fit of picks that can all be explained."""

WEAK = 0.15
"""A coefficient of which the penalty takes away this part, or more, is the penalty's as much as the data's."""


Flags = NDArray[np.bool_]
"""One truth per feature."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Trouble:
    """What was found."""

    warnings: tuple[OnlookerWarning, ...]
    """In the order in which to read them."""

    constant: Flags
    """Which features never vary within a round, shape (d,): their coefficients mean nothing."""

    identified: Flags
    """Which coefficients the rounds can tell at all, shape (d,)."""

    rank: int
    """How many directions of theta the rounds can tell."""


def find_trouble(objective: Objective, fit: Fit, hessian: Matrix) -> Trouble:
    """Look for everything that makes the fitted theta less than it seems; `hessian` is the objective's there."""
    names = feature_labels(objective.feature_names, objective.n_features)
    curvature = _curvature(objective, hessian - objective.l2 * np.eye(len(names)))
    constant, tangled = curvature.constant, curvature.tangled
    unbounded = _unbounded(objective, fit, hessian)
    findings = [
        *_about_rounds(objective),
        *about_collinearity(constant, tangled, names),
        *_about_separation(objective, fit, unbounded & ~constant, names),
        *_about_penalty(objective, hessian, ~constant & ~tangled, unbounded, names),
        *_about_convergence(fit, unbounded),
    ]
    if not any(isinstance(finding, PenaltyDominatesWarning) for finding in findings):
        findings += _about_preference(objective, fit, rank=curvature.rank)
    return Trouble(
        warnings=tuple(findings),
        constant=constant,
        identified=~(constant | tangled | (unbounded & (objective.l2 == 0))),
        rank=curvature.rank,
    )


def likelihood_ratio(log_likelihood: float, null_log_likelihood: float, rank: int) -> tuple[float, float]:
    """Twice the gain in log-likelihood over uniform picks, and its p-value (chi-square, `rank` degrees of freedom)."""
    ratio = max(0.0, 2 * (log_likelihood - null_log_likelihood))
    return ratio, chi_square_p(ratio, rank)


def _about_rounds(objective: Objective) -> Iterator[OnlookerWarning]:
    if objective.n_one_arm:
        yield OneArmRoundsWarning(
            f"in {counted(objective.n_one_arm, 'round')} a single arm was offered: "
            "nothing was chosen there, so it is left out"
        )
    d = objective.n_features
    if objective.n_rounds < d:
        yield TooFewRoundsWarning(
            f"{objective.n_rounds} rounds with a choice for {d} features: theta rests on the penalty (l2); "
            "keep more rounds or fewer features"
        )


def about_collinearity(constant: Flags, tangled: Flags, names: Sequence[str]) -> Iterator[OnlookerWarning]:
    """Say which features no pick depends on, and which cannot be told apart."""
    if constant.any():
        yield CollinearFeaturesWarning(
            f"{_some(names, constant)} never varies within a round, so no pick depends on it: its coefficient is 0 "
            "and has no interval; leave it out, cross it with a feature of the arms, or, if it tells learners apart, "
            "look at each of them alone"
        )
    if tangled.any():
        yield CollinearFeaturesWarning(
            f"{_some(names, tangled)} cannot be told apart: within the rounds only a combination of them counts, and "
            "many coefficients make it; those given have no intervals; leave one of the features out"
        )


def _about_separation(
    objective: Objective, fit: Fit, unbounded: Flags, names: Sequence[str]
) -> Iterator[OnlookerWarning]:
    if not unbounded.any():
        return
    if objective.l2 == 0 and not _explains_all(objective, fit):
        yield SeparableDataWarning(
            f"{_some(names, unbounded)} decides some picks without exception, so the data do not bound its "
            "coefficient: read it as large, or set l2 above 0"
        )
        return
    yield SeparableDataWarning(
        f"some theta explains (nearly) all {objective.n_rounds} picks without error: the direction found can be used, "
        "but nothing bounds its length but the penalty, and its intervals mean little; more rounds would bound it"
    )


def _about_penalty(
    objective: Objective, hessian: Matrix, identified: Flags, unbounded: Flags, names: Sequence[str]
) -> Iterator[OnlookerWarning]:
    weak = identified & ~unbounded & (objective.l2 * np.diag(inverse(hessian)) > WEAK)
    if weak.any():
        yield PenaltyDominatesWarning(
            f"the penalty (l2 = {objective.l2:g}) decides {_some(names, weak)} as much as the picks do: the feature is "
            "on a tiny scale, close to a combination of others, or nearly always (or never) picked; lower l2, or "
            "rescale or drop it"
        )


def _about_convergence(fit: Fit, unbounded: Flags) -> Iterator[OnlookerWarning]:
    if not fit.converged and not unbounded.any():
        yield ConvergenceWarning(
            f"the solver stopped after {fit.n_iter} passes with a gradient of {largest(fit.at.gradient):.1e}: "
            "bring the features to similar scales, or try a larger l2"
        )


def _unbounded(objective: Objective, fit: Fit, hessian: Matrix) -> Flags:
    """Which coefficients maximum likelihood would send to infinity, as far as can be told at little cost."""
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
    """Whether every pick scores above all others; weights that are no whole numbers do not add up exactly."""
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
            f"picking uniformly at random explains the picks as well (likelihood ratio {ratio:.1f} on {rank} degrees "
            f"of freedom, p = {p:.2f}): do not read theta as a preference"
        )


def _curvature(objective: Objective, data_hessian: Matrix) -> Curvature:
    """Which directions of theta the choices depend on; a feature that varies by no more than rounding is constant.

    Judged by the fit's own curvature first, then by a sample of the rounds; all are read only if both look flat.
    """
    noise = objective.rounding() ** 2
    found = Curvature.of(data_hessian, flat=UNIDENTIFIED, noise=noise)
    for full in (False, True):
        if found.n_flat:
            found = Curvature.of(objective.spread(full=full), flat=UNIDENTIFIED, noise=noise)
    return found


def _some(names: Sequence[str], which: Flags) -> str:
    shown = [repr(names[j]) for j in np.flatnonzero(which).tolist()]
    return ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")
