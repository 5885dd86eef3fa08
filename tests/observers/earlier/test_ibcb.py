"""The IBCB-style observer."""

import numpy as np
import pytest

from onlooker import IBCB, BanditLog, Environment, LinTS, LinUCB, UniformRandom, direction_error, simulate
from onlooker.base.errors import ConvergenceWarning, InputError, NoPreferenceWarning


def test_the_path_is_what_a_learner_with_exact_rewards_believed():
    environment = Environment(4, 20, noise=1e-12, seed=5)
    simulation = simulate(environment, LinUCB(batch=7), 500, seed=5)
    observer = IBCB(batch=7).fit(simulation.log)
    late = observer.path_.rounds >= 7
    own = simulation.learner_path((observer.path_.rounds[late] // 7 * 7).tolist())
    # The parameter has a unit of its own; the learner's estimates follow from it.
    scale = np.linalg.norm(environment.theta_star) / np.linalg.norm(observer.theta_)
    np.testing.assert_allclose(scale * observer.path_.theta[late], own, atol=0.02)
    assert not observer.path_.theta[~late].any()
    assert np.isnan(observer.path_.standard_error).all()
    np.testing.assert_allclose(np.linalg.norm(observer.path_.direction[late], axis=1), 1.0)


def test_hinge_for_deterministic_and_logit_for_randomised_learners():
    for learner, observer in ((LinUCB(), IBCB()), (LinTS(), IBCB(loss="logit", alpha=0.0))):
        simulation = simulate(Environment(6, 20, seed=1), learner, 3000, seed=1)
        assert direction_error(observer.fit(simulation.log).theta_, simulation.theta_star) < 0.05
        assert observer.warnings_ == ()
    assert np.isnan(observer.gap_)


def test_the_solver_says_how_near_it_came():
    observer = IBCB().fit(simulate(Environment(4, 10), LinUCB(), 500).log)
    assert 0 <= observer.gap_ <= 1e-4
    assert observer.loss_ > 0


def test_only_the_ratio_of_the_weights_matters():
    log = simulate(Environment(3, 8), LinUCB(), 300).log
    first, second = IBCB(C=1.0, mu=0.5).fit(log), IBCB(C=4.0, mu=2.0).fit(log)
    np.testing.assert_array_equal(first.theta_, second.theta_)


@pytest.mark.parametrize("loss", ["hinge", "logit"])
def test_no_preference(loss):
    log = simulate(Environment(3, 8, seed=2), UniformRandom(), 800, seed=2).log
    with pytest.warns(NoPreferenceWarning, match="no theta explains the picks better") as caught:
        IBCB(loss=loss, alpha=0.0).fit(log)
    assert ("loss='logit' is made" in str(caught[0].message)) == (loss == "hinge")


def test_one_arm_rounds_are_learned_from_but_not_explained():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4, 2))
    chosen = (X @ [1.0, -0.5]).argmax(axis=1)
    mask = np.ones((300, 4), dtype=bool)
    mask[::3] = False
    mask[::3, 0] = True
    chosen[::3] = 0
    observer = IBCB(alpha=0.0).fit(BanditLog.from_dense(X, chosen, mask))
    assert direction_error(observer.theta_, [1.0, -0.5]) < 0.1


def test_features_beyond_double_precision():
    log = simulate(Environment(3, 4, dtype="float64"), LinUCB(), 50).log
    for features, loss in (
        (log.features * 1e160, "hinge"),
        (log.features * 1e150, "logit"),
        (log.features + 1e8, "hinge"),
    ):
        with pytest.raises(InputError, match="rescale"):
            IBCB(loss=loss).fit(BanditLog(features, log.offsets, log.chosen))


def test_a_solver_that_cannot_finish_says_so():
    log = simulate(Environment(4, 6, seed=1), LinUCB(), 400, seed=1).log
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        observer = IBCB(mu=1e-12).fit(log)
    assert direction_error(observer.theta_, IBCB(mu=1e-3).fit(log).theta_) < 0.05


def test_names_travel():
    X = np.random.default_rng(0).normal(size=(60, 3, 2))
    log = BanditLog.from_dense(X, (X @ [1.0, 2.0]).argmax(axis=1), feature_names=["price", "speed"])
    assert IBCB().fit(log).policy_.feature_names == ("price", "speed")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "square"}, "loss is 'square': use 'hinge' or 'logit'"),
        ({"batch": 0}, "batch is 0"),
        ({"ridge": 0.0}, "ridge is 0.0"),
        ({"alpha": -1.0}, "alpha is -1.0"),
        ({"margin": 0.0}, "margin is 0.0"),
        ({"C": 0.0}, "C is 0.0"),
        ({"mu": float("nan")}, "mu is nan"),
    ],
)
def test_bad_settings(settings, message):
    log = simulate(Environment(2, 3), LinUCB(), 20).log
    with pytest.raises(InputError, match=message):
        IBCB(**settings).fit(log)
