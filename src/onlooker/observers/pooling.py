"""Partial pooling: the weights of many learners, each drawn towards what they have in common by as much as they say.

Weights of a group are normal about a common mean, `theta_g ~ N(mean, spread)`. Mean and spread are found by empirical
Bayes: expectation-maximisation, with each group's weights approximated by a normal at their mode (Laplace).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from onlooker.base.defaults import L2
from onlooker.base.errors import InputError
from onlooker.base.memory_limit import check_memory
from onlooker.base.numerics import falls
from onlooker.base.threads import ordered_map
from onlooker.base.types import Matrix, Progress, Vector
from onlooker.imitation.choice_model import even_arms
from onlooker.imitation.newton import minimise
from onlooker.imitation.objective import CurvedPoint
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog, feature_labels
from onlooker.observers.coordinates import Coordinates
from onlooker.observers.coordinates import scores as scores_of

PASSES = 60
"""Passes over all groups after which a spread that still moves is taken as it is."""
STILL = 3e-3
"""Relative change of the spread from one pass to the next below which it is found: far below its own error."""
FURTHER = 1.7
"""By how much each change of the spread is lengthened, in logarithms: where groups differ little the plain steps of
expectation-maximisation are short. Below 2 it converges to the same place."""
LEAST_SPREAD = 1e-8
"""Variance between groups, in units of a typical weight, that counts as none: dividing by it is still safe."""
COLLINEAR = 1e-10
"""Least eigenvalue of the features' correlations within rounds, over all groups, below which weights are not unique:
rounding makes it 1e-14 where they are not, and the inverses of what is pooled need it above 1e-12."""
MATRICES = 4
"""Matrices of all weights that a group holds."""
WRITTEN_OUT = 1 << 23
"""Numbers that rows of all groups may have for their coordinates to be written out: passes are then faster."""
STEPS = 30
"""Newton steps for the weights of a group, which start where they were in the pass before."""
DRAWS, FEWEST_DRAWS, MOST_DRAWS = 56, 128, 512
"""Draws for each coordinate, and in all at least and at most, from a normal at the mode.

They are weighted to make the mean and covariance of a group's weights exact. At the mode alone, groups of few rounds
look too much alike: intervals cover 86 instead of 95 in 100. With fewer draws, which coordinates are taken shows.
"""
REFINED = 5
"""Passes with draws at most, after those at the modes have found about where mean and spread are."""
SCORES = 1 << 15
"""Scores of draws that are written out at once, about: a quarter of a megabyte."""
FREEDOM = 6.0
"""Degrees of freedom of the draws' distribution, whose tails are to be longer than those of the weights."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pooled:
    """What groups have in common, and the weights of each given that."""

    mean: Vector
    """Of the weights over groups, shape (d,)."""
    mean_covariance: Matrix
    """How well it is known, shape (d, d)."""
    spread: Matrix
    """Covariance of the weights between groups, shape (d, d). Weights of arms are differences to their mean."""
    thetas: dict[str, Vector]
    """Weights of every group."""
    covariances: dict[str, Matrix]
    """How well they are known, the mean's own error included."""


@dataclass(eq=False)
class _Group:
    """What is known of one group's weights, in coordinates."""

    objective: SoftmaxObjective
    at: Coordinates
    """From the features of its rows to the coordinates."""
    mode: CurvedPoint
    """The mean loss at the mode of the weights."""
    mean: Vector
    covariance: Matrix

    @property
    def hessian(self) -> Matrix:
        """Of the loss, at the mode."""
        return self.objective.total * self.mode.hessian


def pool(logs: Mapping[str, BanditLog], progress: Progress | None = None) -> Pooled:
    """Partial pooling of logs with the same features; all of their rounds count.

    Where every arm has weights of its own, groups share a mean for each arm, and all arms vary alike between groups.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> thetas = np.array([1.0, -1.0]) + rng.normal(size=(50, 2)) * [0.5, 0.0]
    >>> logs = {}
    >>> for name, theta in enumerate(thetas):
    ...     X = rng.normal(size=(60, 4, 2))
    ...     picks = (X @ theta + rng.gumbel(size=(60, 4))).argmax(axis=1)
    ...     logs[str(name)] = BanditLog.from_dense(X, picks)
    >>> found = pool(logs)
    >>> found.mean.round(1), np.sqrt(np.diag(found.spread)).round(1)
    (array([ 1., -1.]), array([0.5, 0. ]))
    """
    _check(logs)
    at = Coordinates.of(list(logs.values()))
    check_memory(MATRICES * 8 * at.n**2 * len(logs))
    # Arms that no pick tells apart have weights all the same where there is a penalty.
    every = SoftmaxObjective(BanditLog.concat(list(logs.values())), l2=0.0 if at.basis is None else L2)
    start = at.inside(minimise(every).theta)
    unknown = np.eye(len(start))
    inner, rounds = _in_coordinates(list(logs.values()), at)
    objectives = [SoftmaxObjective(log, l2=0.0) for log in rounds]
    groups = [_Group(one, inner, inner.evaluate(one, start), start, unknown) for one in objectives]
    units = _units(groups, at, next(iter(logs.values())))
    mean, spread = start, np.diag(units**2)
    draws, left = None, PASSES
    for done in range(1, PASSES + REFINED + 1):
        inverse = _inverted(spread)
        for _ in ordered_map(partial(_update, mean=mean, inverse=inverse, draws=draws), groups):
            pass
        mean, mean_covariance, found = _between(groups, mean, spread, units, at)
        change, spread = _further(spread, found)
        left -= 1
        if progress is not None:
            progress(done, PASSES + REFINED)
        if change < STILL or not left:
            if draws is not None:
                break
            draws, left = _Draws.of(len(start)), REFINED
    inverse, thetas, covariances = _inverted(spread), {}, {}
    for name, group in zip(logs, groups, strict=True):
        pull = group.covariance @ inverse
        thetas[name] = at.weights(group.mean)
        covariances[name] = at.widened(group.covariance + pull @ mean_covariance @ pull.T)
    return Pooled(
        mean=at.weights(mean),
        mean_covariance=at.widened(mean_covariance),
        spread=at.widened(spread),
        thetas=thetas,
        covariances=covariances,
    )


