"""Features that are missing in some rows: rounds left out, or values drawn from what the others say.

What a missing value may be is seen in other rows: those whose other features predict about the same value for it lend
theirs, spread out as is predicted for the row (predictive mean matching). How probable the round's pick is with each
value decides between them, by a softmax policy of all rounds. The policy depends on the values in turn, so both, and
which rows lend, are drawn again and again (data augmentation; Bartlett et al. 2015). A feature may have any
distribution. It is assumed that values are missing at random given what is there, that a feature depends on the others
of the same arm alone, and that one softmax policy is near enough to the picks.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import as_whole, counted
from onlooker.base.errors import InputError, MissingValuesWarning, warn
from onlooker.base.types import Index, Matrix, Vector
from onlooker.logs.log import BanditLog
from onlooker.logs.partial import Marks, marks_of
from onlooker.logs.ragged import as_index, check_rounds

BETWEEN = 4
"""Sweeps before each draw for every known row of a feature among so many.

In a sweep all missing values are drawn again. The fewer are known, the more they depend on those of the sweep before.
With one in the place of four, and a tenth of the values known, draws are so alike that intervals cover 2 points less.
"""
LENDERS = 100
"""Rows on either side, by what their other features predict, that may lend a value."""
TRIED = 3
"""Number of these that are compared with a row's own value, by how probable each makes the pick."""
LEAST = 0.1
"""Predicted variance of rows that lend at least, as a share of the mean one."""
PRIOR = 1e-4
"""Precision of the policy's weights before the first pick, for every round, of features of spread 1."""
LOGIT_STEPS, SURE = 12, 3.0
"""Newton's steps of a logistic regression, and standard errors from which on it counts that picks miss values."""
TINY = 1e-30
"""Beside probabilities that are rounded to 0."""
REPEATED = 0.5
"""A feature with fewer different values than this share of its rows is discrete: values are lent as they are."""


def drop_missing(features: ArrayLike, offsets: ArrayLike, chosen: ArrayLike, **more: ArrayLike) -> BanditLog:
    """A log of the rounds that are complete; a `MissingValuesWarning` says how many were left out.

    `more` are other arguments of `BanditLog` that do not go by rows or rounds, as `feature_names`.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     drop_missing([[1.0], [np.nan], [2.0], [3.0]], [0, 2, 4], [0, 1])
    BanditLog(1 round, 2 arms, 1 feature, float64)
    """
    rows, bounds, picks, gaps = _checked(features, offsets, chosen)
    incomplete = np.logical_or.reduceat(gaps.any(axis=1), bounds[:-1])
    if incomplete.all():
        raise InputError("every round has a missing value: draw them (draw_missing), or leave features out")
    log = BanditLog(np.where(gaps, 0.0, rows), bounds, picks, **more)  # type: ignore[arg-type]
    if not incomplete.any():
        return log
    warn(
        f"{counted(int(incomplete.sum()), 'round')} of {len(picks):,} have a missing value and are left out. If that "
        "has to do with what was picked, weights are off: draw the values instead (draw_missing)",
        MissingValuesWarning,
    )
    return log[~incomplete]


def draw_missing(
    features: ArrayLike, offsets: ArrayLike, chosen: ArrayLike, *, n: int = 10, seed: int = 0, **more: ArrayLike
) -> list[BanditLog]:
    """Logs whose missing values, NaN in `features`, are drawn; `fit_draws` combines fits to them by Rubin's rules.

    See this module for what is assumed. The same seed gives the same logs.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> X[::7, 1] = np.nan
    >>> logs = draw_missing(X, np.arange(101) * 4, np.zeros(100, dtype=int), n=3)
    >>> len(logs), bool(np.isfinite(logs[0].features).all())
    (3, True)
    """
    rows, bounds, picks, gaps = _checked(features, offsets, chosen)
    empty = np.flatnonzero(gaps.all(axis=0))
    if len(empty):
        raise InputError(f"feature {empty[0]} is missing in every row: leave it out")
    draws, completed = as_whole(n, "n", least=1), _Completed(rows, bounds, picks, gaps, as_whole(seed, "seed"))
    return [BanditLog(drawn, bounds, picks, **more) for _, drawn in zip(range(draws), completed.draws(), strict=False)]  # type: ignore[arg-type]


