"""Masks: what is lost of a log, with the truth beside it."""

from __future__ import annotations

import numpy as np
import pytest

from onlooker import BanditLog, Environment, InputError, LinUCB, Mask, SuffixImitation, simulate


@pytest.fixture(scope="module")
def log() -> BanditLog:
    return simulate(Environment(4, 9, seed=1), LinUCB(), 800, seed=1).log


def test_groups_hold_the_pick_and_are_alike_in_size(log: BanditLog) -> None:
    masked = Mask(groups=3)(log, seed=1)
    assert masked.log.n_sets == 800
    assert masked.log.possible[log.chosen_rows].all()
    assert (np.add.reduceat(masked.log.possible, log.offsets[:-1], dtype=int) == 3).all()
    assert masked.truth is log
    np.testing.assert_array_equal(masked.gaps, 0)
    fixed = Mask(groups=[0, 0, 0, 1, 1, 1, 2, 2, 2])(log)
    np.testing.assert_array_equal(fixed.log.possible.reshape(-1, 9)[0], np.arange(9) // 3 == log.chosen[0] // 3)


def test_some_picks_may_stay_seen(log: BanditLog) -> None:
    assert 0.2 < Mask(groups=3, seen=0.75)(log).log.n_sets / 800 < 0.3


@pytest.mark.parametrize(
    "mask",
    [
        Mask(groups=3),
        Mask(keep_offers=4),
        Mask(keep_offers=4, favour=[1.0, 0, 0, 0]),
        Mask(lose=0.5),
        Mask(lose=0.5, stretches=50),
        Mask(lose=0.5, lose_by=[1.0, 0, 0, 0]),
        Mask(hide={1: 0.02}),
        Mask(groups=2, keep_offers=6, lose=0.3, hide={1: 0.02}),
    ],
)
def test_the_same_seed_gives_the_same_and_another_another(log: BanditLog, mask: Mask) -> None:
    one, again, other = mask(log, 3), mask(log, 3), mask(log, 4)
    for name in ("features", "possible", "offer_probability", "offsets"):
        np.testing.assert_array_equal(getattr(one.log, name), getattr(again.log, name))
    np.testing.assert_array_equal(one.rounds, again.rounds)
    same = [
        np.array_equal(getattr(one.log, name), getattr(other.log, name)) for name in ("features", "possible", "offsets")
    ]
    assert not all(same)


def test_rounds_are_lost_as_asked(log: BanditLog) -> None:
    masked = Mask(lose=0.6)(log)
    assert masked.log.n_rounds == pytest.approx(320, abs=50)
    np.testing.assert_array_equal(masked.rounds, np.cumsum(masked.gaps + 1) - 1)
    np.testing.assert_array_equal(masked.log.features, log[masked.rounds].features)
    stretches = Mask(lose=0.6, stretches=100)(log, 1)
    assert set(np.unique(stretches.gaps[1:]) % 100) == {0}
    by_pick = Mask(lose=0.6, lose_by=[1.0, 0.0, 0.0, 0.0])(log)
    picked = by_pick.log.features[by_pick.log.chosen_rows, 0]
    assert picked.mean() > log.features[log.chosen_rows, 0].mean() + 0.1
    assert np.corrcoef(picked, by_pick.round_probability)[0, 1] > 0.8
    # Kept with the stated probability: the sum of inverse probabilities is about the number of rounds.
    assert (1 / by_pick.round_probability).sum() == pytest.approx(800, rel=0.15)


def test_hidden_features_are_missing_and_the_rest_is_as_it_was(log: BanditLog) -> None:
    masked = Mask(hide={2: 0.1})(log)
    gaps = np.isnan(masked.features)
    assert gaps[:, 2].mean() == pytest.approx(0.1, abs=0.02)
    assert not gaps[:, [0, 1, 3]].any()
    np.testing.assert_array_equal(masked.features[~gaps], np.asarray(log.features, dtype=float)[~gaps])
    assert all(one.n_rounds == 800 for one in masked.draws(2))
    assert masked.log.n_rounds < 800
    assert Mask(hide={2: 1.0})(log).log.n_rounds == 0


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (Mask(lose=1.0), "leaves no round"),
        (Mask(lose=2.0), "lose is 2"),
        (Mask(groups=[0, 1]), "groups has 2 positions"),
        (Mask(hide={9: 0.1}), "hide names feature 9"),
        (Mask(keep_offers=4, favour=[1.0]), "favour has shape"),
    ],
)
def test_what_cannot_be_is_refused(log: BanditLog, mask: Mask, message: str) -> None:
    with pytest.raises(InputError, match=message):
        mask(log)


def test_what_is_masked_already_is_refused(log: BanditLog) -> None:
    with pytest.raises(InputError, match="known only in part already"):
        Mask(groups=3)(Mask(groups=3)(log).log)
    with pytest.raises(InputError, match="no feature is hidden"):
        Mask(groups=3)(log).draws()


@pytest.mark.filterwarnings("ignore")
def test_a_masked_log_can_be_fitted(log: BanditLog) -> None:
    masked = Mask(groups=3, keep_offers=7, lose=0.2)(log, 5)
    observer = SuffixImitation(burn_in="naive").fit(masked.log)
    full = SuffixImitation(burn_in="naive").fit(log)
    assert np.corrcoef(observer.theta_, full.theta_)[0, 1] > 0.95