def _check(logs: Mapping[str, BanditLog]) -> None:
    if len(logs) < 2:
        raise InputError("there is one group only: pooling needs two at least")
    first = next(iter(logs))
    for name, log in logs.items():
        same = log.feature_names == logs[first].feature_names and log.n_features == logs[first].n_features
        if not same or log.crossing != logs[first].crossing:
            what = "features" if log.crossing is None else "features or arms"
            raise InputError(f"groups {first!r} and {name!r} have different {what}: give all of them the same")


def _in_coordinates(logs: list[BanditLog], at: Coordinates) -> tuple[Coordinates, list[BanditLog]]:
    """The logs with their coordinates written out as features, where they are not too large; else as they are."""
    if at.basis is None or sum(len(log.features) for log in logs) * max(at.basis.shape) > WRITTEN_OUT:
        return at, logs
    return Coordinates(at.n), [log.with_features(log.dense @ at.basis) for log in logs]


def _units(groups: list[_Group], at: Coordinates, log: BanditLog) -> Vector:
    """A typical weight of each feature: one that changes the log-odds of a typical pick by 1. `log` names them."""
    total = np.zeros((at.n, at.n))
    for group in groups:
        total += group.at.narrowed(group.objective.spread(full=False))
    varies = at.typical(np.sqrt(np.maximum(np.diag(total), 0.0) / len(groups)))
    if not varies.all():
        raise InputError(f"{_constant(log, at, varies)} never varies within a round: leave it out, then pool")
    if at.basis is None and np.linalg.eigvalsh(total / len(groups) / np.outer(varies, varies))[0] < COLLINEAR:
        raise InputError(
            "weights that are not unique cannot be pooled: features are collinear within the rounds. Leave one out, or "
            "fit the groups without pooling"
        )
    return np.asarray(1.0 / varies)


def _constant(log: BanditLog, at: Coordinates, varies: Vector) -> str:
    """The first feature that is the same for all arms, or 0 in every round."""
    place, crossing = int(np.argmin(varies)), log.crossing
    if at.basis is None or crossing is None:
        return f"feature {feature_labels(log.weight_names, len(varies))[place]!r}"
    names = (*crossing.own, *(crossing.context or ("weight",)))
    return f"feature {names[place if place < at.n_own else at.n_own + (place - at.n_own) % at.width]!r}"


@dataclass(frozen=True, eq=False)
class _Draws:
    """Draws of a multivariate t, each with its mirror image: what they say of a normal is exact."""

    values: Matrix
    """Shape (m, d)."""
    density: Vector
    """Logarithm of it, up to a constant."""
    correction: Matrix
    """Takes the root of their weighted covariance to that of a standard normal."""

    @classmethod
    def of(cls, d: int) -> _Draws:
        rng, n = np.random.default_rng(0), min(max(FEWEST_DRAWS, DRAWS * d), MOST_DRAWS) // 2
        half = rng.normal(size=(n, d)) / np.sqrt(rng.chisquare(FREEDOM, size=(n, 1)) / FREEDOM)
        values = np.concatenate([half, -half])
        squares = (values**2).sum(axis=1)
        density = -0.5 * (FREEDOM + d) * np.log1p(squares / FREEDOM)
        weights = _normalised(-0.5 * squares - density)
        return cls(values, density, np.linalg.inv(np.linalg.cholesky((weights * values.T) @ values)))


def _normalised(logarithms: Vector) -> Vector:
    weights = np.exp(logarithms - logarithms.max())
    return np.asarray(weights / weights.sum())


