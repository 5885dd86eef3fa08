"""Scores that are not linear, measured: regret on NeuralUCB's functions, linear logs, coverage of bands, speed.

    $ python benchmarks/nonlinear.py functions    # N = 1,000 to 10,000, three seeds each; --long adds 30,000, one seed
    $ python benchmarks/nonlinear.py linear       # how often `auto` stays linear
    $ python benchmarks/nonlinear.py linear-kinds # the same with other features, shapes and policies
    $ python benchmarks/nonlinear.py bands        # coverage of 95% bands, point by point; --knots 8: with other knots
    $ python benchmarks/nonlinear.py speed        # an additive fit beside a linear one of as many columns
    $ python benchmarks/nonlinear.py picture      # docs/nonlinear.png

The functions are those of Zhou, Li and Gu (2020): 20 features on the unit sphere, 4 arms, noise 0.1. The learner is a
ridge UCB on features and products. Regret is that of picking by the recovered score on 5,000 fresh rounds, as a share
of random picking's.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
from scipy.stats import binom

from onlooker import (
    Additive,
    BanditLog,
    Boltzmann,
    Environment,
    LinTS,
    LinUCB,
    Mapped,
    SuffixImitation,
    predictive_regret,
    simulate,
)
from onlooker.imitation.scores.choice import choose_score, name_of
from onlooker.report.plots.charts import Series
from onlooker.report.plots.draw import to_png
from onlooker.report.plots.results import effect_chart

FUNCTIONS = {"10 (x'a)^2": "square", "x'A'Ax": "quadratic", "cos(3 x'a)": "cosine"}
SHAPES = {
    "2 sin 2x": lambda x: 2 * np.sin(2 * x),
    "x": lambda x: x,
    "0": lambda x: 0 * x,
    "exp(x) / 2": lambda x: np.exp(x) / 2,
    "2 abs(x) - x": lambda x: 2 * np.abs(x) - x,
    "2 tanh 4x": lambda x: 2 * np.tanh(4 * x),
    "log(x + 2.7)": lambda x: np.log(x + 2.7),
    "x^2 / 2": lambda x: x**2 / 2,
    "0.3 sin 2x": lambda x: 0.3 * np.sin(2 * x),
}
COVERED = ("2 sin 2x", "x", "0", "exp(x) / 2", "2 abs(x) - x")
OTHERS = ("2 abs(x) - x", "2 tanh 4x", "log(x + 2.7)", "x^2 / 2", "0.3 sin 2x")
LOGS = {
    "normal, 500 x 4": ("normal", 500, 4, COVERED),
    "normal, 2,000 x 4": ("normal", 2000, 4, COVERED),
    "uniform, 1,000 x 4": ("uniform", 1000, 4, OTHERS),
    "skewed, 1,000 x 4": ("skewed", 1000, 4, OTHERS),
    "two heaps, 1,000 x 3": ("two heaps", 1000, 3, OTHERS),
    "normal, 1,000 x 2": ("normal", 1000, 2, ("2 sin 2x", "0.3 sin 2x", "x^2 / 2")),
    "normal, 500 x 10": ("normal", 500, 10, ("2 sin 2x", "0", "exp(x) / 2")),
}
"""Features, rounds and arms of logs, and the shapes of their curves."""


def share_of_random(function: str, n_rounds: int, seed: int, scores: tuple[object, ...] = ("auto",)) -> list[float]:
    """Regret of each score as a share of that of random picks."""
    environment = Environment(20, 4, reward=FUNCTIONS[function], seed=seed, dtype="float64")
    log = simulate(environment, Mapped(LinUCB(0.1)), n_rounds, seed=seed).log
    test = environment.test_log(5000, seed=seed)
    worth = environment.expected(test.dense).reshape(-1, 4)
    random = float((worth.max(axis=1) - worth.mean(axis=1)).mean())
    with warnings.catch_warnings(action="ignore"):
        policies = [SuffixImitation(score=score).fit(log).policy_ for score in scores]
    return [predictive_regret(policy, environment, test) / random for policy in policies]


def functions(*, long: bool) -> None:
    """Regret over the length of the log: means over seeds, and the largest of `auto`."""
    print("| function | N | seeds | linear, % | auto, % | largest, % |\n|---|--:|--:|--:|--:|--:|")
    for n_rounds, seeds in {1000: 3, 3000: 3, 10_000: 3, **({30_000: 1} if long else {})}.items():
        for function in FUNCTIONS:
            found = [share_of_random(function, n_rounds, seed, ("linear", "auto")) for seed in range(seeds)]
            linear, auto = 100 * np.mean(found, axis=0)
            worst = 100 * max(one[1] for one in found)
            print(f"| `{function}` | {n_rounds:,} | {seeds} | {linear:.1f} | {auto:.2f} | {worst:.2f} |", flush=True)


def offers(kind: str, rng: np.random.Generator, n_rounds: int, n_arms: int, d: int) -> np.ndarray:
    """Features of drawn offers, shape (N, K, d), in [-1, 1] or so."""
    X = rng.normal(size=(n_rounds, n_arms, d)) / 2
    if kind == "binary":
        return (X > 0).astype(np.float64)
    if kind == "correlated":
        return 0.3 * X + 0.7 * X[..., :1]
    if kind == "skewed":
        return np.expm1(X)
    if kind == "constant":
        X[..., 0] = 1.0
    return X


def picked(X: np.ndarray, theta: np.ndarray, how: str, rng: np.random.Generator) -> np.ndarray:
    """Picks of a policy that is linear: softmax, epsilon-greedy, or an epsilon-greedy ridge learner with noise 0.1."""
    worth = X @ theta
    if how == "softmax":
        return (4 * worth + rng.gumbel(size=worth.shape)).argmax(axis=1)
    random = rng.random(len(X)) < 0.1
    picks = rng.integers(0, X.shape[1], len(X))
    if how == "epsilon":
        return np.where(random, picks, worth.argmax(axis=1))
    gram, sums = np.eye(len(theta)), np.zeros(len(theta))
    for t, rows in enumerate(X):
        if not random[t]:
            picks[t] = int((rows @ np.linalg.solve(gram, sums)).argmax())
        x = rows[picks[t]]
        gram += np.outer(x, x)
        sums += x * (worth[t, picks[t]] + 0.1 * rng.normal())
    return picks


LINEAR = {
    f"{kind}, {how}": (kind, how, 2000, 10, 10)
    for kind in ("binary", "correlated", "skewed", "constant")
    for how in ("softmax", "epsilon", "ridge")
} | {
    f"{name}, {how}": ("normal", how, *shape)
    for name, shape in {"500 rounds": (500, 10, 10), "2 arms": (2000, 2, 10), "one feature": (2000, 10, 1)}.items()
    for how in ("softmax", "epsilon", "ridge")
}


def slopes_of(observer: SuffixImitation, log: BanditLog) -> np.ndarray:
    """Direction of the mean slope of the score over some rows."""
    rows, step = log.dense[:: max(1, len(log.features) // 500)].astype(np.float64), 0.1
    policy = observer.policy_
    ways = step * np.eye(rows.shape[1])
    found = [(policy.row_scores(rows + way) - policy.row_scores(rows - way)).mean() for way in ways]
    return np.array(found) / max(float(np.linalg.norm(found)), 1e-300)


def linear_logs(n_logs: int) -> None:
    """How often `auto` takes a score that is not linear where rewards are."""
    print("| learner | logs | linear taken |\n|---|--:|--:|")
    for learner in (LinUCB(), LinTS(), Boltzmann(0.2)):
        taken = Counter(
            name_of(choose_score(simulate(Environment(10, 10, seed=seed), learner, 2000, seed=seed).log).model)
            for seed in range(n_logs)
        )
        print(f"| {type(learner).__name__} | {n_logs} | {taken['linear']} |", flush=True)


def other_linear_logs(n_logs: int) -> None:
    """The same with features and policies of other kinds, and the direction error of `auto` and of the linear fit."""
    print("| offers, policy | logs | linear taken | direction error, linear | auto |\n|---|--:|--:|--:|--:|")
    for name, (kind, how, n_rounds, n_arms, d) in LINEAR.items():
        taken, errors = 0, []
        for seed in range(n_logs):
            rng = np.random.default_rng(seed)
            theta = rng.normal(size=d)
            theta /= np.linalg.norm(theta)
            X = offers(kind, rng, n_rounds, n_arms, d)
            theta = np.where(X.min(axis=(0, 1)) < X.max(axis=(0, 1)), theta, 0.0)
            log = BanditLog.from_dense(X, picked(X, theta, how, rng))
            with warnings.catch_warnings(action="ignore"):
                auto, line = (SuffixImitation(score=one, covariance="model").fit(log) for one in ("auto", "linear"))
            taken += auto.score_choice_.name == "linear"
            goal = theta / np.linalg.norm(theta)
            errors.append([np.linalg.norm(slopes_of(one, log) - goal) for one in (line, auto)])
        line, auto = np.mean(errors, axis=0)
        print(f"| {name} | {n_logs} | {taken} | {line:.4f} | {auto:.4f} |", flush=True)


def feature_values(kind: str, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Values of features from about -2.5 to 2.5."""
    if kind == "uniform":
        return rng.uniform(-2, 2, shape)
    if kind == "skewed":
        return np.clip(rng.exponential(size=shape) - 1, -1, 3)
    X = rng.normal(size=shape)
    if kind == "two heaps":
        X = np.where(rng.random(shape) < 0.85, X / 3 - 1, X / 2 + 1)
    return np.clip(X, -2.5, 2.5)


