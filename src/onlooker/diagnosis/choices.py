"""The rounds in which something was chosen, in units that suit the penalty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker import ragged
from onlooker.log import BanditLog
from onlooker.types import Index, Matrix

ROUNDING = 4.0
"""Arms that differ by less than so many units in the last place do not differ."""

NOTHING = 1e-9
"""Nor do those that differ by less than this part of what is usual for the feature."""

USUAL = (0.1, 10.0)
"""Features whose arms usually differ by as much as this are left as they are.

The penalty of the fits is the paper's, a fixed number: it suits features of about unit size, and the features of all
simulated logs that verdicts were calibrated on lie well within. Others are brought to 1, so that units do not matter.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Choices:
    """What is left of a log to be looked at."""

    log: BanditLog
    """Rounds that offer arms which differ."""
    rounds: Index
    """Which rounds of the whole log those are."""
    one_arm: int
    """Rounds left out, as they offer a single arm."""
    alike: int
    """Rounds left out, as no feature differs between their arms."""


def find_choices(log: BanditLog) -> Choices:
    """Keep the rounds that offer a choice, and measure unusually large or small features in units of their own.

    Examples
    --------
    >>> X = np.array([[[1.0], [0.0]], [[2.0], [2.0]], [[0.0], [3.0]]])
    >>> found = find_choices(BanditLog.from_dense(1e-6 * X, chosen=[0, 0, 1]))
    >>> found.rounds, found.alike, found.log.features.ravel()
    (array([0, 2]), 1, array([0.5, 0. , 0. , 1.5]))
    """
    several = log.n_arms > 1
    ranges = _ranges(log)
    usual = np.array([np.median(column[column > 0]) if column.any() else 1.0 for column in ranges.T])
    differs = (ranges > NOTHING * usual).any(axis=1)
    rounds = np.flatnonzero(differs)
    kept = log if len(rounds) == log.n_rounds else log[rounds]
    scale = np.where((usual < USUAL[0]) | (usual > USUAL[1]), usual, 1.0)
    if (scale != 1).any():
        # Divided as float64, which holds what float32 would round to nothing.
        features = np.divide(kept.dense, scale, out=np.empty_like(kept.dense), casting="same_kind")
        kept = kept.with_features(features, kept.feature_names)
    return Choices(
        log=kept,
        rounds=rounds,
        one_arm=int(np.count_nonzero(~several)),
        alike=int(np.count_nonzero(several & ~differs)),
    )


def _ranges(log: BanditLog) -> Matrix:
    """By how much every feature differs between the arms of every round, shape (N, d); rounding is no difference."""
    ranges = np.zeros((log.n_rounds, log.n_features))
    least = ROUNDING * float(np.finfo(log.features.dtype).eps)
    for start, stop in ragged.blocks(log.offsets, log.n_features):
        part = log[start:stop]
        ends = (np.maximum, np.minimum)
        high, low = (end.reduceat(part.dense, part.offsets[:-1], axis=0).astype(np.float64) for end in ends)
        gap = high - low
        ranges[start:stop] = np.where(gap > least * np.maximum(np.abs(high), np.abs(low)), gap, 0.0)
    return ranges
