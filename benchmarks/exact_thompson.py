"""How near tracking comes to the exact posterior of a Thompson sampler: `python benchmarks/exact_thompson.py`.

The filter replaces the belief by a Gaussian after every round. Here nothing is replaced: a Gibbs sampler draws, in
turn, the parameters that the learner sampled (Gaussians cut to where the pick wins) and the path of its estimate (a
chain that is Gaussian given those). It knows the learner's constants, as does the filter. The mean of where the path
ends is what no observer of the same picks can improve on, on average over learners. It takes minutes for a log where
the filter takes a second. One file a seed is kept in `--out`; running again goes on.
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from onlooker import Environment, LinTS, TrackingObserver, burn_in_sweep, direction_error, simulate
from onlooker.base.files import write_text
from onlooker.experiments.statistics import paired_ratio
from onlooker.logs.log import BanditLog
from onlooker.observers.tracking import TS

STEPS = 3
"""Moves of every sampled parameter in a sweep, each along a random line."""

_compiled = njit(nogil=True, cache=True)


class Chain(NamedTuple):
    """What the picks fix: of `path[t]`, the posterior mean given the rewards before t, as round t finds it."""

    turns: np.ndarray
    """From that mean to the learner's estimate, shape (N, d, d)."""
    pulls: np.ndarray
    """From a sampled parameter to what it adds to precision times mean, shape (N, d, d)."""
    roots: np.ndarray
    """Square roots of the samples' covariances, shape (N, d, d)."""
    steps: np.ndarray
    """Direction in which a reward moves the path, shape (N, d): by a standard normal."""
    known: np.ndarray
    """Precision given the samples until then, times the step; shape (N, d)."""
    gains: np.ndarray
    """Step times `known`, shape (N,)."""
    precision: np.ndarray
    """Of the end of the path, shape (d, d)."""


@_compiled
def chain(picks: np.ndarray, prior: float, ridge: float, nu: float) -> Chain:
    """Everything but the draws; `prior` is the precision of theta*, in units of the noise."""
    n, d = picks.shape
    turns, pulls, roots = np.empty((n, d, d)), np.empty((n, d, d)), np.empty((n, d, d))
    steps, known, gains = np.empty((n, d)), np.empty((n, d)), np.empty(n)
    V, inverse, open_inverse = ridge * np.eye(d), np.eye(d) / ridge, np.eye(d) / prior
    # The path begins at zero, for certain.
    precision = 1e12 * np.eye(d)
    for t in range(n):
        turn = np.eye(d) - (ridge - prior) * inverse
        turns[t], pulls[t] = turn, turn @ V / nu
        roots[t] = np.linalg.cholesky(nu * (inverse + inverse.T) / 2)
        precision = precision + pulls[t] @ turn
        x = picks[t].copy()
        step = open_inverse @ x
        form = 1 + x @ step
        steps[t] = step / math.sqrt(form)
        open_inverse = open_inverse - np.outer(step, step) / form
        step = inverse @ x
        inverse = inverse - np.outer(step, step) / (1 + x @ step)
        V = V + np.outer(x, x)
        known[t] = precision @ steps[t]
        gains[t] = steps[t] @ known[t]
        precision = precision - np.outer(known[t], known[t]) / (1 + gains[t])
    return Chain(turns, pulls, roots, steps, known, gains, (precision + precision.T) / 2)


@_compiled
def _tail(low: float, high: float, rng: np.random.Generator) -> float:
    """Draw a standard normal between two numbers above zero."""
    rate = (low + math.sqrt(low * low + 4)) / 2
    flat = (high - low) * rate < 1
    while True:
        if flat:
            x = low + (high - low) * rng.random()
            if rng.random() < math.exp((low * low - x * x) / 2):
                return x
        else:
            x = low - math.log(rng.random()) / rate
            if x <= high and rng.random() < math.exp(-((x - rate) ** 2) / 2):
                return x


@_compiled
def between(low: float, high: float, rng: np.random.Generator) -> float:
    """Draw a standard normal between two numbers."""
    if low > 0:
        return _tail(low, high, rng)
    if high < 0:
        return -_tail(-high, -low, rng)
    while True:
        if high - low > 1.5:
            x = rng.standard_normal()
            if low <= x <= high:
                return x
        else:
            x = low + (high - low) * rng.random()
            if rng.random() < math.exp(-x * x / 2):
                return x


@_compiled
def draw_samples(
    features: np.ndarray,
    chosen: np.ndarray,
    path: np.ndarray,
    fixed: Chain,
    samples: np.ndarray,
    rng: np.random.Generator,
) -> None:
    """Move what the learner sampled in every round, given its estimate and that its pick won."""
    n, _, d = features.shape
    for t in range(n):
        leads = features[t, chosen[t]] - features[t]
        margins = leads @ samples[t]
        white = np.linalg.solve(fixed.roots[t], samples[t] - fixed.turns[t] @ path[t])
        for _ in range(STEPS):
            line = rng.standard_normal(d)
            line /= math.sqrt(line @ line)
            move = fixed.roots[t] @ line
            slopes = leads @ move
            low, high = -np.inf, np.inf
            for k in range(len(slopes)):
                if slopes[k] > 0:
                    low = max(low, -margins[k] / slopes[k])
                elif slopes[k] < 0:
                    high = min(high, -margins[k] / slopes[k])
            at = -(white @ line)
            # Rounding may leave a sample a hair outside of its cone: it stays where it is.
            length = at + between(low - at, high - at, rng) if low < high else 0.0
            white += length * line
            samples[t] += length * move
            margins += length * slopes


