"""How features vary within the rounds: which weights picks identify, and whether they show any preference."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from onlooker.base.linear_algebra import UNIDENTIFIED, Curvature
from onlooker.base.p_values import chi_square_p
from onlooker.base.types import Matrix, Vector
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog


def within_rounds(log: BanditLog) -> tuple[Vector, Matrix]:
    """Picked features less their round's mean, summed; and the features' covariance within a round, summed."""
    score, information = np.zeros(log.n_features), np.zeros((log.n_features, log.n_features))
    for rows, part in differences(log):
        score += rows[part.chosen_rows].sum(axis=0)
        information += (rows / np.repeat(part.n_arms, part.n_arms)[:, None]).T @ rows
    return score, information


def differences(log: BanditLog) -> Iterator[tuple[Matrix, BanditLog]]:
    """Features less their round's mean, and the rounds that they are of, some at a time."""
    for start, stop in ragged.blocks(log.offsets, log.n_features):
        part = log[start:stop]
        rows = part.dense.astype(np.float64)
        n_arms = part.n_arms
        # From the first arm, then from the mean: what all arms share leaves exactly nothing.
        rows -= np.repeat(rows[part.offsets[:-1]], n_arms, axis=0)
        rows -= np.repeat(np.add.reduceat(rows, part.offsets[:-1]) / n_arms[:, None], n_arms, axis=0)
        yield rows, part


def uniform_p_value(score: Vector, information: Matrix) -> float:
    """Chance of picks as one-sided as these if every arm were as likely: the score test of a softmax policy at zero.

    Examples
    --------
    >>> from onlooker import Environment, LinUCB, UniformRandom, simulate
    >>> logs = [simulate(Environment(5, 20), who, 500).log for who in (LinUCB(), UniformRandom())]
    >>> [uniform_p_value(*within_rounds(log)) < 0.01 for log in logs]
    [True, False]
    """
    found = _curvature(information, UNIDENTIFIED)
    return chi_square_p(found.square(score), found.rank)


def unidentified(information: Matrix, flat: float = UNIDENTIFIED) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which features never vary within a round, and which only together with others, each of shape (d,).

    Directions count as not varying up to the fraction `flat`.

    Examples
    --------
    >>> constant, tangled = unidentified(np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]))
    >>> constant.tolist(), tangled.tolist()
    ([True, False, False], [False, True, True])
    """
    found = _curvature(information, flat)
    return found.constant, found.tangled


def _curvature(information: Matrix, flat: float) -> Curvature:
    """A feature whose spread is below the last digits of the largest one's does not vary."""
    return Curvature.of(information, flat=flat, noise=1e-24 * np.diag(information).max(initial=0.0))
