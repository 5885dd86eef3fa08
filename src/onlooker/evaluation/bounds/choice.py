"""The burn-in that makes the bound smallest: labels get better with T, rounds get fewer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from onlooker.base.checks import as_number
from onlooker.evaluation.bounds.lemmas import Dimension, as_count
from onlooker.evaluation.bounds.theorems import predictive_regret_bound, risk_from_excess


class BestBurnIn(NamedTuple):
    """A burn-in and what theorem 2 promises for it."""

    burn_in: int
    """Rounds to discard, T; 0 where the bound is infinite for every T."""

    bound: float
    """Bound on the predictive regret."""


def best_burn_in(
    n_rounds: int,
    n_features: int,
    n_arms: int,
    delta: float,
    eta: Callable[[int], float] | float,
    *,
    dimension: Dimension = "sharp",
) -> BestBurnIn:
    """Find the T that minimises `predictive_regret_bound`, the smallest of equals, exactly.

    For `eta(T) = c / sqrt(T)` it lies near `(2 c N) ** (2 / 3)` in long logs, where the bound falls like
    1 / sqrt(N - T), and below that in short ones.
    A T that was chosen by looking at the log is covered with `delta / N` for `delta`.

    Parameters
    ----------
    n_rounds, n_features, n_arms, delta, dimension
        As in `predictive_regret_bound`.
    eta
        From a burn-in to a probability: a function of yours, or what `eta_from_simulation` gives; or one for all.

    Examples
    --------
    >>> from onlooker.evaluation.bounds import eta_from_regret
    >>> best_burn_in(10_000, 20, 50, 0.05, eta=lambda T: eta_from_regret(2.0 * T**0.5, T, gap=1.0)).burn_in
    891
    >>> round((2.0 * 10_000) ** (2 / 3)), round((2 * 2.0 * 10_000) ** (2 / 3))
    (737, 1170)
    """
    rounds = as_count(n_rounds, "n_rounds")
    mistakes = eta if callable(eta) else _constant(as_number(eta, "eta", least=0.0, most=1.0))
    best = BestBurnIn(0, math.inf)
    for burn_in in range(rounds):
        flawless = predictive_regret_bound(rounds, burn_in, n_features, n_arms, delta, 0.0, dimension=dimension)
        # It only grows with the burn-in, so no later one can do better.
        if flawless >= best.bound:
            break
        bound = risk_from_excess(flawless, mistakes(burn_in))
        if bound < best.bound:
            best = BestBurnIn(burn_in, bound)
    return best


def _constant(value: float) -> Callable[[int], float]:
    return lambda _: value
