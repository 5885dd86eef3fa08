"""`SuffixImitation(loss="zero_one")`: what it learns, and what it says."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from onlooker import BanditLog, Environment, EpsilonGreedy, LinTS, SuffixImitation, simulate
from onlooker.base.errors import CollinearFeaturesWarning, InputError, OnlookerWarning

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.base.errors.FittedRoundsWarning")


@pytest.fixture(scope="module")
def log():
    return simulate(Environment(4, (2, 8), seed=1), EpsilonGreedy(0.1), 2000, seed=1).log


@pytest.fixture(scope="module")
def soft(log):
    return SuffixImitation(burn_in="rule").fit(log)


@pytest.fixture(scope="module")
def fewest(log):
    return SuffixImitation(burn_in="rule", loss="zero_one").fit(log)


def test_misses_no_more_than_the_softmax_and_counts_by_its_own_policy(log, soft, fewest):
    suffix = log.suffix(fewest.burn_in_)
    assert fewest.burn_in_ == soft.burn_in_
    assert fewest.agreement_ > soft.agreement_
    assert fewest.agreement_ == np.mean(fewest.predict(suffix) == suffix.chosen) == fewest.score(suffix)
    assert fewest.loss_ == 1 - fewest.agreement_
    assert fewest.n_iter_ > 0


def test_probabilities_are_about_as_sharp_as_those_of_the_softmax(log, soft, fewest):
    assert np.linalg.norm(fewest.theta_) == pytest.approx(np.linalg.norm(soft.theta_), rel=0.1)
    best = np.maximum.reduceat(fewest.predict_proba(log), log.offsets[:-1])
    soft_best = np.maximum.reduceat(soft.predict_proba(log), log.offsets[:-1])
    assert best.mean() == pytest.approx(soft_best.mean(), abs=0.02)
    assert fewest.null_log_likelihood_ < fewest.log_likelihood_ < soft.log_likelihood_
    suffix = log.suffix(fewest.burn_in_)
    picked = fewest.predict_proba(suffix)[suffix.offsets[:-1] + suffix.chosen]
    assert fewest.log_likelihood_ == pytest.approx(np.log(picked).sum())


def test_no_intervals_and_the_summary_says_why(fewest):
    assert fewest.covariance_.shape == (4, 4)
    assert np.isnan(fewest.covariance_).all()
    assert np.isnan(fewest.shrinkage_)
    summary = fewest.summary()
    assert summary.covariance == "none"
    assert [row.estimate for row in summary.coefficients] == fewest.theta_.tolist()
    text = str(summary)
    assert "has no intervals of the usual kind" in text
    assert "nan" not in text
    assert "std. error" not in text
    assert f"agreement with them {fewest.agreement_:.3f}" in text
    assert max(len(line) for line in text.splitlines()[1:-1]) < 30


def test_same_seed_same_answer_and_a_seed_is_a_parameter(log, fewest):
    again = clone(fewest).fit(log)
    np.testing.assert_array_equal(again.theta_, fewest.theta_)
    assert SuffixImitation(seed=5).get_params()["seed"] == 5
    assert repr(SuffixImitation(loss="zero_one", seed=5)) == "SuffixImitation(loss='zero_one', seed=5)"
    with pytest.raises(InputError, match="seed is -1"):
        SuffixImitation(loss="zero_one", seed=-1).fit(log)
    with pytest.raises(InputError, match="use 'softmax' or 'zero_one'"):
        SuffixImitation(loss="hinge").fit(log)


def test_sample_weights_decide_which_picks_count():
    """Two tastes: the rounds with weight are all explained, whatever the others say."""
    X = np.random.default_rng(0).normal(size=(200, 3, 3))
    first, second = (X @ [1.0, 2.0, 0.5]).argmax(axis=1), (X @ [-1.0, 1.0, 0.5]).argmax(axis=1)
    late = np.arange(200) >= 120
    log = BanditLog.from_dense(X, np.where(late, second, first))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnlookerWarning)
        unweighted = SuffixImitation(burn_in="naive", loss="zero_one").fit(log)
        weighted = SuffixImitation(burn_in="naive", loss="zero_one").fit(log, sample_weight=late.astype(float))
        heavier = SuffixImitation(burn_in="naive", loss="zero_one").fit(log, sample_weight=1 + 9.0 * late)
    assert (weighted.loss_, weighted.agreement_, weighted.n_rounds_) == (0.0, 1.0, 80)
    np.testing.assert_array_equal(weighted.predict(log)[late], second[late])
    assert np.mean(unweighted.predict(log)[late] == second[late]) < 0.9
    right = heavier.predict(log) == log.chosen
    assert heavier.loss_ == pytest.approx(1 - np.average(right, weights=1 + 9.0 * late))
    assert heavier.agreement_ == pytest.approx(1 - heavier.loss_)


def test_constant_features_get_zero_and_warnings_about_the_penalty_are_left_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3, 3)) * [1.0, 1e-4, 0.0] + [0.0, 0.0, 7.0]
    log = BanditLog.from_dense(X, (X @ [1.0, 5000.0, 0.0] + rng.gumbel(size=(150, 3))).argmax(axis=1))
    with pytest.warns(OnlookerWarning) as issued:
        soft = SuffixImitation(burn_in="naive").fit(log)
    assert any("regularisation" in text for text in soft.warnings_)
    with pytest.warns(CollinearFeaturesWarning) as issued:
        observer = SuffixImitation(burn_in="naive", loss="zero_one").fit(log)
    assert [str(warning.message) for warning in issued] == list(observer.warnings_)
    assert len(observer.warnings_) == 1
    assert observer.theta_[2] == 0
    assert observer.agreement_ > soft.agreement_


def test_progress_is_told(log):
    told = []
    SuffixImitation(burn_in=0.9, loss="zero_one").fit(log, progress=lambda done, total: told.append(done / total))
    assert told[-1] == 1.0
    assert len(told) > 10


def test_ten_thousand_rounds_of_fifty_arms_end_soon(monkeypatch):
    """The work is bounded, so time does not depend on the data: a tenth of it here."""
    from onlooker.imitation.zero_one import search

    monkeypatch.setattr(search, "WORK", search.WORK / 10)
    log = simulate(Environment(20, 50, seed=1), LinTS(), 10_000, seed=1).log
    observer = SuffixImitation(burn_in="naive", loss="zero_one").fit(log)
    # One more per direction of theta goes to the middle of the best stretch.
    assert observer.n_iter_ <= max(search.WORK / log.features.size, 20 * search.FEWEST) + 20
    assert observer.agreement_ > SuffixImitation(burn_in="naive").fit(log).agreement_
