"""What every learner must do, whatever its idea; learners are found, not listed."""

import copy
import dataclasses
import inspect

import numpy as np
import pytest

from onlooker.base.errors import InputError
from onlooker.simulation import learners
from onlooker.simulation import ridge as ridge_module
from onlooker.simulation.environment import Environment
from onlooker.simulation.learners import ExploreThenCommit, LinTS, LinUCB
from onlooker.simulation.play import simulate
from onlooker.simulation.ridge import Learner, RidgeLearner

CLASSES = [
    cls
    for cls in vars(learners).values()
    if inspect.isclass(cls) and issubclass(cls, RidgeLearner) and not inspect.isabstract(cls)
]


class Slow:
    """Hides the compiled loop over rounds: only choose and update are left."""

    def __init__(self, learner, environment):
        self.learner, self.environment = learner, environment

    def reset(self, rng):
        d, noise = self.environment.n_features, self.environment.noise
        self.player = self.learner.start(rng, n_features=d, noise=noise)

    def choose(self, features):
        return self.player.choose(features)

    def update(self, features_of_pick, reward):
        self.player.update(features_of_pick, reward)


def played(environment, learner, n_rounds, seed=0):
    """A player after so many rounds, with its picked rows and rewards."""
    player = learner.start(np.random.default_rng(seed), n_features=environment.n_features, noise=environment.noise)
    contexts = environment.contexts(n_rounds, seed)
    chosen, rewards = np.empty(n_rounds, dtype=np.int64), np.empty(n_rounds)
    noise = environment.reward_noise(n_rounds, seed)
    for block in range(contexts.n_blocks):
        player.play(contexts, contexts.draw(block), environment.theta_star, noise, chosen, rewards)
    return player, contexts.features[contexts.offsets[:-1] + chosen].astype(np.float64), rewards


def test_all_seven_are_found():
    assert len(CLASSES) == 7


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("environment", [Environment(13, 9), Environment(4, (1, 6), dtype="float64")], ids=repr)
def test_round_by_round_equals_the_compiled_loop(cls, batch, environment):
    learner = cls(explore=150, batch=batch) if cls is ExploreThenCommit else cls(batch=batch)
    fast = simulate(environment, learner, 700, seed=4)
    slow = simulate(environment, Slow(learner, environment), 700, seed=4)
    np.testing.assert_array_equal(fast.log.features, slow.log.features)
    np.testing.assert_array_equal(fast.log.chosen, slow.log.chosen)
    np.testing.assert_array_equal(fast.rewards, slow.rewards)


@pytest.mark.parametrize("cls", CLASSES)
def test_parameters_are_frozen_and_shown(cls):
    learner = cls(ridge=2, batch=3)
    assert repr(learner).startswith(f"{cls.__name__}(")
    assert repr(learner).endswith("ridge=2.0, batch=3)")
    assert learner == cls(ridge=2.0, batch=3) != cls()
    assert hash(learner) == hash(copy.deepcopy(learner))
    with pytest.raises(dataclasses.FrozenInstanceError):
        learner.ridge = 1.0


@pytest.mark.parametrize("cls", CLASSES)
def test_the_first_parameter_may_be_positional_and_the_shared_ones_may_not(cls):
    own = [part.name for part in dataclasses.fields(cls) if part.name not in {"ridge", "batch"}]
    if own:
        value = 5 if own[0] == "explore" else 0.5
        assert getattr(cls(value), own[0]) == value
    with pytest.raises(TypeError, match="positional"):
        cls(*[0.5] * (len(own) + 1))


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize(
    ("name", "value"),
    [("ridge", 0.0), ("ridge", float("inf")), ("ridge", "1"), ("batch", 0), ("batch", 1.5), ("batch", None)],
)
def test_shared_parameters_are_checked(cls, name, value):
    with pytest.raises(InputError, match=f"^{name} is "):
        cls(**{name: value})


