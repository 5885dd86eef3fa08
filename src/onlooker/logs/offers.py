"""Logs of picks without offers: three ways to say what was on offer, and a refusal where none is given.

What was picked often may have been liked, or simply have been on offer often: picks alone cannot distinguish the two.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlooker.base.checks import as_whole
from onlooker.base.errors import InputError
from onlooker.base.types import Index, Matrix, Vector
from onlooker.logs.arm_ids import places
from onlooker.logs.factored import FactoredRows
from onlooker.logs.log import BanditLog

TRIED = 30
"""Sets of offers that are tried for each round, of which one is taken."""
PIECE = 1 << 22
"""Numbers in temporary arrays, about."""

NO_OFFERS = (
    "if the log holds picks without what else was on offer: an arm that is picked often may be liked, or be on offer "
    "often, and picks alone cannot distinguish the two. Say what was on offer with assume_offers: `availability` (what "
    "was there in each round), `instrument` (what availability depends on and preference does not, as the shop or the "
    "day), or catalogue=True (every arm was always on offer)"
)
"""Why picks alone are refused, and the ways out."""

Fit = Callable[[BanditLog], Vector]


def assume_offers(
    chosen: ArrayLike,
    items: ArrayLike,
    *,
    arms: ArrayLike | None = None,
    availability: ArrayLike | None = None,
    instrument: ArrayLike | None = None,
    catalogue: bool = False,
    feature_names: Any = None,
) -> BanditLog:
    """Make a log of picks without offers, under one stated assumption about what was on offer.

    Parameters
    ----------
    chosen
        Id of the arm that each round picked, shape (N,).
    items
        Features of all arms, shape (K, d), in the order of `arms`.
    arms
        Ids of all arms; 0 to K - 1 by default.
    availability
        Which arms were on offer, a boolean mask of shape (N, K). Where only probabilities are known, use `draw_offers`.
    instrument
        One value per round, shape (N,): what decides which arms are there, and has nothing to do with what is liked, as
        the shop or the week. In rounds of one value those arms are taken to be on offer that were picked in some of
        them; rounds of a value should be many, so that each arm that was there was picked once.
    catalogue
        Assume that every arm was on offer in every round.

    Examples
    --------
    >>> items = np.array([[1.0], [2.0], [3.0]])
    >>> assume_offers([0, 2, 2], items, catalogue=True).n_arms
    array([3, 3, 3])
    >>> assume_offers([0, 2, 2], items, instrument=["a", "b", "a"]).n_arms
    array([2, 1, 2])
    """
    picks, table, ids = _as_picks(chosen, items, arms)
    given = [availability is not None, instrument is not None, bool(catalogue)]
    if not any(given):
        raise InputError(f"no offers are given; {NO_OFFERS}")
    if sum(given) > 1:
        raise InputError("several assumptions about the offers are made: pass availability, instrument or catalogue")
    if catalogue:
        rows = FactoredRows(arms=ids, items=table, n_rounds=len(picks))
        offsets = np.arange(len(picks) + 1) * len(ids)
        return BanditLog(rows, offsets, picks, feature_names=feature_names)
    mask = (
        _supported(picks, instrument, len(ids)) if instrument is not None else _as_mask(availability, picks, len(ids))
    )
    return _offered(mask, picks, table, ids, feature_names)


def draw_offers(
    chosen: ArrayLike,
    items: ArrayLike,
    availability: ArrayLike,
    fit: Fit,
    *,
    arms: ArrayLike | None = None,
    n: int = 5,
    seed: int = 0,
    feature_names: Any = None,
) -> list[BanditLog]:
    """Logs with offers that are drawn where only their probabilities are known; `fit_draws` combines fits to them.

    `availability` has the probability that each arm was on offer, shape (K,) or (N, K), arms independently of each
    other. An arm that competes strongly was less likely on offer in a round that picked another: offers are drawn by
    how probable the pick is among them, under weights that `fit(log)` finds, in a few sweeps.

    Examples
    --------
    >>> from onlooker import SuffixImitation
    >>> items = np.arange(4.0)[:, None]
    >>> fit = lambda log: SuffixImitation(burn_in="naive").fit(log).theta_
    >>> len(draw_offers([3, 2, 3, 1, 3, 2] * 20, items, [0.9, 0.9, 0.5, 0.5], fit, n=2))
    2
    """
    picks, table, ids = _as_picks(chosen, items, arms)
    chances = np.asarray(availability, dtype=np.float64)
    if chances.shape not in {(len(ids),), (len(picks), len(ids))} or not ((chances >= 0) & (chances <= 1)).all():
        raise InputError("availability must hold probabilities, one per arm or one per round and arm")
    found = []
    for draw in range(as_whole(n, "n", least=1)):
        rng = np.random.default_rng([as_whole(seed, "seed"), draw])
        theta = np.zeros(table.shape[1])
        for _ in range(4):
            mask = _drawn_mask(np.broadcast_to(chances, (len(picks), len(ids))), picks, table @ theta, rng)
            log = _offered(mask, picks, table, ids, feature_names)
            with warnings.catch_warnings():
                # Warnings come from the fits to the drawn offers.
                warnings.simplefilter("ignore")
                theta = fit(log)
        found.append(log)
    return found


def _drawn_mask(chances: Matrix, picks: Index, scores: Vector, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Offers of every round, given its pick: of several sets one by how probable the pick is among its arms."""
    n, k = chances.shape
    found = np.empty((n, k), dtype=bool)
    weights = np.exp(scores - scores.max())
    step = max(1, PIECE // (TRIED * k))
    for start in range(0, n, step):
        part, here = chances[start : start + step], picks[start : start + step]
        tried = rng.random((len(part), TRIED, k)) < part[:, None]
        tried[np.arange(len(part)), :, here] = True
        pick = weights[here][:, None] / (tried @ weights)
        ends = np.cumsum(pick, axis=1)
        taken = (ends < rng.random((len(part), 1)) * ends[:, -1:]).sum(axis=1)
        found[start : start + step] = tried[np.arange(len(part)), np.minimum(taken, TRIED - 1)]
    return found


def _as_picks(chosen: ArrayLike, items: ArrayLike, arms: ArrayLike | None) -> tuple[Index, Matrix, NDArray[Any]]:
    table = np.asarray(items, dtype=np.float64)
    if table.ndim != 2:
        raise InputError(f"items has shape {table.shape}: pass one row per arm, shape (arms, features)")
    ids = np.arange(len(table)) if arms is None else np.asarray(arms)
    if ids.shape != (len(table),):
        raise InputError(f"arms has shape {ids.shape}, but items has {len(table)} rows: pass one id per row")
    picks = places(np.asarray(chosen).tolist(), ids)
    if (picks < 0).any():
        unknown = np.asarray(chosen).tolist()[int(np.flatnonzero(picks < 0)[0])]
        raise InputError(f"round {int(np.flatnonzero(picks < 0)[0])} picks {unknown!r}, which is not among the arms")
    return picks, table, ids


def _as_mask(availability: ArrayLike | None, picks: Index, n_arms: int) -> NDArray[np.bool_]:
    mask = np.asarray(availability)
    if mask.dtype != bool:
        raise InputError(
            "availability must be true or false for every round and arm: use draw_offers for probabilities"
        )
    if mask.shape != (len(picks), n_arms):
        raise InputError(f"availability has shape {mask.shape}: pass one row per round, {(len(picks), n_arms)}")
    absent = np.flatnonzero(~mask[np.arange(len(picks)), picks])
    if len(absent):
        raise InputError(f"round {absent[0]} picks an arm that `availability` says was not on offer")
    return mask


def _supported(picks: Index, instrument: ArrayLike, n_arms: int) -> NDArray[np.bool_]:
    """Arms that were picked in some round of the same value."""
    values = np.asarray(instrument)
    if values.shape != picks.shape:
        raise InputError(f"instrument has shape {values.shape}: pass one value for each of the {len(picks)} rounds")
    _, group = np.unique(values, return_inverse=True)
    seen = np.zeros((int(group.max()) + 1, n_arms), dtype=bool)
    seen[group, picks] = True
    if (seen == seen[0]).all() and len(seen) > 1 and not seen[0].all():
        raise InputError("the same arms are picked whatever the instrument is: it does not show what was on offer")
    return np.asarray(seen[group])


def _offered(mask: NDArray[np.bool_], picks: Index, table: Matrix, ids: NDArray[Any], feature_names: Any) -> BanditLog:
    """A log of what a mask says was on offer."""
    offsets = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.int64)
    which = np.nonzero(mask)[1]
    chosen = np.cumsum(mask, axis=1)[np.arange(len(picks)), picks] - 1
    rows = FactoredRows(arms=ids, items=table, which=which, bounds=offsets)
    return BanditLog(rows, offsets, chosen, feature_names=feature_names)
