"""Lemmas 1 and 2, the theorems, their corollary, a bound for every learner, and the burn-in of the smallest bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from onlooker.base.checks import as_number
from onlooker.evaluation.bounds.lemmas import (
    Dimension,
    as_count,
    as_share,
    risk_from_sample,
    suffix_length,
    uniform_deviation,
)
from onlooker.evaluation.bounds.mistakes import eta_from_regret
from onlooker.imitation.burn_in import power_start

TRIVIAL_REGRET = 2.0
"""The most that any policy can miss in a round with features and theta_star of length one at most."""


def regret_from_risk(risk: float, *, feature_norm: float = 1.0, theta_norm: float = 1.0) -> float:
    """Lemma 1: predictive regret is at most the risk of missing the best arm, times the most that a miss can cost.

    That is `2 * feature_norm * theta_norm`, for features and theta_star of at most these lengths.

    Examples
    --------
    >>> regret_from_risk(0.1)
    0.2
    """
    missed = _as_bound(risk, "risk")
    length = as_number(feature_norm, "feature_norm", least=0.0) * as_number(theta_norm, "theta_norm", least=0.0)
    return 2.0 * length * missed if length and missed else 0.0


def risk_from_excess(excess: float, eta: float) -> float:
    """Lemma 2: the risk of missing the best arm is at most `excess / (1 - 2 eta)`; infinite for `eta` from 1/2 on.

    Parameters
    ----------
    excess
        By how much a policy disagrees more often with the learner's picks than the best policy does.
    eta
        Most probable that a pick is not the best arm, *in every context and after every past*.

    Examples
    --------
    >>> risk_from_excess(0.03, eta=0.2)
    0.05
    >>> risk_from_excess(0.03, eta=0.5)
    inf
    """
    more, noise = _as_bound(excess, "excess"), as_share(eta, "eta")
    return more / (1.0 - 2.0 * noise) if noise < 0.5 else math.inf


def clean_risk_bound(
    n_rounds: int,
    burn_in: int,
    n_features: int,
    n_arms: int,
    delta: float,
    eta: float,
    *,
    dimension: Dimension = "sharp",
) -> float:
    """Theorem 1: how often the observer's policy misses the best arm, at most, with probability `1 - delta`.

    The policy is the linear one that differs least often from the L = N - T picks after the burn-in. The bound is
    `2 uniform_deviation(L) / (1 - 2 eta)`, infinite for `eta` from 1/2 on. Parameters are those of
    `predictive_regret_bound`.

    Examples
    --------
    >>> round(clean_risk_bound(10**7, 10**6, 20, 50, delta=0.05, eta=0.1), 4)
    0.0132
    """
    rounds = suffix_length(n_rounds, burn_in)
    deviation = uniform_deviation(rounds, n_features, n_arms, delta, dimension=dimension)
    return risk_from_excess(2.0 * deviation, eta)


def predictive_regret_bound(
    n_rounds: int,
    burn_in: int,
    n_features: int,
    n_arms: int,
    delta: float,
    eta: float,
    *,
    dimension: Dimension = "sharp",
) -> float:
    """Theorem 2: what the observer's policy misses a round, at most, with probability `1 - delta`.

    Twice the bound of `clean_risk_bound`, so `4 uniform_deviation(N - T) / (1 - 2 eta)`: larger where fewer rounds are
    left or the learner is wrong more often. Falls like 1 / sqrt(N - T) up to a logarithm.

    Parameters
    ----------
    n_rounds, burn_in
        Rounds of the log, N, and how many are discarded, T.
    n_features, n_arms
        Features of an arm, d, and the most arms on offer in a round, K.
    delta
        Probability with which the bound may fail, above 0 and at most 1.
    eta
        From 0 to 1: most probable that a pick after the burn-in is not the best arm, in every context and after every
        past. Where only the mean is that small, use `any_learner_regret_bound`.
    dimension
        `"sharp"` (d) or `"paper"` (d log2 K), see `natarajan_dimension`.

    Returns
    -------
    float
        As it is: above `TRIVIAL_REGRET` it says nothing; infinite for `eta` from 1/2 on.

    Examples
    --------
    >>> round(predictive_regret_bound(10**7, 10**6, 20, 50, delta=0.05, eta=0.1), 4)
    0.0265
    >>> bound = predictive_regret_bound(10_000, 3981, n_features=20, n_arms=50, delta=0.05, eta=0.1)
    >>> bound > TRIVIAL_REGRET
    True
    """
    return regret_from_risk(
        clean_risk_bound(n_rounds, burn_in, n_features, n_arms, delta, eta, dimension=dimension),
    )


def corollary_bound(
    n_rounds: int,
    n_features: int,
    n_arms: int,
    delta: float,
    *,
    regret_constant: float,
    gap: float,
    exponent: float = 0.9,
    dimension: Dimension = "sharp",
) -> float:
    """Corollary: theorem 2 after T = N^exponent rounds, for a learner whose regret in t rounds is at most C sqrt(t).

    A mistake costs at least `gap`, so with mistakes that get no more frequent `eta(T) = C / (gap sqrt(T))`; see
    `eta_from_regret`. For exponents below 1 the bound falls like 1 / sqrt(N) up to logarithms; it is infinite until
    T has made eta smaller than 1/2.

    Examples
    --------
    >>> [round(corollary_bound(n, 20, 50, 0.05, regret_constant=5.0, gap=0.1), 3) for n in (10**4, 10**6, 10**8)]
    [inf, 0.102, 0.007]
    """
    rounds = as_count(n_rounds, "n_rounds")
    burn_in = power_start(rounds, as_number(exponent, "exponent", least=0.0, most=1.0))
    regret = as_number(regret_constant, "regret_constant", least=0.0) * math.sqrt(burn_in)
    eta = eta_from_regret(regret, burn_in, gap)
    return predictive_regret_bound(rounds, burn_in, n_features, n_arms, delta, eta, dimension=dimension)


def _as_bound(value: float, name: str) -> float:
    """A number from 0 on; infinity is a bound too."""
    return math.inf if value == math.inf else as_number(value, name, least=0.0)


def any_learner_risk_bound(
    n_rounds: int,
    burn_in: int,
    n_features: int,
    n_arms: int,
    delta: float,
    mistakes: float,
    *,
    disagreement: float | None = None,
    dimension: Dimension = "sharp",
) -> float:
    """Bound how often a linear policy that imitates the suffix misses the best arm, with probability `1 - delta`.

    Where policy and best arm differ, the policy differs from the pick or the pick was wrong, so in the suffix they
    differ in a share of at most `disagreement + mistakes` of the rounds; `risk_from_sample` carries this over to new
    rounds. Parameters are those of `any_learner_regret_bound`.

    Examples
    --------
    >>> round(any_learner_risk_bound(10_000, 3981, 20, 50, delta=0.05, mistakes=0.05), 3)
    0.369
    """
    wrong = as_share(mistakes, "mistakes")
    differs = wrong if disagreement is None else as_share(disagreement, "disagreement")
    rounds = suffix_length(n_rounds, burn_in)
    return risk_from_sample(min(1.0, differs + wrong), rounds, n_features, n_arms, delta, dimension=dimension)


def any_learner_regret_bound(
    n_rounds: int,
    burn_in: int,
    n_features: int,
    n_arms: int,
    delta: float,
    mistakes: float,
    *,
    disagreement: float | None = None,
    dimension: Dimension = "sharp",
) -> float:
    """Bound what a linear policy that imitates the suffix misses a round, with probability `1 - delta`.

    Unlike theorem 2 it asks nothing of the learner: picks may depend on one another and be wrong in some contexts
    always. In exchange, mistakes do not average out: with `mistakes` m it stays above 4 m however long the log.

    Parameters
    ----------
    n_rounds, burn_in, n_features, n_arms, delta, dimension
        As in `predictive_regret_bound`.
    mistakes
        Share of the suffix's picks that were not the best arm, from 0 to 1. If only its mean over logs is known, that
        mean over p holds with probability 1 - p.
    disagreement
        Share of the suffix's rounds in which the policy differs from the pick: `1 - agreement(policy, suffix)`. Holds
        for a policy fitted by any loss. None stands for the one that differs least often, hence in at most `mistakes`.

    Examples
    --------
    >>> round(any_learner_regret_bound(10_000, 3981, 20, 50, delta=0.05, mistakes=0.05), 3)
    0.737
    >>> round(any_learner_regret_bound(10_000, 3981, 20, 50, delta=0.05, mistakes=0.05, disagreement=0.2), 3)
    1.18
    """
    return regret_from_risk(
        any_learner_risk_bound(
            n_rounds, burn_in, n_features, n_arms, delta, mistakes, disagreement=disagreement, dimension=dimension
        )
    )


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
