"""The parts of a diagnosis, each against something else."""

import numpy as np
import pytest
from scipy.stats import kstest
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from onlooker.diagnosis import diagnose
from onlooker.diagnosis.findings import find_choices, find_preference
from onlooker.diagnosis.movement import _posterior
from onlooker.diagnosis.predictability import difference, find_settling, proportion
from onlooker.diagnosis.verdict import p_in_words
from onlooker.evaluation.metrics import agreement
from onlooker.imitation.stretches import Predicted, cross_predict, edges, held_out_hits, imitate, predict
from onlooker.logs.log import BanditLog
from onlooker.logs.policy import LinearPolicy
from onlooker.observers import SuffixImitation
from onlooker.simulation.environment import Environment
from onlooker.simulation.learners import LinUCB, UniformRandom
from onlooker.simulation.play import simulate


@pytest.fixture(scope="module")
def log():
    return simulate(Environment(4, (2, 8), seed=2), LinUCB(), 1000, seed=2).log


@pytest.fixture(scope="module")
def found(log):
    return diagnose(log, 5)


@pytest.mark.parametrize(("n", "hits"), [(40, 0), (40, 40), (80, 56), (7, 3)])
def test_proportions_by_statsmodels(n, hits):
    mine = proportion(np.arange(n) < hits, 0.9)
    assert np.allclose([mine.low, mine.high], proportion_confint(hits, n, alpha=0.1, method="wilson"))
    gap = difference(np.arange(n) < hits, np.arange(60) < 21, 0.9)
    theirs = confint_proportions_2indep(hits, n, 21, 60, method="newcomb", alpha=0.1)
    assert np.allclose([gap.low, gap.high], theirs)


def test_the_policies_are_suffix_imitation(log):
    train, test = np.arange(0, 800), np.arange(800, 1000)
    observer = SuffixImitation(burn_in="naive").fit(log[train])
    assert np.array_equal(held_out_hits(log, train, test), observer.predict(log[test]) == log.chosen[test])


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
def test_no_round_is_predicted_by_a_policy_that_has_seen_it(log):
    predicted = cross_predict(log, 700, imitate(log[700:]).theta)
    for fold in (0, 3):
        seen = [t for t in range(700, 1000) if t % 5 != fold]
        theta = SuffixImitation(burn_in="naive").fit(log[seen]).theta_
        rest = log[fold::5]
        assert np.array_equal(predicted.hits[fold::5], LinearPolicy(theta).choose(rest) == rest.chosen)
        probabilities = LinearPolicy(theta).probabilities(rest)
        assert np.allclose(predicted.given[fold::5], probabilities[rest.chosen_rows], atol=1e-3)


def test_a_policy_that_makes_the_picks_attains_what_it_expects():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20_000, 5, 2))
    theta = np.array([1.0, -0.5])
    predicted = predict(BanditLog.from_dense(X, (X @ theta + rng.gumbel(size=(20_000, 5))).argmax(axis=1)), theta)
    away = predicted.given - predicted.expected
    assert abs(away.mean()) < 4 * away.std() / 20_000**0.5


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
def test_matrix_and_bins_by_hand(log, found):
    choices = log[np.flatnonzero(log.n_arms > 1)]
    bounds = edges(choices.n_rounds, 5)
    for i in range(5):
        theta = SuffixImitation(burn_in="naive").fit(choices[bounds[i] : bounds[i + 1]]).theta_
        for j in range(5):
            if i != j:
                part = choices[bounds[j] : bounds[j + 1]]
                assert found.matrix[i][j] == pytest.approx(agreement(theta, part), abs=0.011)
        assert found.matrix[i][i] == found.bins[i].own.value
    assert [b.start for b in found.bins[1:]] == [b.stop for b in found.bins[:-1]]
    assert sum(b.choices for b in found.bins) == choices.n_rounds == found.n_choices


def test_score_statistic_by_hand():
    rng = np.random.default_rng(0)
    X, picks = rng.normal(size=(300, 4, 2)), rng.integers(0, 4, size=300)
    centred = X - X.mean(axis=1, keepdims=True)
    score = centred[np.arange(300), picks].sum(axis=0)
    information = np.einsum("nki,nkj->ij", centred, centred) / 4
    mine = find_preference(BanditLog.from_dense(X, picks), [0, 150, 300])
    assert mine.whole == pytest.approx(score @ np.linalg.solve(information, score))
    assert (mine.rank, mine.freedom) == (2, 4)


