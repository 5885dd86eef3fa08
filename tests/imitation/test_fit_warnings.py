"""Numerical trouble gets a named warning and a usable answer, or an honest refusal."""

import warnings

import numpy as np
import pytest

from onlooker.base import errors
from onlooker.base.errors import InputError
from onlooker.evaluation.metrics import direction_error
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.logs.log import BanditLog
from onlooker.observers.suffix_imitation import SuffixImitation

THETA = np.array([1.0, -2.0, 0.5])


def softmax_log(features, theta, seed=0, names=None):
    rng = np.random.default_rng(seed)
    chosen = (features @ theta + rng.gumbel(size=features.shape[:2])).argmax(axis=1)
    return BanditLog.from_dense(features, chosen, feature_names=names)


def features(n_rounds=500, n_arms=4, d=3, seed=1):
    return np.random.default_rng(seed).normal(size=(n_rounds, n_arms, d))


def fit_and_catch(log, **parameters):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        observer = SuffixImitation(burn_in="naive", **parameters).fit(log)
    assert [str(w.message) for w in caught] == list(observer.warnings_)
    return observer, [w.category for w in caught], " ".join(observer.warnings_)


def always_winning():
    """Features and picks where the third feature marks an arm that is picked wherever it is offered."""
    X = features()
    X[:, :, 2] = 0
    X[:50, 0, 2] = 1
    rng = np.random.default_rng(0)
    chosen = (X @ [1.0, -1.0, 0.0] + rng.gumbel(size=X.shape[:2])).argmax(axis=1)
    chosen[:50] = 0
    return X, chosen


def test_no_trouble_no_warning():
    _, categories, _ = fit_and_catch(softmax_log(features(), THETA))
    assert categories == []


@pytest.mark.parametrize("l2", [0.0, 1e-5, 1e-4])
def test_separable(l2):
    X = features()
    log = BanditLog.from_dense(X, (X @ THETA).argmax(axis=1))
    observer, categories, text = fit_and_catch(log, l2=l2)
    assert categories == [errors.SeparableDataWarning]
    assert "one theta explains (nearly) all 500 picks" in text
    assert direction_error(observer.theta_, THETA) < 0.1
    assert np.isfinite(observer.theta_).all()


def test_quasi_separable_without_a_penalty():
    """One feature marks an arm that is always picked where it is offered."""
    X, chosen = always_winning()
    log = BanditLog.from_dense(X, chosen, feature_names=["a", "b", "flag"])
    observer, categories, text = fit_and_catch(log, l2=0.0)
    assert categories == [errors.SeparableDataWarning]
    assert "'flag'" in text
    assert "'a'" not in text
    np.testing.assert_allclose(observer.theta_[:2], [1.0, -1.0], atol=0.3)


@pytest.mark.parametrize("l2", [0.0, 1e-4])
def test_constant_feature(l2):
    X = features()
    X[:, :, 1] = np.arange(500)[:, None] * 1e3
    log = softmax_log(X[:, :, [0, 2, 1]], np.array([1.0, -1.0, 0.0]), names=["a", "b", "day"])
    observer, categories, text = fit_and_catch(log, l2=l2)
    assert categories == [errors.CollinearFeaturesWarning]
    assert "'day' never varies" in text
    assert observer.theta_[2] == pytest.approx(0, abs=1e-12)
    rows = observer.summary().coefficients
    assert np.isnan(rows[2].standard_error)
    assert np.isfinite([rows[0].standard_error, rows[1].standard_error]).all()


@pytest.mark.parametrize("l2", [0.0, 1e-4])
def test_collinear_features(l2):
    X = features()
    X = np.concatenate([X, X[:, :, :1] * 2 + np.arange(500)[:, None, None]], axis=2)
    log = softmax_log(X, np.array([1.0, -1.0, 0.5, 0.0]), names=["a", "b", "c", "twice a"])
    observer, categories, text = fit_and_catch(log, l2=l2)
    assert categories == [errors.CollinearFeaturesWarning]
    assert "'a', 'twice a' are not identifiable separately" in text
    errors_ = [row.standard_error for row in observer.summary().coefficients]
    assert np.isnan(errors_).tolist() == [True, False, False, True]
    # What is identified is right, and so is the sum that counts.
    assert observer.theta_[0] + 2 * observer.theta_[3] == pytest.approx(1.0, abs=0.25)
    assert observer.theta_[1] == pytest.approx(-1.0, abs=0.25)


