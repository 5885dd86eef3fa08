"""A bound for every learner: no condition on single contexts, only how many picks were wrong."""

from __future__ import annotations

from onlooker.evaluation.bounds.lemmas import Dimension, as_share, risk_from_sample, suffix_length
from onlooker.evaluation.bounds.theorems import regret_from_risk


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
