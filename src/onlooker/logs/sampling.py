"""Sample the offers of a log down with known probabilities, so that large catalogues can be fitted."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import as_whole
from onlooker.base.errors import InputError
from onlooker.base.types import Index, Vector
from onlooker.logs.factored import FactoredRows
from onlooker.logs.layouts import Layout
from onlooker.logs.log import BanditLog, as_log

SEARCHED = 60
"""Halvings of the interval in which the rate of draws lies: all digits of a double."""


def sample_offers(log: BanditLog, n: int, *, seed: int = 0, weights: ArrayLike | None = None) -> BanditLog:
    """Keep each round's pick and a sample of its other offers, so that a round has about `n` rows.

    Without `weights` the others are drawn evenly, without replacement; rounds of at most `n` offers stay as they are.
    With `weights` arms of more weight are kept more often, independently of each other: n - 1 of them in expectation,
    fewer or more in a round. Weights are one per row of the log, or, where arms keep their identity (`from_contexts`,
    `items`), one per arm. The result has `offer_probability`, which fits correct for: they recover the policy among all
    offers, with somewhat wider intervals. A sample that favours arms that the learner likes loses least.

    Rows that are not kept are never written out: a million arms a round cost no more than `n`.

    Examples
    --------
    >>> contexts, chosen = np.ones((50, 1)), np.arange(50)
    >>> log = BanditLog.from_contexts(contexts, chosen, arms=np.arange(1000), arm_features=np.arange(1000.0)[:, None])
    >>> sample_offers(log, 20)
    BanditLog(50 rounds, 20 arms, 1 arm feature and 1 products with the context, factored float64, sampled offers)
    """
    size = as_whole(n, "n", least=2)
    if as_log(log, "sample_offers").partial:
        raise InputError("the log's picks or offers are known only in part already: sample the offers of a whole log")
    rng = np.random.default_rng(as_whole(seed, "seed"))
    if weights is None:
        rows, chances = _evenly(log, size, rng)
    else:
        rows, chances = _by_weight(log, size, weights, rng)
    of = np.searchsorted(log.offsets, rows, side="right") - 1
    offsets = np.searchsorted(of, np.arange(log.n_rounds + 1)).astype(np.int64)
    chosen = np.searchsorted(rows, log.chosen_rows) - offsets[:-1]
    ids = log.arm_ids[rows] if not isinstance(log.features, Layout) and log.arm_ids is not None else None
    return BanditLog(
        log.features[rows],
        offsets,
        chosen,
        feature_names=log.feature_names,
        round_ids=log.round_ids,
        arm_ids=ids,
        times=log.times,
        categories=log.categories,
        offer_probability=chances,
    )


def _evenly(log: BanditLog, size: int, rng: np.random.Generator) -> tuple[Index, Vector]:
    """Rows of the picks and of the same number of others in every round, in order, and their probabilities."""
    parts, sizes, picks = [], log.n_arms.tolist(), log.chosen.tolist()
    for first, many, pick in zip(log.offsets[:-1].tolist(), sizes, picks, strict=True):
        if many <= size:
            parts.append(np.arange(first, first + many))
            continue
        others = rng.choice(many - 1, size - 1, replace=False, shuffle=False)
        # Those behind the pick move up by one, to leave its place.
        parts.append(first + np.sort(np.append(others + (others >= pick), pick)))
    share = np.where(log.n_arms <= size, 1.0, (size - 1) / np.maximum(log.n_arms - 1, 1))
    return np.concatenate(parts), np.repeat(share, np.minimum(log.n_arms, size))


def _by_weight(log: BanditLog, size: int, weights: ArrayLike, rng: np.random.Generator) -> tuple[Index, Vector]:
    """The same by weight: a Poisson number of draws with replacement makes arms independent of each other."""
    given, by_arm = _as_weights(log, weights)
    parts, chances = [], []
    known: tuple[Vector, Vector] | None = None
    for t, (first, stop) in enumerate(zip(log.offsets[:-1].tolist(), log.offsets[1:].tolist(), strict=True)):
        if known is None or not by_arm:
            shares = given if by_arm else given[first:stop]
            known = _rates(shares, min(size - 1, np.count_nonzero(shares))), np.cumsum(shares / shares.sum())
        rates, ends = known
        total = float(rates.sum())
        draws = np.searchsorted(ends, rng.random(rng.poisson(total)) * ends[-1], side="right")
        kept = np.unique(np.append(draws, log.chosen[t]))
        parts.append(first + kept)
        chances.append(-np.expm1(-rates[kept]))
    found = np.concatenate(chances)
    if not found.all():
        row = int(np.concatenate(parts)[np.flatnonzero(found == 0)[0]])
        t = int(np.searchsorted(log.offsets, row, side="right")) - 1
        raise InputError(f"the pick of round {t} has weight 0: an arm that may be picked must be kept now and then")
    return np.concatenate(parts), found


def _as_weights(log: BanditLog, weights: ArrayLike) -> tuple[Vector, bool]:
    """Weights, and whether they are those of arms, the same in every round."""
    values = np.asarray(weights, dtype=np.float64)
    rows = log.features
    by_arm = isinstance(rows, FactoredRows) and rows.which is None and values.shape == (rows.n_arms,)
    if not by_arm and values.shape != (int(log.offsets[-1]),):
        if isinstance(rows, FactoredRows) and rows.which is not None and values.shape == (rows.n_arms,):
            return np.asarray(values[rows.which]), False
        raise InputError(f"weights have shape {values.shape}: pass one per row of the log, or one per arm")
    if not (np.isfinite(values) & (values >= 0)).all() or not values.any():
        raise InputError("weights must be finite, not negative and not all 0: larger ones are kept more often")
    return values, by_arm


def _rates(weights: Vector, wanted: float) -> Vector:
    """Expected draws of each arm, in proportion to the weights, so that about `wanted` are drawn once or more."""
    shares = weights / weights.sum()
    low, high = 0.0, 1.0
    while -np.expm1(-high * shares).sum() < wanted * (1 - 1e-9) and high < 1e12:
        high *= 2.0
    for _ in range(SEARCHED):
        middle = 0.5 * (low + high)
        enough = -np.expm1(-middle * shares).sum() >= wanted
        low, high = (low, middle) if enough else (middle, high)
    return np.asarray(high * shares)
