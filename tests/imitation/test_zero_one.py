"""The 0-1 search against the optimum: by enumeration of all cells, and by mixed-integer programming."""

from itertools import combinations

import numpy as np
import pytest

from onlooker.base.errors import InputError
from onlooker.evaluation.metrics import agreement
from onlooker.imitation.newton import minimise
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.imitation.zero_one import count_misses, exact_minimum, fewest_misses
from onlooker.imitation.zero_one.circles import Circles, deepest
from onlooker.kernels.zero_one import arcs
from onlooker.logs.log import BanditLog


def noisy_problem(seed):
    """Two to four features, ten to forty rounds of three arms, picks from nearly always right to nearly random."""
    rng = np.random.default_rng(seed)
    d, n_rounds = 2 + seed % 3, int(rng.integers(10, 41))
    X, theta = rng.normal(size=(n_rounds, 3, d)), rng.normal(size=d)
    noise = rng.choice([0.3, 1.0, 3.0]) * rng.gumbel(size=(n_rounds, 3))
    log = BanditLog.from_dense(X, (X @ theta / np.linalg.norm(theta) + noise).argmax(axis=1))
    objective = SoftmaxObjective(log, l2=1e-4)
    return objective, minimise(objective).theta


def most_explained(log, weights=None):
    """Largest weight of rounds that a theta explains, for features in general position.

    Rivals cut the space of theta into cones. Each has an edge where d - 1 rivals tie with their picks, and a step off
    the edge wins those d - 1, so looking at all edges looks at the best of all cones.
    """
    weights = np.ones(log.n_rounds) if weights is None else weights
    rounds = [(log.arms(t), log.chosen[t]) for t in range(log.n_rounds)]
    normals = np.concatenate([np.delete(arms[pick] - arms, pick, axis=0) for arms, pick in rounds])
    d = log.n_features
    ties = np.array(list(combinations(range(len(normals)), d - 1)))
    # The direction at right angles to d - 1 normals, by minors.
    edges = np.stack([(-1) ** j * np.linalg.det(np.delete(normals[ties], j, axis=2)) for j in range(d)], axis=1)
    leads, best = edges @ normals.T, 0.0
    for won in (leads > 0, leads < 0):
        won[np.arange(len(ties))[:, None], ties] = True
        rounds_won = np.logical_and.reduceat(won, np.r_[0, np.cumsum(log.n_arms - 1)[:-1]], axis=1)
        best = max(best, float((rounds_won @ weights).max()))
    return best


@pytest.mark.parametrize(("problems", "least"), [(8, 8), pytest.param(100, 97, marks=pytest.mark.slow)])
def test_search_reaches_the_optimum_and_never_ends_above_the_softmax(problems, least):
    reached = 0
    for seed in range(problems):
        objective, start = noisy_problem(seed)
        found, given = fewest_misses(objective, start), count_misses(objective, start)
        assert found.loss <= given.loss
        assert found.loss == 1 - agreement(found.theta, objective.log)
        most = most_explained(objective.log)
        assert found.agreed <= most
        reached += found.agreed == most
    assert reached >= least


@pytest.mark.parametrize("seed", [0, 3, 1, 4, 7, 2, 5])
def test_mixed_integer_programming_agrees_with_enumeration(seed):
    objective, _ = noisy_problem(seed)
    exact = exact_minimum(objective)
    assert exact.agreed == most_explained(objective.log)
    assert exact.loss == 1 - agreement(exact.theta, objective.log)


def test_weights_count_as_rounds():
    objective, start = noisy_problem(7)
    log, weights = objective.log, np.random.default_rng(1).integers(0, 4, objective.log.n_rounds).astype(float)
    rows = np.repeat(np.arange(log.n_rounds), weights.astype(int))
    weighted = SoftmaxObjective(log, l2=1e-4, weights=weights)
    repeated = SoftmaxObjective(BanditLog.from_dense(log.features.reshape(-1, 3, 3)[rows], log.chosen[rows]), l2=1e-4)
    found = fewest_misses(weighted, start)
    assert found.loss == pytest.approx(1 - most_explained(log, weights) / weights.sum())
    assert found.loss == pytest.approx(fewest_misses(repeated, start).loss)
    assert found.loss == pytest.approx(exact_minimum(weighted).loss)
    right = [int((log.arms(t) @ found.theta).argmax()) == log.chosen[t] for t in range(log.n_rounds)]
    assert found.loss == pytest.approx(1 - weights[right].sum() / weights.sum())
    assert found.agreed == weights[right].sum()