@_compiled
def draw_path(samples: np.ndarray, fixed: Chain, path: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw the path given the samples: forward what is known, backward the draws; give the mean of its end."""
    n, d = samples.shape
    weighed, seen = np.zeros(d), np.empty(n)
    for t in range(n):
        weighed += fixed.pulls[t] @ samples[t]
        seen[t] = fixed.steps[t] @ weighed
        weighed -= fixed.known[t] * (seen[t] / (1 + fixed.gains[t]))
    end = np.linalg.solve(fixed.precision, weighed)
    here = end + np.linalg.solve(np.linalg.cholesky(fixed.precision).T, rng.standard_normal(d))
    for t in range(n - 1, -1, -1):
        spread = 1 + fixed.gains[t]
        here = here - fixed.steps[t] * (
            (fixed.known[t] @ here - seen[t]) / spread + rng.standard_normal() / math.sqrt(spread)
        )
        path[t] = here
    return end


def first_samples(features: np.ndarray, chosen: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """For every round a parameter near `theta` under which its pick wins: projections onto what is violated most."""
    samples = np.tile(theta, (len(features), 1))
    for t in range(len(samples)):
        leads = np.delete(features[t, chosen[t]] - features[t], chosen[t], axis=0)
        for _ in range(100_000):
            margins = leads @ samples[t]
            worst = int(margins.argmin())
            if margins[worst] > 0:
                break
            samples[t] += 1.2 * (1e-3 - margins[worst]) / (leads[worst] @ leads[worst]) * leads[worst]
        else:
            raise RuntimeError(f"no parameter was found that makes the pick of round {t}")
    return samples


def exact_theta(log: BanditLog, start: np.ndarray, *, prior: float, nu: float, sweeps: int, seed: int) -> np.ndarray:
    """Means of the end of the path, one row per sweep after the first fifth, started at `start`."""
    n, d = log.n_rounds, log.n_features
    features, chosen = log.features.reshape(n, -1, d).astype(np.float64), log.chosen
    fixed = chain(features[np.arange(n), chosen], prior, 1.0, nu)
    path, samples = np.tile(start, (n, 1)), first_samples(features, chosen, start)
    rng = np.random.default_rng(seed)
    ends = np.empty((sweeps, d))
    for sweep in range(sweeps):
        draw_samples(features, chosen, path, fixed, samples, rng)
        ends[sweep] = draw_path(samples, fixed, path, rng)
    return ends[sweeps // 5 :]


def cell(d: int, K: int, N: int, seed: int, sweeps: int) -> dict[str, Any]:
    """Direction errors for one log."""
    played = simulate(Environment(d, K, seed=seed), LinTS(), N, seed)
    truth = played.theta_star
    tracked = TrackingObserver(exploration=TS(float(d))).fit(played.log).theta_
    length = 1 / 0.1
    ends = exact_theta(
        played.log,
        length * tracked / np.linalg.norm(tracked),
        prior=d / length**2,
        nu=float(d),
        sweeps=sweeps,
        seed=seed,
    )
    halves = [half.mean(axis=0) for half in np.array_split(ends, 2)]
    return {
        "seed": seed,
        "learner": direction_error(played.learner_theta, truth),
        "oracle": min(direction_error(theta, truth) for theta in burn_in_sweep(played.log).thetas),
        "tracking": direction_error(tracked, truth),
        "exact": direction_error(ends.mean(axis=0), truth),
        "halves apart": direction_error(*halves),
        "tracking to exact": direction_error(tracked, ends.mean(axis=0)),
    }


def table(rows: list[dict[str, Any]], what: str) -> str:
    """The cells and their ratios, as Markdown."""
    names = list(rows[0])
    lines = [f"| {' | '.join(names)} |", "|" + " --: |" * len(names)]
    lines += [f"| {row['seed']} | " + " | ".join(f"{row[name]:.4f}" for name in names[1:]) + " |" for row in rows]
    ratios = []
    for name in ("tracking", "exact"):
        found = paired_ratio(*(np.array([row[key] for row in rows]) for key in (name, "oracle")))
        ratios.append(f"{name} / oracle {found.value:.3f} [{found.low:.3f}, {found.high:.3f}]")
    closing = f"Geometric means paired over seeds, with 95% intervals: {', '.join(ratios)}."
    return "\n".join([what, "", *lines, "", closing]) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("exact-thompson-results"))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--sweeps", type=int, default=2000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--arms", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=2000)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for seed in range(given.seeds):
        kept = given.out / f"d{given.features}-K{given.arms}-N{given.rounds}-sweeps{given.sweeps}-seed{seed}.json"
        if not kept.exists():
            write_text(kept, json.dumps(cell(given.features, given.arms, given.rounds, seed, given.sweeps)) + "\n")
        rows.append(json.loads(kept.read_text(encoding="utf-8")))
        print(rows[-1], flush=True)
    size = f"d = {given.features}, K = {given.arms}, N = {given.rounds:,}"
    text = table(
        rows,
        f"Direction errors on LinTS logs, {size}. Tracking and the sampler are given nu, and the sampler also the "
        f"prior; {given.sweeps:,} sweeps, the first fifth left out. How far its two halves are apart says how well it "
        "mixed.",
    )
    write_text(given.out / "exact.md", "# Tracking beside the exact posterior\n\n" + text)
    print(text)
