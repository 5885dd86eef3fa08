"""Picks that no feature explains: uniformly random, or not."""

import numpy as np
import pytest

from onlooker import BanditLog, diagnose

N, K = 2000, 5


def offers(seed):
    return np.random.default_rng(seed).normal(size=(N, K, 3))


def picks_by(rule, seed):
    rng = np.random.default_rng(100 + seed)
    return {
        "the first": np.zeros(N, dtype=int),
        "in turn": np.arange(N) % K,
        "rarely the last": rng.choice(K, p=[0.3, 0.25, 0.2, 0.15, 0.1], size=N),
    }[rule]


@pytest.mark.parametrize("rule", ["the first", "in turn", "rarely the last"])
@pytest.mark.parametrize("seed", range(3))
def test_picks_by_position_are_not_called_random(rule, seed):
    found = diagnose(BanditLog.from_dense(offers(seed), picks_by(rule, seed)))
    assert found.verdict == "no preference"
    assert "They are not uniformly random, though" in found.sentence
    assert "better than chance" not in found.sentence


@pytest.mark.parametrize("seed", range(6))
def test_a_favourite_arm_is_no_preference_for_a_context(seed):
    # Seed 1 has contexts that lean to one side by chance, which uniform picks would hardly ever follow.
    contexts = np.random.default_rng(seed).normal(size=(N, 4))
    found = diagnose(BanditLog.from_contexts(contexts, np.zeros(N, dtype=int), arms=list(range(K))))
    assert found.verdict == "no preference"
    assert found.exploration.share is None
    assert found.stability == ()
    assert "100.0% of them are at position 0" in found.sentence


def test_offers_in_the_order_of_what_is_valued_show_a_preference():
    rows = offers(0)
    rows = np.take_along_axis(rows, np.argsort(-rows[:, :, :1], axis=1), axis=1)
    found = diagnose(BanditLog.from_dense(rows, np.zeros(N, dtype=int)))
    assert found.verdict == "stable"


def test_a_favourite_arm_beside_a_preference_is_one():
    rng = np.random.default_rng(3)
    rows = offers(3)
    picks = (2 * rows[:, :, 0] + [3, 0, 0, 0, 0] + rng.gumbel(size=(N, K))).argmax(axis=1)
    assert diagnose(BanditLog.from_dense(rows, picks)).verdict == "stable"


def test_the_share_of_exploration_lies_within_its_interval():
    rows = np.random.default_rng(1).normal(size=(N, 2, 3))
    found = diagnose(BanditLog.from_dense(rows, (rows @ [3.0, 1.0, 0.0]).argmax(axis=1))).exploration
    assert found.low <= found.share <= found.high
