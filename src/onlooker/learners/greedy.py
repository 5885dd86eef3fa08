"""Greedy but for some uniform picks: now and then, at first, or always."""

from dataclasses import dataclass

import numpy as np

from onlooker.checks import as_number, as_whole
from onlooker.errors import InputError
from onlooker.learners.ridge import RidgeLearner, Rule


@dataclass(frozen=True, repr=False)
class EpsilonGreedy(RidgeLearner):
    """Pick uniformly with probability `epsilon`, else the best arm under the estimate.

    Examples
    --------
    >>> EpsilonGreedy(0.1)
    EpsilonGreedy(epsilon=0.1, ridge=1.0, batch=1)
    """

    epsilon: float = 0.05
    """Share of uniform picks."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", as_number(self.epsilon, "epsilon", least=0.0, most=1.0))

    def rule(self, n_features: int, noise: float) -> Rule:  # noqa: ARG002
        """See `RidgeLearner.rule`."""
        from onlooker.kernels.learning import MIXING

        return Rule(MIXING, np.array([self.epsilon, np.inf]))


@dataclass(frozen=True, repr=False)
class ExploreThenCommit(RidgeLearner):
    """Pick uniformly for `explore` rounds, then the best arm under what is known at that moment, for ever.

    Examples
    --------
    >>> ExploreThenCommit(500)
    ExploreThenCommit(explore=500, ridge=1.0, batch=1)
    """

    explore: int = 1000
    """Rounds of uniform picks; at least one batch."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "explore", as_whole(self.explore, "explore", least=1))
        if self.explore < self.batch:
            raise InputError(
                f"explore is {self.explore}, but the first rewards are seen after a batch of {self.batch} rounds: "
                "explore for at least one batch"
            )

    def rule(self, n_features: int, noise: float) -> Rule:  # noqa: ARG002
        """See `RidgeLearner.rule`."""
        from onlooker.kernels.learning import MIXING

        return Rule(MIXING, np.array([1.0, self.explore]), last_update=self.explore)


@dataclass(frozen=True, repr=False)
class UniformRandom(RidgeLearner):
    """Pick uniformly in every round: nothing to recover.

    Examples
    --------
    >>> UniformRandom()
    UniformRandom(ridge=1.0, batch=1)
    """

    def rule(self, n_features: int, noise: float) -> Rule:  # noqa: ARG002
        """See `RidgeLearner.rule`."""
        from onlooker.kernels.learning import MIXING

        return Rule(MIXING, np.array([1.0, np.inf]))
