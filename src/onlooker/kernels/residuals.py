"""What picks show beyond the probabilities that a forecast gave them: sums over rounds, one round after the other."""

import math

import numpy as np

from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.kernels.cached_njit import cached_njit

RARE, FAINT = 1e-3, 1e-12
"""Probabilities below which arms count as equally improbable, and as this."""
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
"""Multiples of it, less their whole part, fill the unit interval evenly: chance without a generator."""
MOST = 20.0
"""Ratio of two forecasts beyond which it counts as this."""
OWN = 4
"""Quantities of the forecast itself: sharpness, best arm, improbable arms, the position of the last pick."""

# Sums keep their order: parts of a log give the same to the last bit as the whole.
_compiled = cached_njit(error_model="numpy")


@_compiled
def _judge(p: Vector, values: Vector, sharp: Vector, pick: int, total: Vector) -> None:
    """Add by how much a quantity at the pick exceeds what was expected, its variance, and that with the sharpness."""
    mean, level = 0.0, 0.0
    for k in range(len(p)):
        mean += p[k] * values[k]
        level += p[k] * sharp[k]
    total[0] += values[pick] - mean
    for k in range(len(p)):
        total[1] += p[k] * (values[k] - mean) ** 2
        total[2] += p[k] * (values[k] - mean) * (sharp[k] - level)


@_compiled
def _judge_features(rows: Features, p: Vector, sharp: Vector, pick: int, mean: Vector, total: Matrix) -> None:
    """The same for each feature, with its covariance with the sharpness; features count from the first arm's."""
    n, d = rows.shape
    mean[:] = 0.0
    level = 0.0
    for k in range(n):
        level += p[k] * sharp[k]
        for j in range(d):
            mean[j] += p[k] * (np.float64(rows[k, j]) - np.float64(rows[0, j]))
    for j in range(d):
        total[0, j] += np.float64(rows[pick, j]) - np.float64(rows[0, j]) - mean[j]
    for k in range(n):
        above = sharp[k] - level
        for j in range(d):
            centred = np.float64(rows[k, j]) - np.float64(rows[0, j]) - mean[j]
            total[1, j] += p[k] * centred * centred
            total[2, j] += p[k] * centred * above


@_compiled
def _place(p: Vector, pick: int, within: float, bins: int) -> int:
    """Bin of the pick's cumulative probability, arms by falling probability and equals at random."""
    above, level = 0.0, 0.0
    for k in range(len(p)):
        if p[k] > p[pick]:
            above += p[k]
        elif p[k] == p[pick]:
            level += p[k]
    return min(max(int((above + within * level) * bins), 0), bins - 1)


@_compiled
def add_residuals(
    features: Features,
    offsets: Index,
    chosen: Index,
    forecasts: Matrix,
    before: int,
    n_rounds: int,
    named: Matrix,
    positions: Matrix,
    of_features: Matrix,
    shares: Vector,
) -> None:
    """Take in rounds after `n_rounds` others, the last of which had its pick at position `before`.

    `forecasts` has the probabilities of all arms, shape (m, rows): the first row is the forecast that is judged, the
    others are what it is held against. `named`, shape (OWN + 2 (m - 1), 3), receives surplus, variance and
    covariance with the sharpness of each quantity: those of the forecast itself, then the logarithm and the ratio of
    every other one.
    """
    largest = 1
    for t in range(len(chosen)):
        largest = max(largest, offsets[t + 1] - offsets[t])
    every_p, every_sharp, every_value = np.empty(largest), np.empty(largest), np.empty(largest)
    mean = np.empty(features.shape[1])
    for t in range(len(chosen)):
        first, n, pick = offsets[t], offsets[t + 1] - offsets[t], chosen[t]
        p, sharp, values = every_p[:n], every_sharp[:n], every_value[:n]
        total, top = 0.0, 0.0
        for k in range(n):
            p[k] = max(forecasts[0, first + k], FAINT)
            total += p[k]
        for k in range(n):
            p[k] /= total
            top = max(top, p[k])
            sharp[k] = math.log(max(p[k], RARE))
        _judge(p, sharp, sharp, pick, named[0])
        for k in range(n):
            values[k] = 1.0 if p[k] >= top else 0.0
        _judge(p, values, sharp, pick, named[1])
        for k in range(n):
            values[k] = 1.0 if p[k] < 0.2 / n else 0.0
        _judge(p, values, sharp, pick, named[2])
        for k in range(n):
            values[k] = 1.0 if k == before else 0.0
        _judge(p, values, sharp, pick, named[3])
        for m in range(1, len(forecasts)):
            for k in range(n):
                ratio = math.log(max(forecasts[m, first + k], FAINT)) - math.log(p[k])
                values[k] = min(max(ratio, -2.0), 2.0)
            _judge(p, values, sharp, pick, named[OWN + 2 * (m - 1)])
            for k in range(n):
                values[k] = min(max(forecasts[m, first + k] / p[k], 0.0), MOST)
            _judge(p, values, sharp, pick, named[OWN + 2 * (m - 1) + 1])
        for k in range(min(n, positions.shape[1])):
            positions[0, k] += (1.0 if k == pick else 0.0) - p[k]
            positions[1, k] += p[k] * (1.0 - p[k])
        _judge_features(features[first : first + n], p, sharp, pick, mean, of_features)
        within = (GOLDEN * (n_rounds + t + 1)) % 1.0
        shares[_place(p, pick, within, len(shares))] += 1.0
        before = pick
