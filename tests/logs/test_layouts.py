"""Rows that are not dense: the same answers as from an array, and a clear line where an array is needed."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array

from onlooker import BanditLog, InputError, LinearPolicy, SuffixImitation, burn_in_sweep
from onlooker.imitation.softmax import SoftmaxObjective, round_losses
from onlooker.logs.layouts import SparseRows

pytestmark = [
    pytest.mark.filterwarnings("ignore::onlooker.base.errors.OneArmRoundsWarning"),
    pytest.mark.filterwarnings("ignore::onlooker.base.errors.FittedRoundsWarning"),
]


@pytest.fixture(scope="module")
def logs():
    """The same log, dense and sparse; some rounds offer a single arm."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 6, 1200)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    dense = rng.normal(size=(offsets[-1], 7)) * (rng.random((offsets[-1], 7)) < 0.3)
    scores = dense @ rng.normal(size=7) + rng.gumbel(size=len(dense))
    chosen = [int(scores[a:b].argmax()) for a, b in pairwise(offsets)]
    names = [f"f{j}" for j in range(7)]
    sparse = BanditLog.from_sparse(csr_array(dense), offsets, chosen, feature_names=names)
    return BanditLog(dense, offsets, chosen, feature_names=names), sparse


@pytest.mark.parametrize("options", [{}, {"burn_in": "naive"}, {"covariance": "model"}, {"burn_in": 300, "l2": 0.0}])
def test_a_fit_finds_the_same(logs, options):
    dense, sparse = (SuffixImitation(**options).fit(log) for log in logs)
    np.testing.assert_allclose(sparse.theta_, dense.theta_, atol=1e-7)
    np.testing.assert_allclose(sparse.covariance_, dense.covariance_, rtol=1e-4, atol=1e-9)
    assert (sparse.burn_in_, sparse.warnings_, sparse.n_rounds_) == (dense.burn_in_, dense.warnings_, dense.n_rounds_)
    assert sparse.agreement_ == dense.agreement_
    np.testing.assert_allclose(sparse.predict_proba(logs[1]), dense.predict_proba(logs[0]), atol=1e-7)
    assert sparse.score(logs[1]) == dense.score(logs[0])


def test_weights_and_sweeps_are_the_same(logs):
    weights = np.random.default_rng(0).integers(0, 3, logs[0].n_rounds)
    dense, sparse = (SuffixImitation(burn_in="naive").fit(log, weights) for log in logs)
    np.testing.assert_allclose(sparse.theta_, dense.theta_, atol=1e-7)
    np.testing.assert_allclose(sparse.covariance_, dense.covariance_, rtol=1e-4, atol=1e-9)
    assert sparse.agreement_ == dense.agreement_
    dense, sparse = (burn_in_sweep(log, [0.0, 0.5, 0.9]) for log in logs)
    np.testing.assert_allclose(sparse.thetas, dense.thetas, atol=1e-4)


def test_losses_hessians_and_strides_are_the_same(logs):
    theta = np.linspace(-1, 1, 7)
    np.testing.assert_allclose(round_losses(logs[1], theta), round_losses(logs[0], theta), atol=1e-12)
    for stride in (1, 3):
        dense, sparse = (SoftmaxObjective(log, l2=0.1, stride=stride).evaluate(theta) for log in logs)
        np.testing.assert_allclose(sparse.hessian, dense.hessian, rtol=1e-5)
        np.testing.assert_allclose(sparse.gradient, dense.gradient, atol=1e-12)
        assert (sparse.explained, sparse.agreed) == (dense.explained, dense.agreed)


def test_selections_and_joins_stay_sparse(logs):
    dense, sparse = logs
    for rounds in (slice(10, 20), slice(0, 0), slice(5, 50, 7), [3, 1, 2]):
        np.testing.assert_array_equal(sparse[rounds].features.toarray(), dense[rounds].features)
    assert np.shares_memory(sparse[10:20].features.matrix.data, sparse.features.matrix.data)
    joined = BanditLog.concat([sparse[:30], sparse[30:]])
    assert isinstance(joined.features, SparseRows)
    np.testing.assert_array_equal(joined.features.toarray(), dense.features)
    np.testing.assert_array_equal(sparse.arms(4), dense.arms(4))
    again = pickle.loads(pickle.dumps(sparse))
    np.testing.assert_array_equal(again.features.toarray(), dense.features)
    np.testing.assert_array_equal(sparse.features.T @ np.ones(len(sparse.features)), dense.features.sum(axis=0))


@pytest.mark.parametrize("kind", [coo_array, csc_array, lambda rows: csr_array(rows.astype(np.float32))])
def test_any_sparse_matrix_is_taken(logs, kind):
    log = BanditLog.from_sparse(kind(logs[0].features), logs[0].offsets, logs[0].chosen)
    policy = LinearPolicy(np.ones(7))
    np.testing.assert_allclose(policy.scores(log), policy.scores(logs[0]), rtol=1e-5, atol=1e-6)


def test_entries_given_twice_are_added():
    rows = coo_array(([1.0, 2.0], ([0, 0], [0, 0])), shape=(2, 2))
    assert BanditLog.from_sparse(rows, [0, 2], [0]).arms(0).tolist() == [[3.0, 0.0], [0.0, 0.0]]


def test_what_cannot_be_used_is_refused(logs):
    with pytest.raises(InputError, match="lay out their features differently"):
        BanditLog.concat(list(logs))
    with pytest.raises(InputError, match=r"pass a scipy\.sparse matrix"):
        BanditLog.from_sparse(np.eye(2), [0, 2], [0])
    with pytest.raises(InputError, match="row 1, feature 0 is nan"):
        BanditLog.from_sparse(csr_array([[1.0], [np.nan]]), [0, 2], [0])
    with pytest.raises(InputError, match="dtype complex128"):
        BanditLog.from_sparse(csr_array([[1j], [2.0]]), [0, 2], [0])
    with pytest.raises(InputError, match="from 0 to 2 rows"):
        BanditLog.from_sparse(csr_array((2, 3)), [0, 3], [0])
