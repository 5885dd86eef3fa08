"""Picks known to a set: likelihood, solver and intervals against brute force and simulated truth."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array

from onlooker import BanditLog, InputError, SuffixImitation
from onlooker.base.errors import CoarseSetsWarning
from onlooker.imitation.choice_model import revealed
from onlooker.imitation.newton import minimise
from onlooker.imitation.objective import Pass
from onlooker.imitation.sets import descend
from onlooker.imitation.softmax import SoftmaxObjective, round_losses

THETA = np.array([1.0, -0.7, 0.4, 0.0])


def simulated(
    seed: int, n: int = 800, k: int = 6, groups: int = 3, theta: np.ndarray = THETA
) -> tuple[BanditLog, BanditLog]:
    """A log with picks, and the same known to groups of arms."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, k, len(theta)))
    chosen = (X @ theta + rng.gumbel(size=(n, k))).argmax(axis=1)
    log = BanditLog.from_dense(X, chosen)
    group = np.arange(k) * groups // k
    possible = (group[None] == group[chosen][:, None]).ravel()
    return log, BanditLog(log.features, log.offsets, None, possible=possible)


def ragged(seed: int, *, sampled: bool = False) -> BanditLog:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, size=60)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    possible = rng.random(offsets[-1]) < 0.4
    possible[offsets[:-1] + rng.integers(0, sizes)] = True
    chances = rng.uniform(0.1, 1.0, size=offsets[-1]) if sampled else None
    return BanditLog(rng.normal(size=(offsets[-1], 3)), offsets, None, possible=possible, offer_probability=chances)


def brute_loss(log: BanditLog, theta: np.ndarray, l2: float = 0.0) -> float:
    """Round by round, from the definition."""
    total, n = 0.0, 0
    for t in range(log.n_rounds):
        rows = slice(log.offsets[t], log.offsets[t + 1])
        weights = np.exp(log.features[rows] @ theta)
        if log.offer_probability is not None:
            weights = weights / log.offer_probability[rows]
        if not log.possible[rows].all():
            total += -np.log(weights[log.possible[rows]].sum() / weights.sum())
            n += 1
    return total / n + l2 / 2 * theta @ theta


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_loss_gradient_and_hessian_are_those_of_the_definition(sampled: bool, sparse: bool) -> None:
    log = ragged(3, sampled=sampled)
    given = log.with_features(csr_array(log.features)) if sparse else log
    objective, theta, step = SoftmaxObjective(given, l2=0.01), np.array([0.3, -0.5, 0.8]), 1e-5
    at = objective.evaluate(theta)
    assert at.value == pytest.approx(brute_loss(log, theta, 0.01), rel=1e-12)
    moves = np.eye(3) * step
    slopes = [(brute_loss(log, theta + m, 0.01) - brute_loss(log, theta - m, 0.01)) / (2 * step) for m in moves]
    np.testing.assert_allclose(at.gradient, slopes, atol=1e-8)
    bends = [(objective.slope(theta + m).gradient - objective.slope(theta - m).gradient) / (2 * step) for m in moves]
    np.testing.assert_allclose(at.hessian, bends, atol=1e-8)
    np.testing.assert_allclose(objective.bounded(theta).hessian, objective.bounded(theta).hessian.T)
    assert np.linalg.eigvalsh(objective.bounded(theta).hessian - at.hessian).min() > -1e-12
    assert objective.null_loss == pytest.approx(brute_loss(log, np.zeros(3)))
    assert round_losses(given, theta)[log.informative].mean() == pytest.approx(brute_loss(log, theta))


def test_sets_of_one_arm_give_the_fit_of_picks() -> None:
    log, _ = simulated(0)
    possible = np.zeros(len(log.features), dtype=bool)
    possible[log.chosen_rows] = True
    # One set of two arms beside, so that the solver for sets is used.
    more = possible.copy()
    more[:2] = True
    np.testing.assert_allclose(
        minimise(SoftmaxObjective(BanditLog(log.features, log.offsets, None, possible=more)[1:], l2=1e-4)).theta,
        minimise(SoftmaxObjective(log[1:], l2=1e-4)).theta,
        rtol=1e-6,
    )


