"""Additive scores: the minimum is the penalised one, curves are recovered, bands cover, constraints hold."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize
from scipy.stats import binom

from onlooker import Additive, AdditivePolicy, BanditLog, InputError, SuffixImitation, load_policy
from onlooker.imitation.bounded import minimise_bounded, step_within
from onlooker.imitation.choice_model import pick_likelihood
from onlooker.imitation.softmax import SoftmaxObjective


def curved(n, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.uniform(-2, 2, (n, 4)), rng.uniform(0, 10, (n, 4)), rng.integers(0, 2, (n, 4))], axis=-1)
    scores = 2 * np.sin(2 * X[..., 0]) - 2 * np.log1p(X[..., 1]) + X[..., 2]
    chosen = (scale * scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    return BanditLog.from_dense(X, chosen, feature_names=["angle", "price", "red"])


@pytest.fixture(scope="module")
def log():
    return curved(2000, 0)


@pytest.fixture(scope="module")
def observer(log):
    return SuffixImitation(burn_in="naive", score=Additive()).fit(log)


def test_curves_are_recovered_and_yes_or_no_stays_a_weight(observer, log):
    assert repr(observer.policy_) == "AdditivePolicy(3 features, 2 curves)"
    x = np.linspace(-1.8, 1.8, 30)
    truth = 2 * np.sin(2 * x) - 2 * np.sin(2 * log.features[:, 0]).mean()
    effect = observer.policy_.effect("angle", x)
    assert np.abs(effect.effect - truth).max() < 0.5
    assert effect.has_band
    assert ((effect.low < truth) & (truth < effect.high)).mean() > 0.8
    assert observer.policy_.theta[2] == pytest.approx(1.0, abs=0.25)
    found = {one.name: one for one in observer.summary().coefficients}
    assert set(found) == {"angle", "price", "red"}
    # The mean of the slope -2 / (1 + x) between 0 and 10.
    assert found["price"].estimate == pytest.approx(-2 * np.log(11) / 10, abs=0.12)
    assert not observer.warnings_


def test_the_fit_is_the_minimum_of_the_penalised_loss(log):
    basis = Additive(knots=4).prepared(log, l2=1e-3)
    columns = basis.basis(log)
    theta = SuffixImitation(burn_in="naive", l2=1e-3, score=Additive(knots=4)).fit(log)._theta

    def value(weights):
        return pick_likelihood(columns.features @ weights, log).losses.mean() + 0.5e-3 * weights @ weights

    rng = np.random.default_rng(0)
    least = value(theta)
    for _ in range(50):
        assert value(theta + 1e-3 * rng.normal(size=len(theta))) > least


def test_a_policy_scores_as_its_basis_does_within_rounds(log):
    model = Additive(knots=5, interactions=[("angle", "price"), ("price", "red")]).prepared(log, l2=1e-4)
    columns = model.basis(log)
    theta = np.random.default_rng(0).normal(size=columns.n_features)
    scores, others = model.policy(theta, log).scores(log), columns.features @ theta
    np.testing.assert_allclose(scores - scores[0], others - others[0], atol=1e-9)


def test_curves_that_are_not_called_for_become_lines():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 4, 2))
    picks = (X @ [1.0, -0.5] + rng.gumbel(size=(3000, 4))).argmax(axis=1)
    log = BanditLog.from_dense(X, picks)
    curve = SuffixImitation(burn_in="naive", score=Additive()).fit(log)
    line = SuffixImitation(burn_in="naive").fit(log)
    x = np.linspace(-2, 2, 50)
    for name in ("x0", "x1"):
        bent = curve.policy_.effect(name, x).effect
        assert np.abs(bent - np.polyval(np.polyfit(x, bent, 1), x)).max() < 0.1
    assert curve.loss_ == pytest.approx(line.loss_, abs=2e-3)


def test_monotone_curves_never_fall_and_are_the_constrained_minimum():
    log = curved(800, 4)
    model = Additive(knots=4, monotone={"angle": 1, "price": -1})
    observer = SuffixImitation(burn_in="naive", score=model).fit(log)
    x = np.linspace(-5, 15, 500)
    assert (np.diff(observer.policy_.effect("angle", x).effect) > -1e-9).all()
    assert (np.diff(observer.policy_.effect("price", x).effect) < 1e-9).all()
    # SciPy's constrained solver finds nothing better.
    basis = model.prepared(log, l2=1e-4)
    objective = SoftmaxObjective(basis.basis(log), l2=1e-4)
    fit, _ = minimise_bounded(objective, basis.positive)
    assert (fit.theta[basis.positive] >= 0).all()
    bounds = [(0, None) if one else (None, None) for one in basis.positive]
    other = minimize(
        lambda w: (objective.slope(w).value, objective.slope(w).gradient),
        np.zeros(objective.n_features),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": 5000, "ftol": 1e-14, "gtol": 1e-9},
    )
    assert objective.slope(fit.theta).value <= other.fun + 1e-8


def test_bounded_steps_are_the_minimum_of_the_quadratic():
    rng = np.random.default_rng(0)
    for _ in range(20):
        root, pull, positive = rng.normal(size=(6, 6)), rng.normal(size=6), rng.random(6) < 0.6
        hessian = root @ root.T + 0.1 * np.eye(6)
        step, _ = step_within(np.zeros(6), pull, hessian, positive)
        low = np.where(positive, 0.0, -1e6)
        other = minimize(
            lambda w, h=hessian, p=pull: 0.5 * w @ h @ w + p @ w,
            np.zeros(6),
            constraints=LinearConstraint(np.eye(6), low, np.full(6, 1e6)),
            options={"maxiter": 1000, "ftol": 1e-13},
        )
        np.testing.assert_allclose(step, other.x, atol=1e-4)


def test_interactions_find_what_curves_cannot():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2500, 4, 2))
    log = BanditLog.from_dense(
        X, (2 * X[..., 0] * X[..., 1] + rng.gumbel(size=(2500, 4))).argmax(axis=1), feature_names=["a", "b"]
    )
    alone = SuffixImitation(burn_in="naive", score=Additive()).fit(log[:2000])
    both = SuffixImitation(burn_in="naive", score=Additive(interactions=[("a", "b")])).fit(log[:2000])
    assert alone.score(log[2000:]) < 0.4
    assert both.score(log[2000:]) > 0.6


def test_weights_of_two_are_two_rounds(log):
    some, weights = log[:400], np.tile([2.0, 1.0], 200)
    twice = log[np.repeat(np.arange(400), weights.astype(int))]
    model = Additive(knots=4)
    a = SuffixImitation(burn_in="naive", score=model, covariance="model").fit(some, weights)
    b = SuffixImitation(burn_in="naive", score=model, covariance="model").fit(twice)
    np.testing.assert_allclose(a.policy_.scores(some), b.policy_.scores(some), atol=0.05)


def test_saved_copied_and_matched_by_name(observer, log, tmp_path):
    policy = observer.policy_
    policy.save(tmp_path / "policy.json")
    for again in (load_policy(tmp_path / "policy.json"), pickle.loads(pickle.dumps(policy))):
        assert isinstance(again, AdditivePolicy)
        np.testing.assert_array_equal(again.scores(log), policy.scores(log))
        np.testing.assert_array_equal(again.effect("price").high, policy.effect("price").high)
    swapped = log.with_features(log.features[:, ::-1], ["red", "price", "angle"])
    np.testing.assert_allclose(policy.scores(swapped), policy.scores(log))
    assert list(policy.effect("price").to_frame().columns) == ["x", "effect", "low", "high"]


def test_wrong_parameters_get_one_line(log):
    with pytest.raises(InputError, match="knots"):
        Additive(knots=1)
    with pytest.raises(InputError, match="monotone"):
        Additive(monotone={"price": 2})
    with pytest.raises(InputError, match="pairs"):
        Additive(interactions=[("price",)])
    with pytest.raises(InputError, match="no feature 'prize'"):
        SuffixImitation(score=Additive(monotone={"prize": -1})).fit(log)
    with pytest.raises(InputError, match="no feature 'prize'"):
        SuffixImitation(score=Additive()).fit(log).policy_.effect("prize")
    with pytest.raises(InputError, match="score is 'bent'"):
        SuffixImitation(score="bent").fit(log)
    with pytest.raises(InputError, match="monotone"):
        SuffixImitation(score=Additive(monotone={"price": -1}), loss="zero_one").fit(log[:100])


SHAPES = {
    "wave": lambda x: 2 * np.sin(2 * x),
    "line": lambda x: x,
    "flat": lambda x: 0 * x,
    "growth": lambda x: np.exp(x) / 2,
    "corner": lambda x: 2 * np.abs(x) - x,
    "step": lambda x: 2 * np.tanh(4 * x),
    "faint": lambda x: 0.7 * np.log(x + 2.7),
}


def covered(shapes, n_logs, n_rounds):
    """How often the 95% band of each shape has the truth, at 40 points each: counts of logs, shape (shapes, 40)."""
    hits = np.zeros((len(shapes), 40))
    for seed in range(n_logs):
        rng = np.random.default_rng(seed)
        X = np.clip(rng.normal(size=(n_rounds, 4, len(shapes))), -2.5, 2.5)
        scores = sum(SHAPES[shape](X[..., j]) for j, shape in enumerate(shapes))
        log = BanditLog.from_dense(X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1))
        with warnings.catch_warnings(action="ignore"):
            observer = SuffixImitation(burn_in="naive", score=Additive()).fit(log)
        for j, shape in enumerate(shapes):
            x = np.quantile(X[..., j], np.linspace(0.01, 0.99, 40))
            effect, truth = observer.effect(f"x{j}", x), SHAPES[shape](x) - SHAPES[shape](X[..., j]).mean()
            hits[j] += (effect.low <= truth) & (truth <= effect.high)
            assert ((effect.low <= effect.effect) & (effect.effect <= effect.high)).all()
    return hits


@pytest.mark.parametrize("shape", SHAPES)
def test_bands_cover_point_by_point(shape):
    """Among 40 points of 92% the least of 100 logs is below 82 once in a hundred times; at a corner it was 70."""
    hits = covered([shape], 100, 500)[0]
    assert 91 <= hits.mean() <= 98.5
    assert hits.min() >= 82


@pytest.mark.slow
@pytest.mark.parametrize("shapes", [list(SHAPES)[:5], list(SHAPES)[3:]])
def test_bands_cover_point_by_point_over_200_logs(shapes):
    hits = covered(shapes, 200, 700)
    assert ((hits.mean(axis=1) > 0.92 * 200) & (hits.mean(axis=1) < 0.98 * 200)).all()
    # So few would be less likely than 1 in 1,000 at a coverage of 92%.
    assert hits.min() >= binom.ppf(1e-3, 200, 0.92)


def test_bands_are_wide_where_hardly_anything_is_picked():
    """Nobody picks an arm above 1.5: its picks scatter by nothing, which is no sign that the curve is known there."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(500, 4, 1))
    scores = np.where(X[..., 0] > 1.5, -4.0, np.sin(X[..., 0]))
    log = BanditLog.from_dense(X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1))
    effect = SuffixImitation(burn_in="naive", score=Additive()).fit(log).effect("x0", np.array([0.0, 1.9]))
    middle, rare = effect.high - effect.low
    assert rare > 2 * middle