def _checked(features: ArrayLike, offsets: ArrayLike, chosen: ArrayLike) -> tuple[Matrix, Index, Index, Marks]:
    rows = np.array(features, dtype=np.float64)
    if rows.ndim != 2:
        raise InputError(f"features has shape {rows.shape}: pass one row per offered arm, shape (rows, features)")
    bounds, picks = as_index(offsets, "offsets"), as_index(chosen, "chosen")
    check_rounds(len(rows), bounds, picks)
    if np.isinf(rows).any():
        raise InputError("features has infinite values: missing ones are NaN")
    return rows, bounds, picks, np.isnan(rows)


class _Completed:
    """Rows with all values there; the missing ones are drawn again in every sweep."""

    def __init__(self, rows: Matrix, offsets: Index, chosen: Index, gaps: Marks, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        known = np.where(gaps, np.nan, rows)
        self.middle, spread = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
        self.scale = np.where(spread > 0, spread, 1.0)
        self.given, self.gaps, self.offsets = rows, gaps, offsets
        self.picked = marks_of(chosen, offsets)
        self.round = np.repeat(np.arange(len(chosen)), np.diff(offsets))
        self.missing = np.flatnonzero(gaps.any(axis=0)).tolist()
        distinct = {j: len(np.unique(rows[~gaps[:, j], j])) for j in self.missing}
        self.discrete = {j: many < REPEATED * (~gaps[:, j]).sum() for j, many in distinct.items()}
        self.theta = np.zeros(rows.shape[1])
        self.rows = (rows - self.middle) / self.scale
        """In units of their spread."""
        for j in self.missing:
            # To start from, values of rows that were picked or not as this one was.
            for kind in (self.picked, ~self.picked):
                lent = self.rows[kind & ~gaps[:, j], j]
                lent = lent if len(lent) else self.rows[~gaps[:, j], j]
                self.rows[kind & gaps[:, j], j] = self.rng.choice(lent, int((kind & gaps[:, j]).sum()))

        self.lending = {j: self._lending(j) for j in self.missing}

    def _design(self, j: int) -> Matrix:
        """What predicts a feature: the others, and their squares."""
        others = np.delete(self.rows, j, axis=1)
        return np.column_stack([np.ones(len(others)), others, others**2])

    def _lending(self, j: int) -> float:
        """How often picks lend their value, against other rows: more often if more of them miss it than of others.

        By a logistic regression of whether it is known on the other features and the pick; 1 unless the pick surely
        matters.
        """
        known, design = ~self.gaps[:, j], np.column_stack([self._design(j), self.picked])
        weights = np.zeros(design.shape[1])
        for _ in range(LOGIT_STEPS):
            chances = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
            curvature = (design * (chances * (1 - chances))[:, None]).T @ design + np.eye(len(weights))
            step = np.linalg.solve(curvature, design.T @ (known - chances) - weights)
            weights = weights + step / max(1.0, float(np.abs(step).max()))
        if abs(weights[-1]) < SURE * np.sqrt(np.linalg.inv(curvature)[-1, -1]):
            return 1.0
        without = design @ weights - weights[-1] * self.picked
        shares = [float(np.mean(1 / (1 + np.exp(-np.clip(without + more, -30, 30))))) for more in (0.0, weights[-1])]
        return shares[0] / shares[1]

    def draws(self) -> Iterator[Matrix]:
        """Rows in their own units, without end."""
        sweeps = int(np.ceil(BETWEEN / (1 - self.gaps.mean(axis=0).max()))) if self.missing else 0
        while True:
            for _ in range(sweeps):
                weights = self._weights()
                for j in self.missing:
                    self._draw(j, weights)
            yield np.where(self.gaps, self.middle + self.scale * self.rows, self.given)

    def _weights(self) -> Vector:
        """The policy's weights, drawn given all values: two steps of Newton from those before."""
        starts, sizes = self.offsets[:-1], np.diff(self.offsets)
        d = self.rows.shape[1]
        for _ in range(2):
            scores = self.rows @ self.theta
            shares = np.exp(scores - np.maximum.reduceat(scores, starts)[self.round])
            shares /= np.add.reduceat(shares, starts)[self.round]
            weighted = shares[:, None] * self.rows
            means = np.add.reduceat(weighted, starts, axis=0)
            prior = PRIOR * len(sizes)
            curvature = weighted.T @ self.rows - means.T @ means + prior * np.eye(d)
            slope = (self.rows[self.picked] - means).sum(axis=0) - prior * self.theta
            step = np.linalg.solve(curvature, slope)
            # A step that would turn all scores over is cut: the next one goes on from there.
            self.theta = self.theta + step / max(1.0, float(np.abs(step).max()))
        return np.asarray(self.theta + np.linalg.cholesky(np.linalg.inv(curvature)) @ self.rng.normal(size=d))

    def _lent(self, j: int) -> Matrix:
        """Values that other rows lend for a missing feature, shape (missing, TRIED)."""
        gaps = self.gaps[:, j]
        known = np.flatnonzero(~gaps)
        # Which rows lend is drawn too (an approximate Bayesian bootstrap): what they leave open is in the draws.
        weights = np.where(self.picked[known], self.lending[j], 1.0) * self.rng.exponential(size=len(known))
        design = self._design(j)
        values = self.rows[known, j]
        mean = design @ _least_squares(design[known], values, weights)
        if not self.discrete[j]:
            left = values - mean[known]
            square = design @ _least_squares(design[known], left**2, weights)
            spread = np.sqrt(np.maximum(square, TINY))
            # Of rows that have next to no room to differ nothing is seen of how others do.
            weights = np.where(square[known] > LEAST * float(np.mean(left**2)), weights, TINY)
        order = np.argsort(mean[known])
        place = np.searchsorted(mean[known][order], mean[gaps])
        ends = np.concatenate([[0.0], np.cumsum(weights[order])])
        low = ends[np.maximum(np.minimum(place, len(known) - LENDERS) - LENDERS, 0)]
        high = ends[np.minimum(np.maximum(place, LENDERS) + LENDERS, len(known))]
        at = low[:, None] + self.rng.random((len(place), TRIED)) * (high - low)[:, None]
        lender = order[np.clip(np.searchsorted(ends, at, side="right") - 1, 0, len(known) - 1)]
        if self.discrete[j]:
            return np.asarray(values[lender])
        return np.asarray(mean[gaps][:, None] + (left / spread[known])[lender] * spread[gaps][:, None])

    def _draw(self, j: int, weights: Vector) -> None:
        """Draw the missing values of a feature, given all others and the picks, one row of a round after the other."""
        rows = np.flatnonzero(self.gaps[:, j])
        values = np.column_stack([self.rows[rows, j], self._lent(j)])
        scores = self.rows @ weights
        tried = (scores[rows] - weights[j] * self.rows[rows, j])[:, None] + weights[j] * values
        most = np.maximum.reduceat(scores, self.offsets[:-1])
        np.maximum.at(most, self.round[rows], tried.max(axis=1))
        tried = np.exp(tried - most[self.round[rows], None])
        totals = np.add.reduceat(np.exp(scores - most[self.round]), self.offsets[:-1])
        turn = np.arange(len(rows)) - np.searchsorted(self.round[rows], self.round[rows])
        for one in range(int(turn.max()) + 1):
            at = np.flatnonzero(turn == one)
            of, mine = self.round[rows[at]], tried[at]
            others = np.maximum(totals[of] - mine[:, 0], 0.0)
            # How probable the pick is with each value: this arm's own share, or what it leaves to the others.
            probable = (np.where(self.picked[rows[at], None], mine, 1.0) + TINY) / (others[:, None] + mine + TINY)
            ends = np.cumsum(probable, axis=1)
            taken = (self.rng.random((len(at), 1)) * ends[:, -1:] > ends).sum(axis=1)
            self.rows[rows[at], j] = values[at, taken]
            totals[of] = others + mine[np.arange(len(at)), taken]


def _least_squares(design: Matrix, values: Vector, weights: Vector) -> Vector:
    scaled = design * weights[:, None]
    gram = scaled.T @ design + 1e-9 * len(values) * np.eye(design.shape[1])
    return np.asarray(np.linalg.solve(gram, scaled.T @ values))
