"""The choice model: how features become scores, and how probable what a round reveals is, given the scores.

Linear is one way to score; others are linear in a basis made from the features. A score model, prepared for a log,
turns it into the log that a linear fit sees, and the weights found there into a policy for logs as they are. A new one
is a frozen dataclass with `prepared`; a model that is not linear in any basis has `fitted` instead. Those that take
more than a few lines live in `scores/`.

A round reveals its pick, or a set of arms that holds it; and all offers, or the pick and a sample of the others. Each
is a function with the same result: gradients and curvature follow from the two sets of probabilities alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from onlooker.base.errors import InputError
from onlooker.base.types import Matrix, Vector
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog, feature_labels
from onlooker.logs.policy import LinearPolicy, Named, Policy

MOST_COLUMNS = 5000
"""Basis functions beyond which a dense fit is refused: its matrices would take gigabytes."""

LEAST_L2 = 1e-10
"""Penalty that the scales of a basis with own penalties refer to, where the observer's is smaller."""

Flags = NDArray[np.bool_]
"""One flag per weight, or per round."""


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Likelihood:
    """How probable what the rounds reveal is, given the arms' scores.

    With `r = predicted - expected`, the gradient of a round's loss with respect to its scores is `r`. The Hessian is
    the covariance under `predicted` less that under `expected`, so the first alone bounds it from above.
    """

    losses: Vector
    """Minus the log-probability of what each round reveals, shape (N,)."""
    predicted: Vector
    """Probability of picking each arm, one per row."""
    expected: Vector
    """The same, given what the round reveals, one per row: 1 for a pick that was seen."""


def revealed(scores: Vector, log: BanditLog) -> Likelihood:
    """Likelihood of what the rounds of any log reveal.

    Of sampled offers, a row that is kept with probability q stands for 1 / q like it, so `-log q` is added to its score
    (McFadden 1978). The scores of a policy are those without.

    Examples
    --------
    >>> features, log_of = np.zeros((3, 1)), lambda **known: BanditLog(np.zeros((3, 1)), [0, 3], None, **known)
    >>> revealed(np.zeros(3), log_of(possible=[1, 1, 0])).expected
    array([0.5, 0.5, 0. ])
    >>> revealed(np.zeros(3), log_of(possible=[1, 0, 0], offer_probability=[0.8, 0.4, 0.4])).predicted
    array([0.2, 0.4, 0.4])
    """
    if log.offer_probability is not None:
        scores = scores - np.log(log.offer_probability)
    return pick_likelihood(scores, log) if log.possible is None else set_likelihood(scores, log)


def set_likelihood(scores: Vector, log: BanditLog) -> Likelihood:
    """Likelihood of the picks lying in their sets: `logsumexp` over the offers less that over the set."""
    assert log.possible is not None
    starts, sizes = log.offsets[:-1], log.n_arms
    best = np.maximum.reduceat(scores, starts)
    weights = np.exp(scores - np.repeat(best, sizes))
    totals = np.add.reduceat(weights, starts)
    inside = np.where(log.possible, scores, -np.inf)
    top = np.maximum.reduceat(inside, starts)
    held = np.exp(inside - np.repeat(top, sizes))
    sums = np.add.reduceat(held, starts)
    return Likelihood(
        losses=best + np.log(totals) - top - np.log(sums),
        predicted=weights / np.repeat(totals, sizes),
        expected=held / np.repeat(sums, sizes),
    )


def pick_likelihood(scores: Vector, log: BanditLog) -> Likelihood:
    """Likelihood of the picks, all of which were seen.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.zeros((1, 2, 1)), chosen=[1])
    >>> found = pick_likelihood(np.zeros(2), log)
    >>> found.losses.round(3), found.predicted, found.expected
    (array([0.693]), array([0.5, 0.5]), array([0., 1.]))
    """
    even = even_arms(log)
    if even is not None:
        return _even_likelihood(scores.reshape(-1, even), log)
    starts, sizes = log.offsets[:-1], log.n_arms
    best = np.maximum.reduceat(scores, starts)
    weights = np.exp(scores - np.repeat(best, sizes))
    totals = np.add.reduceat(weights, starts)
    weights /= np.repeat(totals, sizes)
    return Likelihood(losses=best + np.log(totals) - scores[log.chosen_rows], predicted=weights, expected=_seen(log))


def even_arms(log: BanditLog) -> int | None:
    """How many arms every round offers; None where rounds differ, or there is none.

    Examples
    --------
    >>> even_arms(BanditLog.from_dense(np.zeros((4, 3, 1)), chosen=[0, 1, 2, 0]))
    3
    """
    sizes = log.n_arms
    return int(sizes[0]) if len(sizes) and (sizes == sizes[0]).all() else None


def _even_likelihood(scores: Matrix, log: BanditLog) -> Likelihood:
    """The same where all rounds offer as many arms: scores as a matrix, shape (N, K)."""
    best = scores.max(axis=1)
    weights = scores - best[:, None]
    picked = weights[np.arange(len(weights)), log.chosen]
    np.exp(weights, out=weights)
    totals = weights.sum(axis=1)
    weights /= totals[:, None]
    return Likelihood(losses=np.log(totals) - picked, predicted=weights.ravel(), expected=_seen(log))


def _seen(log: BanditLog) -> Vector:
    """1 for every row that was picked, 0 for the others."""
    seen = np.zeros(len(log.features))
    seen[log.chosen_rows] = 1.0
    return seen


def explained_and_agreed(scores: Vector, log: BanditLog) -> tuple[Flags, Flags]:
    """In which rounds the pick scores strictly above every other arm, and in which it is the first of the best.

    Of a set, whether its best arm does so.
    """
    if log.possible is not None:
        inside = np.maximum.reduceat(np.where(log.possible, scores, -np.inf), log.offsets[:-1])
        outside = np.maximum.reduceat(np.where(log.possible, -np.inf, scores), log.offsets[:-1])
        agreed = log.possible[log.offsets[:-1] + ragged.argmax(scores, log.offsets)]
        return np.asarray(inside > outside), np.asarray(agreed)
    even = even_arms(log)
    if even is not None:
        matrix = scores.reshape(-1, even)
        picked = matrix[np.arange(len(matrix)), log.chosen]
        first = matrix.argmax(axis=1) == log.chosen
        alone = np.array(first)
        alone[first] = np.count_nonzero(matrix[first] == picked[first, None], axis=1) == 1
        return alone, first
    best = np.maximum.reduceat(scores, log.offsets[:-1])
    top = scores == np.repeat(best, log.n_arms)
    alone = np.add.reduceat(top.astype(np.int64), log.offsets[:-1]) == 1
    agreed = ragged.argmax(scores, log.offsets) == log.chosen
    return top[log.chosen_rows] & alone, agreed
