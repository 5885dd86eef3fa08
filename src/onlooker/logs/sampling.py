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

STEPS, CLOSE = 200, 1e-9
"""Newton's steps at most, and how near they come: the rate need not be exact, since its probabilities are."""


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
    BanditLog(50 rounds, 20 arms, 1 arm feature and 1 product with the context, factored float64, sampled offers)
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
    """The same by weight: every arm is kept or not, independently of the others."""
    given, by_arm = _as_weights(log, weights)
    if by_arm:
        rows, chances = _by_arm(log, _rates(given, np.array([0, len(given)]), size - 1), rng)
    else:
        all_chances = -np.expm1(-_rates(given, log.offsets, size - 1))
        kept = rng.random(len(given)) < all_chances
        kept[log.chosen_rows] = True
        rows = np.flatnonzero(kept)
        chances = all_chances[rows]
    if not chances.all():
        t = int(np.searchsorted(log.offsets, rows[np.flatnonzero(chances == 0)[0]], side="right")) - 1
        raise InputError(f"the pick of round {t} has weight 0: an arm that may be picked must be kept now and then")
    return rows, chances


def _by_arm(log: BanditLog, rates: Vector, rng: np.random.Generator) -> tuple[Index, Vector]:
    """Rows of a catalogue that every round offers: a Poisson number of draws with replacement."""
    ends = np.cumsum(rates)
    many = rng.poisson(ends[-1], log.n_rounds)
    draws = np.searchsorted(ends, rng.random(int(many.sum())) * ends[-1], side="right")
    drawn = np.repeat(log.offsets[:-1], many) + np.minimum(draws, len(rates) - 1)
    rows = np.unique(np.concatenate([drawn, log.chosen_rows]))
    return rows, -np.expm1(-rates[rows % len(rates)])


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


def _rates(weights: Vector, offsets: Index, wanted: int) -> Vector:
    """Draws of each arm to expect, in proportion to the weights: `wanted` arms of a round are then drawn, or all."""
    starts, sizes = offsets[:-1], np.diff(offsets)
    totals = np.add.reduceat(weights, starts)
    if not totals.all():
        raise InputError(f"all weights of round {int(np.flatnonzero(totals == 0)[0])} are 0: give some arm more")
    shares = weights / np.repeat(totals, sizes)
    most = np.minimum(wanted, np.add.reduceat(weights > 0, starts, dtype=np.int64) * (1 - 1e-6))
    # The number that is drawn rises with the rate and bends down: Newton's steps from below never pass the root.
    rate = most.astype(np.float64)
    for _ in range(STEPS):
        missed = np.exp(-np.repeat(rate, sizes) * shares)
        short = most - np.add.reduceat(1.0 - missed, starts)
        if (short <= CLOSE * most).all():
            break
        rate += np.maximum(short, 0.0) / np.add.reduceat(missed * shares, starts)
    return np.asarray(np.repeat(rate, sizes) * shares)
