"""Simulations: the same from the same seed, honest about the learner, open to a user's own."""

import inspect
import itertools
import tracemalloc

import numpy as np
import pytest

from onlooker.base.errors import InputError
from onlooker.simulation import learners
from onlooker.simulation.environment import Environment
from onlooker.simulation.learners import EpsilonGreedy, ExploreThenCommit, LinTS, LinUCB, UniformRandom
from onlooker.simulation.play import GATHER_ROUNDS, simulate, simulate_many
from onlooker.simulation.ridge import RidgeLearner

LEARNERS = [
    cls(batch=3)
    for cls in vars(learners).values()
    if inspect.isclass(cls) and issubclass(cls, RidgeLearner) and not inspect.isabstract(cls)
]


def assert_same(one, two):
    for name in ("features", "offsets", "chosen"):
        np.testing.assert_array_equal(getattr(one.log, name), getattr(two.log, name), strict=True)
    np.testing.assert_array_equal(one.rewards, two.rewards, strict=True)


@pytest.mark.parametrize("n_arms", [6, (1, 9)])
@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_a_short_log_is_the_beginning_of_a_longer_one(learner, n_arms):
    environment = Environment(4, n_arms)
    short, long = simulate(environment, learner, 700, seed=2), simulate(environment, learner, 1300, seed=2)
    np.testing.assert_array_equal(short.log.features, long.log[:700].features)
    np.testing.assert_array_equal(short.log.offsets, long.log[:700].offsets)
    np.testing.assert_array_equal(short.log.chosen, long.log[:700].chosen)
    np.testing.assert_array_equal(short.rewards, long.rewards[:700])


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_the_number_of_threads_changes_nothing(learner, monkeypatch):
    environment = Environment(30, (100, 300))
    runs = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("ONLOOKER_THREADS", threads)
        runs.append(simulate(environment, learner, 400, seed=6))
    assert_same(runs[0], runs[1])
    assert_same(runs[0], runs[2])


def test_every_part_of_a_log_follows_its_own_seed():
    base = simulate(Environment(4, (2, 6), seed=0), LinTS(), 200, seed=0)
    other_seed = simulate(Environment(4, (2, 6), seed=0), LinTS(), 200, seed=1)
    other_truth = simulate(Environment(4, (2, 6), seed=1), LinTS(), 200, seed=0)
    other_learner = simulate(Environment(4, (2, 6), seed=0), LinUCB(), 200, seed=0)
    np.testing.assert_array_equal(base.theta_star, other_seed.theta_star)
    assert not np.array_equal(base.log.offsets, other_seed.log.offsets)
    assert np.abs(base.theta_star - other_truth.theta_star).max() > 0.1
    for run in (other_truth, other_learner):
        np.testing.assert_array_equal(base.log.features, run.log.features)
        np.testing.assert_array_equal(base.log.offsets, run.log.offsets)
        assert not np.array_equal(base.log.chosen, run.log.chosen)


def test_rewards_are_worth_plus_noise():
    environment = Environment(4, 5, noise=0.2)
    run = simulate(environment, UniformRandom(), 300, seed=3)
    worth = run.log.features[run.log.chosen_rows].astype(np.float64) @ environment.theta_star
    np.testing.assert_allclose(run.rewards, worth + environment.reward_noise(300, seed=3), atol=1e-14)


def test_uniform_picks_are_uniform():
    chosen = simulate(Environment(2, 8), UniformRandom(), 16_000, seed=5).log.chosen
    counts = np.bincount(chosen, minlength=8)
    # 24.3 is the 99.9% point of chi-square with 7 degrees of freedom.
    assert ((counts - 2000) ** 2 / 2000).sum() < 24.3
    pairs = np.bincount(chosen[:-1] * 8 + chosen[1:], minlength=64)
    # 103.4 is that of 63 degrees: one pick says nothing about the next.
    assert ((pairs - 250) ** 2 / 250).sum() < 103.4


def test_epsilon_greedy_explores_as_often_as_it_says():
    environment = Environment(3, 50, noise=0.0)
    run = simulate(environment, EpsilonGreedy(0.2), 5000, seed=0)
    wrong = np.mean(run.regret[1000:] > 1e-3)
    assert wrong == pytest.approx(0.2 * 49 / 50, abs=0.025)


