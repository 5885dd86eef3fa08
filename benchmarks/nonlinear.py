"""Scores that are not linear, measured: regret on NeuralUCB's functions, linear logs, coverage of bands, speed.

    $ python benchmarks/nonlinear.py functions    # N = 1,000 to 10,000, three seeds each; --long adds 30,000, one seed
    $ python benchmarks/nonlinear.py linear       # how often `auto` stays linear
    $ python benchmarks/nonlinear.py linear-kinds # the same with other features, shapes and policies
    $ python benchmarks/nonlinear.py bands        # coverage of 95% bands over 200 logs
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
from onlooker.report.plots.draw import to_png
from onlooker.report.plots.figure import Series
from onlooker.report.plots.results import effect_chart

FUNCTIONS = {"10 (x'a)^2": "square", "x'A'Ax": "quadratic", "cos(3 x'a)": "cosine"}
SHAPES = {
    "2 sin 2x": lambda x: 2 * np.sin(2 * x),
    "x": lambda x: x,
    "0": lambda x: 0 * x,
    "exp(x) / 2": lambda x: np.exp(x) / 2,
    "2 abs(x) - x": lambda x: 2 * np.abs(x) - x,
}


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


def bands(n_logs: int, n_rounds: int = 500) -> None:
    """Share of logs in which the 95% band has the truth: at 50 quantiles of the feature, their mean and the least."""
    hits: dict[str, list[np.ndarray]] = {name: [] for name in SHAPES}
    for seed in range(n_logs):
        rng = np.random.default_rng(seed)
        X = np.clip(rng.normal(size=(n_rounds, 4, len(SHAPES))), -2.5, 2.5)
        scores = sum(shape(X[..., j]) for j, shape in enumerate(SHAPES.values()))
        log = BanditLog.from_dense(X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1))
        with warnings.catch_warnings(action="ignore"):
            observer = SuffixImitation(burn_in="naive", score=Additive()).fit(log)
        for j, (name, shape) in enumerate(SHAPES.items()):
            x = np.quantile(X[..., j], np.linspace(0.01, 0.99, 50))
            effect, truth = observer.effect(f"x{j}", x), shape(x) - shape(X[..., j]).mean()
            hits[name].append((effect.low <= truth) & (truth <= effect.high))
    print(f"{n_logs} logs of {n_rounds} rounds\n| shape | coverage, % | at the worst point, % |\n|---|--:|--:|")
    for name, found in hits.items():
        least = np.mean(found, axis=0).min()
        print(f"| `{name}` | {100 * np.mean(found):.1f} | {100 * least:.1f} |")
    print(f"| all | {100 * np.mean(list(hits.values())):.1f} | |")


def speed(n_rounds: int = 10_000) -> None:
    """Processor seconds of an additive fit and of a linear fit of as many columns, the least of three."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rounds, 10, 10))
    scores = np.sin(X).sum(axis=-1)
    log = BanditLog.from_dense(X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1))
    wide = Additive().prepared(log, l2=1e-4).basis(log)
    tasks = {"additive": (log, Additive()), f"linear, {wide.n_features} columns": (wide, "linear")}
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
    wanted = parser.parse_args()
    if wanted.what == "functions":
        functions(long=wanted.long)
    elif wanted.what == "linear":
        linear_logs(wanted.logs or 40)
    elif wanted.what == "linear-kinds":
        other_linear_logs(wanted.logs or 20)
    elif wanted.what == "bands":
        bands(wanted.logs or 200)
    elif wanted.what == "picture":
        picture()
    else:
        speed()


if __name__ == "__main__":
    main()
