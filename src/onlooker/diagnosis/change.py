"""Whether the learner changed its mind: picks that the past predicts, and the future does not.

A learner that settles is predicted best by what it comes to believe: its past is noisier than its future. Where the
past predicts a bin materially better than the policies after it do, something that had been learned was given up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from onlooker.base.numerics import UNIDENTIFIED, Curvature
from onlooker.base.types import Matrix, Vector
from onlooker.diagnosis.policies import FAST, FOLDS, LATE, imitate, predict
from onlooker.diagnosis.settling import MATERIAL
from onlooker.imitation.newton import Fit
from onlooker.imitation.softmax import SoftmaxObjective, round_losses
from onlooker.logs.log import BanditLog

LEAST_SHOWN = 0.2
"""A direction that varies by less than this part of its variance in the whole log is not identified.

Sampling alone stays above it: with five rounds of two arms for every direction, the least share of the variance is
about (1 - 5 ** -0.5) ** 2 = 0.31.
"""


@dataclass(frozen=True, eq=False)
class Directions:
    """Directions of theta in units of the scores' spread over the whole log."""

    root: Matrix
    """Takes theta to coordinates in which length is the spread of the scores, shape (r, d)."""
    back: Matrix
    """Takes those back, shape (d, r)."""

    @classmethod
    def of(cls, spread: Matrix) -> Directions:
        """From the covariance of the features within rounds; directions without any are left out."""
        found = Curvature.of(spread, flat=UNIDENTIFIED)
        return cls(found.half.T, found.root)

    def hidden(self, log: BanditLog) -> Matrix:
        """Directions that a stretch does not identify, one a column, shape (r, how many).

        Examples
        --------
        The second feature does not differ within the last rounds:

        >>> X = np.random.default_rng(0).normal(size=(200, 4, 2))
        >>> X[100:, :, 1] = 3.0
        >>> log = BanditLog.from_dense(X, chosen=np.zeros(200, dtype=int))
        >>> directions = Directions.of(np.diag([1.0, 0.5]))
        >>> directions.hidden(log[:100]).shape, directions.hidden(log[100:]).shape
        ((2, 0), (2, 1))
        """
        at = SoftmaxObjective(log, l2=0.0).evaluate(np.zeros(log.n_features))
        values, vectors = np.linalg.eigh(self.back.T @ at.hessian @ self.back)
        return np.asarray(vectors[:, values < LEAST_SHOWN])

    def common(self, theta: Vector, hidden: Matrix) -> Vector:
        """The part of a policy outside of the directions `hidden`, which need not be orthogonal.

        Examples
        --------
        The first feature is hidden:

        >>> Directions.of(np.diag([1.0, 4.0])).common(np.array([3.0, 5.0]), np.array([[1.0], [0.0]])).round(12)
        array([0., 5.])
        """
        y = self.root @ theta
        return np.asarray(self.back @ (y - hidden @ np.linalg.lstsq(hidden, y)[0]))


MOST_EVIDENCE = 1.0
"""No single round counts for more than this (in nats) when the change is located.

A learner that starts again explores for some rounds, which neither policy explains: taken at face value, a few of them
gave intervals one round wide that missed the change by two to eight (seen on LinUCB restarted half-way).
"""