def bands(n_logs: int, knots: int | None) -> None:
    """Share of logs in which the 95% band has the truth: at 50 quantiles of the feature, their mean and the least.

    A point is off where so few, or so many, of the logs would be less likely than 1 in 200 at a coverage of 92, or 98%.
    """
    low, high = (binom.ppf(tail, n_logs, bound) for tail, bound in ((0.005, 0.92), (0.995, 0.98)))
    print(f"{n_logs} logs, {n_logs * 50} points a row; off: fewer than {low:.0f} or more than {high:.0f} logs")
    print("| features, rounds x arms | shape | coverage, % | at the worst point, % | points off | width |")
    print("|---|---|--:|--:|--:|--:|")
    for name, (kind, n_rounds, n_arms, shapes) in LOGS.items():
        hits, widths = np.zeros((len(shapes), 50)), np.zeros(len(shapes))
        for seed in range(n_logs):
            rng = np.random.default_rng(seed)
            X = feature_values(kind, rng, (n_rounds, n_arms, len(shapes)))
            scores = sum(SHAPES[shape](X[..., j]) for j, shape in enumerate(shapes))
            log = BanditLog.from_dense(X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1))
            with warnings.catch_warnings(action="ignore"):
                observer = SuffixImitation(burn_in="naive", score=Additive(knots)).fit(log)
            for j, shape in enumerate(shapes):
                x = np.quantile(X[..., j], np.linspace(0.01, 0.99, 50))
                effect, truth = observer.effect(f"x{j}", x), SHAPES[shape](x) - SHAPES[shape](X[..., j]).mean()
                hits[j] += (effect.low <= truth) & (truth <= effect.high)
                widths[j] += (effect.high - effect.low).mean() / n_logs
        for shape, found, width in zip(shapes, hits, widths, strict=True):
            off = int(np.count_nonzero((found < low) | (found > high)))
            shares = 100 * found / n_logs
            print(
                f"| {name} | `{shape}` | {shares.mean():.1f} | {shares.min():.1f} | {off} | {width:.2f} |", flush=True
            )