def test_explore_then_commit_stops_learning():
    environment = Environment(3, 6)
    run = simulate(environment, ExploreThenCommit(100), 600, seed=1)
    frozen = run.learner_path([100])[0]
    for t in range(100, 600):
        assert run.log.chosen[t] == np.argmax(run.log.arms(t).astype(np.float64) @ frozen)


@pytest.mark.parametrize("learner", [LinUCB(ridge=0.5), LinTS(batch=20)], ids=repr)
def test_the_path_equals_an_estimate_from_scratch(learner):
    n_rounds = GATHER_ROUNDS + 500
    run = simulate(Environment(4, (2, 5)), learner, n_rounds, seed=8)
    checkpoints = [n_rounds, 0, 1, 300, 300, GATHER_ROUNDS + 1]
    path = run.learner_path(checkpoints)
    X = run.log.features[run.log.chosen_rows].astype(np.float64)
    for estimate, end in zip(path, checkpoints, strict=True):
        V = learner.ridge * np.eye(4) + X[:end].T @ X[:end]
        np.testing.assert_allclose(estimate, np.linalg.inv(V) @ X[:end].T @ run.rewards[:end], atol=1e-12)
    np.testing.assert_array_equal(run.learner_theta, run.learner_path(np.array([n_rounds]))[0])
    assert run.learner_path([]).shape == (0, 4)


@pytest.mark.parametrize(("checkpoint", "message"), [(31, "is 31, but the log has 30"), (-1, "is -1"), (1.5, "is 1.5")])
def test_checkpoints_lie_within_the_log(checkpoint, message):
    run = simulate(Environment(2, 3), LinUCB(), 30)
    with pytest.raises(InputError, match=message):
        run.learner_path([5, checkpoint])


def test_regret_is_what_the_pick_gave_away():
    run = simulate(Environment(4, (1, 7)), LinTS(), 400, seed=2)
    for t in range(400):
        worth = run.log.arms(t).astype(np.float64) @ run.theta_star
        assert run.regret[t] == pytest.approx(worth.max() - worth[run.log.chosen[t]], abs=1e-14)


@pytest.mark.parametrize("learner", [LinUCB(), LinTS()], ids=repr)
def test_a_learner_learns(learner):
    run = simulate(Environment(8, 30), learner, 2000, seed=0)
    assert run.regret[-500:].mean() < 0.1 * simulate(Environment(8, 30), UniformRandom(), 500, seed=0).regret.mean()
    assert np.linalg.norm(run.learner_theta - run.theta_star) < 0.1


