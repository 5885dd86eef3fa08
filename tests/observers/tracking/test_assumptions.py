"""A learner with weights per arm gets one answer, whether or not one arm's block is left out of the log."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from onlooker import BanditLog, Environment, LinTS, TrackingObserver, direction_error, simulate
from onlooker.observers.tracking.assumptions import Reference

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")

K, P, N = 5, 3, 1300
PICKS = {"UCB": 0.1, "TS": 0.0, "Lapse": 0.0}


def contexts_and_picks(family: str, seed: int, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    """One ridge model per arm."""
    source = np.random.default_rng(seed)
    contexts = np.hstack([np.ones((n, 1)), source.standard_normal((n, P - 1))]) / np.sqrt(P)
    truth = source.standard_normal((K, P)) / np.sqrt(P)
    inverse, total = np.stack([np.eye(P)] * K), np.zeros((K, P))
    picks = np.empty(n, dtype=np.int64)
    for t, c in enumerate(contexts):
        means = np.einsum("kij,kj->ki", inverse, total)
        scores = means @ c + PICKS[family] * np.sqrt(np.einsum("i,kij,j->k", c, inverse, c))
        if family == "TS":
            draws = [np.linalg.cholesky(one) @ source.standard_normal(P) for one in inverse]
            scores += 0.1 * np.sqrt(K * P) * np.array(draws) @ c
        random = family == "Lapse" and source.random() < 0.1
        picks[t] = k = source.integers(K) if random else source.choice(np.flatnonzero(scores >= scores.max()))
        step = inverse[k] @ c
        inverse[k] -= np.outer(step, step) / (1.0 + c @ step)
        total[k] += c * (truth[k] @ c + 0.1 * source.standard_normal())
    return contexts, picks


def symmetric(contexts: np.ndarray, picks: np.ndarray) -> BanditLog:
    rows = np.einsum("kl,tp->tklp", np.eye(K), contexts).reshape(len(contexts), K, K * P)
    return BanditLog.from_dense(rows, picks)


def without(log: BanditLog, arm: int) -> BanditLog:
    """With the block of one arm left out."""
    places = np.delete(np.arange(K * P), np.arange(arm * P, (arm + 1) * P))
    return BanditLog(log.features[:, places], log.offsets, log.chosen)


def fitted(log: BanditLog) -> TrackingObserver:
    return TrackingObserver().fit(log)


@pytest.mark.parametrize(("family", "arm"), [("UCB", 0), ("TS", 2), ("Lapse", 4)])
def test_a_block_left_out_changes_no_answer(family: str, arm: int) -> None:
    log = symmetric(*contexts_and_picks(family, 7))
    whole, coded = fitted(log), fitted(without(log, arm))
    assert (whole.exploration_ is None) == (coded.exploration_ is None)
    assert whole.exploration_ is None or coded.exploration_.name == whole.exploration_.name
    assert whole._monitor.verdict.lacking == coded._monitor.verdict.lacking
    np.testing.assert_allclose(coded.predict_proba(without(log, arm)), whole.predict_proba(log), atol=1e-9)
    others = np.arange(K) != arm
    back = np.kron(np.eye(K)[others] - np.eye(K)[arm], np.eye(P))
    np.testing.assert_allclose(coded.theta_, back @ whole.theta_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(coded.covariance_, back @ whole.covariance_ @ back.T, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(coded.path_.theta, whole.path_.theta @ back.T, rtol=1e-6, atol=1e-8)


def test_one_step_ahead_and_for_a_given_family() -> None:
    from onlooker import UCB

    log = symmetric(*contexts_and_picks("UCB", 3, 600))
    small = without(log, 1)
    for observer in (TrackingObserver(), TrackingObserver(exploration=UCB(1.0))):
        found = [observer.fit(one).propensities(one) for one in (log, small)]
        np.testing.assert_allclose(found[1], found[0], atol=1e-9)


def test_parts_and_states_give_the_same(tmp_path) -> None:
    log = without(symmetric(*contexts_and_picks("TS", 5)), 0)
    whole, parts = fitted(log), fitted(log[:300])
    for start, stop in ((300, 1100), (1100, 1200), (1200, N)):
        parts.save(tmp_path / "state.json")
        parts = TrackingObserver.load(tmp_path / "state.json").partial_fit(log[start:stop])
    assert whole._monitor.contest.coding is not None
    assert (parts.theta_ == whole.theta_).all()
    assert (parts.covariance_ == whole.covariance_).all()
    assert (parts.path_.standard_error == whole.path_.standard_error).all()
    assert (parts.predict_proba(log) == whole.predict_proba(log)).all()


def test_features_in_another_order_are_predicted_alike() -> None:
    log = without(symmetric(*contexts_and_picks("UCB", 11)), 0)
    names, order = [f"w{j}" for j in range(log.n_features)], np.random.default_rng(0).permutation(log.n_features)
    observer = fitted(log.with_features(log.features, names))
    turned = log.with_features(log.features[:, order], [names[j] for j in order])
    assert (observer.predict_proba(turned) == observer.predict_proba(log)).all()


def test_a_learner_that_has_no_such_block_is_taken_as_it_is() -> None:
    source = np.random.default_rng(2)
    contexts = source.standard_normal((1000, P))
    rows = np.einsum("kl,tp->tklp", np.eye(K)[:, 1:], contexts).reshape(1000, K, -1)
    inverse, total, truth = np.eye(rows.shape[2]), np.zeros(rows.shape[2]), source.standard_normal(rows.shape[2])
    picks = np.empty(1000, dtype=np.int64)
    for t, offered in enumerate(rows):
        draw = np.linalg.cholesky(inverse) @ source.standard_normal(len(total))
        picks[t] = np.argmax(offered @ (inverse @ total + 0.5 * draw))
        x = offered[picks[t]]
        inverse -= np.outer(inverse @ x, inverse @ x) / (1.0 + x @ inverse @ x)
        total += x * (x @ truth + 0.1 * source.standard_normal())
    log = BanditLog.from_dense(rows, picks)
    assert Reference.of(log) is not None
    assert fitted(log)._monitor.contest.coding is None


def test_features_in_other_units_get_the_same_name() -> None:
    simulated = simulate(Environment(10, 20, seed=4), LinTS(), 2000, seed=4)
    units = 4.0 ** np.linspace(-1.0, 1.0, 10)
    plain, turned = (
        simulated.log,
        BanditLog(simulated.log.features * units, simulated.log.offsets, simulated.log.chosen),
    )
    before, after = fitted(plain), fitted(turned)
    assert before.units_ is None
    assert before.exploration_.name == after.exploration_.name == "TS"
    # Each in a unit of its own, up to what the sample says of sizes.
    np.testing.assert_allclose(after.units_ / units, np.mean(after.units_ / units), rtol=0.1)
    assert direction_error(after.theta_ * units, simulated.theta_star) < 0.1
    assert "units of its own" in str(after.summary())


@pytest.mark.parametrize("n_shared", [0, 2])
def test_blocks_are_found_in_any_order_of_offers_and_beside_other_features(n_shared: int) -> None:
    source, rows, offsets = np.random.default_rng(1), [], [0]
    for _ in range(40):
        context, arms = source.standard_normal(P), source.permutation(K)[: source.integers(2, K + 1)]
        own = np.eye(K)[arms][:, 1:]
        blocks = np.einsum("kl,p->kpl", own, context).reshape(len(arms), -1)
        rows.append(np.hstack([source.standard_normal((len(arms), n_shared)), blocks]))
        offsets.append(offsets[-1] + len(arms))
    log = BanditLog(np.vstack(rows), offsets, np.zeros(40, dtype=int))
    coding = Reference.of(log)
    assert coding is not None
    expected = n_shared + np.arange(P)[None, :] * (K - 1) + np.arange(K - 1)[:, None]
    assert (coding.blocks == expected).all()
    found = coding.log(log).dense
    assert found[:, : coding.width].any()
    weights = source.standard_normal(found.shape[1])
    scores, own_scores = found @ weights, log.dense @ (coding.back(log.n_features) @ weights)
    for start, stop in pairwise(offsets):
        # What all arms share leaves differences as they are.
        np.testing.assert_allclose(np.diff(scores[start:stop]), np.diff(own_scores[start:stop]), atol=1e-12)


@pytest.mark.parametrize("kind", ["normal", "binary", "symmetric", "outside option"])
def test_other_logs_have_no_such_blocks(kind: str) -> None:
    source = np.random.default_rng(0)
    rows = source.standard_normal((50, K, P))
    if kind == "binary":
        rows = (rows > 0).astype(float)
    if kind == "symmetric":
        rows = symmetric(source.standard_normal((50, P)), np.zeros(50, dtype=int)).features.reshape(50, K, -1)
    if kind == "outside option":
        rows[:, 0] = 0.0
    assert Reference.of(BanditLog.from_dense(rows, np.zeros(50, dtype=int))) is None


def test_a_level_that_comes_later_is_one_more_block() -> None:
    coding = Reference(np.array([[0], [1]])).grown(2, 1)
    assert coding.blocks.tolist() == [[0], [1], [2]]
    assert coding.rows(np.eye(4)[:, :3], np.array([0, 4])).tolist() == np.eye(4)[:, [3, 0, 1, 2]].tolist()
