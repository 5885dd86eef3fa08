"""What the reproduction would take in plain NumPy and SciPy: measure the parts of one cell, multiply.

Run it on an idle machine: `python benchmarks/plain_numpy.py`. One thread, as in the reproduction's workers.
"""

import os

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "ONLOOKER_THREADS"), "1")

import time

import numpy as np
from scipy.optimize import minimize

from onlooker.burn_in import power_start
from onlooker.compiling import compile_kernels
from onlooker.experiments.grid import L2
from onlooker.experiments.paper import full_paper
from onlooker.held_out import CANDIDATES

D, K, N = 50, 200, 10_000


def simulate(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """LinUCB with rank-one updates, as one would write it."""
    theta_star = rng.normal(size=D)
    theta_star /= np.linalg.norm(theta_star)
    X = rng.standard_normal((N, K, D), dtype=np.float32)
    for t in range(N):
        X[t] /= np.maximum(1, np.linalg.norm(X[t], axis=1, keepdims=True))
    chosen = np.empty(N, dtype=int)
    inverse, moment = np.eye(D), np.zeros(D)
    for t in range(N):
        x = X[t].astype(np.float64)
        chosen[t] = np.argmax(x @ (inverse @ moment) + 0.1 * np.sqrt(np.einsum("ij,ij->i", x @ inverse, x)))
        pick = x[chosen[t]]
        turned = inverse @ pick
        inverse -= np.outer(turned, turned) / (1 + pick @ turned)
        moment += (pick @ theta_star + 0.1 * rng.normal()) * pick
    return X, chosen


def fit(X: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Conditional softmax by L-BFGS, as one would write it."""
    rounds = np.arange(len(X))

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        scores = (X @ theta.astype(X.dtype)).astype(np.float64)
        scores -= scores.max(axis=1, keepdims=True)
        p = np.exp(scores)
        total = p.sum(axis=1, keepdims=True)
        p /= total
        loss = np.mean(np.log(total[:, 0]) - scores[rounds, chosen]) + L2 / 2 * theta @ theta
        p[rounds, chosen] -= 1
        return loss, np.einsum("nk,nkd->d", p.astype(X.dtype), X) / len(X) + L2 * theta

    return minimize(objective, np.zeros(D), jac=True, method="L-BFGS-B").x


def fitted_rounds(horizons: list[int], alphas: tuple[float, ...]) -> int:
    """Rounds that the fits of one cell read, all together."""
    total = 0
    for horizon in horizons:
        total += horizon + horizon - power_start(horizon, 0.9)
        total += sum(horizon - power_start(horizon, alpha) for alpha in alphas)
        total += sum(int(0.9 * horizon) - int(part * horizon) for part in CANDIDATES) + horizon
    return total


def main() -> None:
    """Measure both, side by side, and multiply."""
    compile_kernels()
    grid = full_paper(20).grid
    started = time.perf_counter()
    grid("LinUCB", d=D, K=K, seed=0)
    ours = time.perf_counter() - started

    started = time.perf_counter()
    X, chosen = simulate(np.random.default_rng(0))
    simulation = time.perf_counter() - started
    started = time.perf_counter()
    fit(X, chosen)
    per_round = (time.perf_counter() - started) / N
    plain = simulation + per_round * fitted_rounds(list(grid.horizons), tuple(grid.alphas))

    weight = sum(d * k for d, k in grid.environments) * len(grid.learners) * len(grid.seeds) / (D * K)
    print(f"one cell (LinUCB, d = {D}, K = {K}), one thread: onlooker {ours:.1f} s")
    print(f"plain NumPy and SciPy: simulation {simulation:.1f} s, one fit {per_round * N:.1f} s, cell {plain:.0f} s")
    print(f"plain / onlooker: {plain / ours:.1f}")
    print(
        f"all {len(grid.tasks())} cells on two cores: {ours * weight / 120:.0f} and {plain * weight / 120:.0f} minutes"
    )


if __name__ == "__main__":
    main()
