"""Picks without offers: refused with the reason, and recovered under each of three assumptions where it holds."""

from __future__ import annotations

import numpy as np
import pytest

from onlooker import BanditLog, InputError, SuffixImitation, assume_offers, draw_offers, fit_draws

THETA = np.array([1.0, -0.8])
K = 12


def _fit(log: BanditLog) -> np.ndarray:
    return SuffixImitation(burn_in="naive", l2=1e-6).fit(log).theta_


def _world(seed: int, n: int, chances: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Items, what was on offer in each round, and what was picked of it."""
    rng = np.random.default_rng(seed)
    items = rng.normal(size=(K, 2))
    offered = rng.random((n, K)) < chances
    offered[np.arange(n), rng.integers(0, K, size=n)] = True
    scores = np.where(offered, items @ THETA + rng.gumbel(size=(n, K)), -np.inf)
    return items, offered, scores.argmax(axis=1)


def test_picks_alone_are_refused_with_the_three_ways_out() -> None:
    items, _, chosen = _world(0, 50, np.full(K, 0.5))
    with pytest.raises(InputError, match=r"picks alone cannot .* `availability` .* `instrument` .* catalogue=True"):
        assume_offers(chosen, items)
    alone = BanditLog(items[chosen], np.arange(51), np.zeros(50, dtype=int))
    with pytest.raises(InputError, match="assume_offers"):
        SuffixImitation(burn_in="naive").fit(alone)


def test_a_known_mask_gives_the_log_as_it_was() -> None:
    items, offered, chosen = _world(1, 1500, np.full(K, 0.5))
    log = assume_offers(chosen, items, availability=offered, feature_names=["a", "b"])
    np.testing.assert_array_equal(log.n_arms, offered.sum(axis=1))
    np.testing.assert_array_equal(log.arm_ids[log.chosen_rows], chosen)
    np.testing.assert_allclose(_fit(log), THETA, atol=0.12)


def test_the_catalogue_is_right_where_all_arms_were_there_and_wrong_where_not() -> None:
    items, _, chosen = _world(2, 2000, np.ones(K))
    log = assume_offers([f"i{one}" for one in chosen], items, arms=[f"i{one}" for one in range(K)], catalogue=True)
    assert (log.n_arms == K).all()
    np.testing.assert_allclose(_fit(log), THETA, atol=0.12)
    rare = np.where(np.arange(K) % 2, 0.9, 0.1)
    items, _, chosen = _world(2, 2000, rare)
    assert np.abs(_fit(assume_offers(chosen, items, catalogue=True)) - THETA).max() > 0.15


def test_an_instrument_shows_what_was_on_offer() -> None:
    """Twenty shops with some of the arms each, the same every day: which are there is learned from what was picked."""
    rng = np.random.default_rng(3)
    items = rng.normal(size=(K, 2))
    shops = rng.random((20, K)) < 0.5
    shop = rng.integers(0, 20, size=4000)
    scores = np.where(shops[shop], items @ THETA + rng.gumbel(size=(4000, K)), -np.inf)
    chosen = scores.argmax(axis=1)
    log = assume_offers(chosen, items, instrument=shop)
    np.testing.assert_allclose(_fit(log), THETA, atol=0.15)
    ignoring = _fit(assume_offers(chosen, items, catalogue=True))
    assert np.linalg.norm(_fit(log) - THETA) < np.linalg.norm(ignoring - THETA)


def test_an_instrument_that_shows_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="does not show what was on offer"):
        assume_offers([0, 1, 0, 1], np.eye(3), instrument=["a", "a", "b", "b"])


def test_probabilities_of_offers_are_enough_where_the_pick_is_taken_into_account() -> None:
    rare = np.where(np.arange(K) % 2, 0.9, 0.25)
    found, naive = [], []
    for seed in range(4):
        items, _, chosen = _world(seed, 1500, rare)
        logs = draw_offers(chosen, items, rare, _fit, n=3, seed=seed)
        found.append(fit_draws(SuffixImitation(burn_in="naive", l2=1e-6), logs).theta_)
        naive.append(_fit(assume_offers(chosen, items, catalogue=True)))
    errors = [np.linalg.norm(np.array(one) - THETA, axis=1).mean() for one in (found, naive)]
    assert errors[0] < 0.6 * errors[1]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"catalogue": True, "instrument": [1, 1]}, "several assumptions"),
        ({"availability": np.ones((2, 2))}, "use draw_offers"),
        ({"availability": np.ones((2, 2), dtype=bool)}, "one row per round"),
        ({"availability": np.zeros((2, 3), dtype=bool)}, "was not on offer"),
        ({"instrument": [1]}, "one value for each"),
    ],
)
def test_what_cannot_be_is_refused(more: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        assume_offers([0, 1], np.eye(3), **more)


def test_unknown_arms_are_refused() -> None:
    with pytest.raises(InputError, match="round 1 picks 7"):
        assume_offers([0, 7], np.eye(3), catalogue=True)
