"""Problems at the edge: a usable answer with a named warning, or a refusal in one line; never a silent NaN."""

import json
import warnings

import numpy as np
import pytest

from numerics.reference import minimiser, softmax_log
from onlooker import BanditLog, SuffixImitation, burn_in_sweep, diagnose, write_log
from onlooker.base.errors import (
    CollinearFeaturesWarning,
    InputError,
    NoPreferenceWarning,
    OnlookerWarning,
    PenaltyDominatesWarning,
    SeparableDataWarning,
)
from onlooker.cli import main
from onlooker.observers.methods import METHODS

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.base.errors.FittedRoundsWarning")

PLAIN = softmax_log(21, 300, (4, 4), [1.0, -2.0, 0.5])


def fit(log, **parameters):
    """The observer, and the classes of what it said."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        observer = SuffixImitation(burn_in="naive", **parameters).fit(log)
    assert np.isfinite(observer.theta_).all()
    return observer, {one.category for one in caught}


def errors_of(observer):
    return np.sqrt(np.diag(observer.covariance_))


def with_features(log, features):
    return BanditLog(features, log.offsets, log.chosen)


def repicked(log, strength, seed=0):
    """The same offers, picked by the same preference so many times as strong; all by it alone where None."""
    noise = np.random.default_rng(seed).gumbel(size=len(log.features)) if strength else 0.0
    scores = (strength or 1.0) * log.features @ [1.0, -2.0, 0.5] + noise
    picks = [int(scores[a : a + n].argmax()) for a, n in zip(log.offsets, log.n_arms, strict=False)]
    return BanditLog(log.features, log.offsets, picks)


def test_scales_from_a_millionth_to_a_million():
    """Thirteen features, one for every power of ten: each coefficient is that of the plain log, in other units."""
    log = softmax_log(22, 800, (3, 6), [*np.linspace(-1, 1, 13)])
    scales = 10.0 ** np.arange(-6, 7)
    for covariance in ("model", "sandwich"):
        plain, _ = fit(log, l2=0.0, covariance=covariance)
        scaled, said = fit(with_features(log, log.features * scales), l2=0.0, covariance=covariance)
        assert said == set()
        np.testing.assert_allclose(scaled.theta_ * scales, plain.theta_, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(errors_of(scaled) * scales, errors_of(plain), rtol=1e-6)


def test_a_penalty_that_decides_on_tiny_features_is_named():
    _, said = fit(with_features(PLAIN, PLAIN.features * [1e-6, 1.0, 1e6]), l2=1e-4)
    assert said == {PenaltyDominatesWarning}


def test_a_large_common_offset_takes_no_digits_that_matter():
    plain, _ = fit(PLAIN, l2=0.0)
    moved, said = fit(with_features(PLAIN, PLAIN.features + np.array([1e8, -1e8, 1e6])), l2=0.0)
    assert said == set()
    # Features of 1e8 are kept to 1e-8 of a unit.
    np.testing.assert_allclose(moved.theta_, plain.theta_, rtol=1e-6)


@pytest.mark.parametrize("strength", [3.0, 10.0, 30.0])
def test_nearly_separable_picks_have_the_exact_minimum(strength):
    log = repicked(PLAIN, strength)
    observer, said = fit(log, l2=0.0)
    assert said == set()
    np.testing.assert_allclose(observer.theta_, minimiser(log, 0.0).astype(float), rtol=1e-5)
    penalised, _ = fit(log, l2=1e-4)
    np.testing.assert_allclose(penalised.theta_, minimiser(log, 1e-4).astype(float), rtol=1e-6)


def test_one_exception_bounds_what_was_separable():
    log = repicked(PLAIN, None)
    _, said = fit(log, l2=0.0)
    assert said == {SeparableDataWarning}
    picks = log.chosen.copy()
    picks[150] = (picks[150] + 1) % 4
    log = BanditLog(log.features, log.offsets, picks)
    observer, said = fit(log, l2=0.0)
    assert said == set()
    np.testing.assert_allclose(observer.theta_, minimiser(log, 0.0).astype(float), rtol=1e-5)


@pytest.mark.parametrize("l2", [0.0, 1e-4])
@pytest.mark.parametrize("sign", [1.0, -2.0])
def test_a_duplicate_takes_nothing_from_the_others(sign, l2):
    plain, _ = fit(PLAIN, l2=l2)
    copied = with_features(PLAIN, np.column_stack([PLAIN.features, sign * PLAIN.features[:, 0]]))
    observer, said = fit(copied, l2=l2)
    assert said == {CollinearFeaturesWarning}
    whole = observer.theta_[0] + sign * observer.theta_[3]
    # A penalty shares the coefficient out, and so takes less of it.
    np.testing.assert_allclose([whole, *observer.theta_[1:3]], plain.theta_, rtol=1e-6 if l2 == 0 else 1e-3)
    assert np.isnan(errors_of(observer)).tolist() == [True, False, False, True]
    np.testing.assert_allclose(errors_of(observer)[1:3], errors_of(plain)[1:3], rtol=1e-2)


@pytest.mark.parametrize(("n", "k"), [(n, k) for n in range(2, 6) for k in range(1, n)])
def test_tiny_logs_have_the_closed_form(n, k):
    """Arms 1 and 0, the first picked k times of n: the logarithm of the odds, and its error by the model."""
    log = BanditLog.from_dense(np.array([[[1.0], [0.0]]] * n), [0] * k + [1] * (n - k))
    observer, said = fit(log, l2=0.0, covariance="model")
    assert said == {NoPreferenceWarning}
    assert observer.theta_[0] == pytest.approx(np.log(k / (n - k)), abs=1e-7)
    assert errors_of(observer)[0] == pytest.approx((1 / k + 1 / (n - k)) ** 0.5, rel=1e-7)


def tiny_logs():
    rng = np.random.default_rng(9)
    for n in range(1, 6):
        for d in (1, 2, 3):
            X = rng.normal(size=(n, 2, d))
            yield pytest.param(
                BanditLog.from_dense(X, rng.integers(0, 2, n)), id=f"{n} rounds, {d} features, by chance"
            )
            yield pytest.param(BanditLog.from_dense(X, X[:, :, 0].argmax(axis=1)), id=f"{n} rounds, {d} features, best")


def hard_logs():
    yield pytest.param(repicked(PLAIN, None), id="separable")
    yield pytest.param(repicked(PLAIN, 30.0), id="nearly separable")
    yield pytest.param(with_features(PLAIN, PLAIN.features * [1e-6, 1.0, 1e6]), id="unlike scales")
    yield pytest.param(with_features(PLAIN, PLAIN.features * 1e-6), id="tiny scale")
    yield pytest.param(with_features(PLAIN, np.repeat(PLAIN.features[:, :1], 3, axis=1)), id="one feature thrice")
    yield pytest.param(with_features(PLAIN, np.zeros_like(PLAIN.features)), id="features of zero")
    near = PLAIN.features[:, :1] + 1e-7 * np.random.default_rng(0).normal(size=(len(PLAIN.features), 1))
    yield pytest.param(with_features(PLAIN, np.hstack([PLAIN.features, near])), id="nearly a duplicate")
    yield pytest.param(BanditLog(np.ones((5, 2)), np.arange(6), np.zeros(5, dtype=int)), id="one arm a round")


@pytest.mark.parametrize("log", [*tiny_logs(), *hard_logs()])
def test_every_quick_observer_answers_or_refuses(log):
    for method in METHODS:
        if not method.quick:
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                observer = method.make().fit(log)
            except InputError:
                continue
        assert all(issubclass(one.category, OnlookerWarning) for one in caught), (method.name, caught)
        assert np.isfinite(observer.theta_).all(), method.name
        assert np.isfinite(np.concatenate([np.ravel(one) for one in observer.predict_proba(log)])).all(), method.name
        covariance = getattr(observer, "covariance_", np.zeros(1))
        assert np.isfinite(covariance).all() or caught, f"{method.name}: intervals are missing, and nothing says why"


@pytest.mark.parametrize("log", [*tiny_logs(), *hard_logs()])
def test_sweep_and_diagnosis_answer_or_say_that_they_cannot(log):
    found = diagnose(log)
    if log.n_rounds < 100:
        assert found.verdict == "not enough evidence"
    sweep = burn_in_sweep(log)
    choice_left = np.array([bool((log.suffix(int(b)).n_arms > 1).any()) for b in sweep.burn_ins])
    assert (np.isfinite(sweep.thetas).all(axis=1) == choice_left).all()


@pytest.mark.parametrize("command", [["fit", "--burn-in", "naive"], ["track"], ["diagnose"], ["compare"]])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_commands_on_tiny_logs(n, command, tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(n)
    write_log(BanditLog.from_dense(rng.normal(size=(n, 2, 1)), rng.integers(0, 2, n)), tmp_path / "log.parquet")
    monkeypatch.setattr("sys.argv", ["onlooker", command[0], str(tmp_path / "log.parquet"), *command[1:], "--json"])
    code = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code
    said = capsys.readouterr()
    if code == 0:
        json.loads(said.out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    else:
        assert (code, said.out, said.err.count("\n")) == (2, "", 1)
