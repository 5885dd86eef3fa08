"""What real logs do besides: a few of each kind that `benchmarks/diagnosis.py` counts in hundreds."""

import sys
from pathlib import Path

import numpy as np
import pytest

from onlooker import BanditLog, diagnose

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from diagnosis_kinds import KINDS, lapsed, sampled, unit

QUICK = ("far", "outside", "far-random", "slow-short", "sticky-fixed", "habit", "random-binary", "two", "per-arm-3")


@pytest.mark.parametrize("name", QUICK)
def test_no_false_alarm(name):
    states = [diagnose(KINDS[name].make(seed)).verdict for seed in range(3)]
    assert set(states) <= set(KINDS[name].right)


@pytest.mark.parametrize("name", ["turn-greedy", "abrupt", "gradient"])
def test_changes_and_movement_are_found(name):
    found = diagnose(KINDS[name].make(7))
    assert found.values.state == found.verdict
    assert found.verdict in KINDS[name].right
    if name != "gradient":
        half = found.n_rounds // 2
        assert abs(found.values.changed_at - half) < 0.02 * found.n_rounds
        assert found.changed.low <= half <= found.changed.high


def test_random_picks_are_exploration():
    found = diagnose(KINDS["random"].make(1))
    assert (found.values.state, found.values.since, found.exploration.trend) == ("stable", 0, "steady")
    # Every tenth random pick is the best arm.
    assert found.exploration.low <= 0.18 <= found.exploration.high
    more = diagnose(KINDS["random-more"].make(1))
    assert (more.values.state, more.exploration.trend) == ("stable", "rising")
    assert more.exploration.low <= 0.36 <= more.exploration.high
    assert "a rising share" in more.sentence


def test_fewer_random_picks_are_no_change():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2000, 8, 4))
    picks = lapsed((X @ unit(rng, 4)).argmax(axis=1), np.where(np.arange(2000) < 1300, 0.4, 0.02), 8, rng)
    found = diagnose(BanditLog.from_dense(X, picks))
    assert (found.values.state, found.exploration.trend) == ("stable", "falling")


@pytest.mark.parametrize(("decisiveness", "n_rounds"), [(1.0, 1000), (4.0, 600)])
def test_stochastic_picks_are_exploration(decisiveness, n_rounds):
    shown = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n_rounds, 5, 4))
        scores = decisiveness * X @ unit(rng, 4)
        picks = sampled(scores, rng)
        found = diagnose(BanditLog.from_dense(X, picks)).exploration
        now = slice(round(0.7 * n_rounds), None)
        shown.append(found.low <= (picks != scores.argmax(axis=1))[now].mean() <= found.high)
    assert all(shown)


def test_a_habit_of_position_is_a_note():
    assert any("repeat the position" in note for note in diagnose(KINDS["sticky"].make(2)).notes)
    assert not any("repeat the position" in note for note in diagnose(KINDS["two"].make(2)).notes)


def test_a_small_change_of_a_long_log_is_a_note():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12_000, 6, 3))
    first, other = np.eye(3)[:2]
    second = np.cos(0.11) * first + np.sin(0.11) * other
    scores = np.where(np.arange(12_000)[:, None] < 6000, X @ first, X @ second)
    found = diagnose(BanditLog.from_dense(X, sampled(3 * scores, rng)))
    assert found.verdict == "stable"
    assert any("slight change" in note for note in found.notes)
