"""Bounds for an observer of signals: against brute force over mistakes, and against simulated signals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from onlooker import InputError, bounds


def _random_confusion(rng: np.random.Generator, n: int) -> np.ndarray:
    found = rng.dirichlet(np.ones(n), size=n) * 0.4 + 0.6 * np.eye(n)
    return found / found.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("eta", [0.0, 0.05, 0.3, 0.7])
def test_picks_that_are_seen_give_the_papers_bound(eta: float) -> None:
    assert bounds.signal_margin(eta, np.eye(7)) == pytest.approx(1 - 2 * eta)
    args = (10**6, 10**5, 10, 7, 0.05, eta)
    seen, paper = bounds.signal_regret_bound(*args, np.eye(7)), bounds.predictive_regret_bound(*args)
    assert seen == (pytest.approx(paper) if math.isfinite(paper) else math.inf)


@pytest.mark.parametrize("seed", range(5))
def test_the_margin_is_the_smallest_that_mistakes_can_make(seed: int) -> None:
    """Of all distributions of picks with the best arm at 1 - eta or more, none has a smaller margin; one reaches it."""
    rng = np.random.default_rng(seed)
    confusion, eta = _random_confusion(rng, 4), 0.2
    margin = bounds.signal_margin(eta, confusion)
    smallest = math.inf
    for a, b in itertools.permutations(range(4), 2):
        for mistakes in [*np.eye(4), *rng.dirichlet(np.ones(4), size=200)]:
            for share in (0.0, 0.1, eta):
                picks = (1 - share) * np.eye(4)[a] + share * mistakes
                smallest = min(smallest, float(picks @ (confusion[:, a] - confusion[:, b])))
    assert margin == pytest.approx(smallest)


def test_excess_disagreement_is_at_least_the_margin_times_the_risk() -> None:
    """Lemma 2 for signals, exactly, for every policy on a few contexts."""
    rng = np.random.default_rng(0)
    confusion, eta, n, k = _random_confusion(rng, 3), 0.15, 4, 3
    margin = bounds.signal_margin(eta, confusion)
    assert margin > 0
    best = rng.integers(0, k, size=n)
    picks = (1 - eta) * np.eye(k)[best] + eta * rng.dirichlet(np.ones(k), size=n)
    signals = picks @ confusion
    for policy in itertools.product(range(k), repeat=n):
        excess = np.mean(signals[np.arange(n), best] - signals[np.arange(n), policy])
        assert excess >= margin * np.mean(np.array(policy) != best) - 1e-12


def test_more_confusion_is_a_larger_bound() -> None:
    args = (10**7, 10**6, 20, 12, 0.05, 0.05)
    found = [bounds.signal_regret_bound(*args, bounds.group_confusion(12, groups)) for groups in (12, 6, 4, 3, 2, 1)]
    assert found == sorted(found)
    assert found[-1] == math.inf


def test_group_confusion_is_that_of_groups_drawn_anew() -> None:
    rng = np.random.default_rng(0)
    counts = np.zeros((6, 6))
    for _ in range(6000):
        group = rng.permutation(6) % 3
        pick = rng.integers(6)
        counts[pick, rng.choice(np.flatnonzero(group == group[pick]))] += 1
    np.testing.assert_allclose(counts / counts.sum(axis=1, keepdims=True), bounds.group_confusion(6, 3), atol=0.05)


def test_groups_that_stay_the_same_have_no_bound() -> None:
    fixed = np.kron(np.eye(3), np.full((2, 2), 0.5))
    assert bounds.signal_margin(0.0, fixed) == 0.0
    assert bounds.signal_regret_bound(10**6, 10**5, 5, 6, 0.05, 0.0, fixed) == math.inf


@pytest.mark.parametrize(
    ("confusion", "message"),
    [
        (np.ones(3), "has shape"),
        (np.ones((2, 3)), "has shape"),
        (np.full((2, 2), 0.4), "sums to 1"),
        (np.array([[1.5, -0.5], [0.0, 1.0]]), "probabilities"),
    ],
)
def test_what_is_no_confusion_is_refused(confusion: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        bounds.signal_margin(0.1, confusion)


def test_arms_must_agree() -> None:
    with pytest.raises(InputError, match="confusion is of 3 arms"):
        bounds.signal_regret_bound(1000, 10, 5, 4, 0.05, 0.1, np.eye(3))
    with pytest.raises(InputError, match="do not make up"):
        bounds.group_confusion(10, 3)
