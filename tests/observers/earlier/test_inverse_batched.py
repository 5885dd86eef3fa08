"""The batched objective against plain algebra, its minimum against a quadratic programme solved by SciPy."""

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from onlooker.base.errors import InputError
from onlooker.imitation.newton import minimise
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.logs.log import BanditLog
from onlooker.observers.earlier.inverse_batched import BatchedObjective, minimise_hinge, minimise_logit
from onlooker.simulation.environment import Environment
from onlooker.simulation.learners import LinTS, LinUCB
from onlooker.simulation.play import simulate

PLAIN = {"batch": 3, "ridge": 0.7, "alpha": 0.2, "margin": 0.1, "l2": 0.02}


def played(d=3, n=25, arms=(1, 5), seed=0, learner=None):
    environment = Environment(d, arms, seed=seed)
    return simulate(environment, LinTS() if learner is None else learner, n, seed=seed).log


def as_seen(log, *, batch, ridge, alpha):
    """Rows and bonuses by inverting the matrix anew for every round."""
    rows, bonus = [], []
    for t in range(log.n_rounds):
        known = t // batch * batch
        picks = log.features[log.chosen_rows[:known]].astype(float)
        inverse = np.linalg.inv(ridge * np.eye(log.n_features) + picks.T @ picks)
        for x in log.arms(t).astype(float):
            rows.append(x - ridge * inverse @ x)
            bonus.append(alpha * np.sqrt(x @ inverse @ x))
    return np.array(rows), np.array(bonus)


@pytest.mark.parametrize("batch", [1, 3, 7, 100])
def test_rows_are_those_of_the_learners_own_matrix(batch):
    log = played()
    objective = BatchedObjective(log, **PLAIN | {"batch": batch})
    rows, bonus = as_seen(log, batch=batch, ridge=0.7, alpha=0.2)
    np.testing.assert_allclose(objective.rows, rows, atol=1e-12)
    np.testing.assert_allclose(objective.bonus, bonus, atol=1e-12)


def test_rows_score_as_the_estimate_of_a_learner_with_exact_rewards():
    environment = Environment(4, 6, noise=1e-12, seed=1)
    simulation = simulate(environment, LinUCB(batch=10), 60, seed=1)
    objective = BatchedObjective(simulation.log, batch=10, ridge=1.0, alpha=0.1, margin=0.1, l2=0.01)
    for t in (9, 10, 35, 59):
        estimate = simulation.learner_path([t // 10 * 10])[0] if t >= 10 else np.zeros(4)
        offered = slice(simulation.log.offsets[t], simulation.log.offsets[t + 1])
        expected = simulation.log.features[offered] @ estimate
        np.testing.assert_allclose(objective.rows[offered] @ environment.theta_star, expected, atol=1e-6)
    # Such a learner's own parameter leaves nothing to pay for, but for the margin.
    assert objective.evaluate(environment.theta_star, width=1e-6).hinge <= 0.1 + 0.005 * 1.01


@pytest.mark.parametrize("width", [1.0, 0.05])
def test_gradient_and_hessian(width):
    objective = BatchedObjective(played(seed=2), **PLAIN)
    theta, step = np.array([0.3, -0.2, 0.5]), 1e-5
    here = objective.evaluate(theta, width=width)
    for j, move in enumerate(step * np.eye(3)):
        up, down = (objective.evaluate(theta + sign * move, width=width) for sign in (1, -1))
        assert (up.value - down.value) / (2 * step) == pytest.approx(here.gradient[j], rel=1e-5, abs=1e-8)
        np.testing.assert_allclose((up.gradient - down.gradient) / (2 * step), here.hessian[j], rtol=1e-3, atol=1e-6)


def programme(log, *, batch, ridge, alpha, margin, l2):
    """The quadratic programme in (theta, xi) as SciPy's SLSQP solves it: its least value."""
    rows, bonus = as_seen(log, batch=batch, ridge=ridge, alpha=alpha)
    d, n = log.n_features, log.n_rounds
    matrix, right = [], []
    for t, pick in enumerate(log.chosen_rows):
        for rival in range(log.offsets[t], log.offsets[t + 1]):
            if rival != pick:
                matrix.append(np.concatenate([rows[pick] - rows[rival], np.eye(n)[t]]))
                right.append(margin - (bonus[pick] - bonus[rival]))
    choices = np.count_nonzero(log.n_arms > 1)

    def value(z):
        return l2 / 2 * z[:d] @ z[:d] + z[d:].sum() / choices

    def slope(z):
        return np.concatenate([l2 * z[:d], np.full(n, 1 / choices)])

    found = minimize(
        value,
        np.concatenate([np.zeros(d), np.ones(n)]),
        jac=slope,
        bounds=[(None, None)] * d + [(0, None)] * n,
        constraints=LinearConstraint(np.array(matrix), lb=np.array(right)),
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-13},
    )
    assert found.success
    return found.fun, found.x[:d]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("changes", [{}, {"alpha": 0.0, "batch": 1}, {"l2": 0.5}, {"margin": 0.01, "ridge": 2.0}])
def test_the_minimum_is_that_of_the_quadratic_programme(seed, changes):
    settings = PLAIN | changes
    log = played(seed=seed)
    found = minimise_hinge(BatchedObjective(log, **settings), tolerance=1e-7)
    least, theta = programme(log, **settings)
    assert found.converged
    assert -1e-9 <= found.at.hinge - least <= found.at.gap + 1e-9
    # Strongly convex: values that close are parameters this close.
    np.testing.assert_allclose(found.at.theta, theta, atol=2 * np.sqrt(2 * (found.at.gap + 1e-9) / settings["l2"]))


def test_the_gap_bounds_the_distance_to_the_minimum_anywhere():
    log = played(seed=3)
    objective = BatchedObjective(log, **PLAIN)
    least, _ = programme(log, **PLAIN)
    rng = np.random.default_rng(0)
    for width in (1.0, 0.1, 0.001):
        for theta in rng.normal(size=(10, 3)):
            at = objective.evaluate(theta, width=width)
            assert at.hinge - least <= at.gap + 1e-9


def test_the_logit_is_the_softmax_fit_of_the_rows():
    log = played(d=4, n=400, arms=(2, 8), seed=4)
    objective = BatchedObjective(log, **PLAIN | {"alpha": 0.0, "margin": 0.0, "l2": 1e-3})
    seen = BanditLog(objective.rows, log.offsets, log.chosen)
    expected = minimise(SoftmaxObjective(seen, l2=1e-3)).at
    found = minimise_logit(objective)
    assert found.at.value == pytest.approx(expected.value, rel=1e-7)
    np.testing.assert_allclose(found.at.theta, expected.theta, rtol=1e-3)


def test_threads_make_no_difference(monkeypatch):
    log = played(d=20, n=3000, arms=40)
    answers = []
    for threads in ("1", "3"):
        monkeypatch.setenv("ONLOOKER_THREADS", threads)
        answers.append(BatchedObjective(log, **PLAIN).evaluate(np.full(20, 0.1), width=0.1))
    assert answers[0].value == answers[1].value
    np.testing.assert_array_equal(answers[0].hessian, answers[1].hessian)


def test_no_choice():
    with pytest.raises(InputError, match="no round offers a choice"):
        BatchedObjective(BanditLog.from_dense(np.ones((3, 1, 2)), chosen=[0, 0, 0]), **PLAIN)