@pytest.mark.parametrize("cls", CLASSES)
def test_own_parameters_are_checked(cls):
    for part in dataclasses.fields(cls):
        for value in (-1, float("nan"), "0.1"):
            with pytest.raises(InputError, match=f"^{part.name} is "):
                cls(**{part.name: value})


@pytest.mark.parametrize("cls", CLASSES)
def test_a_player_is_a_learner_and_refuses_rows_of_another_width(cls):
    player = cls().start(np.random.default_rng(0), n_features=3, noise=0.1)
    assert isinstance(player, Learner)
    for features in (np.ones((4, 2)), np.ones(3), np.ones((0, 3))):
        with pytest.raises(InputError, match=r"features has shape .*: pass 3 numbers an arm"):
            player.choose(features)
    with pytest.raises(InputError, match=r"pass 3 numbers$"):
        player.update(np.ones(2), 1.0)


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize(
    "kind", [list, np.asfortranarray, lambda rows: rows.astype(np.int64), lambda rows: rows[:, ::-1]]
)
def test_a_player_takes_rows_of_any_layout(cls, kind):
    rows = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    player = cls().start(np.random.default_rng(0), n_features=3, noise=0.1)
    assert player.choose(kind(rows)) in {0, 1}
    player.update(kind(rows)[1], 0.5)


@pytest.mark.parametrize("cls", CLASSES)
def test_noise_free_rewards_lead_to_the_truth(cls):
    environment = Environment(3, 5, noise=0.0, dtype="float64")
    player, X, rewards = played(environment, cls(ridge=1e-6), 1500)
    assert np.abs(player.theta - environment.theta_star).max() < 1e-5
    assert np.abs(X @ environment.theta_star - rewards).max() < 1e-14


@pytest.mark.parametrize("ridge", [1.0, 0.01])
def test_the_inverse_does_not_drift(ridge):
    player, X, rewards = played(Environment(10, 5), LinTS(ridge=ridge), 20_000)
    V = ridge * np.eye(10) + X.T @ X
    assert np.abs(player.inverse - np.linalg.inv(V)).max() < 1e-8
    assert np.abs(player.theta - np.linalg.solve(V, X.T @ rewards)).max() < 1e-8
    factor = np.triu(player._state.factor)
    assert np.abs(factor.T @ factor - V).max() < 1e-8 * np.abs(V).max()
    assert player._state.growth[0] == pytest.approx(np.linalg.slogdet(V)[1] - 10 * np.log(ridge), rel=1e-9)


@pytest.mark.parametrize("d", [1, 2, 7, 50])
def test_the_eigenvalue_bound_is_above_and_near(d):
    rng = np.random.default_rng(d)
    for scale in (1e-12, 1.0, 1e9):
        root = rng.standard_normal((d, d + 2)) * np.logspace(0, -3, d)[:, None]
        matrix = scale * root @ root.T
        largest = np.linalg.eigvalsh(matrix)[-1]
        bound = ridge_module.largest_eigenvalue(matrix)
        assert largest <= bound <= largest * d ** (1 / 32) * (1 + 1e-8)


@pytest.mark.parametrize("alpha", [0.1, 2.0])
@pytest.mark.parametrize("environment", [Environment(20, 50), Environment(2, (1, 30), dtype="float64")], ids=repr)
def test_passing_over_arms_changes_no_pick(alpha, environment, monkeypatch):
    pruned = simulate(environment, LinUCB(alpha), 1500, seed=1)
    monkeypatch.setattr(ridge_module, "largest_eigenvalue", lambda _: np.inf)
    full = simulate(environment, LinUCB(alpha), 1500, seed=1)
    np.testing.assert_array_equal(pruned.log.chosen, full.log.chosen)
    np.testing.assert_array_equal(pruned.rewards, full.rewards)


def test_committing_before_the_first_batch_is_refused():
    with pytest.raises(InputError, match="explore is 5, but the first rewards are seen after a batch of 10 rounds"):
        ExploreThenCommit(5, batch=10)
