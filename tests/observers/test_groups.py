"""Many learners in one log: one fit each, and partial pooling of all."""

import warnings

import numpy as np
import pytest

from onlooker import BanditLog, InputError, SuffixImitation, fit_groups
from onlooker.imitation.softmax import round_losses
from onlooker.observers.groups import each_group
from onlooker.observers.pooling import pool


def made(n_groups, n_rounds, d, spread, seed, n_arms=5):
    """Logs of softmax policies whose weights vary about a common mean, twice as long as asked for, and the weights."""
    rng = np.random.default_rng(seed)
    thetas = rng.normal(size=d) + spread * rng.normal(size=(n_groups, d))
    logs = {}
    for g, theta in enumerate(thetas):
        X = rng.normal(size=(2 * n_rounds, n_arms, d))
        picks = (X @ theta + rng.gumbel(size=X.shape[:2])).argmax(axis=1)
        logs[f"g{g}"] = BanditLog.from_dense(X, picks)
    return logs, thetas


@pytest.mark.parametrize(("n_rounds", "d", "spread"), [(40, 4, 0.5), (25, 6, 1.0), (200, 3, 1.5)])
def test_pooling_predicts_held_out_picks_better_than_one_for_all_and_each_alone(n_rounds, d, spread):
    logs, thetas = made(60, n_rounds, d, spread, seed=d)
    seen = {name: log[:n_rounds] for name, log in logs.items()}
    one = SuffixImitation(burn_in="naive", l2=0.0).fit(BanditLog.concat(list(seen.values()))).theta_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = fit_groups(seen, SuffixImitation(burn_in="naive"))
    found = pool(seen)

    def loss(theta_of):
        return np.mean([round_losses(log[n_rounds:], theta_of(name)).mean() for name, log in logs.items()])

    pooled = loss(lambda name: found.thetas[name])
    assert pooled < loss(lambda _: one)
    assert pooled < loss(lambda name: alone[name].policy.theta) * (1.0005 if n_rounds == 200 else 1.0)
    truth = dict(zip(logs, thetas, strict=True))
    inside = [
        np.abs(found.thetas[name] - truth[name]) < 1.96 * np.sqrt(np.diag(found.covariances[name])) for name in logs
    ]
    assert 0.89 < np.mean(inside) < 0.99
    assert np.sqrt(np.diag(found.spread)) == pytest.approx(np.full(d, spread), rel=0.4)


def test_groups_that_are_alike_get_nearly_the_same_weights():
    logs, _ = made(40, 50, 3, 0.0, seed=3)
    found = pool(logs)
    assert np.sqrt(np.diag(found.spread)).max() < 0.15
    assert max(np.abs(theta - found.mean).max() for theta in found.thetas.values()) < 0.25


def test_answers_do_not_depend_on_units():
    logs, _ = made(30, 30, 3, 0.7, seed=4)
    scale = np.array([1000.0, 1e-3, 1.0])
    scaled = {name: log.with_features(log.features * scale) for name, log in logs.items()}
    first, second = pool(logs), pool(scaled)
    assert second.mean * scale == pytest.approx(first.mean, rel=1e-3)
    assert second.thetas["g7"] * scale == pytest.approx(first.thetas["g7"], rel=1e-3, abs=1e-3)


def test_one_group_without_an_answer_does_not_stop_the_others():
    logs, _ = made(3, 50, 2, 0.5, seed=5)
    logs["short"] = logs["g0"][:1]
    found = fit_groups(logs, SuffixImitation(burn_in=20))
    assert list(found) == ["g0", "g1", "g2"]
    assert "leaves nothing" in found.failed["short"]
    pooled = fit_groups(logs, SuffixImitation(burn_in=20), pool=True)
    assert set(pooled.failed) == {"short"}
    assert len(pooled.to_frame()) == 3 * 2


def test_each_alone_is_the_fit_of_its_log_whatever_the_number_of_workers():
    logs, _ = made(3, 60, 2, 0.5, seed=6)
    found = fit_groups(logs)
    again = fit_groups(logs, workers=2)
    for name, log in logs.items():
        expected = SuffixImitation().fit(log)
        assert np.array_equal(found[name].policy.theta, expected.theta_)
        assert np.array_equal(again[name].policy.theta, expected.theta_)
        assert found[name].coefficients == expected.summary().coefficients


def test_one_group_or_other_features_cannot_be_pooled():
    logs, _ = made(2, 40, 2, 0.5, seed=7)
    with pytest.raises(InputError, match="one group only"):
        pool({"a": logs["g0"]})
    other = made(1, 40, 3, 0.5, seed=8)[0]["g0"]
    with pytest.raises(InputError, match="have different features"):
        pool({"a": logs["g0"], "b": other})
    flat = {
        name: BanditLog(log.features * [1.0, 0.0], log.offsets, log.chosen, feature_names=["price", "age"])
        for name, log in logs.items()
    }
    with pytest.raises(InputError, match="feature 'age' never varies"):
        pool(flat)


def test_weights_that_are_not_unique_are_refused_by_pooling():
    logs, _ = made(3, 60, 2, 0.5, seed=9)
    twice = {
        name: BanditLog(np.column_stack([log.features, log.features.sum(axis=1)]), log.offsets, log.chosen)
        for name, log in logs.items()
    }
    with pytest.raises(InputError, match="collinear"):
        fit_groups(twice, pool=True)


def test_groups_of_contexts_have_weights_named_by_arm():
    rng = np.random.default_rng(10)
    logs = {}
    for name in ("a", "b", "c"):
        contexts = rng.normal(size=(150, 2))
        picks = (contexts @ rng.normal(size=(2, 3)) + rng.gumbel(size=(150, 3))).argmax(axis=1)
        shown = np.array(["x", "y", "z"])[picks]
        logs[name] = BanditLog.from_contexts(contexts, shown, arms=["x", "y", "z"], feature_names=["age", "hour"])
    found = fit_groups(logs, SuffixImitation(burn_in=0))
    assert not found.failed
    assert [one.name for one in found["a"].coefficients][:3] == ["x: age", "x: hour", "y: age"]
    assert found["a"].policy.arms == ("x", "y", "z")
    pooled = fit_groups(logs, SuffixImitation(burn_in=0), pool=True)
    assert [one.name for one in pooled["a"].coefficients][:3] == ["x: age", "x: hour", "y: age"]
    assert pooled["a"].policy.arms == ("x", "y", "z")


def test_results_come_in_the_order_of_the_groups():
    logs, _ = made(4, 20, 2, 0.5, seed=9)
    assert list(each_group(len, dict(reversed(logs.items())))) == ["g3", "g2", "g1", "g0"]
