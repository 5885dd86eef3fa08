"""Intervals and tests against SciPy, statsmodels and closed forms."""

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.weightstats import DescrStatsW

from onlooker.base.errors import InputError
from onlooker.experiments.statistics import (
    mean,
    p_of_chosen,
    paired_difference,
    paired_ratio,
    power_slope,
    spearman,
    spread_ratio,
)

RNG = np.random.default_rng(0)
A, B = RNG.lognormal(size=(2, 20))


def test_the_mean_and_its_interval_are_those_of_statsmodels():
    found = mean(A, against=1.5)
    described = DescrStatsW(A)
    assert (found.low, found.high) == pytest.approx(described.tconfint_mean(0.05))
    assert found.value == pytest.approx(A.mean())
    assert found.p_below == pytest.approx(described.ttest_mean(1.5, "smaller")[1])
    assert found.p_above == pytest.approx(described.ttest_mean(1.5, "larger")[1])


def test_one_seed_has_a_mean_and_no_interval():
    found = mean([2.0])
    assert found.value == 2.0
    assert all(math.isnan(value) for value in (found.low, found.high, found.p_below, found.p_above))


@pytest.mark.parametrize(("value", "p_below"), [(-1.0, 0.0), (0.0, 0.5), (1.0, 1.0)])
def test_seeds_that_agree_leave_no_doubt(value, p_below):
    found = mean([value] * 4)
    assert (found.low, found.value, found.high) == (value, value, value)
    assert (found.p_below, found.p_above) == (p_below, 1 - p_below)


def test_a_paired_difference_is_scipys_paired_t_test():
    found = paired_difference(A, B)
    for alternative, p in (("less", found.p_below), ("greater", found.p_above)):
        assert p == pytest.approx(stats.ttest_rel(A, B, alternative=alternative).pvalue)
    interval = stats.ttest_rel(A, B).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_a_ratio_is_a_difference_of_logarithms():
    found, logs = paired_ratio(A, B), paired_difference(np.log(A), np.log(B))
    assert found.value == pytest.approx(stats.gmean(A / B))
    assert (found.low, found.high) == pytest.approx((math.exp(logs.low), math.exp(logs.high)))
    assert found.p_below == logs.p_below


def test_the_spread_ratios_test_is_the_correlation_of_sum_and_difference():
    first, second = 1.7 * A + 0.3 * B, B
    found = spread_ratio(first, second)
    for alternative, p in (("less", found.p_below), ("greater", found.p_above)):
        assert p == pytest.approx(stats.pearsonr(first + second, first - second, alternative=alternative).pvalue)
    assert found.value == pytest.approx(first.std() / second.std())


def test_the_spread_ratios_interval_ends_where_the_two_sided_test_turns():
    found = spread_ratio(A, B)
    for end in (found.low, found.high):
        assert 2 * min(spread_ratio(A / end, B).p_below, spread_ratio(A / end, B).p_above) == pytest.approx(0.05)


def test_the_spread_ratios_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(1)
    shared, own = rng.normal(size=(2, 2000, 20))
    found = [spread_ratio(2 * (a + b), a - 0.5 * b) for a, b in zip(shared, own, strict=True)]
    truth = 2 * math.sqrt(2) / math.sqrt(1.25)
    covered = np.mean([estimate.low <= truth <= estimate.high for estimate in found])
    assert 0.935 < covered < 0.965


def test_values_without_spread_have_no_ratio_of_spreads():
    assert math.isnan(spread_ratio([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]).value)
    assert math.isnan(spread_ratio([1.0, 2.0], [1.0, 3.0]).value)


def test_one_candidate_needs_no_correction():
    for seeds in (8, 20):  # all flips, then some of them
        sample = np.random.default_rng(seeds).normal(-0.5, 1, size=seeds)
        exact = stats.permutation_test((sample,), np.mean, permutation_type="samples", alternative="less")
        assert p_of_chosen(sample[:, None], 0) == pytest.approx(exact.pvalue, abs=0.01)


def test_candidates_that_are_all_the_same_cost_nothing_and_others_do():
    rng = np.random.default_rng(0)
    sample = rng.normal(-0.5, 1, size=(12, 1))
    alone = p_of_chosen(sample, 0)
    assert p_of_chosen(np.repeat(sample, 20, axis=1), 7) == alone
    assert p_of_chosen(np.hstack([sample, rng.normal(size=(12, 20))]), 0) > alone


@pytest.mark.parametrize("alike", [0.0, 0.9])
def test_choosing_among_columns_of_noise_is_significant_as_seldom_as_it_says(alike):
    rng = np.random.default_rng(0)
    found = []
    for _ in range(600):
        noise = rng.normal(size=(12, 19)) + alike / (1 - alike) * rng.normal(size=(12, 1))
        found.append(p_of_chosen(noise, int(noise.mean(axis=0).argmin())) < 0.05)
    assert 0.02 < np.mean(found) < 0.07


def test_a_slope_is_the_mean_of_the_seeds_least_squares_slopes():
    sizes = np.array([500, 1000, 2000, 5000, 10000])
    values = RNG.lognormal(sigma=0.1, size=(20, 5)) * sizes**-0.5
    slopes = [stats.linregress(np.log(sizes), np.log(row)).slope for row in values]
    found = power_slope(sizes, values, against=-0.4)
    assert found.value == pytest.approx(np.mean(slopes))
    assert (found.low, found.high) == pytest.approx(DescrStatsW(slopes).tconfint_mean(0.05))
    assert found.p_below == pytest.approx(stats.ttest_1samp(slopes, -0.4, alternative="less").pvalue)


def test_the_papers_rank_correlation_and_p_go_together_with_ten_bins():
    # Of ten ranks with r = 0.9273 (a sum of squared differences of 12): its printed p is 1.12e-4.
    order = [1, 0, 3, 2, 5, 4, 8, 6, 7, 9]
    assert sum((i - rank) ** 2 for i, rank in enumerate(order)) == 12
    r, p = spearman(range(10), order)
    assert r == pytest.approx(0.9273, abs=5e-5)
    assert p == pytest.approx(1.12e-4, abs=5e-7)


def test_ranks_that_do_not_vary_have_no_correlation():
    assert all(map(math.isnan, spearman([0, 1, 2, 3], [0.5] * 4)))
    assert all(map(math.isnan, spearman([0, 1], [0.5, 0.6])))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean([]), "at least one value"),
        (lambda: mean([1.0, math.nan]), "finite numbers"),
        (lambda: paired_difference([1.0, 2.0], [1.0]), "2 values cannot be paired with 1"),
        (lambda: paired_ratio([1.0, 0.0], [1.0, 1.0]), "0 has no logarithm"),
        (lambda: p_of_chosen([[1.0, 2.0]], 0), "at least two seeds"),
        (lambda: power_slope([100, 100], [[1.0, 2.0]]), "no slope"),
        (lambda: power_slope([100, 200], [1.0, 2.0]), "no slope"),
    ],
)
def test_what_cannot_be_judged_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
