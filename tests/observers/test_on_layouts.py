"""Every observer and the diagnosis on rows that are not dense: the same answers as from an array."""

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array

from observers.test_contract import OBSERVERS, ready
from onlooker import BanditLog, DynamicImitation, InputError, SuffixImitation, TrackingObserver, diagnose
from onlooker.logs import layouts

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.base.errors.FittedRoundsWarning")

BY_MINIMUM = {"SuffixImitation", "BlockImitation", "ChangePointImitation"}
"""Those that minimise: sums over sparse rows round otherwise, so they stop elsewhere within the solver's tolerance."""


@pytest.fixture(scope="module")
def logs():
    """The same log, dense and sparse, with features that first vary late and some of another size."""
    rng = np.random.default_rng(5)
    sizes = rng.integers(2, 6, 700)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    dense = rng.normal(size=(offsets[-1], 6)) * (rng.random((offsets[-1], 6)) < 0.4) * [1, 1, 1, 1, 300, 1]
    dense[: offsets[300], 5] = 0.0
    scores = dense @ [1.0, -1.0, 0.5, 0.0, 0.003, 1.0] + 0.5 * rng.gumbel(size=len(dense))
    chosen = [int(scores[a:b].argmax()) for a, b in pairwise(offsets)]
    names = [f"f{j}" for j in range(6)]
    sparse = BanditLog.from_sparse(csr_array(dense), offsets, chosen, feature_names=names)
    return BanditLog(dense, offsets, chosen, feature_names=names), sparse


@pytest.fixture(scope="module")
def crossed():
    """Contexts with four arms, some of them not always offered: factored, and as an array."""
    rng = np.random.default_rng(6)
    contexts, weights = rng.normal(size=(600, 3)), rng.normal(size=(4, 3))
    offered = rng.random((600, 4)) < 0.8
    offered[:, 0] = True
    scores = np.where(offered, contexts @ weights.T + 0.3 * rng.gumbel(size=(600, 4)), -np.inf)
    arms = np.array(["d", "a", "c", "b"])
    options = {"arms": arms, "offered": offered, "feature_names": ["x", "y", "z"]}
    factored = BanditLog.from_contexts(contexts, arms[scores.argmax(axis=1)], **options)
    return factored.written_out(), factored


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("kind", OBSERVERS, ids=lambda kind: kind.__name__)
def test_every_observer_finds_the_same(kind, logs):
    dense, sparse = (ready(kind).fit(log) for log in logs)
    near = {"rtol": 1e-6, "atol": 1e-7} if kind.__name__ in BY_MINIMUM else {"rtol": 1e-10, "atol": 1e-10}
    np.testing.assert_allclose(sparse.theta_, dense.theta_, **near)
    np.testing.assert_allclose(sparse.predict_proba(logs[1]), dense.predict_proba(logs[0]), **near)
    assert sparse.score(logs[1]) == dense.score(logs[0])
    if hasattr(dense, "covariance_"):
        size = np.nanmax(np.abs(dense.covariance_))
        np.testing.assert_allclose(sparse.covariance_ / size, dense.covariance_ / size, rtol=1e-4, atol=1e-10)


@pytest.mark.parametrize("kind", OBSERVERS, ids=lambda kind: kind.__name__)
def test_every_observer_finds_the_same_with_weights_by_arm(kind, crossed):
    dense, factored = (ready(kind).fit(log) for log in crossed)
    near = {"rtol": 1e-5, "atol": 1e-6} if kind.__name__ in BY_MINIMUM else {"rtol": 1e-10, "atol": 1e-10}
    expected = dense.theta_
    if kind in {TrackingObserver, DynamicImitation}:
        # Of weights by arm they give differences to the mean over arms, the only ones that picks show.
        expected = (expected.reshape(4, 3) - expected.reshape(4, 3).mean(axis=0)).ravel()
    np.testing.assert_allclose(factored.theta_, expected, **near)
    np.testing.assert_allclose(factored.predict_proba(crossed[1]), dense.predict_proba(crossed[0]), **near)
    assert factored.policy_.arms == ("d", "a", "c", "b")
    assert dense.policy_.feature_names == factored.policy_.feature_names
    copy = pickle.loads(pickle.dumps(factored))
    np.testing.assert_array_equal(copy.predict(crossed[1]), factored.predict(crossed[1]))


@pytest.mark.parametrize("kind", [TrackingObserver, DynamicImitation])
def test_states_with_weights_by_arm_are_kept_and_go_on(kind, crossed, tmp_path):
    log = crossed[1]
    whole = kind().fit(log)
    kind().fit(log[:300]).save(tmp_path / "state.json")
    later = kind.load(tmp_path / "state.json")
    assert later.policy_.arms == ("d", "a", "c", "b")
    later.partial_fit(log[300:])
    np.testing.assert_allclose(later.theta_, whole.theta_, rtol=1e-10, atol=1e-12)
    assert later.policy_.feature_names == log.weight_names
    with pytest.raises(InputError, match="does not know the arms"):
        later.partial_fit(BanditLog.from_contexts(np.ones((3, 3)), ["a", "q", "b"], feature_names=["x", "y", "z"]))


