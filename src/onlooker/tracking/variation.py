"""How features vary within the rounds: what picks can tell at all, and whether they tell anything."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from onlooker import ragged
from onlooker.log import BanditLog
from onlooker.types import Matrix, Vector

FLAT = 1e-8
"""Variation below this fraction of the largest counts as none."""


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
    from scipy.special import chdtrc

    scale = _scale(information)
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    kept = values > FLAT
    if not kept.any():
        return 1.0
    statistic = float(np.sum(((score / scale) @ vectors[:, kept]) ** 2 / values[kept]))
    return float(chdtrc(int(kept.sum()), statistic))


def untold(information: Matrix, flat: float = FLAT) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which features never vary within a round, and which cannot be told apart from others, each of shape (d,).

    Directions count as not varying up to the fraction `flat`.

    Examples
    --------
    >>> constant, tangled = untold(np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]))
    >>> constant.tolist(), tangled.tolist()
    ([True, False, False], [False, True, True])
    """
    scale = _scale(information)
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    involved = np.abs(vectors[:, values <= flat]).max(axis=1, initial=0.0)
    constant = np.diag(information) <= FLAT * scale**2
    return constant, (involved > 1e-4) & ~constant


def _scale(information: Matrix) -> Vector:
    """Of each feature, so that units cancel; 1 where it never varies."""
    spread = np.sqrt(np.maximum(np.diag(information), 0.0))
    return np.where(spread > 1e-12 * spread.max(initial=0.0), spread, 1.0)
