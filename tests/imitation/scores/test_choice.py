"""The choice between score models: the simplest that predicts held-out rounds about as well as the best."""

import numpy as np
import pytest

from onlooker import (
    Additive,
    BanditLog,
    Boltzmann,
    DynamicImitation,
    Environment,
    InputError,
    Linear,
    LinTS,
    Products,
    Softmax,
    SuffixImitation,
    TrackingObserver,
    burn_in_sweep,
    diagnose,
    fit_groups,
    simulate,
)
from onlooker.imitation.choice_model import LINEAR
from onlooker.imitation.scores.choice import choose_score


@pytest.mark.parametrize(("learner", "seed"), [(LinTS(), 0), (LinTS(), 6), (Boltzmann(0.2), 1), (Boltzmann(0.2), 5)])
def test_linear_logs_stay_linear(learner, seed):
    """Thompson's picks hardly vary late: the penalty shrinks linear weights, which products may not be taken for."""
    log = simulate(Environment(5, 8, seed=seed), learner, n_rounds=1500, seed=seed).log
    assert choose_score(log, [Linear(), Additive(), Products()]).name == "linear"


@pytest.mark.parametrize("kind", ["binary", "correlated"])
def test_how_a_policy_picks_is_not_what_it_values(kind):
    """Greedy picks of a linear score, but for random ones: curves come nearer to a softmax of them."""
    import nonlinear

    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = nonlinear.offers(kind, rng, 2000, 10, 10)
        picks = nonlinear.picked(X, rng.normal(size=10), "epsilon", rng)
        assert choose_score(BanditLog.from_dense(X, picks)).name == "linear"


def test_auto_on_a_linear_log_is_the_linear_fit():
    log = simulate(Environment(3, 4, seed=1), Boltzmann(0.2), n_rounds=600, seed=1).log
    auto, line = (SuffixImitation(score=score, burn_in="rule").fit(log) for score in ("auto", "linear"))
    np.testing.assert_array_equal(auto.theta_, line.theta_)


@pytest.mark.filterwarnings("ignore::onlooker.OnlookerWarning")
def test_methods_for_linear_scores_see_others_in_a_basis():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4, 2))
    log = BanditLog.from_dense(X, (3 * X[..., 0] * X[..., 1] + rng.gumbel(size=(600, 4))).argmax(axis=1))
    plain, products = (DynamicImitation(score=score).fit(log) for score in ("linear", "products"))
    assert products.evidence_ > plain.evidence_ + 100
    ahead = np.log(products.propensities(log)[log.chosen_rows]).sum()
    assert plain.evidence_ + 100 < ahead < products.evidence_  # the fit's basis knows later rounds, `ahead` does not
    np.testing.assert_allclose(products.predicted_ahead(log), products.propensities(log))
    np.testing.assert_array_equal(products.predict(log), products.policy_.choose(log))
    grown = DynamicImitation(score=Products()).fit(log[:500]).partial_fit(log[500:])
    assert grown.n_rounds_ == 600
    with pytest.raises(InputError, match="cannot hold"):
        products.save("state.json")
    with pytest.raises(InputError, match="not linear in a basis"):
        DynamicImitation(score="neural").fit(log)
    sweep = burn_in_sweep(log, [0.5], score="products")
    assert sweep.thetas.shape == (1, 5)
    assert (sweep.policy(0).choose(log) == products.predict(log)).mean() > 0.9
    assert diagnose(log).verdict != "stable"
    assert diagnose(log, score="products").verdict == "stable"
    groups = fit_groups({"a": log[:300], "b": log[300:]}, SuffixImitation(score="products", burn_in="naive"))
    assert groups["a"].policy.n_features == 2


@pytest.mark.filterwarnings("ignore::onlooker.OnlookerWarning")
def test_a_learner_is_tracked_in_a_basis():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4, 2))
    log = BanditLog.from_dense(X, (3 * X[..., 0] * X[..., 1] + rng.gumbel(size=(400, 4))).argmax(axis=1))
    plain, products = (
        TrackingObserver(exploration=Softmax(1.0), score=score).fit(log) for score in (LINEAR, "products")
    )
    assert products.score(log) > plain.score(log) + 0.2
    assert len(products.summary().coefficients) == 5
    assert products.propensities(log).shape == (1600,)
    with pytest.raises(InputError, match="cannot hold"):
        products.save("state.json")


@pytest.mark.parametrize("score", ["neural", "boosted"])
def test_a_diagnosis_takes_scores_that_have_no_basis(score):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 3, 2))
    log = BanditLog.from_dense(X, (3 * X[..., 0] * X[..., 1] + rng.gumbel(size=(600, 3))).argmax(axis=1))
    assert diagnose(log, score=score).verdict not in {"moving", "changed"}


@pytest.mark.filterwarnings("ignore::onlooker.OnlookerWarning")
def test_products_have_a_band_over_the_range_that_was_fitted():
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 3, size=(1500, 4, 2))
    scores = X[..., 0] ** 2 - X[..., 1]
    log = BanditLog.from_dense(X, (scores + rng.gumbel(size=(1500, 4))).argmax(axis=1))
    observer = SuffixImitation(score="products", burn_in="naive").fit(log)
    effect = observer.effect("x0")
    assert 1 <= effect.x[0] < 1.01
    assert 2.99 < effect.x[-1] <= 3
    assert (effect.low < effect.effect).all()
    assert (effect.effect < effect.high).all()


@pytest.mark.parametrize(
    ("score", "best"), [(lambda x: 3 * np.abs(x[..., 0]), Additive), (lambda x: 3 * x[..., 0] * x[..., 1], Products)]
)
def test_others_are_found_where_they_are_called_for(score, best):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4, 3))
    log = BanditLog.from_dense(X, (score(X) + rng.gumbel(size=(2000, 4))).argmax(axis=1))
    choice = choose_score(log)
    assert isinstance(choice.model, best)
    assert "taken" in repr(choice)


def test_short_logs_and_logs_of_contexts_are_linear():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4, 3))
    short = BanditLog.from_dense(X, (X[..., 0] ** 2).argmax(axis=1))
    assert choose_score(short).model == Linear()
    contexts = BanditLog.from_contexts(rng.normal(size=(1000, 2)), rng.integers(0, 3, 1000).astype(str))
    assert choose_score(contexts).model == Linear()


@pytest.mark.slow
def test_neural_ucbs_functions_are_recovered():
    """Regret of `auto` at d = 20, K = 4, N = 10,000: `benchmarks/nonlinear.py` has all three functions and lengths."""
    import nonlinear

    assert nonlinear.share_of_random("10 (x'a)^2", 10_000, seed=0)[0] < 0.02
