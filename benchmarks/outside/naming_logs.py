"""Logs of learners that tracking has a name for, and of learners that it has none for."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from onlooker import BanditLog

Array = NDArray[np.float64]
NOISE = 0.1
KNOWN = ("UCB", "TS", "Lapse", "Softmax")
"""By the name of their family; each also as one ridge model per arm (`disjoint`)."""


@dataclass(frozen=True)
class Shape:
    """How large a log is, and what its features are."""

    arms: int
    features: int
    rounds: int
    kind: str
    """`sphere`, `normal`, `binary`, or `disjoint`: contexts, and one block of features per arm."""


SHAPES = (
    Shape(20, 20, 6000, "normal"),
    Shape(10, 10, 4000, "normal"),
    Shape(20, 20, 6000, "binary"),
    Shape(10, 5, 4000, "disjoint"),
    Shape(20, 10, 4000, "sphere"),
    Shape(5, 4, 2500, "normal"),
)


def offers(shape: Shape, seed: int) -> tuple[Array, Array]:
    """Features of all arms, shape (N, K, d), and true weights."""
    source = np.random.default_rng(seed)
    size = shape.rounds, shape.arms, shape.features
    if shape.kind == "disjoint":
        ones = np.ones((shape.rounds, 1))
        contexts = np.hstack([ones, source.standard_normal((shape.rounds, shape.features - 1))])
        contexts /= np.sqrt(shape.features)
        X = (np.eye(shape.arms)[None, :, :, None] * contexts[:, None, None, :]).reshape(*size[:2], -1)
        return X, source.standard_normal(X.shape[2]) / np.sqrt(shape.features)
    X = (source.random(size) < 0.5) * 1.0 if shape.kind == "binary" else source.standard_normal(size)
    if shape.kind == "sphere":
        X /= np.linalg.norm(X, axis=2, keepdims=True)
    theta = source.standard_normal(shape.features)
    return X, theta / np.linalg.norm(theta)


def play(
    X: Array,
    worth: Array,
    family: str,
    seed: int,
    batch: int = 1,
    memory: float = 1.0,
    window: int = 0,
    rate: float = 0.0,
) -> NDArray[np.int64]:
    """Picks of a ridge learner, with updates every `batch` rounds and old rounds discounted by `memory` a round.

    With a `window` only so many of the last rounds count. With a `rate` the estimate makes gradient steps instead.
    """
    n_rounds, _, d = X.shape
    source = np.random.default_rng(seed)
    V, total, chosen = np.eye(d), np.zeros(d), np.empty(n_rounds, dtype=np.int64)
    inverse, known_rounds = np.eye(d), list[tuple[Array, float]]()
    for t in range(n_rounds):
        if t % batch == 0:
            known, mean = inverse.copy(), inverse @ total
        scores = X[t] @ mean
        if family == "UCB":
            scores += NOISE * np.sqrt(np.einsum("ki,ij,kj->k", X[t], known, X[t]))
        if family == "TS":
            draw = np.linalg.cholesky((known + known.T) / 2) @ source.standard_normal(d)
            scores += NOISE * np.sqrt(d) * X[t] @ draw
        if family == "Softmax":
            scores += 0.05 * source.gumbel(size=len(scores))
        random = family == "Lapse" and source.random() < 0.1
        # Ties, as before the first reward, are broken by chance.
        best = np.flatnonzero(scores >= scores.max())
        pick = chosen[t] = source.integers(len(scores)) if random else source.choice(best)
        x = X[t, pick]
        reward = worth[t, pick] + NOISE * source.standard_normal()
        total = memory * total + x * reward
        if rate:
            total += (rate * (reward - x @ mean) - reward) * x
            continue
        if window:
            known_rounds.append((x, reward))
            V += np.outer(x, x)
            if len(known_rounds) > window:
                old, worth_then = known_rounds.pop(0)
                V -= np.outer(old, old)
                total -= old * worth_then
            inverse = np.linalg.inv(V)
        elif memory < 1.0:
            V = memory * V + (1.0 - memory) * np.eye(d) + np.outer(x, x)
            inverse = np.linalg.inv(V)
        else:
            step = inverse @ x
            inverse -= np.outer(step, step) / (1.0 + x @ step)
    return chosen


def known_log(family: str, shape: Shape, seed: int) -> BanditLog:
    """A log whose learner has a name."""
    X, theta = offers(shape, seed)
    return BanditLog.from_dense(X, play(X, X @ theta, family, seed))


def twisted_log(kind: str, shape: Shape, seed: int) -> BanditLog:
    """A log of a family that updates in batches, or whose first half was not logged."""
    family, _, twist = kind.partition(" ")
    if twist == "in mid-life":
        return known_log(family, replace(shape, rounds=2 * shape.rounds), seed)[shape.rounds :]
    X, theta = offers(shape, seed)
    return BanditLog.from_dense(X, play(X, X @ theta, family, seed, batch=int(twist.removeprefix("batch"))))


def unknown_log(kind: str, shape: Shape, seed: int) -> BanditLog:
    """A log whose learner has none: a family, and what is different."""
    X, theta = offers(shape, seed)
    family, _, twist = kind.partition(" ")
    source, worth = np.random.default_rng(seed + 10_000), X @ theta
    if family == "network":
        from outside.simulated import play_network

        noisy = worth + NOISE * source.standard_normal((len(X), 1))
        return BanditLog.from_dense(X, play_network(X, noisy, X[:1], seed)[0])
    if family == "fixed":
        best = np.argmax(worth + (NOISE * source.gumbel(size=worth.shape) if twist == "softmax" else 0.0), axis=1)
        random = (twist == "epsilon") & (source.random(len(X)) < 0.1)
        return BanditLog.from_dense(X, np.where(random, source.integers(X.shape[1], size=len(X)), best))
    if twist == "forgets":
        return BanditLog.from_dense(X, play(X, worth, family, seed, memory=0.998))
    if twist == "window":
        return BanditLog.from_dense(X, play(X, worth, family, seed, window=500))
    if twist == "by gradient":
        length = float(np.square(X).sum(axis=2).mean())
        return BanditLog.from_dense(X, play(X, worth, family, seed, rate=0.05 / length))
    chosen = play(X, worth, family, seed)
    if twist == "unlogged":
        return BanditLog.from_dense(np.delete(X, int(np.argmax(np.abs(theta))), axis=2), chosen)
    some = source.random(len(X)) < 0.15
    if twist == "pinned":
        chosen[some] = 0
    elif twist == "fallback":
        chosen[some] = X[some, :, 0].argmax(axis=1)
    else:
        half = source.random(len(X)) < 0.5
        chosen = np.where(half, chosen, play(X, worth, twist.removeprefix("and "), seed + 1))
    return BanditLog.from_dense(X, chosen)


TWISTED = (
    *(f"{family} batch{length}" for family in ("UCB", "TS", "Lapse") for length in (50, 500)),
    *(f"{family} in mid-life" for family in KNOWN),
)
"""Learners of a family that the log does not show from their first round on, or that update in batches."""
UNKNOWN = (
    "network",
    "fixed softmax",
    "fixed epsilon",
    *(f"{family} unlogged" for family in KNOWN),
    *(f"{family} {rule}" for family in ("UCB", "TS") for rule in ("pinned", "fallback")),
    "UCB and TS",
    "Lapse and UCB",
    *(f"{family} forgets" for family in ("UCB", "TS", "Lapse")),
    *(f"{family} window" for family in ("UCB", "TS", "Lapse")),
    *(f"{family} by gradient" for family in ("Lapse", "Softmax")),
)
"""Kinds of learners without a name."""