def test_effects_are_differences_to_the_mean_over_all_rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6000, 4, 2))
    log = BanditLog.from_dense(X, (X[..., 0] + rng.gumbel(size=(6000, 4))).argmax(axis=1))
    score = Additive(monotone={"x1": 1}, interactions=[("x0", "x1")])
    policy = SuffixImitation(burn_in="naive", score=score, covariance="model").fit(log).policy_
    for j in (0, 1):
        assert abs(policy.effect(f"x{j}", X[..., j].ravel()).effect.mean()) < 1e-9


def test_a_faint_curve_is_a_preference_and_uniform_picks_are_none():
    """What the picks leave of a curve counts for the degrees of freedom, not all of its columns."""
    rng = np.random.default_rng(4)
    X = np.clip(rng.normal(size=(500, 4, 1)), -2.5, 2.5)
    faint = (0.3 * X[..., 0] + rng.gumbel(size=(500, 4))).argmax(axis=1)
    observer = SuffixImitation(burn_in="naive", score=Additive()).fit(BanditLog.from_dense(X, faint))
    assert not observer.warnings_
    assert observer.rank_ <= 3
    with pytest.warns(UserWarning, match="uniformly at random"):
        SuffixImitation(burn_in="naive", score=Additive()).fit(BanditLog.from_dense(X, rng.integers(0, 4, 500)))


def test_many_features_get_fewer_knots():
    rng = np.random.default_rng(2)
    for d, columns in ((3, 17), (40, 12), (60, 9)):
        log = BanditLog.from_dense(rng.normal(size=(20, 3, d)), np.arange(20) % 3)
        assert Additive().prepared(log, l2=1e-4).basis(log).n_features == d * columns
