"""The path by expectation propagation: against a posterior by brute force, and its bands where one pass is too sure."""

import numpy as np
import pytest
from scipy.special import log_softmax

from observers.dynamic.walker import walking_log
from onlooker import BanditLog
from onlooker.base.errors import ConvergenceWarning
from onlooker.observers import DynamicImitation
from onlooker.observers.dynamic import smoother, weights
from onlooker.observers.dynamic.members import bank


@pytest.mark.parametrize(
    ("moves", "least"),
    [
        # The law that stands still predicts best here, and its own bands hold two thirds of these weights.
        ({"step": 1e-5, "random": 0.0, "n_arms": 10}, 0.85),
        # Nine picks in ten are the best arm: one pass of the filter holds half of these weights.
        ({"step": 2e-3, "random": 0.0, "d": 16, "size": 3.0}, 0.88),
    ],
    ids=["slow", "sharp"],
)
def test_bands_cover_what_one_pass_does_not(moves, least):
    inside = []
    for seed in range(4):
        log, truth = walking_log(seed, **moves)
        path = DynamicImitation().fit(log).path_
        low, high = path.band()
        known = truth[path.rounds - 1]
        inside.append(((low <= known) & (known <= high))[10:])
    assert np.mean(inside) > least


def test_weights_that_jump_do_so_in_one_round():
    inside, errors = [], []
    for seed in range(3):
        log, truth = walking_log(seed, jump=1200)
        observer = DynamicImitation(checkpoints=range(1100, 1301, 10)).fit(log)
        path = observer.path_
        known = truth[path.rounds - 1]
        low, high = path.band()
        inside.append((low <= known) & (known <= high))
        # The jump is found to within some rounds.
        errors.append(np.abs(path.theta - known)[np.abs(path.rounds - 1200) > 10])
        assert observer.changes_
    assert np.mean(inside) > 0.8
    assert np.mean(errors) < 0.15


def test_a_policy_that_never_changes_does_not_jump_or_grow_however_certain_its_picks():
    inside, lengths = [], []
    for seed in range(4):
        log, truth = walking_log(seed, n_rounds=1500, n_arms=10, d=4, random=0.0, size=20.0)
        observer = DynamicImitation().fit(log)
        path = observer.path_
        low, high = path.band()
        inside.append((low <= truth[0]) & (truth[0] <= high))
        lengths.append(np.linalg.norm(path.theta, axis=1) / np.linalg.norm(truth[0]))
        assert observer.changes_ == ()
    assert np.mean(inside) > 0.8
    assert 0.7 < np.min(lengths) < np.max(lengths) < 1.5


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OneArmRoundsWarning")
def test_few_rounds_with_a_choice_keep_what_was_believed_before_them():
    log, _ = walking_log(1, n_rounds=300, n_arms=4)
    alone = BanditLog(np.ones((2000, 4)), np.arange(2001), np.zeros(2000, dtype=int))
    path = DynamicImitation().fit(BanditLog.concat([alone, log[:30]])).path_
    assert np.linalg.norm(path.theta[-1]) < 5


def test_certain_picks_have_the_posterior_that_a_grid_has():
    log, _ = walking_log(3, n_rounds=150, n_arms=4, d=2, random=0.0, size=4.0)
    rounds = DynamicImitation().fit(log)._pending
    # The seventh member takes no pick for random; here nothing moves.
    law = bank(2)[0]._replace(random=0.0)
    sites = None
    for _ in range(12):
        sites = weights._sites(rounds, law, 7, sites)
    (one,) = smoother.backwards(rounds, law, 7, sites)
    mean, spread = one.smoothed[0][-1, :2], one.smoothed[1][-1, :2, :2]
    (once,) = smoother.backwards(rounds, law, 7)

    side = np.linspace(-6, 6, 241) * 2
    grid = mean + np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    prior = smoother.first_member(rounds, 7, sites).spread[0, 0]
    logs = -0.5 * (grid**2).sum(axis=1) / prior
    block = rounds.take(0, 150)
    for t in range(150):
        logs += log_softmax(grid @ block.rows[block.offsets[t] : block.offsets[t + 1]].T, axis=1)[:, block.chosen[t]]
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    exact = shares @ grid
    errors = np.sqrt(shares @ (grid - exact) ** 2)

    assert (np.abs(mean - exact) / errors).max() < 0.2
    np.testing.assert_allclose(np.sqrt(np.diag(spread)), errors, rtol=0.15)
    assert (np.abs(once.smoothed[0][-1, :2] - exact) / errors).max() > 2


def test_a_log_that_is_too_long_keeps_the_first_pass(monkeypatch):
    log, _ = walking_log(2, n_rounds=400)
    again = DynamicImitation().fit(log).path_
    monkeypatch.setattr(weights, "WORK", 100)
    once = DynamicImitation().fit(log).path_
    assert np.abs(once.theta - again.theta).max() > 1e-3
    assert once.rounds.tolist() == again.rounds.tolist()


def test_what_does_not_settle_is_said_and_leaves_the_first_pass(monkeypatch):
    log, _ = walking_log(2, n_rounds=400)
    monkeypatch.setattr(weights, "_settled", lambda *_: None)
    with pytest.warns(ConvergenceWarning, match="did not settle"):
        path = DynamicImitation().fit(log).path_
    assert np.isfinite(path.theta).all()
    assert (path.standard_error > 0).all()
