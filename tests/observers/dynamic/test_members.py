"""Offers as members of the bank take them: in units, with the time between rounds."""

import numpy as np
import pytest

from onlooker.base.errors import InputError
from onlooker.logs.log import BanditLog
from onlooker.observers import DynamicImitation
from onlooker.observers.dynamic.members import Clock, as_times, rows_in_units, spread_units


def small_log(seed=0, n_rounds=30, d=3):
    source = np.random.default_rng(seed)
    return BanditLog.from_dense(source.standard_normal((n_rounds, 4, d)), source.integers(0, 4, n_rounds))


def test_rows_have_no_mean_and_spread_one():
    log = small_log()
    shifted = BanditLog(log.dense * [1.0, 1e4, 1e-4] + [5.0, 1e6, 0.0], log.offsets, log.chosen)
    rows, _, units = rows_in_units(shifted, spread_units(shifted))
    np.testing.assert_allclose(np.add.reduceat(rows, log.offsets[:-1]), 0.0, atol=1e-6)
    np.testing.assert_allclose(np.sqrt((rows**2).mean(axis=0)), 1.0)
    np.testing.assert_allclose(rows, rows_in_units(log, spread_units(log))[0], atol=1e-7)
    assert units.shape == (3,)


@pytest.mark.parametrize("scale", [1e-140, 1e-90, 1e90, 1e140])
def test_units_are_those_of_the_features_whatever_their_scale(scale):
    log = small_log()
    scaled = BanditLog(log.dense * scale, log.offsets, log.chosen)
    np.testing.assert_allclose(spread_units(scaled) / scale, spread_units(log))


@pytest.mark.parametrize("scale", [1e-160, 1e160, 1e250])
def test_units_whose_squares_are_no_numbers_are_refused(scale):
    log = small_log()
    with pytest.raises(InputError, match=r"feature 'x0' reaches .*: rescale it to values nearer to 1"):
        spread_units(BanditLog(log.dense * scale, log.offsets, log.chosen))


def test_a_rare_feature_is_not_taken_for_a_small_one():
    features = np.zeros((400, 1))
    features[7] = 1.0
    unit = spread_units(BanditLog(features, np.arange(0, 401, 4), np.zeros(100, dtype=int)))[0]
    assert unit == pytest.approx(0.65 / 8, rel=0.05)


def test_a_late_feature_gets_its_unit_when_it_first_differs():
    log = small_log(d=2)
    features = np.array(log.dense)
    features[: 4 * 20, 1] = 7.0
    late = BanditLog(features, log.offsets, log.chosen)
    units = spread_units(late[:20])
    assert np.isinf(units[1])
    rows, _, after = rows_in_units(late[20:], units)
    assert after[1] == spread_units(late[20:21])[1]
    assert np.abs(rows[:, 1]).max() > 0.1
    np.testing.assert_array_equal(rows_in_units(late[:20], units)[0][:, 1], 0.0)


def test_a_value_out_of_all_proportion_is_refused():
    log = small_log()
    features = np.array(log.dense)
    features[41, 1] = 1e100
    with pytest.raises(InputError, match=r"reaches 1e\+100.*check that value"):
        rows_in_units(BanditLog(features, log.offsets, log.chosen), spread_units(log))


def test_gaps_of_parts_are_those_of_the_whole():
    times = np.cumsum(np.random.default_rng(0).exponential(60.0, 50))
    whole, _ = Clock().gaps(50, times)
    first, clock = Clock().gaps(20, times[:20])
    second, clock = clock.gaps(30, times[20:])
    np.testing.assert_array_equal(np.concatenate([first, second]), whole)
    assert clock.n_rounds == 50


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([3.0, 2.0, 4.0], "times go back at round 1"),
        ([1.0, 2.0], "pass one for each of the 3 rounds"),
        ([1.0, np.nan, 2.0], "time of round 1 is missing"),
        (["a", "b", "c"], "neither numbers nor dates"),
    ],
)
def test_times_are_checked(times, message):
    log = small_log(n_rounds=3)
    with pytest.raises(InputError, match=message):
        Clock().gaps(3, as_times(times, log))


def test_dates_are_times():
    log = small_log(n_rounds=3)
    dates = np.array(["2020-01-01", "2020-01-02", "2020-01-04"], dtype="datetime64[D]")
    gaps, _ = Clock().gaps(3, as_times(dates, log))
    np.testing.assert_allclose(gaps, [1.0, 1.0, 4 / 3])


def test_times_for_some_rounds_alone_are_refused():
    _, clock = Clock().gaps(3, np.array([1.0, 2.0, 3.0]))
    with pytest.raises(InputError, match="pass times for all rounds or for none"):
        clock.gaps(3, None)


def test_one_value_far_out_sets_no_unit_and_a_rare_feature_keeps_its_own():
    log = small_log(n_rounds=100)
    features = log.dense.copy()
    features[0, 0] = 1e4
    far = BanditLog(features, log.offsets, log.chosen)
    assert spread_units(far)[0] < 20 * spread_units(log)[0]
    features[:, 1] = 0.0
    features[5, 1] = 1.0
    assert spread_units(BanditLog(features, log.offsets, log.chosen))[1] > 0.05


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
@pytest.mark.parametrize("n_rounds", [5, 300])
def test_rounds_without_a_choice_make_a_state_that_loads(tmp_path, n_rounds):
    features = np.random.default_rng(n_rounds).standard_normal((n_rounds, 3))
    log = BanditLog(features, np.arange(n_rounds + 1), np.zeros(n_rounds, dtype=int))
    DynamicImitation().fit(log).save(tmp_path / "state.json")
    assert DynamicImitation.load(tmp_path / "state.json").n_rounds_ == n_rounds
