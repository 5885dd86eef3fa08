"""Lemma 4: how far what a sample of rounds shows is from the truth, for all linear policies at once."""

from __future__ import annotations

import math

from onlooker.bounds.arguments import as_count, as_delta, as_share
from onlooker.bounds.complexity import Dimension, log_growth


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
