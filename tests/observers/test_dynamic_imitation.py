"""Weights that walk, as a user sees them."""

import copy
import json
import pickle
import warnings

import numpy as np
import pytest

from imitation.test_out_of_core import ListParts
from observers.dynamic.walker import walking_log
from onlooker.base.errors import InputError, NoPreferenceWarning, NotFittedError, OneArmRoundsWarning
from onlooker.evaluation.metrics import direction_error
from onlooker.logs.log import BanditLog
from onlooker.observers import DynamicImitation, SuffixImitation
from onlooker.simulation.environment import Environment
from onlooker.simulation.learners import Boltzmann, EpsilonGreedy, LinTS, LinUCB, UniformRandom
from onlooker.simulation.mask import Mask
from onlooker.simulation.play import simulate

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.base.errors.FittedRoundsWarning")


@pytest.fixture(scope="module")
def log():
    return simulate(Environment(4, (2, 9), seed=1), EpsilonGreedy(0.1), n_rounds=900, seed=1).log


@pytest.fixture(scope="module")
def observer(log):
    return DynamicImitation().fit(log)


def same(one, other):
    np.testing.assert_array_equal(one.theta_, other.theta_)
    np.testing.assert_array_equal(one.covariance_, other.covariance_)
    assert (one.evidence_, one.lapse_, one.n_rounds_) == (other.evidence_, other.lapse_, other.n_rounds_)


def test_nothing_about_a_round_uses_its_pick_or_a_later_one(log, observer):
    before = observer.propensities(log)
    chosen = np.array(log.chosen)
    source = np.random.default_rng(0)
    chosen[400:] = source.integers(0, log.n_arms[400:])
    other = BanditLog(log.dense, log.offsets, chosen)
    after = DynamicImitation().fit(other).propensities(other)
    rows = log.offsets[401]
    np.testing.assert_array_equal(after[:rows], before[:rows])
    assert not np.array_equal(after, before)


def test_propensities_make_up_the_evidence(log, observer):
    found = observer.propensities(log)
    assert found.shape == (len(log.dense),)
    assert (found > 0).all()
    np.testing.assert_allclose(np.add.reduceat(found, log.offsets[:-1]), 1.0)
    assert np.log(found[log.chosen_rows]).sum() == pytest.approx(observer.evidence_)
    assert observer.evidence_ > observer.chance_ == pytest.approx(-np.log(log.n_arms).sum())


def test_propensities_of_other_times_and_other_rounds(log, observer):
    with pytest.raises(InputError, match="fitted with other times"):
        observer.propensities(log, times=np.cumsum(np.arange(900.0) ** 2))
    np.testing.assert_array_equal(observer.propensities(log[:500]), observer.propensities(log)[: log.offsets[500]])
    for ahead in (True, False):
        early, late = DynamicImitation().fit(log[:60]), DynamicImitation().fit(log[:500])
        rows = slice(int(log.offsets[500]), None)
        np.testing.assert_allclose(late.propensities(log[500:], ahead=True), observer.propensities(log)[rows])
        assert early.propensities(log[60:], ahead).shape == (log.offsets[-1] - log.offsets[60],)


def test_a_loaded_observer_knows_its_rounds(log, observer, tmp_path):
    observer.save(tmp_path / "state.json")
    loaded = DynamicImitation.load(tmp_path / "state.json")
    np.testing.assert_array_equal(loaded.propensities(log), observer.propensities(log))


def test_the_next_round_continues_the_last(log):
    ahead = DynamicImitation().fit(log).propensities(log)
    before = DynamicImitation().fit(log[:600])
    rows = slice(log.offsets[600], log.offsets[601])
    np.testing.assert_allclose(before.predict_proba(log[600:601]), ahead[rows], rtol=1e-9)


