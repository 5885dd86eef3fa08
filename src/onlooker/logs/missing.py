"""Features that are missing in some rows: rounds left out, or values drawn from what the others say.

A missing value is drawn from a normal regression of its feature on the other features, with another line and spread for
arms that were picked; several missing features of a row are drawn in turn (chained equations). That the pick is in it
matters: values drawn without it would pull weights towards 0. It assumes that values are missing at random given what
is there, and that features are about normal given the others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import as_whole, counted
from onlooker.base.errors import InputError, MissingValuesWarning
from onlooker.base.types import Index, Matrix, Vector
from onlooker.base.warn import warn
from onlooker.logs.log import BanditLog
from onlooker.logs.partial import Marks, marks_of
from onlooker.logs.ragged import as_index, check_rounds

SWEEPS = 5
"""Times that missing features of the same rows are drawn in turn."""
LEAST = 10
"""Rows for every coefficient of a regression at least."""


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
    picked = marks_of(picks, bounds).astype(np.float64)
    found = []
    for draw in range(as_whole(n, "n", least=1)):
        rng = np.random.default_rng([as_whole(seed, "seed"), draw])
        drawn = np.where(gaps, _marginal(rows, gaps, rng), rows)
        missing = np.flatnonzero(gaps.any(axis=0))
        for _ in range(SWEEPS if len(missing) > 1 else 1):
            for j in missing.tolist():
                drawn[gaps[:, j], j] = _regressed(drawn, gaps[:, j], j, picked, rng)
        found.append(BanditLog(drawn, bounds, picks, **more))  # type: ignore[arg-type]
    return found


def _checked(features: ArrayLike, offsets: ArrayLike, chosen: ArrayLike) -> tuple[Matrix, Index, Index, Marks]:
    rows = np.array(features, dtype=np.float64)
    if rows.ndim != 2:
        raise InputError(f"features has shape {rows.shape}: pass one row per offered arm, shape (rows, features)")
    bounds, picks = as_index(offsets, "offsets"), as_index(chosen, "chosen")
    check_rounds(len(rows), bounds, picks)
    if np.isinf(rows).any():
        raise InputError("features has infinite values: missing ones are NaN")
    return rows, bounds, picks, np.isnan(rows)


def _marginal(rows: Matrix, gaps: Marks, rng: np.random.Generator) -> Matrix:
    """Values to start from: those of other rows."""
    found = np.zeros_like(rows)
    for j in range(rows.shape[1]):
        known = rows[~gaps[:, j], j]
        found[:, j] = rng.choice(known, len(rows))
    return found


def _regressed(drawn: Matrix, gaps: Marks, j: int, picked: Vector, rng: np.random.Generator) -> Vector:
    """Draws of the missing values of feature j, coefficients and spread drawn too; picks apart from the others."""
    others = np.delete(drawn, j, axis=1)
    found = np.empty(int(gaps.sum()))
    design = np.column_stack([np.ones(len(drawn)), others])
    enough = (picked[~gaps].sum() >= LEAST * design.shape[1]) and (~gaps).sum() >= LEAST * design.shape[1]
    for kind in (0.0, 1.0) if enough else (None,):
        inside = np.ones(len(drawn), dtype=bool) if kind is None else picked == kind
        X = design if kind is not None else np.column_stack([design, picked])
        known = inside & ~gaps
        if not (inside & gaps).any():
            continue
        gram = X[known].T @ X[known] + 1e-9 * np.eye(X.shape[1])
        inverse = np.linalg.pinv(gram)
        beta = inverse @ (X[known].T @ drawn[known, j])
        left = drawn[known, j] - X[known] @ beta
        freedom = max(1, int(known.sum()) - X.shape[1])
        variance = float(left @ left) / rng.chisquare(freedom)
        beta = rng.multivariate_normal(beta, variance * inverse, check_valid="ignore")
        values = X[inside & gaps] @ beta + np.sqrt(variance) * rng.normal(size=int((inside & gaps).sum()))
        found[inside[gaps]] = values
    return found
