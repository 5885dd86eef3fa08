"""Partial pooling of weights that every arm has of its own."""

import numpy as np
import pytest

from onlooker import BanditLog, InputError, LinearPolicy, SuffixImitation, fit_groups
from onlooker.observers import pooling
from onlooker.observers.coordinates import Coordinates
from onlooker.observers.pooling import pool

K, P = 4, 3
SPREADS = np.array([0.6, 0.2, 0.4])


def made(n_groups, n_rounds, seed):
    """Logs of softmax policies with weights for each arm that vary about a common mean, and the weights, centred."""
    rng = np.random.default_rng(seed)
    thetas = rng.normal(size=(K, P)) + SPREADS * rng.normal(size=(n_groups, K, P))
    contexts = rng.normal(size=(n_groups, n_rounds, P))
    contexts[..., 0] = 1.0
    picks = (np.einsum("stp,skp->stk", contexts, thetas) + rng.gumbel(size=(n_groups, n_rounds, K))).argmax(axis=2)
    logs = {f"g{g}": BanditLog.from_contexts(contexts[g], picks[g], arms=list(range(K))) for g in range(n_groups)}
    return logs, thetas - thetas.mean(axis=1, keepdims=True)


def test_predicts_held_out_picks_better_than_one_for_all_and_each_alone():
    logs, _ = made(30, 100, seed=1)
    seen, later = ({name: log[part] for name, log in logs.items()} for part in (slice(0, 50), slice(50, 100)))
    naive = SuffixImitation(burn_in="naive")
    one = naive.fit(BanditLog.concat(list(seen.values()))).policy_
    alone, pooled = fit_groups(seen, naive), fit_groups(seen, naive, pool=True)

    def loss(policy_of):
        return np.mean([-np.log(policy_of(n).probabilities(log)[log.chosen_rows]).mean() for n, log in later.items()])

    best = loss(lambda name: pooled[name].policy)
    assert best < loss(lambda _: one) - 0.02
    assert best < loss(lambda name: alone[name].policy) - 0.02


def test_intervals_cover():
    hits = []
    for seed in range(2, 6):
        logs, thetas = made(40, 60, seed)
        found = pool(logs)
        errors = np.array([np.sqrt(np.diag(found.covariances[name])) for name in logs])
        away = np.array([found.thetas[name] for name in logs]) - thetas.reshape(len(logs), -1)
        hits.append(np.abs(away) <= 1.96 * errors)
    # The spread between groups is taken as known, so that they are a little too narrow.
    assert 0.90 < np.mean(hits) < 0.98


def test_finds_how_much_groups_differ():
    found = pool(made(80, 80, seed=7)[0])
    # Differences to the mean over arms have this part of the variance of the weights.
    spreads = np.sqrt(np.diag(found.spread).reshape(K, P) / (1 - 1 / K))
    assert np.allclose(spreads, SPREADS, atol=0.1)
    assert np.allclose(spreads, spreads[0]), "all arms vary alike"
    assert np.allclose(found.mean.reshape(K, P).sum(axis=0), 0.0, atol=1e-9)


@pytest.mark.parametrize("written_out", [True, False])
def test_two_arms_agree_with_pooling_of_their_contrast_as_features(written_out, monkeypatch):
    monkeypatch.setattr(pooling, "WRITTEN_OUT", 1 << 23 if written_out else 0)
    rng = np.random.default_rng(8)
    contexts = rng.normal(size=(8, 60, P))
    picks = (contexts @ [1.0, -0.5, 0.2] + rng.logistic(size=(8, 60)) > 0).astype(int)
    logs = {f"g{g}": BanditLog.from_contexts(contexts[g], picks[g], arms=[0, 1]) for g in range(8)}
    at = Coordinates.of(list(logs.values()))
    dense = {name: BanditLog(log.features.toarray() @ at.basis, log.offsets, log.chosen) for name, log in logs.items()}
    one, other = pool(logs), pool(dense)
    for name in logs:
        assert np.allclose(one.thetas[name], at.basis @ other.thetas[name], atol=1e-4)
    assert np.allclose(one.spread, at.widened(other.spread), atol=1e-4)


@pytest.mark.parametrize("renamed", [False, True])
def test_does_not_depend_on_the_order_of_arms_or_their_names(renamed):
    logs, _ = made(10, 60, seed=9)
    order = np.array([2, 0, 3, 1])
    turned = {
        name: BanditLog.from_contexts(
            log.features.contexts,
            np.argsort(order)[log.chosen] if renamed else log.chosen,
            arms=range(K) if renamed else order,
        )
        for name, log in logs.items()
    }
    one, other = pool(logs), pool(turned)
    for name in logs:
        theta, errors = one.thetas[name].reshape(K, P), np.diag(one.covariances[name]).reshape(K, P)
        assert np.allclose(theta[order], other.thetas[name].reshape(K, P), atol=1e-3)
        assert np.allclose(errors[order], np.diag(other.covariances[name]).reshape(K, P), rtol=0.01)


def test_an_arm_that_a_group_never_offers_has_the_weights_of_the_others():
    logs, _ = made(30, 80, seed=10)
    rounds = np.flatnonzero(logs["g0"].chosen != 3)
    kept = logs["g0"].features.contexts[rounds]
    offered = np.tile([True, True, True, False], (len(rounds), 1))
    logs["g0"] = BanditLog.from_contexts(kept, logs["g0"].chosen[rounds], arms=list(range(K)), offered=offered)
    found = pool(logs)
    mean, own = found.mean.reshape(K, P), found.thetas["g0"].reshape(K, P)
    assert np.abs(own[3] - mean[3]).max() < 0.8
    wide = np.sqrt(np.diag(found.covariances["g0"])).reshape(K, P)
    assert (wide[3] > wide[:3].max(axis=0)).all()


def test_items_with_contexts_are_pooled_too():
    rng = np.random.default_rng(11)
    logs = {}
    items = rng.normal(size=(5, 2))
    for name in "abcdef":
        contexts = rng.normal(size=(100, 1))
        rows = np.stack([items[:, 0] - contexts[t] * items[:, 1] for t in range(100)])
        picks = (rows + rng.gumbel(size=rows.shape)).argmax(axis=1)
        logs[name] = BanditLog.from_contexts(contexts, picks, arms=list(range(5)), arm_features=items)
    found = fit_groups(logs, SuffixImitation(burn_in=0), pool=True)
    assert np.allclose(found.pooled.mean, [1, 0, 0, -1], atol=0.3)
    assert isinstance(found["a"].policy, LinearPolicy)


def test_other_arms_and_constant_contexts_are_refused():
    logs, _ = made(3, 60, seed=12)
    others = BanditLog.from_contexts(logs["g1"].features.contexts, logs["g1"].chosen, arms=[0, 1, 2, 3, 4])
    with pytest.raises(InputError, match="different features"):
        pool(logs | {"g1": others})
    none = {
        name: BanditLog.from_contexts(
            log.features.contexts * [1.0, 0.0, 1.0], log.chosen, arms=list(range(K)), feature_names=["one", "a", "b"]
        )
        for name, log in logs.items()
    }
    with pytest.raises(InputError, match="'a' never varies"):
        pool(none)
