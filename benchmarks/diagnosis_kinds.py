"""Kinds of logs for `benchmarks/diagnosis.py`: what real logs do, each with what may be said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from onlooker import BanditLog, Environment, EpsilonGreedy, ExploreThenCommit, LinTS, LinUCB, simulate
from onlooker.simulation.ridge import RidgeLearner

Array = NDArray[np.float64]
Picks = NDArray[np.int64]


@dataclass(frozen=True)
class Kind:
    """A kind of log."""

    words: str
    make: Callable[[int], BanditLog]
    right: tuple[str, ...]


def unit(rng: np.random.Generator, d: int) -> Array:
    values = rng.standard_normal(d)
    return np.asarray(values / np.linalg.norm(values))


def sampled(scores: Array, rng: np.random.Generator) -> Picks:
    """Picks of a softmax policy."""
    return np.asarray((scores + rng.gumbel(size=scores.shape)).argmax(axis=1))


def lapsed(picks: Picks, share: float | Array, n_arms: int, rng: np.random.Generator) -> Picks:
    """The same, some of them random."""
    return np.where(rng.random(len(picks)) < share, rng.integers(n_arms, size=len(picks)), picks)


def outlying(seed: int, *, far: float, mean: float = 0.0, random: float = 0.0) -> BanditLog:
    """A softmax policy; one arm is far off, and never its pick."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 6, 4)) + mean
    X[:, -1] = far
    picks = sampled(X @ (2 * np.abs(unit(rng, 4))), rng)
    return BanditLog.from_dense(X, lapsed(picks, random, 6, rng))


def slow(seed: int, *, rho: float, n_rounds: int = 3000, greedy: bool = False) -> BanditLog:
    """One policy; each arm's features move slowly."""
    rng = np.random.default_rng(seed)
    X, now = np.empty((n_rounds, 5, 5)), rng.normal(size=(5, 5))
    for t in range(n_rounds):
        X[t] = now = rho * now + (1 - rho**2) ** 0.5 * rng.normal(size=(5, 5))
    scores = X @ (2 * unit(rng, 5))
    picks = lapsed(scores.argmax(axis=1), 0.15, 5, rng) if greedy else sampled(scores, rng)
    return BanditLog.from_dense(X, picks)


