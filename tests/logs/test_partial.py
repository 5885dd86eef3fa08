"""Logs that know picks only to a set, or offers only by a sample: what they keep, and what they refuse."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from onlooker import BanditLog, InputError


def _log(seed: int = 0, n: int = 30) -> BanditLog:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 6, size=n)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    possible = rng.random(offsets[-1]) < 0.5
    possible[offsets[:-1]] = True
    chances = rng.uniform(0.1, 1.0, size=offsets[-1])
    return BanditLog(
        rng.normal(size=(offsets[-1], 3)),
        offsets,
        None,
        possible=possible,
        offer_probability=chances,
        round_ids=np.arange(n),
        arm_ids=np.arange(offsets[-1]),
    )


def _same(one: BanditLog, other: BanditLog) -> None:
    for name in ("offsets", "chosen_or_unknown", "possible", "offer_probability", "round_ids", "arm_ids"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.features, other.features)


def test_sets_of_one_arm_are_picks_that_were_seen() -> None:
    log = BanditLog(np.eye(4), [0, 2, 4], None, possible=[False, True, True, False])
    assert log.possible is None
    assert log.n_sets == 0
    np.testing.assert_array_equal(log.chosen, [1, 0])


def test_a_log_of_sets_refuses_to_name_its_picks() -> None:
    log = BanditLog(np.eye(4), [0, 2, 4], [0, 1], possible=[True, True, False, True])
    assert log.n_sets == 1
    np.testing.assert_array_equal(log.chosen_or_unknown, [-1, 1])
    for needed in (lambda: log.chosen, lambda: log.chosen_rows):
        with pytest.raises(InputError, match="in 1 of 2 rounds only a set of arms is known"):
            needed()


def test_slices_gathers_joins_and_copies_keep_what_is_known() -> None:
    log = _log()
    _same(BanditLog.concat([log[:11], log[11:]]), log)
    _same(log[np.arange(30)], log)
    _same(pickle.loads(pickle.dumps(log)), log)
    _same(copy.deepcopy(log), log)
    _same(log.with_features(np.asarray(log.features)), log)
    part = log[5:9]
    first, last = log.offsets[5], log.offsets[9]
    np.testing.assert_array_equal(part.offer_probability, log.offer_probability[first:last])


def test_a_slice_whose_picks_are_all_seen_is_an_ordinary_log() -> None:
    log = BanditLog(np.eye(4), [0, 2, 4], None, possible=[True, True, False, True])
    assert log[1:].possible is None
    np.testing.assert_array_equal(log[1:].chosen, [1])
    joined = BanditLog.concat([log[1:], log[:1]])
    np.testing.assert_array_equal(joined.possible, [False, True, True, True])


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({}, "chosen is None"),
        ({"possible": [True, True]}, "one mark for each of the 4"),
        ({"possible": [True, True, False, False]}, "round 1 has no possible pick"),
        ({"possible": [0, 2, 1, 0]}, "true or false"),
        ({"possible": ["a", "b", "c", "d"]}, "true or false"),
        ({"possible": [1, 1, 1, 0], "offer_probability": [0.5, 0.0, 1, 1]}, "above 0 and at most 1"),
        ({"possible": [1, 1, 1, 0], "offer_probability": [0.5, np.nan, 1, 1]}, "above 0 and at most 1"),
        ({"possible": [1, 1, 1, 0], "offer_probability": [0.5]}, "one for each of the 4"),
        ({"possible": [1, 1, 1, 0], "offer_probability": ["x"] * 4}, "not numbers"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(known: dict[str, list[object]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        BanditLog(np.eye(4), [0, 2, 4], None, **known)


def test_a_pick_outside_its_set_is_refused() -> None:
    with pytest.raises(InputError, match="round 1 picks position 0"):
        BanditLog(np.eye(4), [0, 2, 4], [0, 0], possible=[True, True, False, True])


def test_picks_that_are_said_to_be_kept_for_certain() -> None:
    """The row of a pick needs the probability it would have had; where the others agree, that is known."""
    log = BanditLog(np.eye(4), [0, 2, 4], [0, 1], offer_probability=[1.0, 0.2, 0.3, 1.0])
    np.testing.assert_array_equal(log.offer_probability, [0.2, 0.2, 0.3, 0.3])
    with pytest.raises(InputError, match="had another arm been picked"):
        BanditLog(np.eye(6), [0, 3, 6], [0, 1], offer_probability=[1.0, 0.2, 0.5, 0.3, 1.0, 0.3])


def test_repr_says_what_is_known_in_part() -> None:
    assert "picks known to a set, sampled offers" in repr(_log())
