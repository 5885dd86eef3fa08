"""Lemmas 3 and 4: how many policies there are, and how far their sample risk strays."""

from __future__ import annotations

import math
from typing import Any, Literal

from onlooker.base.checks import as_number, as_whole
from onlooker.base.errors import InputError

LARGEST = 2**63 - 1
"""Of a count: beyond it floats would overflow where counts are multiplied."""


def as_count(value: Any, name: str, *, least: int = 1, most: int = LARGEST) -> int:
    """Return `value` as a whole number from `least` to `most`."""
    count = as_whole(value, name, least=least)
    if count > most:
        raise InputError(f"{name} is {count}: pass a whole number of at most {most}")
    return count


def as_share(value: Any, name: str) -> float:
    """Return `value` as a probability or a share, from 0 to 1."""
    return as_number(value, name, least=0.0, most=1.0)


def as_delta(value: Any) -> float:
    """Return `value` as the probability with which a bound may fail, above 0 and at most 1."""
    return as_number(value, "delta", above=0.0, most=1.0)


def suffix_length(n_rounds: Any, burn_in: Any) -> int:
    """Rounds that are left to imitate, L = N - T, at least one.

    Examples
    --------
    >>> suffix_length(10_000, 3981)
    6019
    """
    total, thrown = as_count(n_rounds, "n_rounds"), as_count(burn_in, "burn_in", least=0)
    if thrown >= total:
        raise InputError(f"burn_in is {thrown} of {total} rounds: leave at least one round to imitate")
    return total - thrown


Dimension = Literal["sharp", "paper"]
"""`"paper"` counts with a Natarajan dimension of d log2 K, `"sharp"` with d, which is exact."""


def natarajan_dimension(n_features: int, n_arms: int, *, dimension: Dimension = "sharp") -> float:
    """Bound how many rounds linear policies shatter: two arms in each, and a theta for any pattern of the two.

    Policies share one theta, so the differences of the two arms would have to be shattered by half-spaces through the
    origin, of which d are the most: `"sharp"` is d. The paper's O(d log K) needs a logarithm to base 2 to be at least
    that for two arms: `"paper"` is d log2 K.

    Examples
    --------
    >>> natarajan_dimension(20, 64), natarajan_dimension(20, 64, dimension="paper")
    (20.0, 120.0)
    """
    d, arms = as_count(n_features, "n_features"), as_count(n_arms, "n_arms")
    if dimension not in {"sharp", "paper"}:
        raise InputError(f"dimension is {dimension!r}: pass 'sharp' or 'paper'")
    if arms == 1:
        return 0.0
    return float(d) if dimension == "sharp" else d * math.log2(arms)


def log_growth(n_rounds: int, n_features: int, n_arms: int, *, dimension: Dimension = "sharp") -> float:
    """Bound the logarithm of how many sequences of picks linear policies can make in `n_rounds` given rounds.

    There are at most K^L such sequences, whatever the policies. `"paper"` puts its dimension D into Natarajan's lemma:
    at most (L K^2)^D. `"sharp"` counts directly: picks follow from the signs of theta's products with the
    n = L K (K - 1) / 2 differences of arms, and by Sauer's lemma those have at most (e n / d)^d patterns.

    Examples
    --------
    >>> round(log_growth(6019, 20, 50), 1)
    276.4
    >>> round(log_growth(6019, 20, 50, dimension="paper"), 1)
    1865.5
    >>> log_growth(6019, 20, 1)
    0.0
    """
    # Lemma 4 looks at a second sample of as many rounds.
    rounds = as_count(n_rounds, "n_rounds", most=2 * LARGEST)
    complexity = natarajan_dimension(n_features, n_arms, dimension=dimension)
    any_policy = rounds * math.log(n_arms)
    if dimension == "paper":
        return min(any_policy, complexity * (math.log(rounds) + 2 * math.log(n_arms)))
    pairs = rounds * n_arms * (n_arms - 1) // 2
    return min(any_policy, n_features * (1.0 + math.log(max(pairs, n_features) / n_features)))


def uniform_deviation(
    n_rounds: int, n_features: int, n_arms: int, delta: float, *, dimension: Dimension = "sharp"
) -> float:
    """Bound how far any policy's disagreement with a learner's picks in the sample lies from the one to expect.

    With probability at least `1 - delta`, for all linear policies at once: the share of L rounds in which the policy
    differs from the pick, and the mean over these rounds of the probability of that given the rounds before, differ by
    at most

        sqrt((g(L) + log(4 / delta)) / (2 L)) + (log2(4 / delta) + 2 log2(8 / delta) + 6 log2(e) g(2 L)) / L

    with `g = log_growth`. Contexts must be independent of the past; picks may depend on it in any way.

    Parameters
    ----------
    n_rounds
        Rounds in the sample, L.
    n_features, n_arms
        Features of an arm, d, and the most arms on offer in a round, K.
    delta
        Probability with which the bound may fail, above 0 and at most 1.
    dimension
        `"sharp"` or `"paper"`, see `natarajan_dimension`.

    Examples
    --------
    >>> round(uniform_deviation(6019, 20, 50, delta=0.05), 3)
    0.574
    >>> round(uniform_deviation(10**7, 20, 50, delta=0.05), 4)
    0.005
    """
    rounds, failure = as_count(n_rounds, "n_rounds"), math.log(as_delta(delta))
    once = log_growth(rounds, n_features, n_arms, dimension=dimension)
    twice = log_growth(2 * rounds, n_features, n_arms, dimension=dimension)
    chance = math.sqrt((once + math.log(4) - failure) / (2 * rounds))
    # Policies stand for one another where they agree on a second sample: what that costs here, and at large.
    sample, population = 2 * twice + math.log(4) - failure, 2 * twice + math.log(8) - failure
    return chance + (sample + 2 * population) / (math.log(2) * rounds)


def risk_from_sample(
    share: float, n_rounds: int, n_features: int, n_arms: int, delta: float, *, dimension: Dimension = "sharp"
) -> float:
    """Bound any policy's probability of missing the best arm, given the share of independent rounds where it does.

    With probability at least `1 - delta`, for all linear policies at once: the risk R is at most
    `share + 2 a + 2 sqrt(a (a + share))` where `a = (g(2 L) + log(4 / delta)) / L` and `g = log_growth` (Vapnik and
    Chervonenkis' bound on relative deviations, solved for R). A share of 0 leaves 4 a: no square root.

    Examples
    --------
    >>> round(risk_from_sample(0.0, 6019, 20, 50, delta=0.05), 3)
    0.196
    >>> round(risk_from_sample(0.1, 6019, 20, 50, delta=0.05), 3)
    0.369
    """
    seen, rounds, failure = as_share(share, "share"), as_count(n_rounds, "n_rounds"), math.log(as_delta(delta))
    twice = log_growth(2 * rounds, n_features, n_arms, dimension=dimension)
    a = (twice + math.log(4) - failure) / rounds
    return seen + 2 * a + 2 * math.sqrt(a * (a + seen))
