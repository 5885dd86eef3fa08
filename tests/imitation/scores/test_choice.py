"""The choice between score models: the simplest that predicts held-out rounds about as well as the best."""

import numpy as np
import pytest

from onlooker import Additive, BanditLog, Boltzmann, Environment, Linear, LinTS, Products, SuffixImitation, simulate
from onlooker.evaluation.metrics import direction_error
from onlooker.imitation.scores.choice import choose_score, name_of


@pytest.mark.filterwarnings("ignore::onlooker.OnlookerWarning")
def test_linear_logs_stay_linear():
    taken, ratios = [], []
    for seed, learner in enumerate([LinTS(), Boltzmann(0.2)] * 4):
        played = simulate(Environment(5, 8, seed=seed), learner, n_rounds=1500, seed=seed)
        observer = SuffixImitation(score="auto", burn_in="rule").fit(played.log)
        taken.append(name_of(observer.score_choice_.model))
        if taken[-1] == "linear":
            line = SuffixImitation(burn_in="rule").fit(played.log)
            ratios.append(
                direction_error(observer.theta_, played.theta_star) / direction_error(line.theta_, played.theta_star)
            )
    # Thompson sampling explores more where it knows less, which is no linear score: products may see that.
    assert taken.count("linear") >= 6
    np.testing.assert_allclose(ratios, 1.0)


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
