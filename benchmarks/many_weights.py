"""Fits of many weights beside other libraries, on the same log, to the same objective, in turns.

Contexts with weights for each arm beside scikit-learn's LogisticRegression, sparse features beside SciPy's L-BFGS on
a scipy.sparse matrix, wide dense features beside SciPy's L-BFGS on an array. Times are processor seconds, the least of
some repeats. The memory of a fit is what its process grows by.

    $ python benchmarks/many_weights.py
    $ python benchmarks/many_weights.py --quick
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from onlooker import BanditLog, SuffixImitation
from onlooker.imitation.burn_in import SWEEP_TOLERANCE, WITHOUT_INTERVALS
from onlooker.imitation.newton import minimise
from onlooker.imitation.softmax import SoftmaxObjective

L2 = 1e-4


def contexts(n_rounds: int, n_arms: int, n_features: int, *, hard: bool, seed: int = 0) -> tuple[Any, Any]:
    """Contexts and picks of a softmax policy; `hard`: correlated, on different scales, with arms of all sizes."""
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(n_rounds, n_features)), 0.3 * rng.normal(size=(n_arms, n_features))
    if hard:
        mixed = np.eye(n_features) + 0.05 * rng.normal(size=(n_features, n_features))
        X = X @ mixed * np.exp(0.4 * rng.normal(size=n_features))
        X[:, 0], W[:, 0] = 1.0, rng.normal(size=n_arms)
        W[:, 1:] /= X[:, 1:].std(axis=0)
    return X, (X @ W.T + rng.gumbel(size=(n_rounds, n_arms))).argmax(axis=1)


def sparse_rows(n_rounds: int, n_arms: int, n_features: int, active: int, seed: int = 0) -> tuple[Any, Any]:
    """Rows with some active features each, and picks of a softmax policy."""
    from scipy.sparse import csr_array

    rng = np.random.default_rng(seed)
    columns = rng.integers(0, n_features, (n_rounds * n_arms, active))
    entries = (np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, active))
    rows = csr_array(entries, shape=(n_rounds * n_arms, n_features))
    rows.sum_duplicates()
    scores = rows @ (0.5 * rng.normal(size=n_features)) + rng.gumbel(size=n_rounds * n_arms)
    return rows, scores.reshape(n_rounds, n_arms).argmax(axis=1)


def least_seconds(tasks: dict[str, Callable[[], Any]], repeats: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Least processor seconds of each task, run in turns, and what each gave."""
    seconds, results = dict.fromkeys(tasks, np.inf), {}
    for _ in range(repeats):
        for name, task in tasks.items():
            started = time.process_time()
            results[name] = task()
            seconds[name] = min(seconds[name], time.process_time() - started)
    return seconds, results


def beside_scikit_learn(n: int, arms: int, p: int, *, hard: bool, repeats: int) -> list[str]:
    """One row of the table."""
    from sklearn.linear_model import LogisticRegression

    X, chosen = contexts(n, arms, p, hard=hard)
    log = BanditLog.from_contexts(X, chosen, arms=range(arms))
    objective = SoftmaxObjective(log, l2=L2)
    best = minimise(objective).at.value

    def theirs(tol: float) -> Any:
        return LogisticRegression(C=1 / (L2 * n), fit_intercept=False, tol=tol, max_iter=10_000).fit(X, chosen)

    # As loose as may be: within 1e-6 of the minimum.
    enough = (tol for tol in (1e-4, 1e-5, 1e-6) if objective.slope(theirs(tol).coef_.ravel()).value < best + 1e-6)
    tolerance = next(enough, 1e-7)
    seconds, results = least_seconds(
        {
            "theirs": lambda: theirs(tolerance),
            "estimate": lambda: minimise(SoftmaxObjective(log, l2=L2), tolerance=SWEEP_TOLERANCE),
            "fit": lambda: SuffixImitation(burn_in="naive", l2=L2).fit(log),
        },
        repeats,
    )
    gap = objective.slope(results["theirs"].coef_.ravel()).value - objective.slope(results["estimate"].theta).value
    return [
        f"{n:,} rounds, {arms} arms, {p} features{', hard' if hard else ''}",
        f"{seconds['theirs']:.3f}",
        f"{seconds['estimate']:.3f} ({seconds['estimate'] / seconds['theirs']:.2f})",
        f"{seconds['fit']:.3f} ({seconds['fit'] / seconds['theirs']:.2f})",
        f"{gap:.1e}",
    ]


def beside_scipy(n_features: int, repeats: int, n: int = 10_000, arms: int = 10) -> list[str]:
    """One row of the table."""
    from scipy.optimize import minimize

    rows, chosen = sparse_rows(n, arms, n_features, 10)
    log = BanditLog.from_sparse(rows, np.arange(n + 1) * arms, chosen)
    across, places = rows.T.tocsr(), np.arange(n)

    def look(theta: Any) -> tuple[float, Any]:
        scores = (rows @ theta).reshape(n, arms)
        scores -= scores.max(axis=1)[:, None]
        picked = scores[places, chosen]
        weights = np.exp(scores)
        totals = weights.sum(axis=1)
        weights /= totals[:, None]
        weights[places, chosen] -= 1
        value = np.mean(np.log(totals) - picked) + 0.5 * L2 * theta @ theta
        return float(value), across @ weights.ravel() / n + L2 * theta

    def theirs() -> Any:
        options = {"maxiter": 5000, "maxfun": 10_000, "ftol": 1e-14, "gtol": 1e-7}
        return minimize(look, np.zeros(n_features), jac=True, method="L-BFGS-B", options=options)

    tasks: dict[str, Callable[[], Any]] = {
        "theirs": theirs,
        "estimate": lambda: minimise(SoftmaxObjective(log, l2=L2), tolerance=WITHOUT_INTERVALS),
        "fit": lambda: SuffixImitation(burn_in="naive", l2=L2).fit(log),
    }
    seconds, results = least_seconds(tasks, repeats)
    return [
        f"{n:,} rounds, {arms} arms, {n_features:,} sparse features",
        f"{seconds['theirs']:.3f}",
        f"{seconds['estimate']:.3f} ({seconds['estimate'] / seconds['theirs']:.2f})",
        f"{seconds['fit']:.3f} ({seconds['fit'] / seconds['theirs']:.2f})",
        f"{results['theirs'].fun - look(results['estimate'].theta)[0]:.1e}",
    ]