def _update(group: _Group, mean: Vector, inverse: Matrix, draws: _Draws | None) -> None:
    """Mean and covariance of a group's weights, given those between groups."""
    _settle(group, mean, inverse)
    own = _inverted(group.hessian + inverse)
    if draws is None:
        group.mean, group.covariance = group.mode.theta, own
        return
    root = np.linalg.cholesky(own)
    thetas = group.mode.theta + draws.values @ root.T
    away = thetas - mean
    penalties = 0.5 * np.einsum("si,ij,sj->s", away, inverse, away)
    weights = _normalised(-_losses(group.objective.log, group.at.weights(thetas)) - penalties - draws.density)
    centre = weights @ draws.values
    inside = draws.correction @ ((weights * (draws.values - centre).T) @ (draws.values - centre)) @ draws.correction.T
    group.mean, group.covariance = group.mode.theta + root @ centre, root @ inside @ root.T


def _losses(log: BanditLog, thetas: Matrix) -> Vector:
    """Total loss under each theta; some rounds at a time, so that what is written out stays in the cache."""
    total = np.zeros(len(thetas))
    for start, stop in ragged.blocks(log.offsets, len(thetas), SCORES):
        total += _some_losses(log[start:stop], thetas)
    return total


def _some_losses(log: BanditLog, thetas: Matrix) -> Vector:
    even, rounds = even_arms(log), np.arange(log.n_rounds)
    scores = scores_of(log, thetas)
    if even is not None:
        # Arms first: what follows is then over whole arrays, not over a few arms at a time.
        scores = np.ascontiguousarray(scores.reshape(-1, even, len(thetas)).transpose(1, 0, 2))
        picked, best = scores[log.chosen, rounds], scores.max(axis=0)
        totals = np.exp(np.subtract(scores, best, out=scores), out=scores).sum(axis=0)
    else:
        picked, best = scores[log.chosen_rows], np.maximum.reduceat(scores, log.offsets[:-1], axis=0)
        totals = np.add.reduceat(np.exp(scores - np.repeat(best, log.n_arms, axis=0)), log.offsets[:-1], axis=0)
    return np.asarray((best + np.log(totals) - picked).sum(axis=0))


def _settle(group: _Group, mean: Vector, inverse: Matrix) -> None:
    """Find the mode of a group's weights given those between groups, from where it was."""
    total = group.objective.total

    def penalised(at: CurvedPoint) -> float:
        away = at.theta - mean
        return total * at.value + 0.5 * float(away @ inverse @ away)

    at = group.mode
    value = penalised(at)
    for _ in range(STEPS):
        gradient = total * at.gradient + inverse @ (at.theta - mean)
        step = np.linalg.solve(total * at.hessian + inverse, -gradient)
        fall = float(-gradient @ step)
        if fall < 1e-6:
            break
        length = 1.0
        while True:
            ahead = group.at.evaluate(group.objective, at.theta + length * step)
            found = penalised(ahead)
            if falls(found, value, -length * fall) or length < 1e-6:
                break
            length /= 2
        at, value = ahead, found
    group.mode = at


def _between(
    groups: list[_Group], before: Vector, spread: Matrix, units: Vector, at: Coordinates
) -> tuple[Vector, Matrix, Matrix]:
    """Mean of the weights, its covariance, and the spread between groups, each given the last of both.

    The spread allows for what is not known of each group and of the mean, so that it does not vanish with few groups.
    """
    inverse = _inverted(spread)
    # How much of its own a group's weights keep; what it says about the mean is (spread + hessian^-1)^-1.
    keeps = [np.linalg.solve(group.hessian + inverse, group.hessian) for group in groups]
    says = sum((inverse @ keep for keep in keeps), np.zeros_like(spread))
    covariance = _inverted(says)
    mean = before + covariance @ inverse @ sum((group.mean - before for group in groups), np.zeros_like(before))
    total = np.zeros_like(spread)
    for group, keep in zip(groups, keeps, strict=True):
        # Weights go with the mean by as much as they do not keep their own.
        away = keep @ (before - mean) + group.mean - before
        total += np.outer(away, away) + group.covariance + keep @ covariance @ keep.T
    found = at.structured(total / len(groups), len(groups))
    return mean, covariance, found + LEAST_SPREAD * np.diag(units**2)


def _inverted(matrix: Matrix) -> Matrix:
    """The inverse of a positive definite matrix, symmetric to the last bit."""
    found = np.asarray(np.linalg.inv(0.5 * (matrix + matrix.T)), dtype=np.float64)
    return 0.5 * (found + found.T)


def _further(before: Matrix, found: Matrix) -> tuple[float, Matrix]:
    """The relative change of a spread, and where it leads when it is lengthened."""
    root = np.linalg.cholesky(before)
    inside = np.linalg.solve(root, np.linalg.solve(root, found).T)
    values, vectors = np.linalg.eigh(0.5 * (inside + inside.T))
    turned = root @ vectors
    return float(np.abs(np.log(values)).max()), (turned * values**FURTHER) @ turned.T
