"""Score models: products find what a linear score cannot, and are saved without code."""

import pickle

import numpy as np
import pytest

from onlooker import BanditLog, InputError, LinearPolicy, Products, ProductsPolicy, SuffixImitation, scan_log, write_log
from onlooker.base.errors import NoPreferenceWarning
from onlooker.evaluation.metrics import agreement


@pytest.fixture(scope="module")
def bent():
    """Arms are valued by the square of one feature and by a product of two: no direction of theta is better."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4, 3))
    scores = 4 * (X[..., 0] ** 2 + 2 * X[..., 1] * X[..., 2])
    chosen = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    return BanditLog.from_dense(X, chosen, feature_names=["a", "b", "c"])


def test_products_find_what_a_linear_score_cannot(bent):
    with pytest.warns(NoPreferenceWarning):
        linear = SuffixImitation().fit(bent[:2000])
    products = SuffixImitation(score=Products()).fit(bent[:2000])
    assert linear.score(bent[2000:]) < 0.4
    assert products.score(bent[2000:]) > 0.8
    found = {one.name: one.estimate for one in products.summary().coefficients}
    assert found["b*c"] / found["a*a"] == pytest.approx(2.0, rel=0.1)
    assert abs(found["a"]) < 0.1 * found["a*a"]


def test_a_policy_scores_as_its_basis_does(bent):
    model, theta = Products().prepared(bent, l2=1e-4), np.random.default_rng(1).normal(size=9)
    policy = model.policy(theta, bent)
    scores, others = policy.scores(bent), model.basis(bent).features @ theta
    # But for constants, which no pick depends on.
    np.testing.assert_allclose(scores - scores[0], others - others[0], atol=1e-12)
    swapped = bent.with_features(bent.features[:, ::-1], ["c", "b", "a"])
    np.testing.assert_allclose(policy.scores(swapped), policy.scores(bent))


def test_policies_are_saved_and_pickled(bent, tmp_path):
    policy = SuffixImitation(score=Products()).fit(bent).policy_
    policy.save(tmp_path / "policy.json")
    for again in (ProductsPolicy.load(tmp_path / "policy.json"), pickle.loads(pickle.dumps(policy))):
        np.testing.assert_array_equal(again.theta, policy.theta)
        np.testing.assert_array_equal(again.choose(bent), policy.choose(bent))
    with pytest.raises(InputError, match=r"is not a policy file of schema 'onlooker\.policy/1'"):
        LinearPolicy.load(tmp_path / "policy.json")


def test_what_is_not_linear_has_no_theta(bent):
    observer = SuffixImitation(score=Products()).fit(bent)
    with pytest.raises(InputError, match="theta_ needs a linear policy, and a ProductsPolicy is not"):
        _ = observer.theta_
    assert agreement(observer, bent) == observer.score(bent)


def test_parameters_are_those_of_the_constructor():
    observer = SuffixImitation(score=Products())
    assert observer.get_params()["score"] == Products()
    assert repr(observer.set_params(burn_in="naive")) == "SuffixImitation(burn_in='naive', score=Products())"


def test_what_cannot_be_scored_is_refused(bent, tmp_path):
    with pytest.raises(InputError, match="score is 'bent'"):
        SuffixImitation(score="bent").fit(bent)
    write_log(bent, tmp_path / "log.parquet")
    with pytest.raises(InputError, match="needs the log in memory"):
        SuffixImitation(score=Products()).fit(scan_log(tmp_path / "log.parquet"))
    with pytest.raises(InputError, match="theta has 4 weights"):
        ProductsPolicy(np.ones(4))
    wide = BanditLog.from_dense(np.zeros((1, 2, 150)), chosen=[0])
    with pytest.raises(InputError, match="150 features have 11325 products"):
        Products().prepared(wide, l2=1e-4)
