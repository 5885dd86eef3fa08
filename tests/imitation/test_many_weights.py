"""Fits of many weights: the same answers as from rows written out, and as other libraries have."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array

from onlooker import BanditLog, InputError, SuffixImitation, burn_in_sweep
from onlooker.imitation.burn_in import HeldOut
from onlooker.imitation.newton import minimise
from onlooker.imitation.softmax import SoftmaxObjective

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")

N, K, P = 3000, 5, 4


def picks(contexts, weights, seed, mask=None):
    """Arms that a softmax policy picks."""
    scores = contexts @ weights.T + np.random.default_rng(seed).gumbel(size=(len(contexts), len(weights)))
    return np.where(True if mask is None else mask, scores, -np.inf).argmax(axis=1)


def written_out(log):
    """The same log with dense rows."""
    return BanditLog(log.features.toarray(), log.offsets, log.chosen)


@pytest.fixture(scope="module")
def made():
    """Contexts on different scales, an intercept, arms of different popularity; all arms offered, or some."""
    rng = np.random.default_rng(8)
    contexts = rng.normal(size=(N, P)) * [1.0, 5.0, 0.2, 1.0] + [0.0, 1.0, 0.0, 0.0]
    contexts[:, 3] = 1.0
    weights = rng.normal(size=(K, P)) / [1.0, 5.0, 0.2, 1.0]
    mask = rng.random((N, K)) < 0.7
    mask[np.arange(N), rng.integers(0, K, N)] = True
    return contexts, weights, mask


@pytest.fixture(scope="module")
def logs(made):
    contexts, weights, mask = made
    everything = BanditLog.from_contexts(contexts, picks(contexts, weights, 1), arms=range(K))
    some = BanditLog.from_contexts(contexts, picks(contexts, weights, 2, mask), arms=range(K), offered=mask)
    return {"all": everything, "some": some}


@pytest.mark.parametrize("offered", ["all", "some"])
@pytest.mark.parametrize("l2", [1e-4, 1e-2])
def test_a_fit_is_that_of_the_rows_written_out(logs, offered, l2):
    log = logs[offered]
    dense = SuffixImitation(burn_in="naive", l2=l2).fit(written_out(log))
    found = SuffixImitation(burn_in="naive", l2=l2).fit(log)
    np.testing.assert_allclose(found.theta_, dense.theta_, atol=1e-6)
    assert abs(found.loss_ - dense.loss_) < 1e-10
    assert not any("collinear" in text.replace("nearly collinear", "") for text in found.warnings_)
    assert (found.n_rounds_, found.agreement_) == (dense.n_rounds_, dense.agreement_)
    assert found.rank_ == (K - 1) * P


@pytest.mark.parametrize("offered", ["all", "some"])
@pytest.mark.parametrize("options", [{}, {"covariance": "model"}, {"lags": 0}])
def test_intervals_are_those_of_a_reference_coding(logs, offered, options):
    """Differences between arms are identified, whatever the coding."""
    log, kept = logs[offered], (K - 1) * P
    found = SuffixImitation(burn_in="naive", l2=0.0, **options).fit(log)
    reduced = written_out(log).with_features(log.features.toarray()[:, :kept])
    reference = SuffixImitation(burn_in="naive", l2=0.0, **options).fit(reduced)
    full = np.zeros((K * P, K * P))
    full[:kept, :kept] = reference.covariance_
    centre = np.kron(np.eye(K) - 1 / K, np.eye(P))
    np.testing.assert_allclose(found.theta_, centre @ np.append(reference.theta_, np.zeros(P)), atol=1e-6)
    want = centre @ full @ centre
    assert np.abs(found.covariance_ - want).max() < 1e-5 * want.max()
    np.testing.assert_allclose(np.diag(found.covariance_), np.diag(want), rtol=1e-4)


@pytest.mark.parametrize("offered", ["all", "some"])
def test_without_regularisation_it_is_maximum_likelihood(logs, offered):
    found = SuffixImitation(burn_in="naive", l2=0.0).fit(logs[offered])
    assert all("single arm" in text for text in found.warnings_)
    np.testing.assert_allclose(found.theta_.reshape(K, P).sum(axis=0), 0.0, atol=1e-7)
    objective = SoftmaxObjective(logs[offered], l2=0.0)
    assert np.abs(objective.slope(found.theta_).gradient).max() < 1e-7


def test_it_agrees_with_scikit_learn_and_statsmodels(made, logs):
    from sklearn.linear_model import LogisticRegression
    from statsmodels.discrete.discrete_model import MNLogit

    contexts, _, _ = made
    log = logs["all"]
    found = SuffixImitation(burn_in="naive", l2=1e-3, covariance="model").fit(log)
    other = LogisticRegression(C=1 / (1e-3 * N), fit_intercept=False, solver="newton-cg", tol=1e-10, max_iter=500).fit(
        contexts, log.chosen
    )
    np.testing.assert_allclose(found.theta_.reshape(K, P), other.coef_, atol=1e-6)
    plain = SuffixImitation(burn_in="naive", l2=0.0, covariance="model").fit(log)
    mn = MNLogit(log.chosen, contexts).fit(disp=0, maxiter=200, tol=1e-12)
    weights = plain.theta_.reshape(K, P)
    np.testing.assert_allclose(weights[1:] - weights[0], mn.params.T, atol=1e-6)
    contrast = np.kron(np.eye(K)[2] - np.eye(K)[0], np.eye(P)[1])
    error = np.sqrt(contrast @ plain.covariance_ @ contrast)
    np.testing.assert_allclose(error, mn.bse[1, 1], rtol=1e-5)


def test_weights_sweeps_and_burn_ins_work_as_for_rows_written_out(logs):
    log, dense = logs["some"], written_out(logs["some"])
    weights = np.random.default_rng(0).integers(0, 3, N)
    want = SuffixImitation(burn_in="naive").fit(dense, weights)
    auto = SuffixImitation().fit(dense)
    got = SuffixImitation(burn_in="naive").fit(log, weights)
    np.testing.assert_allclose(got.theta_, want.theta_, atol=1e-6)
    assert got.n_rounds_ == want.n_rounds_
    found = SuffixImitation().fit(log)
    assert found.burn_in_ == auto.burn_in_
    sweep, expected = burn_in_sweep(log, [0.0, 0.5, 0.9]), burn_in_sweep(dense, [0.0, 0.5, 0.9])
    np.testing.assert_allclose(sweep.losses, expected.losses, atol=1e-5)
    assert sweep.policy(1).arms == tuple(range(K))
    assert HeldOut().curve(log).start == HeldOut().curve(dense).start


def test_arm_features_give_what_their_columns_give(made):
    contexts, _, mask = made
    items = np.random.default_rng(3).normal(size=(K, 3))
    chosen = picks(contexts, items @ np.random.default_rng(4).normal(size=(3, P)), 5, mask)
    log = BanditLog.from_contexts(contexts, chosen, arms=range(K), arm_features=items, offered=mask)
    found = SuffixImitation(burn_in="naive").fit(log)
    dense = SuffixImitation(burn_in="naive").fit(written_out(log))
    np.testing.assert_allclose(found.theta_, dense.theta_, atol=1e-6)
    np.testing.assert_allclose(found.covariance_, dense.covariance_, rtol=1e-4, atol=1e-9)


def test_arms_that_are_never_compared_are_said_to_be(made):
    contexts, weights, _ = made
    mask = np.ones((N, K), dtype=bool)
    mask[:, 4] = False
    chosen = picks(contexts, weights, 3, mask)
    log = BanditLog.from_contexts(contexts, chosen, arms=range(K), offered=mask)
    with pytest.warns(UserWarning, match="'4' is never offered beside another arm"):
        found = SuffixImitation(burn_in="naive").fit(log)
    assert len(found.warnings_) == 1
    np.testing.assert_allclose(found.theta_.reshape(K, P)[4], 0.0, atol=1e-12)
    errors = np.sqrt(np.diag(found.covariance_)).reshape(K, P)
    assert np.isnan(errors[4]).all()
    assert np.isfinite(errors[:4]).all()


def test_arms_never_picked_and_groups_never_compared_are_said(made):
    contexts, weights, _ = made
    log = BanditLog.from_contexts(contexts, picks(contexts, weights, 3), arms=[*map(str, range(K)), "new"])
    assert any("'new' is offered but never picked" in text for text in SuffixImitation().fit(log).warnings_)
    mask = np.zeros((N, K), dtype=bool)
    mask[::2, :2], mask[1::2, 2:] = True, True
    apart = BanditLog.from_contexts(contexts, picks(contexts, weights, 4, mask), arms=range(K), offered=mask)
    found = SuffixImitation(burn_in="naive").fit(apart)
    assert any("2 groups" in text for text in found.warnings_)
    assert found.rank_ == (K - 2) * P
    assert np.isfinite(found.covariance_).all()
    np.testing.assert_allclose(found.theta_.reshape(K, P)[:2].sum(axis=0), 0.0, atol=1e-8)


def test_intervals_cover_the_differences_to_the_mean():
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(4, 2))
    truth = (weights - weights.mean(axis=0)).ravel()
    hits = []
    for seed in range(60):
        contexts = np.random.default_rng(seed).normal(size=(600, 2))
        log = BanditLog.from_contexts(contexts, picks(contexts, weights, 1000 + seed), arms=range(4))
        found = SuffixImitation(burn_in="naive", l2=0.0).fit(log)
        hits.append(np.abs(found.theta_ - truth) < 1.96 * np.sqrt(np.diag(found.covariance_)))
    assert 0.91 < np.mean(hits) < 0.98


def sparse_log(n, arms, d, active, seed):
    """Rows with a few active features each, and a softmax policy that depends on a tenth of all."""
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, d, (n * arms, active))
    rows = csr_array(
        (np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, active)), shape=(n * arms, d)
    )
    theta = rng.normal(size=d) * (rng.random(d) < 0.1)
    chosen = ((rows @ theta) + rng.gumbel(size=n * arms)).reshape(n, arms).argmax(axis=1)
    return BanditLog.from_sparse(rows, np.arange(n + 1) * arms, chosen)


def test_sparse_rows_find_the_minimum_without_a_matrix():
    from scipy.optimize import minimize

    log = sparse_log(1500, 5, 4000, 6, 0)
    with pytest.warns(UserWarning, match="too many for intervals"):
        found = SuffixImitation(burn_in="naive").fit(log)
    assert found.covariance_ is None
    objective = SoftmaxObjective(log, l2=1e-4)

    def look(theta):
        at = objective.slope(theta)
        return at.value, at.gradient

    other = minimize(look, np.zeros(4000), jac=True, method="L-BFGS-B", options={"maxiter": 5000, "gtol": 1e-9})
    at = objective.slope(found.theta_)
    assert at.value < other.fun + 1e-10
    assert np.isnan(found.summary().coefficients[0].standard_error)
    assert "smaller weights" in repr(found.summary())
    assert SuffixImitation().fit(log).burn_in_ >= 0
    assert burn_in_sweep(log, [0.0, 0.9]).thetas.shape == (2, 4000)


def test_some_hundred_sparse_features_have_the_intervals_of_dense_ones():
    log = sparse_log(2000, 4, 250, 12, 1)
    found = SuffixImitation(burn_in="naive").fit(log)
    dense = SuffixImitation(burn_in="naive").fit(BanditLog(log.features.toarray(), log.offsets, log.chosen))
    np.testing.assert_allclose(found.theta_, dense.theta_, atol=1e-6)
    np.testing.assert_allclose(found.covariance_, dense.covariance_, rtol=1e-3, atol=1e-6)


def test_a_warm_start_ends_at_the_same_minimum(logs):
    objective = SoftmaxObjective(logs["all"], l2=1e-4)
    cold = minimise(objective)
    warm = minimise(objective, minimise(SoftmaxObjective(logs["all"][:2000], l2=1e-4)))
    np.testing.assert_allclose(warm.theta, cold.theta, atol=1e-6)
    assert cold.converged
    assert warm.converged


class InParts:
    """A log in parts, of which few rounds are kept in memory."""

    categories = None
    sample_bytes = 40_000
    memory_limit = None

    def __init__(self, log, crossing):
        self.log, self.crossing = log, crossing
        self.feature_names, self.n_features = log.feature_names, log.n_features

    def run(self, task, start=0, stop=None):
        """Run the task on every part."""
        edges = np.linspace(0, self.log.n_rounds, 5).astype(int).tolist()
        for first, last in pairwise(edges):
            a, b = max(first, start), min(last, self.log.n_rounds if stop is None else stop)
            if a < b:
                yield task(self.log[a:b], a)


def test_parts_of_contexts_are_fitted_as_the_whole_log(logs):
    log = logs["all"]
    found = SuffixImitation(burn_in="naive").fit(InParts(log, log.crossing))
    whole = SuffixImitation(burn_in="naive").fit(log)
    np.testing.assert_allclose(found.theta_, whole.theta_, atol=1e-6)
    np.testing.assert_allclose(found.covariance_, whole.covariance_, rtol=1e-4, atol=1e-8)
    assert (found.warnings_, found.policy_.arms) == (whole.warnings_, whole.policy_.arms)
    with pytest.raises(InputError, match="crossing"):
        SuffixImitation(burn_in="naive").fit(InParts(log, None))


def test_parts_of_sparse_rows_are_fitted_as_the_whole_log():
    log = sparse_log(2000, 4, 40, 5, 1)
    found = SuffixImitation(burn_in="naive").fit(InParts(log, None))
    whole = SuffixImitation(burn_in="naive").fit(log)
    np.testing.assert_allclose(found.theta_, whole.theta_, atol=1e-6)
    np.testing.assert_allclose(found.covariance_, whole.covariance_, rtol=1e-4, atol=1e-8)
