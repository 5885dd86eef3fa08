"""Lemma 3: how many different answers linear policies can give, which is what they can overfit with."""

from __future__ import annotations

import math
from typing import Literal

from onlooker.bounds.arguments import LARGEST, as_count
from onlooker.errors import InputError

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