def speed(n_rounds: int = 10_000) -> None:
    """Processor seconds of an additive fit and of a linear fit of as many columns, the least of three."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rounds, 10, 10))
    scores = np.sin(X).sum(axis=-1)
    log = BanditLog.from_dense(X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1))
    for knots in (8, 16):
        wide = Additive(knots).prepared(log, l2=1e-4).basis(log)
        tasks = {
            f"additive, {knots} knots": (log, Additive(knots)),
            f"linear, {wide.n_features} columns": (wide, "linear"),
        }
        for name, (rounds, score) in tasks.items():
            seconds = []
            for _ in range(3):
                start = time.process_time()
                with warnings.catch_warnings(action="ignore"):
                    SuffixImitation(burn_in="naive", score=score).fit(rounds)
                seconds.append(time.process_time() - start)
            print(f"{name}: {min(seconds):.2f} s", flush=True)


def picture() -> None:
    """Curves of three features with their bands, and the truth."""
    rng = np.random.default_rng(0)
    offers = [rng.uniform(5, 100, (3000, 4)), rng.uniform(-3, 3, (3000, 4)), rng.uniform(0, 1, (3000, 4))]
    truths = {"price": lambda x: -3 * np.log(x), "angle": lambda x: 2 * np.sin(x), "speed": lambda x: x}
    scores = sum(truth(x) for truth, x in zip(truths.values(), offers, strict=True))
    picks = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    log = BanditLog.from_dense(np.stack(offers, axis=-1), picks, feature_names=list(truths))
    observer = SuffixImitation(burn_in="naive", score=Additive()).fit(log)
    charts = []
    for (name, truth), x in zip(truths.items(), offers, strict=True):
        chart = effect_chart(observer.effect(name))
        line = Series("truth", chart.series[0].x, truth(chart.series[0].x) - truth(x).mean())
        charts.append(replace(chart, series=(*chart.series, line), levels=()))
    to_png(charts, "docs/nonlinear.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["functions", "linear", "linear-kinds", "bands", "speed", "picture"])
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--logs", type=int)
    parser.add_argument("--knots", type=int, help="of curves in `bands`")
    wanted = parser.parse_args()
    if wanted.what == "functions":
        functions(long=wanted.long)
    elif wanted.what == "linear":
        linear_logs(wanted.logs or 40)
    elif wanted.what == "linear-kinds":
        other_linear_logs(wanted.logs or 20)
    elif wanted.what == "bands":
        bands(wanted.logs or 200, wanted.knots)
    elif wanted.what == "picture":
        picture()
    else:
        speed()


if __name__ == "__main__":
    main()