def test_memory_holds_the_log_and_little_else():
    environment = Environment(20, 50)
    simulate(environment, LinUCB(), 20)
    tracemalloc.start()
    try:
        run = simulate(environment, LinUCB(), 4000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.1 * run.log.features.nbytes


def test_progress_counts_rounds_up_to_all_of_them():
    calls = []
    simulate(Environment(2, 3), LinUCB(), 1200, progress=lambda *call: calls.append(call))
    assert calls == [(512, 1200), (1024, 1200), (1200, 1200)]


@pytest.mark.parametrize("threads", ["1", "2", "3"])
def test_many_seeds_give_the_logs_that_each_gives_alone(threads, monkeypatch):
    environment = Environment(4, (2, 5))
    expected = [simulate(environment, LinTS(), 600, seed) for seed in (4, 0, 9, 4, 1)]
    monkeypatch.setenv("ONLOOKER_THREADS", threads)
    runs = list(simulate_many(environment, LinTS(), 600, seeds=iter([4, 0, 9, 4, 1])))
    assert [run.seed for run in runs] == [4, 0, 9, 4, 1]
    for run, alone in zip(runs, expected, strict=True):
        assert_same(run, alone)


def test_many_seeds_may_be_cut_short_and_go_on_for_ever():
    first = list(itertools.islice(simulate_many(Environment(2, 3), LinUCB(), 50, seeds=itertools.count()), 3))
    assert [run.seed for run in first] == [0, 1, 2]


class Follower:
    """A user's learner: averages what it was paid for, and explores by chance."""

    def __init__(self):
        self.theta = 0.0
        self.rng = None

    def reset(self, rng):
        self.rng = rng

    def choose(self, features):
        if self.rng.random() < 0.2:
            return int(self.rng.integers(len(features)))
        return np.argmax(features @ np.broadcast_to(self.theta, features.shape[1]))

    def update(self, features_of_pick, reward):
        self.theta = self.theta + reward * features_of_pick


def test_a_users_learner_plays_by_the_seed_and_stays_as_it_was(monkeypatch):
    environment, learner = Environment(4, (3, 8)), Follower()
    run = simulate(environment, learner, 800, seed=3)
    assert learner.theta == 0.0
    assert learner.rng is None
    assert run.learner is learner
    monkeypatch.setenv("ONLOOKER_THREADS", "1")
    assert_same(run, simulate(environment, learner, 800, seed=3))
    assert not np.array_equal(run.log.chosen[:50], simulate(environment, learner, 800, seed=4).log.chosen[:50])
    assert run.regret[-200:].mean() < 0.5 * simulate(environment, UniformRandom(), 200).regret.mean()
    for one, alone in zip(simulate_many(environment, learner, 100, [1, 2]), (1, 2), strict=True):
        assert_same(one, simulate(environment, learner, 100, alone))


def test_a_users_learner_is_offered_what_the_log_says():
    seen = []

    class Watching(Follower):
        def __deepcopy__(self, memo):
            return self

        def choose(self, features):
            seen.append(features.copy())
            return len(features) - 1

    run = simulate(Environment(2, (1, 4)), Watching(), 40)
    for t, features in enumerate(seen):
        np.testing.assert_array_equal(features, run.log.arms(t))
    np.testing.assert_array_equal(run.log.chosen, run.log.n_arms - 1)
    X = run.log.features[run.log.chosen_rows].astype(np.float64)
    np.testing.assert_allclose(run.learner_theta, np.linalg.solve(np.eye(2) + X.T @ X, X.T @ run.rewards))


class Misbehaving:
    """Well until round 17."""

    def __init__(self, pick):
        self.pick, self.round = pick, -1

    def choose(self, features):  # noqa: ARG002
        self.round += 1
        return self.pick if self.round == 17 else 0

    def update(self, features_of_pick, reward):
        pass


@pytest.mark.parametrize(
    ("pick", "message"),
    [
        (5, r"round 17: the learner chose position 5, but 5 arms are on offer"),
        (-1, r"round 17: the learner chose position -1"),
        (1.0, r"round 17: the learner chose 1\.0, but must choose a position as a whole number"),
        (None, r"round 17: the learner chose None"),
        (np.array([1, 2]), r"round 17: the learner chose array"),
    ],
)
def test_a_bad_pick_is_refused_with_its_round(pick, message):
    with pytest.raises(InputError, match=message):
        simulate(Environment(2, 5), Misbehaving(pick), 30)


def test_a_learner_cannot_write_into_the_log():
    class Writing(Misbehaving):
        def choose(self, features):
            features[0] = 0.0
            return 0

    with pytest.raises(ValueError, match="read-only"):
        simulate(Environment(2, 5), Writing(0), 30)


def test_a_class_is_no_learner():
    with pytest.raises(InputError, match=r"LinUCB is a class: pass a learner made of it, LinUCB\(\)"):
        simulate(Environment(2, 3), LinUCB, n_rounds=5)


@pytest.mark.parametrize("thing", [None, 3])
def test_what_is_no_learner_is_refused(thing):
    with pytest.raises(InputError, match="is not a learner: it needs the methods choose and update"):
        simulate(Environment(2, 5), thing, 30)


@pytest.mark.parametrize(
    ("n_rounds", "seed", "message"), [(0, 0, "n_rounds is 0"), (1.5, 0, r"n_rounds is 1\.5"), (5, -1, "seed is -1")]
)
def test_bad_arguments_are_refused_by_name(n_rounds, seed, message):
    with pytest.raises(InputError, match=message):
        simulate(Environment(2, 3), LinUCB(), n_rounds, seed)
    with pytest.raises(InputError, match=message):
        list(simulate_many(Environment(2, 3), LinUCB(), n_rounds, [seed]))