def test_fewer_rounds_than_features():
    observer, categories, text = fit_and_catch(softmax_log(features(n_rounds=5, d=8), np.ones(8)))
    assert errors.TooFewRoundsWarning in categories
    assert "5 rounds with a choice for 8 features" in text
    assert np.isfinite(observer.theta_).all()


def test_no_preference():
    rng = np.random.default_rng(0)
    _, categories, text = fit_and_catch(BanditLog.from_dense(features(), rng.integers(0, 4, 500)))
    assert categories == [errors.NoPreferenceWarning]
    assert "degrees of freedom" in text


def test_no_preference_is_calibrated():
    """Uniform picks: about 5 in 100 logs seem to prefer something."""
    missed = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        log = BanditLog.from_dense(rng.normal(size=(300, 4, 5)), rng.integers(0, 4, 300))
        _, categories, _ = fit_and_catch(log)
        missed += errors.NoPreferenceWarning not in categories
    assert missed <= 20


def test_identical_arms_say_nothing():
    observer, categories, _ = fit_and_catch(BanditLog.from_dense(np.ones((50, 3, 2)), np.zeros(50, dtype=int)))
    assert categories == [errors.CollinearFeaturesWarning, errors.NoPreferenceWarning]
    assert observer.theta_.tolist() == [0.0, 0.0]


def test_one_arm_rounds_are_left_out():
    log = softmax_log(features(), THETA)
    plain, _, _ = fit_and_catch(log)
    mixed = BanditLog(
        np.vstack([log.features, np.ones((20, 3))]),
        np.append(log.offsets, log.offsets[-1] + np.arange(1, 21)),
        np.append(log.chosen, np.zeros(20, dtype=int)),
    )
    observer, categories, text = fit_and_catch(mixed)
    assert categories == [errors.OneArmRoundsWarning]
    assert "20 rounds" in text
    np.testing.assert_allclose(observer.theta_, plain.theta_, rtol=1e-10)
    np.testing.assert_allclose(observer.covariance_, plain.covariance_, rtol=1e-8)
    assert observer.n_rounds_ == 500


def test_only_one_arm_rounds_are_refused():
    with pytest.raises(InputError, match="nothing to imitate"):
        SuffixImitation(burn_in="naive").fit(BanditLog(np.ones((3, 2)), [0, 1, 2, 3], [0, 0, 0]))


def test_penalty_dominates_a_tiny_feature():
    X = features()
    scales = np.array([1.0, 1.0, 1e-6])
    log = softmax_log(X, THETA)
    small = BanditLog(log.features * scales, log.offsets, log.chosen, feature_names=["a", "b", "tiny"])
    _, categories, text = fit_and_catch(small, l2=1e-4)
    assert categories == [errors.PenaltyDominatesWarning]
    assert "'tiny'" in text


def test_any_scale_without_a_penalty():
    log = softmax_log(features(), THETA)
    scales = np.array([1e6, 1.0, 1e-6])
    plain, _, _ = fit_and_catch(log, l2=0.0)
    scaled, categories, _ = fit_and_catch(BanditLog(log.features * scales, log.offsets, log.chosen), l2=0.0)
    assert categories == []
    np.testing.assert_allclose(scaled.theta_ * scales, plain.theta_, rtol=1e-6)
    np.testing.assert_allclose(
        np.sqrt(np.diag(scaled.covariance_)) * scales, np.sqrt(np.diag(plain.covariance_)), rtol=1e-6
    )


def test_an_empty_suffix_is_refused():
    with pytest.raises(InputError, match="burn-in of 500 rounds leaves nothing of a log with 500"):
        SuffixImitation(burn_in=500).fit(softmax_log(features(), THETA))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n_rounds", "n_arms", "d"), [(2000, 20, 5), (3000, 20, 10)])
def test_separable_with_many_rounds(n_rounds, n_arms, d, seed):
    X = features(n_rounds, n_arms, d, seed)
    _, categories, _ = fit_and_catch(BanditLog.from_dense(X, (X @ np.ones(d)).argmax(axis=1)))
    assert categories == [errors.SeparableDataWarning]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("swapped", [0, 1, 10, 20])