def test_uneven_weights_that_do_not_add_up_exactly():
    objective, start = noisy_problem(4)
    weights = np.random.default_rng(2).uniform(0.1, 3.0, objective.log.n_rounds)
    weighted = SoftmaxObjective(objective.log, l2=1e-4, weights=weights)
    most = most_explained(objective.log, weights)
    assert fewest_misses(weighted, start).loss == pytest.approx(1 - most / weights.sum())


def test_same_seed_same_theta_for_any_number_of_threads(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 4, 3)).astype(np.float32)
    chosen = (X @ [1.0, -1.0, 0.5] + rng.gumbel(size=(1500, 4))).argmax(axis=1)
    monkeypatch.setattr("onlooker.imitation.zero_one.circles.BLOCK_VALUES", 2000)
    monkeypatch.setattr("onlooker.imitation.zero_one.search.WORK", 200 * X.size)
    objective = SoftmaxObjective(BanditLog.from_dense(X, chosen), l2=1e-4)
    start = np.array([1.0, 0.2, 0.2])
    found = {}
    for threads in ("1", "2"):
        monkeypatch.setenv("ONLOOKER_THREADS", threads)
        found[threads] = fewest_misses(objective, start, seed=3)
    np.testing.assert_array_equal(found["1"].theta, found["2"].theta)
    assert found["1"].n_iter == found["2"].n_iter
    assert found["1"].loss < count_misses(objective, start).loss
    assert not np.array_equal(fewest_misses(objective, start, seed=4).theta, found["1"].theta)


@pytest.mark.parametrize("d", [1, 2])
def test_one_circle_holds_all_theta_of_two_features(d):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(30, 3, d))
    log = BanditLog.from_dense(X, rng.integers(0, 3, 30))
    objective = SoftmaxObjective(log, l2=1e-4)
    angles = np.linspace(0, 2 * np.pi, 20_001)
    thetas = np.stack([np.cos(angles), np.sin(angles)], axis=1) if d == 2 else np.array([[1.0], [-1.0]])
    best = max(np.mean((X @ theta).argmax(axis=1) == log.chosen) for theta in thetas)
    for start in (-np.ones(d), np.ones(d), np.zeros(d)):
        assert fewest_misses(objective, start).agreed == round(30 * best)


def test_stretches_are_where_the_policy_explains_what_is_said():
    objective, start = noisy_problem(2)
    circles, rng = Circles(objective), np.random.default_rng(0)
    theta = start
    for _ in range(5):
        direction = rng.normal(size=len(theta))
        circles.stand(theta)
        found = circles.look(direction)
        for angle in found.middles:
            assert count_misses(objective, np.cos(angle) * theta + np.sin(angle) * direction).agreed == found.covered
        around = np.linspace(-np.pi, np.pi, 2001)
        most = max(count_misses(objective, np.cos(a) * theta + np.sin(a) * direction).agreed for a in around)
        assert most <= found.covered
        circles.turn(found.middles[0])
        theta = np.cos(found.middles[0]) * theta + np.sin(found.middles[0]) * direction


def test_arcs_over_the_seam_whole_circles_and_none():
    found = deepest(np.array([3.0, -3.1]), np.array([0.5, 1.0]), np.array([1.0, 1.0]), slack=1e-9)
    assert found.covered == 2.0
    np.testing.assert_allclose(found.middles, [(-3.1 + 3.5 - 2 * np.pi) / 2])
    np.testing.assert_allclose(found.widths, [3.5 - 2 * np.pi + 3.1])
    assert deepest(np.zeros(2), np.array([2 * np.pi, 0.0]), np.array([3.0, 1.0]), slack=1e-9).covered == 3.0