def test_sets_of_all_arms_say_nothing() -> None:
    log, _ = simulated(0)
    everything = BanditLog(log.features, log.offsets, None, possible=np.ones(len(log.features)))
    with pytest.raises(InputError, match="every offered arm may have been the pick"):
        SuffixImitation(burn_in="naive").fit(everything)
    half = BanditLog.concat([log[:400], everything[400:]])
    with pytest.warns(CoarseSetsWarning, match="in 400 rounds every offered arm"):
        observer = SuffixImitation(burn_in="naive").fit(half)
    assert observer.n_rounds_ == 400
    np.testing.assert_allclose(observer.theta_, SuffixImitation(burn_in="naive").fit(log[:400]).theta_, atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_minimum_is_the_best_that_a_solver_of_others_finds_from_many_starts(seed: int) -> None:
    log = ragged(seed)
    rng = np.random.default_rng(seed)
    best = min(minimize(lambda theta: brute_loss(log, theta, 0.05), start).fun for start in rng.normal(size=(8, 3)) * 2)
    fit = minimise(SoftmaxObjective(log, l2=0.05))
    assert brute_loss(log, fit.theta, 0.05) <= best + 1e-7
    assert fit.converged


def test_no_step_leads_up() -> None:
    """Every point that a search accepts is at most as high as the one before, from hundreds of starts."""
    for seed in range(5):
        objective = SoftmaxObjective(ragged(seed), l2=1e-3)
        seen: list[float] = []
        run = objective.run

        def noted(wanted: Pass, run=run, seen=seen, objective=objective) -> object:
            found = run(wanted)
            seen.append(found.point(wanted.theta, objective.total, objective.l2).value)
            return found

        objective.run = noted  # type: ignore[method-assign, assignment]
        for start in np.random.default_rng(seed).normal(size=(10, 3)) * 5:
            seen.clear()
            found = descend(objective, start)
            assert found.at.value <= seen[0] + 1e-12
            assert found.at.value <= min(seen) + 1e-9


def test_mirrored_features_have_no_sign() -> None:
    """Groups of an arm and its mirror image: theta and its mirror image explain the sets equally well."""
    rng = np.random.default_rng(1)
    half = rng.normal(size=(2000, 2, 2))
    X = np.stack([half[:, 0], -half[:, 0], half[:, 1], -half[:, 1]], axis=1)
    chosen = (X @ [1.0, 0.5] + rng.gumbel(size=(2000, 4))).argmax(axis=1)
    possible = (np.arange(4)[None] // 2 == chosen[:, None] // 2).ravel()
    with pytest.warns(CoarseSetsWarning, match="'x0', 'x1'"):
        SuffixImitation(burn_in="naive").fit(BanditLog(X.reshape(-1, 2), np.arange(2001) * 4, None, possible=possible))


def test_a_feature_that_is_the_same_in_all_sets_on_average_is_named_alone() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1500, 4, 2))
    X[:, 1::2, 1] = -X[:, ::2, 1]
    X[:, 1::2, 0] = X[:, ::2, 0]
    chosen = (X @ [1.0, 0.8] + rng.gumbel(size=(1500, 4))).argmax(axis=1)
    possible = (np.arange(4)[None] // 2 == chosen[:, None] // 2).ravel()
    log = BanditLog(X.reshape(-1, 2), np.arange(1501) * 4, None, possible=possible, feature_names=["price", "speed"])
    with pytest.warns(CoarseSetsWarning, match="too coarse to identify 'speed':"):
        observer = SuffixImitation(burn_in="naive").fit(log)
    assert observer.theta_[0] == pytest.approx(1.0, abs=0.15)
    assert np.isfinite(observer.covariance_[0, 0])
    assert np.isnan(observer.covariance_[1]).all()


def test_intervals_cover_and_cost_little() -> None:
    """Three groups of two arms: direction as the picks give it, within a factor; nominal intervals."""
    inside, ratio = [], []
    for seed in range(40):
        log, known = simulated(seed)
        seen, found = (SuffixImitation(burn_in="naive", l2=0.0).fit(one) for one in (log, known))
        errors = np.sqrt(np.diag(found.covariance_))
        inside.append(np.abs(found.theta_ - THETA) < 1.96 * errors)
        ratio.append([np.linalg.norm(one.theta_ - THETA) for one in (seen, found)])
    assert 0.90 <= np.mean(inside) <= 0.99
    spread = np.mean(ratio, axis=0)
    assert spread[0] < spread[1] < 1.7 * spread[0]


def test_both_covariances_agree_where_the_model_holds() -> None:
    _, known = simulated(5, n=3000)
    sandwich = SuffixImitation(burn_in="naive", lags=0).fit(known).covariance_
    model = SuffixImitation(burn_in="naive", covariance="model").fit(known).covariance_
    np.testing.assert_allclose(np.sqrt(np.diag(sandwich)), np.sqrt(np.diag(model)), rtol=0.1)


def test_weights_count_sets_as_often() -> None:
    _, known = simulated(6, n=300)
    weights = np.random.default_rng(0).integers(0, 3, size=300)
    repeated = known[np.repeat(np.arange(300), weights)]
    one = SuffixImitation(burn_in="naive").fit(known, sample_weight=weights)
    other = SuffixImitation(burn_in="naive").fit(repeated)
    np.testing.assert_allclose(one.theta_, other.theta_, atol=1e-7)
    np.testing.assert_allclose(one.covariance_, other.covariance_, atol=1e-9)


def test_contexts_with_sets() -> None:
    """Weights of their own for each arm, picks known to pairs of arms: as a dense fit of the same."""
    rng = np.random.default_rng(3)
    contexts = np.column_stack([np.ones(600), rng.normal(size=600)])
    weights = rng.normal(size=(4, 2))
    chosen = (contexts @ weights.T + rng.gumbel(size=(600, 4))).argmax(axis=1)
    log = BanditLog.from_contexts(contexts, chosen, arms=np.arange(4))
    # Pairs differ from round to round: else the two arms of a pair would be interchangeable.
    pairs = np.array(list(itertools.combinations(range(4), 2)))
    other = (chosen + rng.integers(1, 4, size=600)) % 4
    possible = np.zeros((600, 4), dtype=bool)
    possible[np.arange(600), chosen] = possible[np.arange(600), other] = True
    assert len(pairs) == 6
    known = BanditLog(log.features, log.offsets, None, possible=possible.ravel(), feature_names=log.feature_names)
    dense = BanditLog(log.features.toarray(), log.offsets, None, possible=possible.ravel())
    one, two = (minimise(SoftmaxObjective(each, l2=1e-3)).theta for each in (known, dense))
    np.testing.assert_allclose(one, two, atol=1e-5)
    assert np.corrcoef(one, (weights - weights.mean(axis=0)).ravel())[0, 1] > 0.95


def test_revealed_of_seen_picks_is_that_of_picks() -> None:
    log, _ = simulated(0, n=5)
    scores = log.features @ THETA
    shifted = BanditLog(log.features, log.offsets, log.chosen, offer_probability=np.full(len(scores), 0.3))
    np.testing.assert_allclose(revealed(scores, log).losses, revealed(scores, shifted).losses)
