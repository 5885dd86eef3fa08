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
UNEQUAL = 64.0
"""Features that differ in size by more than this are counted in units of their own."""


def within_rounds(log: BanditLog) -> tuple[Vector, Matrix]:
    """Picked features less their round's mean, summed; and the features' covariance within a round, summed."""
    score, information = np.zeros(log.n_features), np.zeros((log.n_features, log.n_features))
    for rows, part in _differences(log):
        score += rows[part.chosen_rows].sum(axis=0)
        information += (rows / np.repeat(part.n_arms, part.n_arms)[:, None]).T @ rows
    return score, information


def _differences(log: BanditLog) -> Iterator[tuple[Matrix, BanditLog]]:
    """Features less their round's mean, and the rounds that they are of, some at a time."""
    for start, stop in ragged.blocks(log.offsets, log.n_features):
        part = log[start:stop]
        rows = part.features.astype(np.float64)
        n_arms = part.n_arms
        # From the first arm, then from the mean: what all arms share leaves exactly nothing.
        rows -= np.repeat(rows[part.offsets[:-1]], n_arms, axis=0)
        rows -= np.repeat(np.add.reduceat(rows, part.offsets[:-1]) / n_arms[:, None], n_arms, axis=0)
        yield rows, part


def own_units(log: BanditLog) -> Vector | None:
    """Units in which features are of about one size, and arms of length one; None if they are of one size as they are.

    The size of a feature is that of its differences within a round where it differs: a rare one is not small. Units are
    powers of two.

    Examples
    --------
    >>> features = np.tile(np.eye(3), (10, 1)) * [1, 5000, 1]
    >>> own_units(BanditLog.from_dense(features.reshape(10, 3, 3), np.zeros(10, dtype=int))).tolist()
    [0.5, 2048.0, 0.5]
    """
    squares, fourths, most = np.zeros((3, log.n_features))
    for rows, part in _differences(log):
        most = np.maximum(most, np.abs(part.features).max(axis=0))
        square = np.square(rows, out=rows)
        squares += square.sum(axis=0)
        fourths += np.einsum("ij,ij->j", square, square)
    # What differs in its last digits only was meant to be the same.
    # So was what is too small for its fourth power.
    varies = (squares > len(log.features) * (1e-12 * most) ** 2) & (fourths > 0)
    sizes = np.sqrt(fourths[varies] / squares[varies])
    if not varies.any() or sizes.max() <= UNEQUAL * sizes.min():
        return None
    units = np.ones(log.n_features)
    # Of normal differences, the size is the deviation times the root of 3.
    units[varies] = 2.0 ** np.round(np.log2(sizes * np.sqrt(len(sizes) / 3)))
    return units


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


def untold(information: Matrix) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which features never vary within a round, and which cannot be told apart from others, each of shape (d,).

    Examples
    --------
    >>> constant, tangled = untold(np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]))
    >>> constant.tolist(), tangled.tolist()
    ([True, False, False], [False, True, True])
    """
    scale = _scale(information)
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    involved = np.abs(vectors[:, values <= FLAT]).max(axis=1, initial=0.0)
    constant = np.diag(information) <= FLAT * scale**2
    return constant, (involved > 1e-4) & ~constant


def _scale(information: Matrix) -> Vector:
    """Of each feature, so that units cancel; 1 where it never varies."""
    spread = np.sqrt(np.maximum(np.diag(information), 0.0))
    return np.where(spread > 1e-12 * spread.max(initial=0.0), spread, 1.0)