def test_picks_that_are_nearly_all_explained_are_told_from_those_that_all_are(swapped, seed, monkeypatch):
    """The rounds that are hardest to explain settle it alone, and say what a search over all of them says."""
    X = features(2000, 6, 4, seed)
    utilities = X @ [1.0, -2.0, 0.5, 1.0]
    ranks = np.argsort(utilities, axis=1)
    odd = np.random.default_rng(seed).choice(2000, swapped, replace=False)
    chosen = ranks[:, -1].copy()
    chosen[odd] = ranks[odd, -2]
    log = BanditLog.from_dense(X, chosen)
    searched = []
    unpenalised = SoftmaxObjective.unpenalised
    monkeypatch.setattr(SoftmaxObjective, "unpenalised", lambda one: searched.append(one) or unpenalised(one))
    observer, categories, _ = fit_and_catch(log)
    assert observer.agreement_ > 0.98
    assert bool(searched) == (swapped == 0 or errors.SeparableDataWarning in categories)
    monkeypatch.setattr(SoftmaxObjective, "hardest", lambda *_: None)
    assert fit_and_catch(log)[1] == categories
    assert searched


def test_a_rare_feature_that_the_hardest_rounds_do_not_have_is_not_taken_for_bounded():
    X = features(4000, 5, 3, seed=4)
    X[..., 2] = 0.0
    X[::100, :, 2] = np.random.default_rng(1).random((40, 5))
    utilities = X @ [3.0, -3.0, 0.0] + np.random.default_rng(0).gumbel(size=(4000, 5)) / 30
    utilities[::100] = X[::100, :, 2]
    log = BanditLog.from_dense(X, utilities.argmax(axis=1))
    observer, categories, _ = fit_and_catch(log, l2=1e-6)
    assert observer.agreement_ > 0.98
    assert errors.SeparableDataWarning in categories


def test_separable_up_to_a_duplicate_arm():
    X = features(500, 5)
    X[:, 4] = X[:, 0]
    _, categories, _ = fit_and_catch(BanditLog.from_dense(X, (X @ THETA).argmax(axis=1)))
    assert categories == [errors.SeparableDataWarning]


def test_quasi_separable_along_no_axis():
    """The same feature that decides without exception, seen through turned axes."""
    X, chosen = always_winning()
    turn = np.array([[1, 0, 0], [0, 0.8, 0.6], [0, -0.6, 0.8]])
    observer, categories, _ = fit_and_catch(BanditLog.from_dense(X @ turn.T, chosen), l2=0.0)
    assert categories == [errors.SeparableDataWarning]
    assert np.isnan(np.diag(observer.covariance_)).tolist() == [False, True, True]


def test_a_feature_that_always_wins_under_a_penalty():
    X, chosen = always_winning()
    log = BanditLog.from_dense(X, chosen, feature_names=["a", "b", "flag"])
    _, categories, text = fit_and_catch(log, l2=1e-3)
    assert categories == [errors.PenaltyDominatesWarning]
    assert "'flag'" in text
    assert "'a'" not in text


def test_more_arms_than_a_hessian_would_keep():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 12_000, 2)).astype(np.float32)
    log = BanditLog.from_dense(X, (X @ [1.0, -1.0] + rng.gumbel(size=X.shape[:2])).argmax(axis=1))
    observer, categories, _ = fit_and_catch(log)
    assert categories == []
    assert observer.n_iter_ <= 10
    np.testing.assert_allclose(observer.theta_, [1.0, -1.0], atol=0.6)