def test_the_first_of_equal_arms_is_chosen():
    """A pick with a twin before it cannot be explained, one with a twin behind it can."""
    X = np.array([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]] * 4)
    objective = SoftmaxObjective(BanditLog.from_dense(X, chosen=[0, 0, 1, 1]), l2=1e-4)
    for found in (fewest_misses(objective, np.array([-1.0, 1.0])), exact_minimum(objective)):
        assert found.agreed == 2
        assert found.theta[0] > found.theta[1]


def test_rounds_of_one_arm_carry_no_weight():
    objective, start = noisy_problem(1)
    log = objective.log
    features = np.concatenate([log.features, np.ones((2, log.n_features))])
    longer = BanditLog(features, np.r_[log.offsets, log.offsets[-1] + [1, 2]], np.r_[log.chosen, 0, 0])
    found, more = fewest_misses(objective, start), fewest_misses(SoftmaxObjective(longer, l2=1e-4), start)
    np.testing.assert_array_equal(found.theta, more.theta)
    assert (found.loss, found.agreed) == (more.loss, more.agreed)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e5])
def test_constant_collinear_and_badly_scaled_features(scale):
    objective, start = noisy_problem(5)
    x = objective.log.features
    shared = np.repeat(np.random.default_rng(0).normal(size=(objective.log.n_rounds, 1)), 3, axis=0)
    wide = np.hstack([scale * x, x.sum(axis=1, keepdims=True), 1e6 + shared, np.ones_like(shared)])
    log = BanditLog(wide, objective.log.offsets, objective.log.chosen)
    found = fewest_misses(SoftmaxObjective(log, l2=1e-4), np.r_[start / scale, np.zeros(3)])
    assert found.agreed == most_explained(objective.log)


def test_nothing_to_choose_by_leaves_the_start():
    log = BanditLog.from_dense(np.ones((4, 2, 2)), chosen=[0, 0, 0, 1])
    found = fewest_misses(SoftmaxObjective(log, l2=1e-4), np.zeros(2))
    assert (found.loss, found.n_iter, found.theta.tolist()) == (0.25, 0, [0.0, 0.0])


def test_a_start_that_explains_all_is_the_answer():
    X = np.random.default_rng(0).normal(size=(50, 3, 4))
    theta = np.array([1.0, 2.0, 3.0, 4.0])
    found = fewest_misses(SoftmaxObjective(BanditLog.from_dense(X, (X @ theta).argmax(axis=1)), l2=1e-4), theta)
    np.testing.assert_array_equal(found.theta, theta)
    assert (found.loss, found.n_iter) == (0.0, 0)


def test_a_perfect_theta_is_found_from_afar():
    X = np.random.default_rng(0).normal(size=(300, 5, 5))
    theta = np.array([1.0, -2.0, 0.5, 3.0, 1.0])
    objective = SoftmaxObjective(BanditLog.from_dense(X, (X @ theta).argmax(axis=1)), l2=1e-4)
    assert fewest_misses(objective, -theta).loss == 0


def test_progress_grows_and_ends_at_the_whole():
    objective, start = noisy_problem(2)
    told = []
    fewest_misses(objective, start, progress=lambda done, total: told.append((done, total)))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[0][0] == 1
    assert told[-1][0] == told[-1][1]


def test_an_exact_minimum_that_takes_too_long_is_refused():
    rng = np.random.default_rng(0)
    log = BanditLog.from_dense(rng.normal(size=(300, 4, 6)), rng.integers(0, 4, 300))
    with pytest.raises(InputError, match="300 rounds are too many for an exact minimum"):
        exact_minimum(SoftmaxObjective(log, l2=0.0), seconds=0.2)


def test_rivals_in_one_direction_leave_half_of_a_circle():
    rng = np.random.default_rng(0)
    for _ in range(2000):
        (c, p), times = rng.normal(size=2), rng.choice([1, 2, 3, 0.5, 1 / 3, 0.7])
        low, length = np.zeros(1), np.zeros(1)
        leads = np.array([0, c, times * c]), np.array([0, p, times * p])
        arcs(np.array([0, 3]), np.array([0]), np.ones(1), 0, 1, *leads, low, length)
        assert length[0] == pytest.approx(np.pi, abs=1e-6)
