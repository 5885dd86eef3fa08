"""How close a recovered policy comes: to the true parameter, to the best arm, to the learner's picks."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.errors import InputError
from onlooker.base.types import Index, Matrix, Vector
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog
from onlooker.logs.policy import LinearPolicy


class Chooser(Protocol):
    """Anything that chooses an arm in every round."""

    def choose(self, log: BanditLog) -> Index:
        """Position of the chosen arm in every round."""


@runtime_checkable
class Rewarding(Protocol):
    """What knows the expected reward of rows of features, as an `Environment` does."""

    def expected(self, rows: ArrayLike) -> Vector:
        """Expected reward of every row."""


def direction_error(a: ArrayLike, b: ArrayLike) -> float:
    """Distance between two parameters scaled to length one; 0 is the same direction, 2 the opposite.

    Examples
    --------
    >>> direction_error([2.0, 0.0], [5.0, 0.0])
    0.0
    >>> direction_error([1.0, 0.0], [-3.0, 0.0])
    2.0
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise InputError(f"the parameters have shapes {first.shape} and {second.shape}: pass two of one length")
    return float(np.linalg.norm(_unit(first) - _unit(second)))


def predictive_regret(policy: Chooser | ArrayLike, theta_star: ArrayLike | Rewarding, test_log: BanditLog) -> float:
    """Mean reward that `policy` misses on fresh offers, by the true parameter and without noise.

    Where rewards are not linear, pass the environment in the place of the parameter.

    Examples
    --------
    >>> offers = BanditLog.from_dense(np.array([[[1.0, 0.0], [0.0, 0.5]]]), chosen=[0])
    >>> predictive_regret([0.0, 1.0], theta_star=[1.0, 1.0], test_log=offers)
    0.5
    """
    if isinstance(theta_star, Rewarding):
        rewards = theta_star.expected(test_log.dense)
    else:
        rewards = LinearPolicy(theta_star).scores(_unnamed(test_log))
    starts = test_log.offsets[:-1]
    best = np.maximum.reduceat(rewards, starts)
    return float(np.mean(best - rewards[starts + _as_policy(policy).choose(test_log)]))


def predictive_regrets(thetas: Matrix, theta_star: ArrayLike, test_log: BanditLog) -> Vector:
    """Predictive regret of many linear policies at once, one per row of `thetas`.

    Examples
    --------
    >>> offers = BanditLog.from_dense(np.array([[[1.0, 0.0], [0.0, 0.5]]]), chosen=[0])
    >>> predictive_regrets(np.array([[0.0, 1.0], [1.0, 0.0]]), [1.0, 1.0], offers)
    array([0.5, 0. ])
    """
    truth = LinearPolicy(theta_star).theta
    missed = np.zeros(len(thetas))
    for start, stop in ragged.blocks(test_log.offsets, test_log.n_features):
        part = test_log[start:stop]
        features = part.dense.astype(np.float64, copy=False)
        rewards = features @ truth
        best = np.maximum.reduceat(rewards, part.offsets[:-1])
        scores = features @ thetas.T
        for i, column in enumerate(scores.T):
            picks = part.offsets[:-1] + ragged.argmax(np.ascontiguousarray(column), part.offsets)
            missed[i] += float((best - rewards[picks]).sum())
    return missed / test_log.n_rounds


def agreement(policy: Chooser | ArrayLike, log: BanditLog) -> float:
    """Fraction of the rounds in which `policy` agrees with the pick.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.array([[[1.0], [2.0]], [[3.0], [1.0]]]), chosen=[1, 1])
    >>> agreement([1.0], log)
    0.5
    """
    return float(np.mean(log.may_be(_as_policy(policy).choose(log))))


def information_share(log: BanditLog, probabilities: Vector) -> float:
    """Share of the uncertainty of random guessing that is removed: 0 if uniform, 1 if all picks are certain.

    `probabilities` has one per row; none of the picks' may be 0. NaN where no round offers a choice.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.zeros((2, 4, 1)), chosen=[0, 1])
    >>> information_share(log, np.full(8, 0.25)), information_share(log, np.full(8, 0.5))
    (0.0, 0.5)
    """
    chance = np.log(log.n_arms).sum()
    return float(1.0 + np.log(log.of_picks(probabilities)).sum() / chance) if chance else float("nan")


def _unit(theta: Vector) -> Vector:
    largest = np.abs(theta).max(initial=0.0)
    if largest == 0:
        raise InputError("a parameter of length zero has no direction")
    scaled: Vector = theta / largest
    return np.asarray(scaled / np.linalg.norm(scaled))


def _as_policy(policy: Chooser | ArrayLike) -> Chooser:
    found: Any = getattr(policy, "policy_", policy)
    # NumPy's arrays have a `choose` of their own, so parameters are recognised by their type.
    chooser: Chooser = LinearPolicy(found) if isinstance(found, (np.ndarray, list, tuple)) else found
    return chooser


def _unnamed(log: BanditLog) -> BanditLog:
    """The same log matched by position: the true parameter carries no names."""
    return log.with_features(log.features) if log.feature_names is not None else log
