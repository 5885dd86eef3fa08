"""How features become an arm's score. Linear is one way; others are linear in a basis made from the features.

A score model, prepared for a log, turns it into the log that a linear fit sees, and the weights found there into a
policy for logs as they are. A new one is a frozen dataclass with `prepared`; a model that is not linear in any basis
has `fitted` instead. Those that take more than a few lines live in `scores/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from onlooker.base.errors import InputError
from onlooker.base.types import Matrix, Vector
from onlooker.logs.log import BanditLog, feature_labels
from onlooker.logs.policy import LinearPolicy, Named, Policy

MOST_COLUMNS = 5000
"""Basis functions beyond which a dense fit is refused: its matrices would take gigabytes."""


LEAST_L2 = 1e-10
"""Penalty that the scales of a basis with own penalties refer to, where the observer's is smaller."""


Flags = NDArray[np.bool_]
"""One flag per weight."""


class Band(NamedTuple):
    """What bands of curves are made of, where the weights have a penalty that was chosen for them."""

    theta: Vector
    """The weights with hardly any penalty."""
    covariance: Matrix
    """Of these."""
    model: Matrix | None = None
    """The same if the softmax holds and rounds are independent; bands have the larger error of both."""


class Basis(Protocol):
    """A score that is linear in its weights, made ready for a log."""

    @property
    def l2(self) -> float:
        """The penalty on the mean loss, `l2/2 |theta|^2`, that its weights are to have."""

    @property
    def smooth(self) -> Flags | None:
        """Which weights have a penalty that was chosen for them; None for none."""

    @property
    def loose(self) -> Vector:
        """What the penalty of every weight is multiplied by for bands, from 0 to 1; a single 1 for all of them."""

    @property
    def positive(self) -> Flags | None:
        """Which weights may not be negative; None for none."""

    def basis(self, log: BanditLog) -> BanditLog:
        """The same rounds with the basis functions in the place of the features."""

    def policy(self, theta: Vector, log: Named, band: Band | None = None) -> Policy:
        """The policy that scores arms of logs like `log`, given the weights of the basis functions."""

    def reported(self, theta: Vector, covariance: Matrix, log: Named) -> tuple[tuple[str, ...], Vector, Matrix]:
        """What a reader is shown of the weights: names, estimates and their covariance."""


@runtime_checkable
class ScoreModel(Protocol):
    """From features to scores, linear in the parameters."""

    def prepared(self, log: BanditLog, *, l2: float, weights: Vector | None = None) -> Basis:
        """What depends on the rounds is chosen from these, such as knots and smoothness; `weights` are the rounds'."""


@runtime_checkable
class FreeScore(Protocol):
    """From features to scores that are not linear in the parameters: such a model fits itself."""

    def fitted(self, log: BanditLog, *, weights: Vector | None = None, seed: int = 0) -> Policy:
        """The policy that imitates these rounds."""


@dataclass(frozen=True)
class Linear:
    """A weight for every feature: the paper's."""

    def prepared(self, log: BanditLog, *, l2: float, weights: Vector | None = None) -> LinearBasis:  # noqa: ARG002
        """Nothing depends on the rounds."""
        return LinearBasis(l2)


@dataclass(frozen=True)
class LinearBasis:
    """The features as they are."""

    l2: float
    smooth: None = None
    loose = np.ones(1)
    positive: None = None

    def basis(self, log: BanditLog) -> BanditLog:
        """The log as it is."""
        return log

    def policy(self, theta: Vector, log: Named, band: Band | None = None) -> LinearPolicy:  # noqa: ARG002
        """A linear policy."""
        return LinearPolicy.of(theta, log)

    def reported(self, theta: Vector, covariance: Matrix, log: Named) -> tuple[tuple[str, ...], Vector, Matrix]:
        """The weights as they are."""
        return feature_labels(self.policy(theta, log).feature_names, len(theta)), theta, covariance


AnyScore = ScoreModel | FreeScore
"""Every kind of score model."""

LINEAR = Linear()
"""What observers take unless another is given."""


def as_score(score: object) -> AnyScore | str:
    """The score model that a `score` parameter stands for; `"auto"` stays.

    Examples
    --------
    >>> as_score("additive")
    Additive(knots=None, monotone={}, interactions=())
    """
    if isinstance(score, Linear):
        return score
    from onlooker.imitation.scores.choice import NAMED

    if score == "auto":
        return "auto"
    if isinstance(score, str) and score in NAMED:
        return NAMED[score]()
    if isinstance(score, (ScoreModel, FreeScore)) and not isinstance(score, type):
        return score
    raise InputError(
        f"score is {score!r}: use 'auto', Linear(), Additive(), Products(), Neural() or Boosted(), or the name of one"
    )