def test_preference_p_values_are_uniform_under_uniform_picks():
    logs = [simulate(Environment(5, 8, seed=s), UniformRandom(), 300, seed=s).log for s in range(150)]
    tests = [find_preference(log, edges(300, 6)) for log in logs]
    assert kstest([test.whole_p for test in tests], "uniform").pvalue > 0.01
    assert kstest([test.binned_p for test in tests], "uniform").pvalue > 0.01


def test_p_value_of_a_rise_holds_its_level():
    chance = np.full(1000, 0.2)
    found = []
    for seed in range(150):
        given = np.random.default_rng(seed).uniform(0.2, 1.0, size=1000)
        predicted = Predicted(hits=given > 0.5, given=given, expected=np.full(1000, 0.6))
        found.append(find_settling(predicted, chance, 0.95).rise_p)
    assert 0.0 <= np.mean(np.array(found) < 0.05) <= 0.11
    assert kstest(found, "uniform").pvalue > 0.001


def test_interval_of_the_settled_round_holds_it():
    chance, held = np.full(2000, 0.2), []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        # The share rises in a straight line and crosses nine tenths at round 900.
        share = np.minimum(1.0, np.arange(2000) / 1000)
        given = 0.2 + 0.4 * share + rng.uniform(-0.2, 0.2, size=2000)
        predicted = Predicted(hits=given > 0.5, given=given, expected=np.full(2000, 0.6))
        settling = find_settling(predicted, chance, 0.95)
        held.append(settling.bounds[max(0, settling.low - 1)] <= 900 <= settling.bounds[settling.high])
    assert np.mean(held) >= 0.9


def test_place_of_a_change():
    evidence = np.concatenate([np.ones(30), -np.ones(20)])
    best, low, high = _posterior(-np.cumsum(evidence), 0.95)
    assert best == 29
    assert low < best < high
    assert high - low < 8
    weights = np.exp(np.cumsum(evidence))
    inside = weights[low : high + 1].sum() / weights.sum()
    assert inside >= 0.95


def test_sentences_bound_tiny_p_values():
    assert p_in_words(0.0) == "< 1e-100"
    assert p_in_words(2e-8) == "= 2.0e-08"
    assert p_in_words(0.31) == "= 0.31"


@pytest.mark.parametrize("blind", [slice(200, 400), slice(800, 1000)])
def test_blocks_that_a_policy_says_nothing_about_do_not_count(blind):
    rng = np.random.default_rng(0)
    expected, chance = np.full(1000, 0.6), np.full(1000, 0.2)
    given = rng.uniform(0.3, 0.9, size=1000)
    given[blind] = expected[blind] = 0.2
    with np.errstate(all="raise"):
        found = find_settling(Predicted(hits=given > 0.5, given=given, expected=expected), chance, 0.95)
    inside = np.zeros(1000, dtype=bool)
    inside[blind] = True
    assert np.array_equal(np.isnan(found.share), inside[found.bounds[:-1]])
    assert np.isfinite(found.fitted).all()
    assert np.nanmean(found.share) == pytest.approx(1, abs=0.1)
    assert found.rise_p > 0.05


def test_scaling_leaves_usual_features_alone(log):
    found = find_choices(log)
    assert np.array_equal(found.log.features, log[np.flatnonzero(log.n_arms > 1)].features)
    assert found.one_arm == 0
    X = np.random.default_rng(0).normal(size=(50, 4, 3)) * [1.0, 1e-5, 1e4]
    scaled = find_choices(BanditLog.from_dense(X, np.zeros(50, dtype=int))).log.features.reshape(50, 4, 3)
    assert np.array_equal(scaled[:, :, 0], X[:, :, 0])
    assert np.allclose(np.median(np.ptp(scaled, axis=1), axis=0)[1:], 1)


def test_first_level_blocks_are_those_of_isotonic_regression():
    from scipy.optimize import isotonic_regression

    from onlooker.diagnosis.predictability import MATERIAL, _end, _first_level

    rng = np.random.default_rng(0)
    for m in (5, 7, 23, 50):
        possible = rng.uniform(0.5, 2.0, size=m)
        gained = possible * np.sort(rng.uniform(0.2, 1.0, size=m)) + rng.normal(size=(200, m)) * 0.3
        for curve, found in zip(gained, _first_level(gained, possible), strict=True):
            fitted = isotonic_regression(curve / possible, weights=possible).x
            enough = fitted >= (1 - MATERIAL) * _end(curve, possible)
            assert found == (int(enough.argmax()) if enough.any() else m - 1)
