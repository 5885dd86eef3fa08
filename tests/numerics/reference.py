"""Answers by other means: definitions in long double, one round at a time, and textbook formulas.

Nothing here calls a solver, an objective or a covariance of the package: a log is all that is shared with it. Logs come
from `RandomState`, whose streams NumPy has promised never to change.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import norm
from scipy.stats import t as student

from onlooker.logs.log import BanditLog

Array = NDArray[np.floating]


def softmax_log(
    seed: int, n_rounds: int, sizes: tuple[int, int], theta: list[float], late: list[float] | None = None
) -> BanditLog:
    """Picks by a softmax over between `sizes[0]` and `sizes[1]` arms; from the middle on by `late`, where given."""
    stream = np.random.RandomState(seed)
    rows, chosen = [], []
    for t in range(n_rounds):
        arms = stream.standard_normal((stream.randint(sizes[0], sizes[1] + 1), len(theta)))
        now = theta if late is None or t < n_rounds // 2 else late
        rows.append(arms)
        chosen.append(int((arms @ now + stream.gumbel(size=len(arms))).argmax()))
    return BanditLog(np.concatenate(rows), np.cumsum([0, *map(len, rows)]), chosen)


def linucb_log(seed: int, n_rounds: int, n_arms: int, theta: list[float], alpha: float = 0.1) -> BanditLog:
    """Picks of a plain LinUCB, which solves for its estimate in every round; rewards have noise 0.1."""
    stream = np.random.RandomState(seed)
    V, b = np.eye(len(theta)), np.zeros(len(theta))
    X, chosen = stream.standard_normal((n_rounds, n_arms, len(theta))), []
    X /= np.linalg.norm(X, axis=2, keepdims=True)
    for arms in X:
        bonus = np.sqrt(np.einsum("kd,dk->k", arms, np.linalg.solve(V, arms.T)))
        pick = int((arms @ np.linalg.solve(V, b) + alpha * bonus).argmax())
        chosen.append(pick)
        V += np.outer(arms[pick], arms[pick])
        b += arms[pick] * (arms[pick] @ theta + 0.1 * stream.standard_normal())
    return BanditLog.from_dense(X, chosen)


def derivatives(log: BanditLog, theta: Array, l2: float) -> tuple[np.longdouble, Array, Array]:
    """Mean loss with its penalty, gradient and Hessian, as they are defined."""
    at = np.asarray(theta, dtype=np.longdouble)
    value, gradient = np.longdouble(0), np.zeros_like(at)
    hessian = np.zeros((len(at), len(at)), dtype=np.longdouble)
    for t in range(log.n_rounds):
        loss, slope, curvature = round_derivatives(log, t, at)
        value, gradient, hessian = value + loss, gradient + slope, hessian + curvature
    n = np.longdouble(log.n_rounds)
    penalised = hessian / n + l2 * np.eye(len(at), dtype=np.longdouble)
    return value / n + l2 / 2 * (at @ at), gradient / n + l2 * at, penalised


def round_derivatives(log: BanditLog, t: int, theta: Array) -> tuple[np.longdouble, Array, Array]:
    """Loss of one round's pick, its gradient and its Hessian."""
    arms = log.arms(t).astype(np.longdouble)
    scores = arms @ theta
    weights = np.exp(scores - scores.max())
    mean = weights @ arms / weights.sum()
    loss = np.log(weights.sum()) + scores.max() - scores[log.chosen[t]]
    return loss, mean - arms[log.chosen[t]], ((arms - mean).T * (weights / weights.sum())) @ (arms - mean)


def minimiser(log: BanditLog, l2: float) -> Array:
    """The theta of the smallest penalised mean loss: SciPy's trust region, polished in long double."""

    def value_and_gradient(theta: Array) -> tuple[float, Array]:
        value, gradient, _ = derivatives(log, theta, l2)
        return float(value), gradient.astype(np.float64)

    def hessian_at(theta: Array) -> Array:
        return derivatives(log, theta, l2)[2].astype(np.float64)

    start = np.zeros(log.n_features)
    found = minimize(value_and_gradient, start, jac=True, hess=hessian_at, method="trust-exact", options={"gtol": 1e-5})
    theta, gradient = found.x.astype(np.longdouble), np.ones(1)
    for _ in range(8):
        if np.abs(gradient).max() < 1e-16:
            return theta
        _, gradient, hessian = derivatives(log, theta, l2)
        theta = theta - np.linalg.solve(hessian.astype(np.float64), gradient.astype(np.float64))
    raise AssertionError(f"the reference itself did not converge: its gradient is {np.abs(gradient).max()}")


def model_errors(log: BanditLog, theta: Array, l2: float) -> Array:
    """Standard errors if the softmax model holds: `H^-1 (H - l2 I) H^-1 / N`, roots of its diagonal."""
    hessian = derivatives(log, theta, l2)[2].astype(np.float64)
    bread = np.linalg.inv(hessian)
    return np.sqrt(np.diag(bread @ (hessian - l2 * np.eye(len(bread))) @ bread) / log.n_rounds)


def newey_west_errors(log: BanditLog, theta: Array, l2: float) -> Array:
    """Standard errors by Newey and West, with their rule for the lags, without leverage and as wide as Student's.

    A round's own products take its gradient at the theta of all other rounds, after one step of Newton's; the degrees
    of freedom are Satterthwaite's.
    """
    n, d = log.n_rounds, log.n_features
    at = np.asarray(theta, dtype=np.longdouble)
    rounds = [round_derivatives(log, t, at) for t in range(n)]
    g = np.array([slope for _, slope, _ in rounds], dtype=np.float64)
    g -= g.mean(axis=0)
    bread = np.linalg.inv(n * derivatives(log, theta, l2)[2].astype(np.float64))
    hessians = [curvature.astype(np.float64) for _, _, curvature in rounds]
    without = np.array([np.linalg.solve(np.eye(d) - h @ bread, one) for h, one in zip(hessians, g, strict=True)])
    lags = int(4 * (n / 100) ** (2 / 9))
    meat = without.T @ without
    for lag in range(1, lags + 1):
        product = g[lag:].T @ g[:-lag]
        meat += (1 - lag / (lags + 1)) * (product + product.T)
    sizes = np.einsum("ti,ij,tj->t", without, bread, without)
    freedom = 2 * sizes.sum() ** 2 / (sizes**2).sum()
    return np.sqrt(np.diag(bread @ meat @ bread)) * student.ppf(0.975, freedom) / norm.ppf(0.975)
