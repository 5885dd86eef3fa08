"""The Bayesian inverse contextual bandits: right on their own data within their intervals, upright on others'."""

import numpy as np
import pytest

from believer import ALPHA, play
from onlooker import (
    BanditLog,
    BayesianICB,
    Environment,
    InputError,
    LinUCB,
    NonparametricICB,
    SuffixImitation,
    UniformRandom,
    direction_error,
    simulate,
)
from onlooker.base.errors import (
    CollinearFeaturesWarning,
    NoPreferenceWarning,
    OneArmRoundsWarning,
    TooFewRoundsWarning,
)

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.base.errors.FittedRoundsWarning")

SHORT = {"iterations": 15, "posterior_sweeps": 150}
KINDS = {"BayesianICB": BayesianICB(**SHORT), "NonparametricICB": NonparametricICB(sweeps=200, burn_in_sweeps=100)}


@pytest.fixture(scope="module")
def own():
    return [play(3, 6, 300, seed=seed) for seed in range(12)]


@pytest.fixture(scope="module")
def fits(own):
    return [BayesianICB(**SHORT).fit(simulation.log) for simulation in own]


@pytest.fixture(params=KINDS, ids=str)
def observer(request):
    from sklearn.base import clone

    return clone(KINDS[request.param])


def test_its_own_theta_is_within_its_interval(own, fits):
    scores = np.array(
        [(fit.theta_ - one.theta_star) / np.sqrt(np.diag(fit.covariance_)) for fit, one in zip(fits, own, strict=True)]
    )
    assert np.mean(np.abs(scores) < 1.96) >= 0.85
    assert 0.6 < np.sqrt(np.mean(scores**2)) < 1.4, "intervals are as wide as errors are large"


def test_on_its_own_data_it_beats_imitation_of_all_picks(own, fits):
    errors = [direction_error(fit.theta_, one.theta_star) for fit, one in zip(fits, own, strict=True)]
    naive = [direction_error(SuffixImitation(burn_in="naive").fit(one.log).theta_, one.theta_star) for one in own]
    assert np.mean(errors) < np.mean(naive)


def test_the_path_is_that_of_the_learners_own_belief(own, fits):
    inside = []
    for fit, one in zip(fits, own, strict=True):
        late = fit.path_.rounds > 20
        believed = one.learner_path(fit.path_.rounds[late])
        directions = believed / np.linalg.norm(believed, axis=1, keepdims=True)
        inside.append(np.abs(directions - fit.path_.direction[late]) < 1.96 * fit.path_.standard_error[late])
        assert fit.path_.rounds[-1] == one.log.n_rounds
    assert np.mean(inside) >= 0.8


def test_n0_is_found_roughly(fits):
    assert 0.4 < np.median([fit.n0_ for fit in fits]) < 2.5


def test_units_of_the_features_do_not_matter(own, fits):
    log = own[0].log
    for factor in (2.0**-20, 2.0**20):
        other = BanditLog(log.features * factor, log.offsets, log.chosen)
        found = BayesianICB(**SHORT).fit(other)
        np.testing.assert_allclose(found.theta_ * factor, fits[0].theta_, rtol=1e-6)
        np.testing.assert_allclose(found.n0_ / factor**2, fits[0].n0_, rtol=1e-6)


def test_probabilities_are_those_of_a_learner_that_believes_theta(own, fits):
    log, fit = own[0].log, fits[0]
    scores = ALPHA * log.arms(7) @ fit.theta_
    expected = np.exp(scores - scores.max())
    found = fit.predict_proba(log)[log.offsets[7] : log.offsets[8]]
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-6)


def test_the_nonparametric_path_follows_a_preference_that_turns_round():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 6, 2))
    angles = np.linspace(0, np.pi / 2, 1200)
    utilities = np.einsum("tkd,td->tk", X, ALPHA / 4 * np.column_stack([np.cos(angles), np.sin(angles)]))
    log = BanditLog.from_dense(X, (utilities + rng.gumbel(size=(1200, 6))).argmax(axis=1))
    observer = NonparametricICB(sweeps=400, burn_in_sweeps=200, checkpoints=[300, 600, 900]).fit(log)
    assert observer.path_.rounds.tolist() == [300, 600, 900, 1200]
    found = np.arctan2(*observer.path_.direction.T[::-1])
    np.testing.assert_allclose(found, angles[observer.path_.rounds - 1], atol=0.2)
    np.testing.assert_array_equal(observer.theta_, observer.path_.theta[-1])


