"""What the reproduction would take in plain NumPy and SciPy: measure the parts of one cell, multiply.

Run it on an idle machine: `python benchmarks/plain_numpy.py`. One thread, as in the reproduction's workers.
"""

import os

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "ONLOOKER_THREADS"), "1")

import time

import numpy as np
from rivals.adapters.numpy_linucb import play
from rivals.adapters.numpy_scipy import fit
from rivals.adapters.numpy_simulate import draw

from onlooker.base.defaults import L2
from onlooker.experiments.paper import full_paper
from onlooker.imitation.burn_in import CANDIDATES, power_start

D, K, N = 50, 200, 10_000


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
    grid = full_paper(20).grid
    grid("LinUCB", d=2, K=3, seed=0)  # compiles the kernels
    started = time.perf_counter()
    grid("LinUCB", d=D, K=K, seed=0)
    ours = time.perf_counter() - started

    started = time.perf_counter()
    rng = np.random.default_rng(0)
    theta_star = rng.normal(size=D)
    X = draw(rng, (N, K, D))
    chosen = play(X, theta_star / np.linalg.norm(theta_star), 0.1 * rng.normal(size=N))
    simulation = time.perf_counter() - started
    started = time.perf_counter()
    fit(X, chosen, L2)
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
