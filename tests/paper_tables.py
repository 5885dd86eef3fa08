"""Tables of results and diagnostics whose answer is known, for the tests of claims, figures and page."""

import itertools

import numpy as np

from onlooker.imitation.sweep import DEFAULT_ALPHAS

HORIZONS = (500, 1000, 2000, 5000, 10000)
SETTINGS = tuple(itertools.product(("LinUCB", "LinTS"), (20, 50), (50, 100, 200)))


def shape(share, bias):
    """Exploration among what is kept, and what is lost by keeping little: a U if there is `bias`, else a rise."""
    kept = 1 - share
    return np.sqrt((bias * kept) ** 2 + 1 / kept)


def results(
    *, seeds=20, settings=SETTINGS, horizons=HORIZONS, bias=1.5, best=1.05, rate=-0.5, rule_noise=0.3, noise=0.03, rng=0
):
    """Curves that fall by `bias` and rise again, `best` times the learner's error at their lowest.

    Direction errors fall with N to the power `rate`, and predictive regrets are their squares. The rule's error has
    noise of its own, which dies out with N.
    """
    random = np.random.default_rng(rng)
    lowest = shape(np.linspace(0, 0.99, 1000), bias).min()
    rows = []
    for (learner, d, K), N, seed in itertools.product(settings, horizons, range(seeds)):
        level = 4 * np.sqrt(d) * N**rate * random.lognormal(0, 0.05)
        shared = {"learner": learner, "d": d, "K": K, "N": N, "seed": seed}

        def row(method, start, factor, alpha="", shared=shared, level=level):
            error = float(level * factor)
            found = {"direction_error": error, "predictive_regret": 0.1 * error**2}
            return shared | {"method": method, "alpha": alpha, "burn_in": start} | found

        def observed(start, spread, N=N):
            return best * shape(start / N, bias) / lowest * random.lognormal(0, spread)

        rule = int(N**0.9)
        extra = rule_noise * (horizons[0] / N)
        rows.append(row("learner", "", 1.0))
        rows.append(row("naive", 0, observed(0, noise)))
        rows.append(row("rule", rule, observed(rule, noise + extra) * (1 + extra)))
        rows.append(row("auto", rule, observed(rule, noise)))
        for alpha in DEFAULT_ALPHAS:
            start = int(N**alpha)
            rows.append(row("sweep", start, observed(start, noise), alpha))
    return rows


def diagnostics(*, seeds=20, gap=0.1041, window_gap=0.2119, noise=0.012, setting=("LinUCB", 50, 200), N=10000, rng=0):
    """Ten bins and ten windows whose last three lie `gap` above the first three on average."""
    random = np.random.default_rng(rng)
    learner, d, K = setting
    rise = 1 - np.exp(-np.arange(10) / 3)
    rise = rise / (rise[7:].mean() - rise[:3].mean())
    rows = []
    for seed, (kind, size), index in itertools.product(range(seeds), (("bin", gap), ("window", window_gap)), range(10)):
        place = {"start": N // 10 * index, "stop": N // 10 * (index + 1)}
        accuracy = float(0.5 + size * rise[index] + random.normal(0, noise))
        shared = {"learner": learner, "d": d, "K": K, "N": N, "seed": seed}
        rows.append(shared | {"kind": kind, "index": index} | place | {"accuracy": accuracy})
    return rows