def test_seeds_and_threads(observer, monkeypatch):
    log = simulate(Environment(3, 5), LinUCB(), n_rounds=600).log
    found = []
    for threads, seed in (("1", 0), ("3", 0), ("3", 1)):
        monkeypatch.setenv("ONLOOKER_THREADS", threads)
        found.append(observer.set_params(seed=seed).fit(log).theta_)
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).all()


def test_progress_ends_at_its_total(observer, own):
    told = []
    observer.fit(own[0].log, progress=lambda done, total: told.append((done, total)))
    dones, totals = zip(*told, strict=True)
    assert list(dones) == sorted(dones)
    assert set(totals) == {dones[-1]}


def test_a_shared_feature_is_told_and_left_out(observer, own):
    log = own[0].log
    shared = np.column_stack([log.features, np.repeat(np.arange(log.n_rounds) % 7, log.n_arms)])
    with pytest.warns(CollinearFeaturesWarning, match="never varies within a round"):
        observer.fit(BanditLog(shared, log.offsets, log.chosen))
    assert observer.theta_[3] == 0.0
    assert np.isnan(observer.covariance_[3]).all()
    assert np.isfinite(observer.covariance_[:3, :3]).all()
    assert not observer.path_.theta[:, 3].any()


def test_rounds_with_one_arm_say_nothing_of_a_choice(observer, own):
    log = own[0].log
    rows = np.concatenate([log.features, log.features[:5]])
    offsets = np.concatenate([log.offsets, log.offsets[-1] + np.arange(1, 6)])
    with pytest.warns(OneArmRoundsWarning, match="in 5 rounds a single arm was offered"):
        observer.fit(BanditLog(rows, offsets, np.concatenate([log.chosen, np.zeros(5, dtype=np.int64)])))
    assert observer.n_rounds_ == 305
    assert np.isfinite(observer.theta_).all()


def test_picks_without_a_preference_are_told(observer):
    with pytest.warns(NoPreferenceWarning, match="look uniform"):
        observer.fit(simulate(Environment(3, 5), UniformRandom(), n_rounds=300).log)


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.NoPreferenceWarning")
@pytest.mark.filterwarnings("ignore::onlooker.base.errors.CollinearFeaturesWarning")
@pytest.mark.parametrize("n_rounds", [1, 3])
def test_a_short_log_gets_an_answer_and_a_warning(observer, own, n_rounds):
    with pytest.warns(TooFewRoundsWarning, match=f"{n_rounds} rounds with a choice for 3 features"):
        observer.fit(own[0].log[:n_rounds])
    assert np.isfinite(observer.theta_).all()
    assert np.isfinite(observer.path_.theta).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0.0}, "alpha is 0.0: pass a finite number"),
        ({"sweeps": 0}, "sweeps is 0: pass a whole number of at least 1"),
        ({"burn_in_sweeps": 5000}, "burn_in_sweeps is 5000, sweeps .*: drop fewer, or sweep more"),
        ({"checkpoints": [0]}, "a checkpoint is 0"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_senseless_settings_are_refused(observer, own, settings, message):
    with pytest.raises(InputError, match=message):
        observer.set_params(**settings).fit(own[0].log)


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (BayesianICB, {"noise": float("nan")}, "noise is nan"),
        (BayesianICB, {"iterations": 0}, "iterations is 0"),
        (BayesianICB, {"posterior_sweeps": 2}, "posterior_sweeps is 2"),
        (NonparametricICB, {"step_variance": 0.0}, "step_variance is 0.0"),
        (NonparametricICB, {"spread_variance": -1.0}, "spread_variance is -1.0"),
    ],
)
def test_senseless_settings_of_their_own_are_refused(kind, own, settings, message):
    with pytest.raises(InputError, match=message):
        kind(**settings).fit(own[0].log)


def test_logs_without_a_choice_are_refused(observer):
    lonely = BanditLog(np.ones((4, 2)), np.arange(5), np.zeros(4, dtype=np.int64))
    with pytest.raises(InputError, match="no round offers a choice"):
        observer.fit(lonely)
    with pytest.raises(InputError, match="the log has no rounds"):
        observer.fit(lonely[:0])


def test_features_whose_squares_vanish_are_refused(observer, own):
    log = own[0].log
    tiny = BanditLog(log.features.astype(np.float64) * 1e-300, log.offsets, log.chosen)
    with pytest.raises(InputError, match="bring them nearer to 1"):
        observer.fit(tiny)