def test_a_diagnosis_is_the_same_with_weights_by_arm(crossed):
    dense, factored = (diagnose(log) for log in crossed)
    assert factored.sentence == dense.sentence


def test_a_growing_sparse_log_is_followed_as_a_whole_one(logs, tmp_path):
    dense, sparse = logs
    whole = TrackingObserver(exploration="auto").fit(dense)
    parts = TrackingObserver().fit(sparse[:350])
    parts.save(tmp_path / "state.json")
    parts = TrackingObserver.load(tmp_path / "state.json").partial_fit(sparse)
    np.testing.assert_allclose(parts.theta_, whole.theta_, rtol=1e-10, atol=1e-10)
    assert parts.n_skipped_ == 350


def test_a_diagnosis_is_the_same(logs):
    dense, sparse = (diagnose(log) for log in logs)
    assert sparse.sentence == dense.sentence
    assert sparse.verdict == dense.verdict


def test_what_needs_too_large_an_array_is_refused_in_one_line(logs, monkeypatch):
    monkeypatch.setattr(layouts, "WRITTEN_OUT", 50_000)
    with pytest.raises(InputError, match=r"would take 0\.0 GB as an array, which is needed here: choose fewer"):
        ready(next(kind for kind in OBSERVERS if kind.__name__ == "BayesianICB")).fit(logs[1])


@pytest.mark.parametrize("kind", [*OBSERVERS, diagnose], ids=lambda kind: kind.__name__)
def test_more_features_than_can_be_worked_on_are_refused_in_one_line(kind):
    rows = csr_array((np.ones(12), np.arange(0, 6000, 500), np.arange(13)), shape=(12, 6000))
    log = BanditLog.from_sparse(rows, [0, 2, 4, 6, 8, 10, 12], [0, 1, 0, 1, 0, 1])
    if kind.__name__ == "SuffixImitation":
        return
    with pytest.raises(InputError, match=r"takes up to 2,000 features .*the log has 6,000: name some with features"):
        kind(log) if kind is diagnose else ready(kind).fit(log)


def test_tracking_has_intervals_for_weights_of_each_arm():
    rng = np.random.default_rng(0)
    contexts, weights = np.column_stack([np.ones(600), rng.normal(size=(600, 2))]), rng.normal(size=(4, 3))
    picks = (contexts @ weights.T + rng.gumbel(size=(600, 4))).argmax(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        observer = TrackingObserver().fit(BanditLog.from_contexts(contexts, picks))
    assert not [text for text in observer.warnings_ if "identifiable" in text]
    assert all(np.isfinite(one.standard_error) for one in observer.summary().coefficients)
    # Differences to the mean over arms.
    assert np.allclose(observer.theta_.reshape(4, 3).sum(axis=0), 0.0, atol=1e-9)
    cosine = observer.theta_ @ (weights - weights.mean(axis=0)).ravel()
    assert cosine > 0.95 * np.linalg.norm(observer.theta_) * np.linalg.norm(weights - weights.mean(axis=0))


@pytest.mark.parametrize("kind", [SuffixImitation, DynamicImitation, TrackingObserver], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("some_offered", [False, True])
def test_answers_do_not_depend_on_the_order_of_arms(kind, some_offered):
    rng, order = np.random.default_rng(5), np.array([2, 0, 3, 1])
    contexts = rng.normal(size=(200, 3))
    offered = (rng.random((200, 4)) < 0.7) | (not some_offered)
    offered[:, :2] |= ~offered.any(axis=1, keepdims=True)
    scores = contexts @ rng.normal(size=(3, 4)) + rng.gumbel(size=(200, 4))
    picks = np.where(offered, scores, -np.inf).argmax(axis=1)
    # The third arm of one log is the first of the other, and so on: with other names too.
    one = BanditLog.from_contexts(contexts, picks, arms=range(4), offered=offered)
    other = BanditLog.from_contexts(contexts, np.argsort(order)[picks], arms=range(4), offered=offered[:, order])
    found, turned = kind().fit(one), kind().fit(other)
    np.testing.assert_allclose(turned.theta_.reshape(4, 3), found.theta_.reshape(4, 3)[order], rtol=1e-6, atol=1e-9)
    errors, again = (np.sqrt(np.diag(fit.covariance_)).reshape(4, 3) for fit in (found, turned))
    np.testing.assert_allclose(again, errors[order], rtol=1e-6)
    given, again = (fit.propensities(log)[log.chosen_rows] for fit, log in ((found, one), (turned, other)))
    np.testing.assert_allclose(again, given, atol=1e-4)


def test_a_diagnosis_does_not_depend_on_the_order_of_arms():
    rng, order = np.random.default_rng(6), np.array([2, 0, 3, 1])
    contexts = rng.normal(size=(500, 3))
    picks = (contexts @ rng.normal(size=(3, 4)) + rng.gumbel(size=(500, 4))).argmax(axis=1)
    one, other = (
        diagnose(BanditLog.from_contexts(contexts, chosen, arms=range(4)))
        for chosen in (picks, np.argsort(order)[picks])
    )
    assert one.sentence == other.sentence
    assert one.exploration.low == pytest.approx(other.exploration.low, abs=1e-9)
