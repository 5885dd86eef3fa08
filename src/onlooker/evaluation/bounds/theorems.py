"""Lemmas 1 and 2, both theorems and the corollary: from the learner's mistakes to the observer's regret."""

from __future__ import annotations

import math

from onlooker.base.checks import as_number
from onlooker.evaluation.bounds.lemmas import Dimension, as_count, as_share, suffix_length, uniform_deviation
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