NO_POLICY = 1e-6
"""A policy shorter than this part of the other is rounding: it has no direction to compare."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """The strongest sign that the past predicted better, and where the policy changed for the last time."""

    z: float
    """How many standard errors the past is ahead, by more than `MATERIAL`, in the bin where it is most."""

    p_value: float
    """Of that, corrected for the number of comparisons."""

    found: bool
    """Whether it is significant."""

    gradual: bool = False
    """Whether the policies right before and after the change do not differ significantly."""

    round: int = 0
    """First round after the change."""

    low: int = 0
    """Lower end of its interval."""

    high: int = 0
    """Upper end."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """One bin, predicted by its past and by something after it."""

    bin: int
    """Which."""
    local: bool
    """Whether the other policy is of the rounds right after the bin, rather than the final one."""
    z: float
    """How far the past is ahead."""


@dataclass(frozen=True, eq=False)
class Learned:
    """A policy, and what it could not learn."""

    fit: Fit
    """The policy."""
    hidden: Matrix
    """Directions that its rounds do not identify, one a column."""


def find_change(log: BanditLog, bounds: list[int], final: Fit, spread: Matrix, level: float) -> Change:
    """Compare past and future in every bin between `bounds`; where the past wins, find the round of the change."""
    from scipy.special import ndtr, ndtri

    comparisons = list(_comparisons(log, bounds, final, spread))
    if not comparisons:
        return Change(z=0.0, p_value=1.0, found=False)
    best = max(comparison.z for comparison in comparisons)
    p_value = min(1.0, len(comparisons) * float(ndtr(-best)))
    if p_value >= 1 - level:
        return Change(z=best, p_value=p_value, found=False)
    enough = -float(ndtri((1 - level) / len(comparisons)))
    significant = [comparison for comparison in comparisons if comparison.z > enough]
    place, low, high = _locate(log, bounds, max(comparison.bin for comparison in significant), final, level)
    return Change(
        z=best,
        p_value=p_value,
        found=True,
        gradual=not any(comparison.local for comparison in significant),
        round=place,
        low=low,
        high=high,
    )


def _window(log: BanditLog) -> int:
    """As many rounds as each of the final policies has seen, so that no side knows more."""
    return int((1 - LATE) * log.n_rounds * (FOLDS - 1) / FOLDS)


def _comparisons(log: BanditLog, bounds: list[int], final: Fit, spread: Matrix) -> Iterator[Comparison]:
    directions = Directions.of(spread)
    windows: dict[tuple[int, int], Learned] = {}
    late, n_rounds = int(LATE * log.n_rounds), log.n_rounds

    def learned(start: int, stop: int) -> Learned:
        if (start, stop) not in windows:
            near = windows[max(windows)].fit if windows else final
            fit = imitate(log[start:stop], near, tolerance=FAST)
            windows[start, stop] = Learned(fit, directions.hidden(log[start:stop]))
        return windows[start, stop]

    last = Learned(final, directions.hidden(log[late:]))
    for j in range(1, len(bounds) - 2):
        start, stop = bounds[j], bounds[j + 1]
        size = min(_window(log), start)
        if stop <= late:
            z = _ahead(log[start:stop], learned(start - size, start), last, directions)
            yield Comparison(j, local=False, z=z)
        size = min(size, n_rounds - stop)
        z = _ahead(log[start:stop], learned(start - size, start), learned(stop, stop + size), directions)
        yield Comparison(j, local=True, z=z)


def _ahead(part: BanditLog, past: Learned, future: Learned, directions: Directions) -> float:
    """By how many standard errors the past predicts better than the future, by more than `MATERIAL`.

    Directions are compared: the future policy is made as decisive as the past one, and taken to agree with it on what
    one of the two could not learn. The past must also predict better than random guessing.
    """
    hidden = np.hstack([past.hidden, future.hidden])
    theta = past.fit.theta
    old, new = (directions.common(values, hidden) for values in (theta, future.fit.theta))
    lengths = [float(np.linalg.norm(directions.root @ values)) for values in (old, new)]
    if not min(lengths) > NO_POLICY * max(lengths):
        return 0.0
    chance = 1 / part.n_arms
    before = predict(part, theta).given - chance
    after = predict(part, theta - old + new * (lengths[0] / lengths[1])).given - chance
    return min(_z(before), _z((1 - MATERIAL) * before - after))


def _z(values: Vector) -> float:
    error = float(values.std()) / len(values) ** 0.5
    return float(values.mean()) / error if error else 0.0


def _locate(log: BanditLog, bounds: list[int], last: int, final: Fit, level: float) -> tuple[int, int, int]:
    """First round after the change, near the last bin that the past predicted better, with its interval."""
    window, after = _window(log), bounds[min(last + 2, len(bounds) - 2)]
    start, stop = bounds[max(0, last - 1)], bounds[min(last + 3, len(bounds) - 1)]
    before = bounds[last]
    place = low = high = before
    # The second time, the policies are those of the rounds on either side of the place found.
    for _ in range(2):
        old = imitate(log[max(0, before - window) : before], final, tolerance=FAST).theta
        new = imitate(log[after : after + window], final, tolerance=FAST).theta
        part = log[start:stop]
        evidence = np.clip(round_losses(part, new) - round_losses(part, old), -MOST_EVIDENCE, MOST_EVIDENCE)
        loss = -np.cumsum(evidence)
        place, low, high = (start + 1 + place for place in _posterior(loss, level))
        before, after = place, min(place, log.n_rounds - 1)
    return place, low, high


def _posterior(loss: Vector, level: float) -> tuple[int, int, int]:
    """Most likely place of the change and its interval, all places being equally likely beforehand."""
    weights = np.exp(loss.min() - loss)
    mass = np.cumsum(weights) / weights.sum()
    tail = (1 - level) / 2
    low, high = np.searchsorted(mass, [tail, 1 - tail])
    best = int(loss.argmin())
    return best, min(best, int(low)), max(best, int(high))
