"""What two stretches of a log both tell: a policy knows nothing of features that did not differ where it learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker.inverses import UNIDENTIFIED, Curvature
from onlooker.log import BanditLog
from onlooker.softmax import SoftmaxObjective
from onlooker.types import Matrix, Vector

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
