"""What the two Bayesian inverse contextual bandits share: where they start, what they keep, what they warn of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from onlooker.base.checks import as_number, as_whole, counted
from onlooker.base.defaults import L2
from onlooker.base.errors import (
    InputError,
    NoPreferenceWarning,
    OneArmRoundsWarning,
    OnlookerWarning,
    TooFewRoundsWarning,
)
from onlooker.base.types import Index, Matrix, Vector
from onlooker.imitation.fit_warnings import about_collinearity
from onlooker.imitation.newton import minimise
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.logs.log import BanditLog, as_narrow, feature_labels
from onlooker.logs.policy import LinearPolicy, as_linear
from onlooker.observers.base import Observer
from onlooker.observers.earlier.beliefs import BeliefModel, Moments
from onlooker.observers.tracking.path import Checkpoint, Path, as_checkpoints, next_checkpoint
from onlooker.observers.tracking.variation import unidentified, uniform_p_value, within_rounds

SMALLEST = 1e-100
"""Features shorter than this, or longer than its inverse, have squares beyond double precision."""

UNIFORM = 0.05
"""Picks that uniform ones resemble with a larger p-value show no preference."""


class BeliefObserver(Observer):
    """Base of observers that sample the belief behind every pick; `softmax(alpha * x rho)` is how it became one."""

    alpha: float
    sweeps: int
    burn_in_sweeps: int
    checkpoints: Sequence[int] | None
    seed: int

    covariance_: Matrix
    path_: Path
    n_rounds_: int
    warnings_: tuple[str, ...]

    def _next_probabilities(self, log: BanditLog) -> Vector:
        """Of a learner that believes `theta_`."""
        policy = as_linear(self._fitted(), "predict_proba")
        sharp = LinearPolicy.of(self.alpha * policy.theta, policy)
        return sharp.probabilities(log)

    def _checked_sweeps(self) -> tuple[int, int]:
        """How many sweeps are made at a time, and how many of the first ones dropped."""
        sweeps = as_whole(self.sweeps, "sweeps", least=1)
        dropped = as_whole(self.burn_in_sweeps, "burn_in_sweeps")
        if dropped >= sweeps:
            raise InputError(f"burn_in_sweeps is {dropped}, sweeps {sweeps}: drop fewer, or sweep more")
        return sweeps, dropped

    def _model(self, log: BanditLog) -> BeliefModel:
        as_narrow(log, type(self).__name__)
        as_whole(self.seed, "seed")
        as_checkpoints(self.checkpoints)
        if not log.n_rounds:
            raise InputError("the log has no rounds: there is nothing to follow")
        model = BeliefModel.of(log, alpha=as_number(self.alpha, "alpha", least=1e-9, most=1e9))
        if not SMALLEST <= model.scale <= 1 / SMALLEST:
            raise InputError(f"picked features have a length of {model.scale:.1g}: bring them nearer to 1")
        return model

    def _rounds(self, log: BanditLog) -> Index:
        """Rounds after which a belief is kept, the last at the end."""
        checkpoints, rounds = as_checkpoints(self.checkpoints), [0]
        while (following := next_checkpoint(rounds[-1], checkpoints)) < log.n_rounds:
            rounds.append(following)
        return np.array([*rounds[1:], log.n_rounds], dtype=np.int64)

    def _learn(self, log: BanditLog, model: BeliefModel, theta: Vector, moments: Moments) -> None:
        score, information = within_rounds(log)
        constant, tangled = unidentified(information)
        blank = constant | tangled
        self.policy_ = LinearPolicy.of(np.where(constant, 0.0, theta / model.scale), log)
        self.covariance_ = moments.covariance / model.scale**2
        self.covariance_[blank, :] = np.nan
        self.covariance_[:, blank] = np.nan
        varies = np.where(constant, 0.0, 1.0)
        self.path_ = Path.of(
            [
                Checkpoint.of(
                    n_rounds, varies * mean / model.scale, np.outer(varies, varies) * covariance / model.scale**2
                )
                for n_rounds, mean, covariance in zip(
                    self._rounds(log).tolist(), moments.path, moments.path_covariance, strict=True
                )
            ]
        )
        self.n_rounds_ = log.n_rounds
        self._remember(log)
        names = feature_labels(log.weight_names, log.n_features)
        found = [
            *about_collinearity(constant, tangled, names),
            *_about_picks(log, uniform_p_value(score, information)),
        ]
        self._warn(found, stacklevel=3)


class Imitation:
    """Imitation of all picks, where a chain starts, and the curvature of their log-probability, in a model's units."""

    def __init__(self, model: BeliefModel) -> None:
        self._objective = SoftmaxObjective(model.log, l2=L2 * model.scale**2)
        self._alpha, self._scale = model.alpha, model.scale
        self.theta: Vector = minimise(self._objective).theta / model.alpha

    def curvature(self, theta: Vector) -> Matrix:
        """Where all picks are made with one belief."""
        at = self._objective.evaluate(self._alpha * theta)
        return at.hessian * self._objective.total * self._alpha**2


def _about_picks(log: BanditLog, uniform: float) -> Iterator[OnlookerWarning]:
    d, n_choices = log.n_features, int(np.count_nonzero(log.n_arms > 1))
    if n_choices < log.n_rounds:
        yield OneArmRoundsWarning(
            f"in {counted(log.n_rounds - n_choices, 'round')} a single arm was offered, so there was no choice. "
            "The learner may still have learned there; no action is needed"
        )
    if n_choices < 2 * d:
        yield TooFewRoundsWarning(
            f"{n_choices} rounds with a choice for {d} features are too few: the intervals are wide. Keep more rounds "
            "or fewer features"
        )
    if uniform > UNIFORM:
        yield NoPreferenceWarning(
            f"the {n_choices} picks look uniform (p = {uniform:.2g}). Do not interpret the weights as preferences"
        )