@pytest.mark.parametrize("cuts", [(500,), (30, 70, 110, 700), tuple(range(1, 20))])
def test_parts_give_the_same_as_the_whole(log, observer, cuts):
    growing = DynamicImitation()
    for start, stop in zip((0, *cuts), (*cuts, log.n_rounds), strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            growing.partial_fit(log[start:stop])
    same(growing, observer)
    assert growing.path_.rounds[-1] == log.n_rounds
    assert (np.diff(growing.path_.rounds) > 0).all()
    np.testing.assert_allclose(growing.propensities(log), observer.propensities(log))


def test_a_log_that_is_not_in_memory(log, observer):
    parts = ListParts([log[:40], log[40:130], log[130:600], log[600:]])
    found = DynamicImitation().fit(parts)
    same(found, observer)
    np.testing.assert_allclose(found.path_.theta, observer.path_.theta, rtol=1e-6, atol=1e-8)
    assert found.changes_ == observer.changes_


def test_names_decide_which_feature_is_which(log):
    names = ["a", "b", "c", "d"]
    named = BanditLog(log.dense, log.offsets, log.chosen, feature_names=names)
    turned = BanditLog(log.dense[:, ::-1], log.offsets, log.chosen, feature_names=names[::-1])
    whole = DynamicImitation().fit(named)
    growing = DynamicImitation().fit(named[:500]).partial_fit(turned[500:])
    same(growing, whole)
    np.testing.assert_allclose(whole.predict_proba(turned), whole.predict_proba(named))
    np.testing.assert_array_equal(whole.propensities(turned), whole.propensities(named))


def test_saved_and_loaded(log, observer, tmp_path):
    for size in (60, 500):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            DynamicImitation(checkpoints=[20, 700]).fit(log[:size]).save(tmp_path / "state.json")
        loaded = DynamicImitation.load(tmp_path / "state.json")
        assert loaded.checkpoints == [20, 700]
        assert loaded.path_.rounds.tolist() == [20, size]
        loaded.partial_fit(log[size:])
        same(loaded, observer)
        assert loaded.path_.rounds.tolist() == [20, 700, 900]
        np.testing.assert_array_equal(loaded.propensities(log), observer.propensities(log))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("follower", "bank", "weights"), [0.5]),
        (("follower", "bank", "members"), []),
        (("follower", "bank", "evidence"), 3.0),
        (("follower", "n_features"), 7),
        (("follower", "bank", "clock", "n_rounds"), 50),
        (("path", "theta"), [[None]]),
        (("checkpoints",), [-1]),
    ],
)
def test_a_damaged_state_is_refused(observer, tmp_path, place, value):
    observer.save(tmp_path / "state.json")
    document = json.loads((tmp_path / "state.json").read_text(encoding="utf-8"))
    inner = document
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    (tmp_path / "state.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(InputError, match="is damaged"):
        DynamicImitation.load(tmp_path / "state.json")


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies(log, observer, copied):
    other = copied(DynamicImitation().fit(log[:500]))
    assert other.path_.rounds[-1] == 500
    same(other.partial_fit(log[500:]), observer)


def test_a_failed_call_changes_nothing(log):
    fitted = DynamicImitation().fit(log[:600])
    before = fitted.theta_
    features = np.array(log.dense[log.offsets[600] :])
    features[-1, 2] = 1e30
    broken = BanditLog(features, log.offsets[600:] - log.offsets[600], log.chosen[600:])
    for part in (broken, ListParts([log[600:610], broken])):
        with pytest.raises(InputError, match="check that value"):
            fitted.partial_fit(part)
    np.testing.assert_array_equal(fitted.theta_, before)
    same(fitted.partial_fit(log[600:]), DynamicImitation().fit(log))


def test_units_make_no_difference(log, observer):
    factors = np.array([1.0, 1000.0, 1e-3, 7.0])
    scaled = BanditLog(log.dense.astype(np.float64) * factors, log.offsets, log.chosen)
    other = DynamicImitation().fit(scaled)
    np.testing.assert_allclose(other.theta_ * factors, observer.theta_, rtol=1e-4)
    np.testing.assert_allclose(other.propensities(scaled), observer.propensities(log), rtol=1e-3, atol=1e-6)


def test_a_feature_that_first_differs_late_is_learned():
    log, truth = walking_log(0, n_rounds=2500, random=0.0)
    features = np.array(log.dense)
    chosen = np.array(log.chosen)
    features[: 8 * 1500, 3] = 0.0
    source = np.random.default_rng(1)
    for t in range(1500):
        weights = np.exp(features[8 * t : 8 * t + 8] @ truth[t])
        chosen[t] = source.choice(8, p=weights / weights.sum())
    late = BanditLog(features, log.offsets, chosen)
    fitted = DynamicImitation().fit(late[:1500])
    assert fitted.theta_[3] == 0.0
    assert np.isnan(fitted.covariance_[3, 3])
    fitted.partial_fit(late[1500:])
    assert abs(fitted.theta_[3] - truth[-1, 3]) < 4 * np.sqrt(fitted.covariance_[3, 3])


def test_the_share_of_random_picks():
    for random in (0.0, 0.1, 0.3):
        log, _ = walking_log(1, n_rounds=3000, n_arms=20, random=random)
        assert DynamicImitation().fit(log).lapse_ == pytest.approx(random, abs=0.035)


def test_it_follows_a_learner_that_moves_and_is_not_fooled_by_one_that_does_not():
    moving, _ = walking_log(7, n_rounds=3000, step=0.01)
    still, _ = walking_log(7, n_rounds=3000)
    for log, better in ((moving, 0.2), (still, -0.02)):
        ahead = np.log(DynamicImitation().fit(log).propensities(log)[log.chosen_rows])
        static = SuffixImitation(burn_in="naive").fit(log[:1500])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            later = np.log(static.predict_proba(log[1500:])[log[1500:].chosen_rows])
        assert ahead[1500:].mean() > later.mean() + better


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.PenaltyDominatesWarning")
@pytest.mark.parametrize("lost", [0.0, 0.5])
@pytest.mark.parametrize("learner", [LinTS(), LinUCB(), Boltzmann(), Boltzmann(0.05)], ids=repr)
def test_it_follows_a_learner_no_worse_than_suffix_imitation_does(learner, lost):
    found = []
    for seed in range(10):
        played = simulate(Environment(10, 20, seed=seed), learner, 3000, seed=seed)
        left = Mask(lose=lost)(played.log, seed)
        observers = DynamicImitation().fit(left.log, gaps=left.gaps), SuffixImitation().fit(left.log)
        found.append([direction_error(one.theta_, played.theta_star) for one in observers])
    dynamic, suffix = np.mean(found, axis=0)
    assert dynamic <= suffix


def test_time_between_rounds_counts():
    gains = []
    for seed in range(3):
        log, _ = walking_log(seed, n_rounds=1500, step=0.0)
        source = np.random.default_rng(seed)
        X, theta = log.dense.reshape(1500, 8, 4), np.ones(4)
        times, chosen = np.cumsum(source.choice([0.01, 10.0], p=[0.9, 0.1], size=1500)), np.empty(1500, dtype=int)
        for t in range(1500):
            gap = times[t] - times[t - 1] if t else 0.0
            theta = theta + np.sqrt(0.03 * gap) * source.standard_normal(4)
            weights = np.exp(X[t] @ theta - (X[t] @ theta).max())
            chosen[t] = source.choice(8, p=weights / weights.sum())
        timed = BanditLog(log.dense, log.offsets, chosen)
        gains.append(DynamicImitation().fit(timed, times=times).evidence_ - DynamicImitation().fit(timed).evidence_)
    assert min(gains) > 5


def test_rounds_without_a_choice():
    log = simulate(Environment(3, (1, 4), seed=2), LinTS(), n_rounds=600, seed=2).log
    with pytest.warns(OneArmRoundsWarning, match="a single arm was offered"):
        found = DynamicImitation().fit(log)
    assert found.n_choices_ < found.n_rounds_
    alone = np.flatnonzero(log.n_arms == 1)
    np.testing.assert_allclose(found.propensities(log)[log.offsets[alone]], 1.0)


def test_random_picks_are_no_preference():
    log = simulate(Environment(3, 5, seed=2), UniformRandom(), n_rounds=600, seed=2).log
    with pytest.warns(NoPreferenceWarning, match="no better than by random guessing"):
        found = DynamicImitation().fit(log)
    assert found.propensities(log)[log.offsets[200] :].max() < 0.6
    assert found.changes_ == ()


def test_what_is_refused(log):
    with pytest.raises(NotFittedError, match=r"call fit\(log\) first"):
        DynamicImitation().propensities(log)
    with pytest.raises(NotFittedError, match=r"call fit\(log\) first"):
        _ = DynamicImitation().path_
    with pytest.raises(InputError, match="no rounds"):
        DynamicImitation().fit(log[:0])
    with pytest.raises(InputError, match="a checkpoint is 0"):
        DynamicImitation(checkpoints=[0]).fit(log)
    with pytest.raises(InputError, match="times are passed for a log in parts"):
        DynamicImitation().fit(ListParts([log]), times=np.arange(900))


def test_the_logs_own_times_count_in_whatever_order_its_features_are():
    log, _ = walking_log(0, n_rounds=300)
    names, times = ["a", "b", "c", "d"], np.cumsum(np.arange(300.0) ** 2)
    timed = BanditLog(log.dense, log.offsets, log.chosen, feature_names=names, times=times)
    turned = timed.with_features(log.dense[:, ::-1], names[::-1])
    observer = DynamicImitation().fit(timed)
    assert observer.evidence_ == DynamicImitation().fit(log, times=times).evidence_
    assert DynamicImitation().fit(timed[:200]).partial_fit(turned[200:]).evidence_ == observer.evidence_
    ordered = BanditLog(log.dense, log.offsets, log.chosen, times=[f"t{t:03}" for t in range(300)])
    assert DynamicImitation().fit(ordered).evidence_ == DynamicImitation().fit(log).evidence_