@pytest.mark.parametrize("seed", range(6))
def test_rare_categories_are_solved_for(seed):
    """One-hot features, the rarest in one arm of three hundred, some never picked."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(6, size=(400, 6), p=[0.5, 0.3, 0.15, 0.04, 0.007, 0.003])
    X = np.eye(6)[kinds][:, :, 1:]
    log = softmax_log(X, np.array([1.0, -1.0, 0.5, -3.0, -3.0]), seed=seed)
    observer, categories, _ = fit_and_catch(log, l2=0.0)
    assert errors.ConvergenceWarning not in categories
    assert observer.n_iter_ < 100
    assert np.isfinite(observer.theta_).all()


def test_nearly_collinear_features_under_a_penalty():
    X = features()
    X[:, :, 1] = X[:, :, 0] + 1e-3 * X[:, :, 1]
    log = softmax_log(X, np.array([1.0, 0.5, -1.0]), names=["a", "almost a", "c"])
    _, categories, text = fit_and_catch(log)
    assert categories == [errors.PenaltyDominatesWarning]
    assert "'a', 'almost a'" in text
    assert "'c'" not in text


def test_the_same_feature_in_two_units():
    X = features()
    X = np.concatenate([X, 1e6 * X[:, :, :1]], axis=2)
    log = softmax_log(X[:, :, :3], THETA)
    both = BanditLog.from_dense(X, log.chosen, feature_names=["dollars", "b", "c", "micros"])
    _, categories, text = fit_and_catch(both, l2=0.0)
    assert categories == [errors.CollinearFeaturesWarning]
    assert "'dollars', 'micros' are not identifiable separately" in text


@pytest.mark.parametrize("offset", [1.7e9, 1e12])
def test_what_all_arms_share_does_not_matter(offset):
    log = softmax_log(features(), THETA)
    plain, _, _ = fit_and_catch(log, l2=0.0)
    moved, categories, _ = fit_and_catch(BanditLog(log.features + offset, log.offsets, log.chosen), l2=0.0)
    assert categories == []
    assert moved.n_iter_ < 12
    # The sum itself rounds the features.
    np.testing.assert_allclose(moved.theta_, plain.theta_, rtol=1e-3)


def test_a_constant_that_rounding_moves():
    X = features()
    X[:, :, 2] = 1e9 * (1 + np.finfo(float).eps * np.random.default_rng(0).integers(-1, 2, size=X.shape[:2]))
    observer, categories, text = fit_and_catch(softmax_log(X, np.array([1.0, -1.0, 0.0])), l2=0.0)
    assert categories == [errors.CollinearFeaturesWarning]
    assert "'x2' never varies" in text
    assert observer.theta_[2] == 0.0


def test_constant_features_are_no_degrees_of_freedom():
    X = features(n_rounds=300)
    wide = np.concatenate([X[:, :, :1], np.ones((300, 4, 40))], axis=2)
    observer, categories, _ = fit_and_catch(BanditLog.from_dense(wide, softmax_log(X, THETA * [0.4, 0, 0]).chosen))
    assert categories == [errors.CollinearFeaturesWarning]
    assert observer.rank_ == 1
    assert observer.summary().p_value < 1e-3


def test_features_beyond_double_precision_are_refused():
    log = softmax_log(features(), THETA)
    with pytest.raises(InputError, match="too large for double precision"):
        SuffixImitation(burn_in="naive").fit(BanditLog(log.features * 1e160, log.offsets, log.chosen))


@pytest.mark.parametrize("scale", [1e-160, 1e-200, 1e-320])
@pytest.mark.parametrize("l2", [0.0, 1e-4])
def test_features_below_double_precision_are_refused(scale, l2):
    log = softmax_log(features(), THETA)
    every, first = np.full(3, scale), np.array([scale, 1.0, 1.0])
    for scales in (every, first):
        with pytest.raises(InputError, match="too small for double precision"):
            SuffixImitation(burn_in="naive", l2=l2).fit(BanditLog(log.features * scales, log.offsets, log.chosen))


def test_small_features_are_fitted():
    log = softmax_log(features(), THETA)
    found = [SuffixImitation(burn_in="naive", l2=0.0).fit(log)]
    found.append(
        SuffixImitation(burn_in="naive", l2=0.0).fit(BanditLog(log.features * 1e-100, log.offsets, log.chosen))
    )
    np.testing.assert_allclose(found[1].theta_ * 1e-100, found[0].theta_, rtol=1e-6)


@pytest.mark.parametrize("weight", [1e300, 1e308, 1e-300])
def test_absurd_weights_are_refused(weight):
    log = softmax_log(features(), THETA)
    with pytest.raises(InputError, match="the weight of round 0"):
        SuffixImitation(burn_in="naive").fit(log, np.full(log.n_rounds, weight))


def test_shrinkage_is_said_in_the_summary():
    X = features()
    observer, _, _ = fit_and_catch(softmax_log(10 * X, THETA), l2=1e-2)
    longer, _, _ = fit_and_catch(softmax_log(10 * X, THETA), l2=0.0)
    lost = 1 - np.linalg.norm(observer.theta_) / np.linalg.norm(longer.theta_)
    assert observer.shrinkage_ > 0.05
    assert 0.3 * lost < observer.shrinkage_ <= lost
    assert "regularisation shrinks the weights" in str(observer.summary())
    assert longer.shrinkage_ == 0
