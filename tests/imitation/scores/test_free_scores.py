"""A network and boosted trees: they fit what curves cannot, and are saved as plain numbers."""

import json
import pickle

import numpy as np
import pytest

from onlooker import BanditLog, Boosted, InputError, Neural, NeuralPolicy, SuffixImitation, load_policy
from onlooker.imitation.choice_model import pick_likelihood
from onlooker.imitation.scores.boosted import _grown, _trees_of
from onlooker.imitation.scores.neural import _Problem

MODELS = [Neural(16, decay=1e-3), Boosted(trees=150)]


@pytest.fixture(scope="module")
def log():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 4, 3))
    scores = 3 * np.where(X[..., 0] > 0, X[..., 1], -X[..., 1])
    return BanditLog.from_dense(
        X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1), feature_names=["a", "b", "c"]
    )


@pytest.fixture(scope="module", params=MODELS, ids=["neural", "boosted"])
def observer(request, log):
    return SuffixImitation(burn_in="naive", score=request.param).fit(log[:2000])


def test_they_find_what_sums_of_curves_cannot(observer, log):
    assert observer.score(log[2000:]) > 0.6
    losses = pick_likelihood(observer.policy_.scores(log[:2000]), log[:2000]).losses
    assert observer.loss_ == pytest.approx(losses.mean())
    assert observer.covariance_ is None
    assert "2000 rounds imitated" in str(observer.summary())


def test_they_are_saved_copied_and_matched_by_name(observer, log, tmp_path):
    policy = observer.policy_
    policy.save(tmp_path / "policy.json")
    for again in (load_policy(tmp_path / "policy.json"), pickle.loads(pickle.dumps(policy))):
        np.testing.assert_array_equal(again.scores(log), policy.scores(log))
    swapped = log.with_features(log.features[:, ::-1], ["c", "b", "a"])
    np.testing.assert_allclose(policy.scores(swapped), policy.scores(log))


def test_partial_dependence_has_no_band(observer):
    effect = observer.effect("b")
    assert not effect.has_band
    assert abs(effect.effect.mean()) < 1.0


def test_the_same_seed_gives_the_same_policy(log):
    for model in MODELS:
        one, two = (model.fitted(log[:600], seed=3).scores(log) for _ in range(2))
        np.testing.assert_array_equal(one, two)


def test_the_slope_of_a_network_is_that_of_its_loss(log):
    some = log[:50]
    problem, decay = _Problem(some, some.features, 3, 1), 0.1
    weights, counts = np.random.default_rng(0).normal(size=len(problem.start(0))), np.ones(50)

    def value(w):
        return problem.loss(w, counts) + 0.5 * decay * w @ w

    seen = {}

    def spy(fun, x, **_):
        from types import SimpleNamespace

        seen["value"], seen["slope"] = fun(x)
        return SimpleNamespace(x=x)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scipy.optimize.minimize", spy)
        problem.solved(weights, counts, decay)
    assert seen["value"] == pytest.approx(value(weights))
    ways = np.eye(len(weights)) * 1e-6
    slope = [(value(weights + way) - value(weights - way)) / 2e-6 for way in ways]
    np.testing.assert_allclose(seen["slope"], slope, atol=1e-6)


def test_our_walk_down_the_trees_is_lightgbms(log):
    grown = _grown(log, np.ones(log.n_rounds), {"verbosity": -1, "num_leaves": 15}, 20)
    own = sum(tree.scores(log.features) for tree in _trees_of(grown.model_to_string()))
    np.testing.assert_allclose(own, grown.predict(log.features), rtol=1e-12, atol=1e-12)


def test_monotone_trees_never_fall(log):
    policy = Boosted(trees=40, monotone={"b": 1}).fitted(log)
    rows = np.tile(policy.typical[:20], (30, 1))
    rows[:, 1] = np.repeat(np.linspace(-3, 3, 30), 20)
    assert (np.diff(policy.row_scores(rows).reshape(30, 20), axis=0) >= -1e-12).all()


def test_lightgbm_that_is_missing_is_named(log, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "lightgbm", None)
    with pytest.raises(InputError, match=r"pip install 'onlooker\[trees\]'"):
        Boosted().fitted(log)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"left": [0] * 3}, "later splits"),
        ({"left": [5, -1, -2]}, "later splits"),
        ({"feature": [0, 9, 0]}, "not among the 2"),
        ({"feature": [0, True, 0]}, "whole numbers"),
        ({"value": [1.0, 2.0]}, "one leaf more"),
        ({"value": []}, "list of numbers"),
        ({"threshold": [0.0, 1e400, 0.0]}, "finite"),
    ],
)
def test_trees_that_would_go_wrong_are_refused(tmp_path, change, said):
    tree = {"feature": [0, 1, 0], "threshold": [0.0, 1.0, 2.0], "left": [1, -1, -2], "right": [2, -3, -4]}
    tree |= {"value": [1.0, 2.0, 3.0, 4.0], **change}
    document = {"schema": "onlooker.boosted-policy/1", "feature_names": None, "typical": [[0.0, 1.0]], "trees": [tree]}
    (tmp_path / "policy.json").write_text(json.dumps(document).replace("Infinity", "1e400"))
    with pytest.raises(InputError, match=said):
        load_policy(tmp_path / "policy.json")


def test_layers_of_the_wrong_shape_are_refused(tmp_path):
    document = {
        "schema": NeuralPolicy.schema,
        "feature_names": None,
        "typical": [[0.0]],
        "means": [0.0],
        "spreads": [1.0],
        "linear": [1.0],
        "inner": [[1.0, 2.0]],
        "shifts": [0.0],
        "outer": [1.0],
    }
    (tmp_path / "policy.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="do not have their shapes"):
        load_policy(tmp_path / "policy.json")


def test_a_round_of_choice_is_needed():
    log = BanditLog.from_dense(np.zeros((5, 1, 2)), chosen=np.zeros(5, dtype=int))
    for model in MODELS:
        with pytest.raises(InputError, match="nothing to imitate"):
            model.fitted(log)
