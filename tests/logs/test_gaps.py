"""Stand-ins for rounds that were lost."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from onlooker import (
    BanditLog,
    DynamicImitation,
    Environment,
    InputError,
    LinUCB,
    TrackingObserver,
    direction_error,
    fill_gaps,
    simulate,
)
from onlooker.logs.gaps import lost_before, with_stand_ins


def _log(n: int = 6) -> BanditLog:
    sizes = np.arange(n) % 3 + 2
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    features = np.column_stack([np.repeat(np.arange(n), sizes), np.arange(offsets[-1])]).astype(float)
    return BanditLog(features, offsets, sizes - 1)


def test_stand_ins_are_picks_nearby() -> None:
    log = _log()
    filled, seen = with_stand_ins(log, np.array([1, 0, 4, 0, 0, 1]))
    assert filled.n_rounds == 12
    np.testing.assert_array_equal(np.flatnonzero(seen), [1, 2, 7, 8, 9, 11])
    assert (filled.n_arms[~seen] == 1).all()
    picks = filled.features[filled.chosen_rows]
    np.testing.assert_array_equal(picks[seen], log.features[log.chosen_rows])
    # Of four lost rounds two take after the two before, two after the two that follow.
    np.testing.assert_array_equal(picks[:, 0], [0, 0, 1, 1, 0, 3, 2, 2, 3, 4, 5, 5])


def test_nothing_lost_changes_nothing() -> None:
    log = _log()
    filled = fill_gaps(log, np.zeros(6))
    np.testing.assert_array_equal(filled.features, log.features)
    np.testing.assert_array_equal(filled.chosen, log.chosen)


def test_gaps_are_found_from_ids_and_times() -> None:
    log = _log(4)
    ids = BanditLog(log.features, log.offsets, log.chosen, round_ids=[3, 4, 9, 10])
    np.testing.assert_array_equal(lost_before(ids, "ids"), [0, 0, 4, 0])
    days = np.array(["2026-01-01", "2026-01-02", "2026-01-05", "2026-01-06"], dtype="datetime64[D]")
    dated = BanditLog(log.features, log.offsets, log.chosen, times=days)
    np.testing.assert_array_equal(lost_before(dated, "times"), [0, 0, 2, 0])


@pytest.mark.parametrize(
    ("gaps", "message"),
    [
        ("ids", "round ids that are whole numbers"),
        ("times", "needs a time of each round"),
        ("rounds", "use 'ids', 'times'"),
        ([1, 2], "one number for each of the 6"),
        ([0.5] * 6, "whole numbers"),
        ([-1] * 6, "whole numbers"),
        ([10**7] * 6, "rounds would be lost"),
    ],
)
def test_what_cannot_be_is_refused(gaps: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fill_gaps(_log(), gaps)  # type: ignore[arg-type]


def test_sets_keep_their_marks() -> None:
    log = BanditLog(np.eye(4), [0, 2, 4], None, possible=[True, True, False, True])
    filled = fill_gaps(log, [0, 2])
    np.testing.assert_array_equal(filled.n_arms, [2, 1, 1, 2])
    np.testing.assert_array_equal(filled.possible, [True, True, True, True, False, True])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [TrackingObserver, DynamicImitation])
def test_observers_move_on_over_gaps(kind: type) -> None:
    """Nine of ten rounds lost: an observer that knows it is nearer to the learner."""
    errors = []
    for seed in range(3):
        simulation = simulate(Environment(5, 10, seed=seed), LinUCB(), 1500, seed=seed)
        kept = np.flatnonzero(np.random.default_rng(seed).random(1500) > 0.9)
        log, gaps = simulation.log[kept], np.diff(kept, prepend=-1) - 1
        knowing, ignoring = kind().fit(log, gaps=gaps), kind().fit(log)
        errors.append([direction_error(one.theta_, simulation.theta_star) for one in (knowing, ignoring)])
        assert knowing.n_lost_ == gaps.sum()
        assert not any("a single arm" in text for text in knowing.warnings_)
    assert np.mean(errors, axis=0)[0] < np.mean(errors, axis=0)[1]


def test_propensities_are_those_of_the_rounds_that_were_seen() -> None:
    log = simulate(Environment(4, 6), LinUCB(), 400).log[::2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        observer = DynamicImitation().fit(log, gaps=np.ones(200))
    found = observer.propensities(log)
    assert found.shape == (len(log.features),)
    np.testing.assert_allclose(np.add.reduceat(found, log.offsets[:-1]), 1.0)
    assert np.log(found[log.chosen_rows]).sum() == pytest.approx(observer.evidence_)