def sticky(seed: int, *, share: float, fixed: bool = False, turns: float = 1.0) -> BanditLog:
    """A softmax policy, but some picks stay where the pick before was, or at a place that rarely changes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000, 6, 4))
    if fixed:
        X = X / 2 + rng.normal(size=(6, 4))
    picks, place = sampled(X @ (1.5 * unit(rng, 4)), rng), 0
    for t in range(1, 2000):
        if rng.random() < turns:
            place = int(rng.integers(6)) if turns < 1 else int(picks[t - 1])
        if rng.random() < share:
            picks[t] = place
    return BanditLog.from_dense(X, picks)


def random_picks(seed: int, *, share: float, late: float | None = None, binary: bool = False) -> BanditLog:
    """The best arm, but for random picks; their share may change half-way."""
    rng = np.random.default_rng(seed)
    X = (rng.random((2000, 10, 6)) < 0.3).astype(float) if binary else rng.normal(size=(2000, 10, 6))
    shares = np.where(np.arange(2000) < 1000, share, share if late is None else late)
    return BanditLog.from_dense(X, lapsed((X @ unit(rng, 6)).argmax(axis=1), shares, 10, rng))


def few_arms(seed: int, *, n_arms: int, n_rounds: int = 1500) -> BanditLog:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rounds, n_arms, 5))
    return BanditLog.from_dense(X, sampled(X @ unit(rng, 5), rng))


def per_arm(seed: int, *, n_arms: int, n_rounds: int = 6000) -> BanditLog:
    """Epsilon-greedy with a ridge regression for each arm, in a world that stays as it is."""
    rng = np.random.default_rng(seed)
    contexts = np.column_stack([np.ones(n_rounds), rng.standard_normal((n_rounds, 4))])
    worth = contexts @ (rng.standard_normal((5, n_arms)) / 5**0.5) + 0.3 * rng.standard_normal((n_rounds, 1))
    inverse, sums, theta = np.stack([np.eye(5)] * n_arms), np.zeros((n_arms, 5)), np.zeros((n_arms, 5))
    picks = np.empty(n_rounds, dtype=np.int64)
    for t, context in enumerate(contexts):
        pick = int(rng.integers(n_arms)) if rng.random() < 0.1 else int((theta @ context).argmax())
        moved = inverse[pick] @ context
        inverse[pick] -= np.outer(moved, moved) / (1 + context @ moved)
        sums[pick] += worth[t, pick] * context
        theta[pick], picks[t] = inverse[pick] @ sums[pick], pick
    blocks = np.eye(n_arms)[None, :, :, None] * contexts[:, None, None, :]
    return BanditLog.from_dense(blocks.reshape(n_rounds, n_arms, -1), picks)


def learner(seed: int, *, by: RidgeLearner, d: int = 10, n_arms: int = 20, n_rounds: int = 3000) -> BanditLog:
    return simulate(Environment(d, n_arms, seed=seed), by, n_rounds, seed=seed).log


def turned(seed: int, *, cosine: float, n_rounds: int = 6000, random: float | None = None) -> BanditLog:
    """A softmax or epsilon-greedy policy whose weights turn half-way."""
    rng = np.random.default_rng(seed)
    X = Environment(20, 20, seed=seed).test_log(n_rounds, seed=seed).dense.reshape(n_rounds, 20, 20)
    first, other = np.linalg.qr(rng.standard_normal((20, 2)))[0].T
    second = cosine * first + (1 - cosine**2) ** 0.5 * other
    scores = np.where(np.arange(n_rounds)[:, None] < n_rounds // 2, X @ first, X @ second)
    picks = sampled(10 * scores, rng) if random is None else lapsed(scores.argmax(axis=1), random, 20, rng)
    return BanditLog.from_dense(X, picks)


def turned_world(seed: int, *, cosine: float) -> BanditLog:
    """An epsilon-greedy ridge learner in a world that turns half-way."""
    rng = np.random.default_rng(seed)
    X = Environment(20, 20, seed=seed).test_log(6000, seed=seed).dense.reshape(6000, 20, 20).astype(np.float64)
    first, other = np.linalg.qr(rng.standard_normal((20, 2)))[0].T
    second = cosine * first + (1 - cosine**2) ** 0.5 * other
    inverse, sums, picks = np.eye(20), np.zeros(20), np.empty(6000, dtype=np.int64)
    for t in range(6000):
        pick = int(rng.integers(20)) if rng.random() < 0.1 else int((X[t] @ (inverse @ sums)).argmax())
        row = X[t, pick]
        moved = inverse @ row
        inverse -= np.outer(moved, moved) / (1 + row @ moved)
        sums += row * (row @ (first if t < 3000 else second) + 0.1 * rng.standard_normal())
        picks[t] = pick
    return BanditLog.from_dense(X, picks)


def gradient(seed: int, *, rate: float = 0.2, random: float = 0.1) -> BanditLog:
    """Epsilon-greedy with normalised gradient steps of constant size: it never settles."""
    rng = np.random.default_rng(seed)
    environment = Environment(20, 20, seed=seed)
    X = environment.test_log(6000, seed=seed).dense.reshape(6000, 20, 20).astype(np.float64)
    theta, picks = np.zeros(20), np.empty(6000, dtype=np.int64)
    for t in range(6000):
        pick = int(rng.integers(20)) if rng.random() < random else int((X[t] @ theta).argmax())
        row = X[t, pick]
        error = row @ environment.theta_star + 0.1 * rng.standard_normal() - row @ theta
        theta = theta + rate * error * row / (row @ row)
        picks[t] = pick
    return BanditLog.from_dense(X, picks)


STABLE, LEARNING = ("stable",), ("stable", "moving")
KINDS = {
    "far": Kind("an arm far off, never picked", partial(outlying, far=-50.0), STABLE),
    "outside": Kind("an all-zero outside option, features of mean 30", partial(outlying, far=0.0, mean=30.0), STABLE),
    "far-random": Kind("an arm far off, 10% random picks", partial(outlying, far=-50.0, random=0.1), STABLE),
    "slow-95": Kind("slow offers, rho 0.95", partial(slow, rho=0.95), STABLE),
    "slow-99": Kind("slow offers, rho 0.99", partial(slow, rho=0.99), STABLE),
    "slow-greedy": Kind("slow offers, rho 0.99, 15% random picks", partial(slow, rho=0.99, greedy=True), STABLE),
    "slow-short": Kind("slow offers, rho 0.98, 600 rounds", partial(slow, rho=0.98, n_rounds=600), STABLE),
    "sticky": Kind("half of the picks stay in place", partial(sticky, share=0.5), STABLE),
    "sticky-fixed": Kind("80% stay in place, arms alike over time", partial(sticky, share=0.8, fixed=True), STABLE),
    "habit": Kind("half of the picks at a place that rarely changes", partial(sticky, share=0.5, turns=0.02), STABLE),
    "random": Kind("20% random picks for ever", partial(random_picks, share=0.2), STABLE),
    "random-binary": Kind("the same, binary features", partial(random_picks, share=0.2, binary=True), STABLE),
    "random-more": Kind("random picks from 2% to 40% half-way", partial(random_picks, share=0.02, late=0.4), STABLE),
    "two": Kind("softmax, two arms", partial(few_arms, n_arms=2), STABLE),
    "three": Kind("softmax, three arms, 400 rounds", partial(few_arms, n_arms=3, n_rounds=400), STABLE),
    "per-arm-3": Kind("ridge per arm, 3 arms, 2,000 rounds", partial(per_arm, n_arms=3, n_rounds=2000), LEARNING),
    "per-arm-6": Kind("ridge per arm, 6 arms", partial(per_arm, n_arms=6), LEARNING),
    "per-arm-20": Kind("ridge per arm, 20 arms", partial(per_arm, n_arms=20), LEARNING),
    "linucb": Kind("LinUCB", partial(learner, by=LinUCB()), LEARNING),
    "lints": Kind("LinTS", partial(learner, by=LinTS()), LEARNING),
    "epsilon": Kind("epsilon-greedy, 10%", partial(learner, by=EpsilonGreedy(0.1)), LEARNING),
    "batches": Kind("LinTS in batches of 500", partial(learner, by=LinTS(batch=500)), LEARNING),
    "commits": Kind("explores 600 rounds, then commits", partial(learner, by=ExploreThenCommit(600)), STABLE),
    "turn": Kind("weights turn half-way, cosine 0.9", partial(turned, cosine=0.9), ("changed",)),
    "turn-greedy": Kind("the same, 10% random picks", partial(turned, cosine=0.9, random=0.1), ("changed",)),
    "abrupt": Kind("weights change altogether", partial(turned, cosine=0.0, n_rounds=2000), ("changed",)),
    "world": Kind("ridge learner, its world turns", partial(turned_world, cosine=0.9), ("changed", "moving")),
    "gradient": Kind("gradient steps that never end", gradient, ("moving",)),
}