def beside_array(n_features: int, repeats: int, n: int = 5000, arms: int = 10) -> list[str]:
    """One row of the table: independent dense features, on which L-BFGS needs no more than some ten steps."""
    from scipy.optimize import minimize

    rng, places = np.random.default_rng(0), np.arange(n)
    X = rng.normal(size=(n, arms, n_features)).astype(np.float32)
    chosen = (X @ (2 / n_features**0.5 * rng.normal(size=n_features)) + rng.gumbel(size=(n, arms))).argmax(axis=1)
    log, rows = BanditLog.from_dense(X, chosen), X.reshape(-1, n_features)

    def look(theta: Any) -> tuple[float, Any]:
        scores = (rows @ theta.astype(np.float32)).astype(float).reshape(n, arms)
        scores -= scores.max(axis=1)[:, None]
        picked = scores[places, chosen]
        weights = np.exp(scores)
        totals = weights.sum(axis=1)
        weights /= totals[:, None]
        weights[places, chosen] -= 1
        gradient = (rows.T @ weights.ravel().astype(np.float32)).astype(float) / n
        return float(np.mean(np.log(totals) - picked) + 0.5 * L2 * theta @ theta), gradient + L2 * theta

    def theirs(tol: float) -> Any:
        options = {"maxiter": 5000, "ftol": 0.0, "gtol": tol}
        return minimize(look, np.zeros(n_features), jac=True, method="L-BFGS-B", options=options)

    best = minimise(SoftmaxObjective(log, l2=L2)).at.value
    tolerance = next((tol for tol in (1e-2, 3e-3, 1e-3, 3e-4, 1e-4) if theirs(tol).fun < best * (1 + 1e-6)), 3e-5)
    tasks: dict[str, Callable[[], Any]] = {
        "theirs": lambda: theirs(tolerance),
        "estimate": lambda: minimise(SoftmaxObjective(log, l2=L2), tolerance=SWEEP_TOLERANCE),
        "fit": lambda: SuffixImitation(burn_in="naive", l2=L2).fit(log),
    }
    seconds, results = least_seconds(tasks, repeats)
    return [
        f"{n:,} rounds, {arms} arms, {n_features:,} dense features",
        f"{seconds['theirs']:.3f}",
        f"{seconds['estimate']:.3f} ({seconds['estimate'] / seconds['theirs']:.2f})",
        f"{seconds['fit']:.3f} ({seconds['fit'] / seconds['theirs']:.2f})",
        f"{results['theirs'].fun - look(results['estimate'].theta)[0]:.1e}",
    ]


def grown(kind: str, size: int) -> tuple[float, float]:
    """Megabytes of the data, and by how much a process grows that makes a log of them and fits it."""
    warnings.simplefilter("ignore")
    if kind == "contexts":
        X, chosen = contexts(size, 20, 50, hard=False)
        held = X.nbytes
        small = BanditLog.from_contexts(X[:500, :3].copy(), chosen[:500] % 3)
        SuffixImitation(burn_in="naive").fit(small)
        # The peak so far is forgotten (Linux).
        Path("/proc/self/clear_refs").write_text("5")
        before = status("VmRSS")
        SuffixImitation(burn_in="naive").fit(BanditLog.from_contexts(X, chosen, arms=range(20)))
    else:
        rows, chosen = sparse_rows(10_000, 10, size, 10)
        held, before = rows.data.nbytes + rows.indices.nbytes, 0
        SuffixImitation(burn_in="naive").fit(BanditLog.from_sparse(rows, np.arange(10_001) * 10, chosen))
    return held / 1e6, (status("VmHWM") - before) / 1e3


def status(name: str) -> int:
    """A figure about this process's memory, in kilobytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, for a test")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    repeats = 1 if quick else 5
    sizes = [(1000, 5, 4)] if quick else [(50_000, 20, 50), (5000, 20, 10)]
    print("| log | other library, s | estimate, s (times theirs) | with intervals | their objective above ours |")
    print("|---|--:|--:|--:|--:|")
    for size in sizes:
        for hard in (False, True):
            print("| " + " | ".join(beside_scikit_learn(*size, hard=hard, repeats=repeats)) + " |", flush=True)
    for n_features in [1000] if quick else [5000, 262_144]:
        print("| " + " | ".join(beside_scipy(n_features, repeats, 500 if quick else 10_000)) + " |", flush=True)
    for n_features in [150] if quick else [200, 500, 1000]:
        print("| " + " | ".join(beside_array(n_features, min(repeats, 3), 500 if quick else 5000)) + " |", flush=True)
    if quick:
        return
    print("\n| log | data, MB | memory, MB |\n|---|--:|--:|")
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for kind, size in (("contexts", 50_000), ("sparse", 5000), ("sparse", 262_144)):
            held, more = pool.apply(grown, (kind, size))
            what = (
                "50,000 contexts, 20 arms: growth" if kind == "contexts" else f"{size:,} sparse features: whole process"
            )
            print(f"| {what} | {held:.0f} | {more:.0f} |", flush=True)


if __name__ == "__main__":
    main()
