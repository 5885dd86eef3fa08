"""The paper's bound where the observer sees a signal of the pick: the learner's mistakes and the signal's add up.

With probability `confusion[k, j]` the signal of a pick of arm k is j, whatever else happened. The observer treats the
signal as the pick. `docs/partial.md` has the proof.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.errors import InputError
from onlooker.base.types import Matrix
from onlooker.evaluation.bounds.lemmas import Dimension, as_count, as_share, suffix_length, uniform_deviation
from onlooker.evaluation.bounds.theorems import regret_from_risk


def as_confusion(confusion: ArrayLike) -> Matrix:
    """A square matrix of probabilities whose rows sum to 1."""
    matrix = np.asarray(confusion, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise InputError(f"confusion has shape {matrix.shape}: pass a row per pick, a column per signal")
    if not (matrix >= 0).all() or not np.allclose(matrix.sum(axis=1), 1.0, rtol=0, atol=1e-9):
        raise InputError("confusion must hold probabilities: each row, of one arm that was picked, sums to 1")
    return matrix


def group_confusion(n_arms: int, n_groups: int) -> Matrix:
    """Confusion of a guess within a group of arms that holds the pick, where groups are drawn again in every round.

    Groups are alike in size, so the guess is right with probability `n_groups / n_arms`, and any other arm is as likely
    as the next. Groups that stay the same never reveal which of their arms is picked: no bound holds for them.

    Examples
    --------
    >>> group_confusion(4, 2)[0]
    array([0.5       , 0.16666667, 0.16666667, 0.16666667])
    """
    arms, groups = as_count(n_arms, "n_arms", least=2), as_count(n_groups, "n_groups", least=1)
    if arms % groups:
        raise InputError(f"{arms} arms do not make up {groups} groups of one size: take a divisor")
    right = groups / arms
    found = np.full((arms, arms), (1.0 - right) / (arms - 1))
    np.fill_diagonal(found, right)
    return found


def signal_margin(eta: float, confusion: ArrayLike) -> float:
    """By how much, at least, the best arm's signal is more probable than any other arm's.

    The pick is not the best arm with probability `eta` at most. For the best arm a and another arm b the margin is
    smallest where all mistakes are those that mislead most: `(1 - eta) (C[a, a] - C[a, b])` plus `eta` times the
    smallest `C[k, a] - C[k, b]` over all arms k. It is `1 - 2 eta` where the pick itself is seen.

    Examples
    --------
    >>> signal_margin(0.1, np.eye(3))
    0.8
    >>> round(signal_margin(0.1, group_confusion(9, 3)), 3)
    0.2
    """
    noise, matrix = as_share(eta, "eta"), as_confusion(confusion)
    if len(matrix) == 1:
        return 1.0
    # Shape (a, b): what is seen of pick k in favour of a over b.
    favour = matrix[:, :, None] - matrix[:, None, :]
    seen = favour[np.arange(len(matrix)), np.arange(len(matrix))]
    margins = (1.0 - noise) * seen + noise * favour.min(axis=0)
    return float(margins[~np.eye(len(matrix), dtype=bool)].min())


def signal_eta(eta: float, confusion: ArrayLike) -> float:
    """The rate of mistakes that the signal amounts to: what takes the place of eta in the paper's bounds.

    Examples
    --------
    >>> round(signal_eta(0.1, np.eye(3)), 9), round(signal_eta(0.1, group_confusion(9, 3)), 9)
    (0.1, 0.4)
    """
    return (1.0 - signal_margin(eta, confusion)) / 2.0


def signal_regret_bound(
    n_rounds: int,
    burn_in: int,
    n_features: int,
    n_arms: int,
    delta: float,
    eta: float,
    confusion: ArrayLike,
    *,
    dimension: Dimension = "sharp",
) -> float:
    """Theorem 2 for an observer of signals: `4 uniform_deviation(N - T) / signal_margin(eta, confusion)`.

    The policy is the linear one that differs least often from the signals after the burn-in. Infinite where the margin
    is not above 0. Other parameters are those of `predictive_regret_bound`, which it equals where picks are seen.

    Examples
    --------
    >>> args = (10**7, 10**6, 20, 50, 0.05, 0.1)
    >>> round(signal_regret_bound(*args, np.eye(50)), 4), round(signal_regret_bound(*args, group_confusion(50, 25)), 4)
    (0.0265, 0.054)
    """
    matrix = as_confusion(confusion)
    if len(matrix) != as_count(n_arms, "n_arms"):
        raise InputError(f"confusion is of {len(matrix)} arms, but n_arms is {n_arms}: make them the same")
    margin = signal_margin(eta, matrix)
    deviation = uniform_deviation(suffix_length(n_rounds, burn_in), n_features, n_arms, delta, dimension=dimension)
    return regret_from_risk(2.0 * deviation / margin) if margin > 0 else math.inf
