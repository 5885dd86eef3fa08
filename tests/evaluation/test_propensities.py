"""`propensities(log)`: always an answer, honest, and as good as the best observer."""

import numpy as np
import pytest

from onlooker import (
    BanditLog,
    Boltzmann,
    DynamicImitation,
    Environment,
    EpsilonGreedy,
    LinUCB,
    SuffixImitation,
    information_share,
    propensities,
    simulate,
)
from onlooker.base.errors import InputError, LowOverlapWarning


@pytest.fixture(scope="module")
def log():
    return simulate(Environment(4, (2, 9), seed=5), EpsilonGreedy(0.2), n_rounds=1500, seed=5).log


@pytest.fixture(scope="module")
def found(log):
    return propensities(log)


def is_whole(log, values):
    assert values.shape == (log.offsets[-1],)
    assert values.min() > 0
    np.testing.assert_allclose(np.add.reduceat(values, log.offsets[:-1]), 1.0)


def test_values_and_chosen(log, found):
    is_whole(log, found.values)
    np.testing.assert_array_equal(found.chosen, found.values[log.chosen_rows])
    assert found.observer.theta_.shape == (4,)
    assert set(found.shares) == {"SuffixImitation", "TrackingObserver", "DynamicImitation"}
    assert sum(found.weights.values()) == pytest.approx(1.0)


def test_no_worse_than_the_best_observer(log, found):
    assert found.share > max(found.shares.values()) - 0.01
    assert found.share == information_share(log, found.values)


def test_nothing_of_a_round_uses_its_pick_or_a_later_one(log, found):
    for change in (40, 800):
        chosen = log.chosen.copy()
        chosen[change:] = 0
        other = propensities(BanditLog(log.dense, log.offsets, chosen))
        rows = slice(0, int(log.offsets[change + 1]))
        np.testing.assert_array_equal(other.values[rows], found.values[rows])


def test_epsilon_and_greedy_picks(log, found):
    # The floor of an arm that is hardly ever picked but at random: epsilon over the number of arms.
    least = np.minimum.reduceat(found.values, log.offsets[:-1])[700:] * log.n_arms[700:]
    assert 0.1 < np.median(least) < 0.3
    assert found.calibration().misfit < 0.03


@pytest.mark.parametrize(
    "log",
    [
        BanditLog(np.ones((1, 1)), [0, 1], [0]),
        BanditLog(np.zeros((6, 2)), [0, 3, 6], [0, 2]),
        BanditLog(np.eye(3), [0, 1, 2, 3], [0, 0, 0]),
        BanditLog.from_dense(np.random.default_rng(0).normal(size=(300, 4, 12)) * 1e-3, np.arange(300) % 4),
    ],
    ids=["one arm", "two rounds", "no choice", "no preference"],
)
@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
def test_always_an_answer(log):
    found = propensities(log)
    is_whole(log, found.values)
    found.calibration()
    found.overlap()
    assert found.draws(5).shape == (5, len(found.values))
    assert repr(found).startswith("Propensities(")


def test_an_observer_of_ones_own(log):
    whole = DynamicImitation().fit(log)
    np.testing.assert_allclose(propensities(log, whole).values, whole.propensities(log))
    assert isinstance(propensities(log, SuffixImitation()).observer, SuffixImitation)
    with pytest.raises(InputError, match="use 'auto'"):
        propensities(log, "dynamic")
    with pytest.raises(InputError, match="no rounds"):
        propensities(log[:0])


def test_a_learner_that_looks_deterministic():
    sure = propensities(simulate(Environment(4, 8, seed=1), LinUCB(), n_rounds=2000, seed=1).log)
    with pytest.warns(LowOverlapWarning, match="looks deterministic"):
        assert sure.overlap().deterministic
    random = propensities(simulate(Environment(4, 8, seed=1), Boltzmann(0.5), n_rounds=800, seed=1).log)
    assert not random.overlap().deterministic


def test_overlap_with_a_policy(log, found):
    uniform = np.repeat(1 / log.n_arms, log.n_arms)
    assert found.overlap(uniform).effective_sample_size == pytest.approx(found.overlap().effective_sample_size)
    assert found.overlap(found.values).effective_sample_size == pytest.approx(np.count_nonzero(log.n_arms > 1))
    with pytest.raises(InputError, match="one probability per row"):
        found.overlap([0.5])


def test_draws_are_probabilities_around_the_values(log, found):
    draws = found.draws(40, seed=3)
    for draw in draws[:3]:
        is_whole(log, draw)
    np.testing.assert_array_equal(draws, found.draws(40, seed=3))
    low, high = found.interval(0.9)
    assert np.mean((low <= found.values) & (found.values <= high)) > 0.95


def test_intervals_cover_the_learners_own_probabilities():
    # Softmax with fixed weights: the truth is known, and the model is right.
    rng = np.random.default_rng(1)
    X, theta = rng.normal(size=(1200, 6, 4)), np.array([1.0, -1.0, 0.5, 0.0])
    truth = np.exp(X @ theta)
    truth /= truth.sum(axis=1, keepdims=True)
    chosen = [rng.choice(6, p=row) for row in truth]
    low, high = propensities(BanditLog.from_dense(X, chosen)).interval(0.9)
    covered = (low - 1e-3 <= truth.ravel()) & (truth.ravel() <= high + 1e-3)
    assert covered[600 * 6 :].mean() > 0.85


def test_to_frame(log, found):
    frame = found.to_frame()
    assert list(frame.columns) == ["round", "arm", "chosen", "propensity"]
    assert frame["propensity"].tolist() == found.values.tolist()
    assert frame["chosen"].sum() == log.n_rounds


def test_the_picture(found, tmp_path):
    charts = found.calibration().plot(str(tmp_path / "calibration.svg"))
    assert [chart.title for chart in charts] == ["All offered arms", "Likeliest arm of each round"]
    assert (tmp_path / "calibration.svg").read_text().startswith("<svg")
    with pytest.raises(InputError, match=r"\.png or \.svg"):
        found.calibration().plot("calibration.txt")


@pytest.mark.parametrize("picks", [np.zeros(1200, dtype=int), np.arange(1200) % 6], ids=["the first", "in turn"])
def test_picks_by_position_are_warned_of(picks):
    rows = np.random.default_rng(0).normal(size=(1200, 6, 3))
    found = propensities(BanditLog.from_dense(rows, picks))
    with pytest.warns(LowOverlapWarning, match="100% of the picks are .* predicted, so the propensities are wrong"):
        covered = found.overlap()
    assert covered.is_unreliable
    assert "so the propensities are wrong" in covered.sentence


def test_learners_do_not_follow_positions(found):
    assert not found.overlap().astray
